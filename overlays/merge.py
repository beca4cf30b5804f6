"""Hunks carried from one text to a later one, each by itself: clean, there already, to look at, in conflict, gone."""

import os
import re
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from overlays.errors import OverlayError
from overlays.patch import Change, changes, lines

GIT_DIFF = ("git", "diff", "--no-index", "--no-ext-diff", "--no-color", "--no-prefix")
HEADER_TAIL = re.compile(r"^(@@ [^@]* @@).*$", re.MULTILINE)
SHOWN_LINES = 2  # of the engine, above and below a hunk that is shown because of what lies beside it


class Fate(StrEnum):
    """What becomes of a hunk."""

    clean = "clean"
    beside = "clean, beside a change of the engine"
    already = "already in this engine"
    look = "to look at"
    conflict = "conflict"
    gone = "gone"

    @property
    def settled(self) -> bool:
        """Whether nothing is left to decide but the review."""
        return self in (Fate.clean, Fate.beside, Fate.already)

    @property
    def carried(self) -> bool:
        """Whether the hunk is made in the later text; one to look at is, though it may mean something else there."""
        return self in (Fate.clean, Fate.beside, Fate.look)


@dataclass(frozen=True)
class Carried:
    """One hunk in the later text: `to` is its line there (from 0); `ours` and `theirs` are the two texts of its place.

    `why` names a declared part that the engine has by itself, or says why one must look.
    """

    change: Change
    fate: Fate
    to: int
    ours: tuple[str, ...] = ()
    theirs: tuple[str, ...] = ()
    why: str = ""


def carry(ours: Sequence[Change], base: str, later: str) -> list[Carried]:
    """Each change of `base` as it stands to `later`. Raises OverlayError where git cannot compare."""
    theirs = changes_between(base, later)
    return [_fitting(_carried(change, theirs, lines(base)), lines(later)) for change in ours]


def applied(carried: Sequence[Carried], later: str) -> str:
    """`later` with the changes that are carried."""
    text = lines(later)
    for one in reversed(carried):
        if one.fate.carried:
            text[one.to : one.to + len(one.change.removed)] = one.change.added
    return "".join(text)


def changes_between(before: str, after: str) -> list[Change]:
    """What makes `after` of `before`."""
    return changes(diff(before, after, "text"), "text") if before != after else []


def diff(before: str, after: str, path: str) -> str:
    """A unified diff without context, as a patch of an overlay is kept; empty for equal texts."""
    if before == after:
        return ""
    with tempfile.TemporaryDirectory(prefix="campaign-diff-") as folder:
        for side, text in (("a", before), ("b", after)):
            file = Path(folder, side, path)
            file.parent.mkdir(parents=True)
            file.write_bytes(text.encode())
        # The caller's configuration could change the diff: it is not read.
        environment = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
        environment["GIT_CEILING_DIRECTORIES"] = str(Path(folder).parent)
        command = [*GIT_DIFF, "-U0", "--text", f"a/{path}", f"b/{path}"]
        try:
            done = subprocess.run(command, capture_output=True, cwd=folder, env=environment, check=False)
        except OSError as error:
            raise OverlayError(f"rebase needs git: {error}") from error
    text = done.stdout.decode()
    if done.returncode != 1:
        raise OverlayError(f"git could not compare two texts of {path}: {done.stderr.decode().strip()}")
    # What git writes behind the second @@ is a line of the engine, which is not ours to keep.
    return HEADER_TAIL.sub(r"\1", text[text.index("--- ") :])


def _carried(change: Change, theirs: Sequence[Change], base: list[str]) -> Carried:
    over = [other for other in theirs if _overlap(change, other)]
    earlier = [other for other in theirs if other.end <= change.start and other not in over]
    shift = sum(len(other.added) - len(other.removed) for other in earlier)
    if not over:
        beside = [other for other in theirs if other.start <= change.end and change.start <= other.end]
        return _beside(change, beside, change.start + shift, base)
    first, last = min(change.start, over[0].start), max(change.end, over[-1].end)
    mine = _region(base, first, last, [change])
    engine = _region(base, first, last, over)
    return Carried(change, _fate(mine, engine), first + shift, mine, engine)


def _beside(change: Change, touching: Sequence[Change], to: int, base: list[str]) -> Carried:
    """A hunk that no change of the engine overlaps. What is beside it may have been what it was written for."""
    if not touching:
        return Carried(change, Fate.clean, to)
    first = max(0, min(change.start, touching[0].start) - SHOWN_LINES)
    last = min(len(base), max(change.end, touching[-1].end) + SHOWN_LINES)
    texts = _region(base, first, last, [change]), _region(base, first, last, touching)
    if any(other.removed for other in touching):
        return Carried(change, Fate.look, to, *texts, why="the engine replaced or removed the lines beside it")
    return Carried(change, Fate.beside, to, *texts)


def _fitting(one: Carried, later: list[str]) -> Carried:
    """The hunk as it is; a conflict where the text at its place is not the one it removes, or lines would be glued."""
    if not one.fate.carried:
        return one
    removed, behind = one.change.removed, one.to + len(one.change.removed)
    added = one.change.added
    above = later[one.to - 1] if added and one.to else "\n"
    cut = bool(added) and not added[-1].endswith("\n") and behind < len(later)
    if tuple(later[one.to : behind]) == removed and above.endswith("\n") and not cut:
        return one
    shown = tuple(later[max(0, one.to - SHOWN_LINES) : behind + SHOWN_LINES])
    return Carried(one.change, Fate.conflict, one.to, one.ours or added, one.theirs or shown)


def _fate(mine: tuple[str, ...], engine: tuple[str, ...]) -> Fate:
    """The same change of both is there already; a line of ours that stands somewhere in a rewritten part is not."""
    if mine == engine:
        return Fate.already
    return Fate.conflict if engine else Fate.gone


def _overlap(one: Change, other: Change) -> bool:
    """Whether two changes of one text cannot both be made: they share a line, or both insert at one place."""
    if one.start == one.end == other.start == other.end:
        return True
    return one.start < other.end and other.start < one.end


def _region(base: list[str], first: int, last: int, made: Sequence[Change]) -> tuple[str, ...]:
    text: list[str] = []
    done = first
    for change in made:
        text += [*base[done : change.start], *change.added]
        done = change.end
    return (*text, *base[done:last])
