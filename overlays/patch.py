"""Unified diffs with zero lines of context, applied strictly: exact line, exact text, no fuzz, no offset."""

from dataclasses import dataclass
from pathlib import Path

from unidiff.errors import UnidiffParseError
from unidiff.patch import Hunk, PatchSet

from overlays.errors import DriftError, OverlayError

NO_NEWLINE = "\\"


@dataclass(frozen=True)
class Change:
    """One hunk: `removed` stands at line `start` (counted from 0), and `added` takes its place."""

    start: int
    removed: tuple[str, ...]
    added: tuple[str, ...]

    @property
    def end(self) -> int:
        """The first line behind what is removed."""
        return self.start + len(self.removed)


def read(file: Path) -> str:
    """The text of a patch, its line ends as they are. Raises OverlayError where it is no UTF-8."""
    try:
        return file.read_bytes().decode("utf-8")
    except UnicodeDecodeError as error:
        raise OverlayError(f"the patch {file} is no UTF-8 ({error}); save it as UTF-8") from error


def lines(text: str) -> list[str]:
    """The lines of `text`, each with its newline; only \\n ends a line (str.splitlines knows ten other ends)."""
    parts = text.split("\n")
    return [part + "\n" for part in parts[:-1]] + ([parts[-1]] if parts[-1] else [])


def apply(diff: str, base: str, path: str) -> str:
    """`base` with `diff` applied. Raises OverlayError for a bad diff, DriftError where another text stands."""
    source = lines(base)
    result: list[str] = []
    done = 0
    for change in changes(diff, path):
        if change.start < done:
            raise OverlayError(f"the patch of {path} goes backwards at line {change.start + 1}")
        _expect(source[change.start : change.end], change.removed, path, change.start + 1)
        if change.start > len(source):
            raise DriftError(f"{path} has {len(source)} lines, but the patch inserts after line {change.start}")
        result += [*source[done : change.start], *change.added]
        done = change.end
    return "".join(result + source[done:])


def changes(diff: str, path: str) -> list[Change]:
    """The hunks of a diff of `path` as changes. Raises OverlayError as `hunks` does."""
    return [_change(hunk) for hunk in hunks(diff, path)]


def _change(hunk: Hunk) -> Change:
    removed, added = _sides(hunk)
    # "-12,0" means: after line 12.
    return Change(hunk.source_start - 1 if removed else hunk.source_start, tuple(removed), tuple(added))


def hunks(diff: str, path: str) -> list[Hunk]:
    """The hunks of a diff of `path` alone. Raises OverlayError for another file, a context line, or no hunk."""
    try:
        files = PatchSet.from_string(diff)
    except UnidiffParseError as error:
        raise OverlayError(f"the patch of {path} is not a unified diff: {error}") from error
    names = [file.path for file in files]
    if names != [path]:
        raise OverlayError(f"the patch must change {path} and nothing else, but changes {names}")
    found = list(files[0])
    context = sum(line.is_context for hunk in found for line in hunk)
    if context or not found:
        raise OverlayError(f"the patch of {path} must carry zero lines of context (diff -U0); found {context}")
    return found


def _sides(hunk: Hunk) -> tuple[list[str], list[str]]:
    sides: dict[str, list[str]] = {"-": [], "+": []}
    last = sides["-"]
    for line in hunk:
        if line.line_type == NO_NEWLINE:
            last[-1] = last[-1].removesuffix("\n")
        else:
            last = sides[line.line_type]
            last.append(line.value)
    return sides["-"], sides["+"]


def _expect(found: list[str], wanted: tuple[str, ...], path: str, number: int) -> None:
    for offset, line in enumerate(wanted):
        there = found[offset] if offset < len(found) else "(end of file)"
        if there != line:
            raise DriftError(f"{path} line {number + offset} is {there!r}, but the patch removes {line!r}")
