"""A folder in the making: locked while its maker lives, removed with it, and found by the next one if it was killed."""

import contextlib
import fcntl
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from overlays.tree import discard

PREFIX = ".making-"


@contextmanager
def making(parent: Path) -> Iterator[Path]:
    """An empty folder in `parent` to fill and rename; what is not renamed is removed. Removes dead makers' folders."""
    sweep(parent)
    aside, lock = _locked(parent)
    try:
        yield aside
    finally:
        if aside.exists():
            discard(aside)
        os.close(lock)


def sweep(parent: Path) -> None:
    """Remove each folder in the making whose maker is dead: the kernel gave up its lock."""
    for left in parent.glob(f"{PREFIX}*"):
        with contextlib.suppress(OSError):  # locked, gone meanwhile, or a file system without locks: not ours to remove
            lock = os.open(left, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                discard(left)
            finally:
                os.close(lock)


def _locked(parent: Path) -> tuple[Path, int]:
    """A new folder and the descriptor that locks it; another one where a sweeper was faster than the lock."""
    while True:
        aside = Path(tempfile.mkdtemp(prefix=PREFIX, dir=parent))
        try:
            lock = os.open(aside, os.O_RDONLY | os.O_DIRECTORY)
        except FileNotFoundError:  # swept before it could be opened
            continue
        with contextlib.suppress(OSError):
            fcntl.flock(lock, fcntl.LOCK_EX)
        if aside.exists():
            return aside, lock
        os.close(lock)
