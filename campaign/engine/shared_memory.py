"""Shared memory that an engine's processes made in /dev/shm, and its removal once they are dead."""

import contextlib
import os
from collections.abc import Iterable
from pathlib import Path

from campaign.engine import processes

SHM = Path("/dev/shm")
PREFIX = f"{SHM}/"
INODE_COLUMN = 4  # of a line of /proc/PID/maps


def names() -> frozenset[str]:
    """What there is now."""
    return frozenset(os.listdir(SHM)) if SHM.is_dir() else frozenset()  # noqa: PTH208


def held_by(pids: Iterable[int]) -> frozenset[str]:
    """The segments and semaphores that these processes have mapped or open.

    By inode: glibc makes a named semaphore under a name that it then replaces, and the map keeps the first one.
    """
    inodes = {inode for pid in pids for inode in _mapped(pid) | _opened(pid)}
    return frozenset(name for name in names() if _inode(SHM / name) in inodes) if inodes else frozenset()


def sweep(ours: frozenset[str], before: frozenset[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Remove segments that are ours, that came after `before` and that no living process holds.

    Returns the removed ones and those that are still there, as paths.
    """
    left = ours & names() - before
    held = held_by(processes.table()) if left else frozenset()
    for name in left - held:
        with contextlib.suppress(OSError):
            (SHM / name).unlink()
    there = names()
    return _paths(left - there), _paths(left & there)


def _paths(found: frozenset[str]) -> tuple[str, ...]:
    return tuple(PREFIX + name for name in sorted(found))


def _inode(path: Path) -> int | None:
    try:
        return path.stat().st_ino
    except OSError:
        return None


def _mapped(pid: int) -> set[int]:
    try:
        lines = (processes.PROC / str(pid) / "maps").read_text(errors="replace").splitlines()
    except OSError:
        return set()
    return {int(line.split(maxsplit=5)[INODE_COLUMN]) for line in lines if PREFIX in line}


def _opened(pid: int) -> set[int]:
    found: set[int | None] = set()
    with contextlib.suppress(OSError):
        for descriptor in (processes.PROC / str(pid) / "fd").iterdir():
            with contextlib.suppress(OSError):
                if str(descriptor.readlink()).startswith(PREFIX):
                    found.add(_inode(descriptor))
    return {inode for inode in found if inode is not None}
