"""Shared memory that an engine's processes made in /dev/shm, and its removal once they are dead."""

import contextlib
import os
from collections.abc import Iterable
from pathlib import Path

from campaign.engine import processes

SHM = Path("/dev/shm")
PREFIX = f"{SHM}/"


def names() -> frozenset[str]:
    """What there is now."""
    return frozenset(os.listdir(SHM)) if SHM.is_dir() else frozenset()  # noqa: PTH208


def held_by(pids: Iterable[int]) -> frozenset[str]:
    """The segments that these processes have mapped or open."""
    return frozenset(name for pid in pids for name in _mapped(pid) | _opened(pid))


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


def _mapped(pid: int) -> set[str]:
    try:
        lines = (processes.PROC / str(pid) / "maps").read_text(errors="replace").splitlines()
    except OSError:
        return set()
    return {_name(line[line.index(PREFIX) :]) for line in lines if PREFIX in line}


def _opened(pid: int) -> set[str]:
    found = set()
    with contextlib.suppress(OSError):
        for descriptor in (processes.PROC / str(pid) / "fd").iterdir():
            with contextlib.suppress(OSError):
                found.add(str(descriptor.readlink()))
    return {_name(path) for path in found if path.startswith(PREFIX)}


def _name(path: str) -> str:
    return path.removeprefix(PREFIX).removesuffix(" (deleted)")
