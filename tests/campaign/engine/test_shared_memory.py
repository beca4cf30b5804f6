"""Whose shared memory is removed, and whose is not."""

import mmap
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from campaign.engine import shared_memory
from campaign.engine.shared_memory import SHM, held_by, sweep


@pytest.fixture
def segment() -> Iterator[Path]:
    """A segment of one page."""
    path = SHM / f"psm_test_{os.getpid()}"
    path.write_bytes(bytes(mmap.PAGESIZE))
    yield path
    path.unlink(missing_ok=True)


def test_a_mapped_segment_is_held(segment: Path) -> None:
    with segment.open("r+b") as file:
        held = mmap.mmap(file.fileno(), 0)
    assert segment.name in held_by([os.getpid()])
    held.close()
    assert segment.name not in held_by([os.getpid()])


def test_an_open_segment_is_held(segment: Path) -> None:
    with segment.open("rb"):
        assert segment.name in held_by([os.getpid()])


def test_a_segment_of_ours_that_nobody_holds_is_removed(segment: Path) -> None:
    assert sweep(frozenset({segment.name}), frozenset()) == ((str(segment),), ())
    assert not segment.exists()


def test_a_segment_that_a_living_process_holds_stays_and_is_named(segment: Path) -> None:
    with segment.open("rb"):
        assert sweep(frozenset({segment.name}), frozenset()) == ((), (str(segment),))


@pytest.mark.parametrize("reason", ["never seen in our processes", "there before the start"])
def test_a_segment_that_is_not_ours_stays(segment: Path, reason: str) -> None:
    ours = frozenset() if reason.startswith("never") else frozenset({segment.name})
    before = frozenset() if reason.startswith("never") else shared_memory.names()
    assert sweep(ours, before) == ((), ())
    assert segment.exists()
