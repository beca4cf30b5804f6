"""An overlay carried from one engine to another: what becomes of each file and hunk. Nothing is written here."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from overlays import landed, syntax
from overlays.base import BaseTree
from overlays.blocks import in_place
from overlays.compose import before, compose
from overlays.errors import OverlayError
from overlays.merge import Carried, Fate, applied, carry
from overlays.patch import changes, read
from overlays.values import Overlay, PatchedFile


@dataclass(frozen=True)
class FileCarried:
    """One file of the overlay in the later engine. `found` and `after` are its bytes there, without and with ours.

    `was` are its bytes in the older one, without ours. `hunks` are a patch's; `note` speaks of the whole file.
    """

    file: PatchedFile
    fate: Fate
    found: bytes | None = None
    after: bytes | None = None
    hunks: tuple[Carried, ...] = ()
    note: str = ""
    was: bytes | None = None


@dataclass(frozen=True)
class Rebased:
    """The whole overlay, file by file."""

    overlay: Overlay
    old: BaseTree
    new: BaseTree
    files: tuple[FileCarried, ...]

    @property
    def settled(self) -> bool:
        """Whether every file and hunk is clean or already in the engine; what is to look at is not settled."""
        return all(file.fate.settled for file in self.files)


def rebase(overlay: Overlay, required: Sequence[Overlay], old: BaseTree, new: BaseTree) -> Rebased:
    """Carry `overlay` from `old` to `new`. Raises DriftError where it does not fit `old`, OverlayError for the set."""
    compose(old, (*required, overlay))
    try:
        texts = compose(old, required).files, compose(new, required).files
    except OverlayError as error:
        raise OverlayError(
            f"{overlay.name} stands on {', '.join(other.name for other in required)}; rebase that first: {error}"
        ) from error
    files = tuple(_file(overlay, file, old, new, texts) for file in overlay.target(old.version, old.build).files)
    return Rebased(overlay, old, new, files)


Texts = tuple[Mapping[str, bytes], Mapping[str, bytes]]


def _file(overlay: Overlay, file: PatchedFile, old: BaseTree, new: BaseTree, texts: Texts) -> FileCarried:
    was, found = before(old, file.path, texts[0]), before(new, file.path, texts[1])
    if file.added:
        return _added(file, file.added.read_bytes(), found)
    if found is None:
        return FileCarried(file, Fate.gone, note=f"vLLM {new.version} has no such file")
    if file.patch is None:
        return _watched(file, was, found)
    return _patched(overlay, file, (was or b"").decode("utf-8"), found)


def _added(file: PatchedFile, ours: bytes, found: bytes | None) -> FileCarried:
    if found is None:
        return FileCarried(file, Fate.clean, after=ours, note="added: the engine has no such file")
    if found == ours:
        return FileCarried(file, Fate.already, found, note="the engine has the very same file")
    return FileCarried(
        file, Fate.conflict, found, note="the engine now has a file of this name; give ours another path"
    )


def _watched(file: PatchedFile, was: bytes | None, found: bytes) -> FileCarried:
    if was == found:
        return FileCarried(file, Fate.clean, found, found, note="watched: the very same file")
    return FileCarried(
        file, Fate.conflict, found, found, was=was,
        note="watched, and changed: read its diff beside this page and see whether what the overlay wraps still holds",
    )  # fmt: skip


def _patched(overlay: Overlay, file: PatchedFile, was: str, found: bytes) -> FileCarried:
    _expect_news(overlay, file.path, was)
    try:
        later = found.decode("utf-8")
    except UnicodeDecodeError as error:
        note = f"no text in UTF-8 there ({error}), so no patch fits it"
        return FileCarried(file, Fate.conflict, found, note=note, was=was.encode("utf-8"))
    patch = read(file.patch) if file.patch else ""
    hunks = [_landed(overlay, file.path, later, hunk) for hunk in carry(changes(patch, file.path), was, later)]
    hunks = in_place(hunks, was, later) if file.path.endswith(".py") else hunks
    after = applied(hunks, later).encode("utf-8")
    wrong = syntax.problem(file.path, after)
    fate = _worst([*(hunk.fate for hunk in hunks), *([Fate.conflict] if wrong else [])])
    return FileCarried(file, fate, found, after, tuple(hunks), f"merged, {wrong}" if wrong else "", was.encode("utf-8"))


def _expect_news(overlay: Overlay, path: str, was: str) -> None:
    """A declared text that stands in the older engine too would call everything landed."""
    for part in landed.declared(overlay, path, was):
        raise OverlayError(
            f"{overlay.name}: the [[landed]] text of {part.what!r} stands in {path} of the engine that the patch was "
            "written for; choose a text that only an engine which has that part by itself holds"
        )


def _landed(overlay: Overlay, path: str, later: str, hunk: Carried) -> Carried:
    """The hunk; already in the engine where a declared part makes it needless."""
    for part in landed.declared(overlay, path, later):
        if part.instead_of in "".join(hunk.change.added):
            return Carried(hunk.change, Fate.already, hunk.to, hunk.ours, hunk.theirs, part.what)
    return hunk


def _worst(fates: Sequence[Fate]) -> Fate:
    order = list(Fate)
    return max(fates, key=order.index) if any(not fate.settled for fate in fates) else _mildest(fates)


def _mildest(fates: Sequence[Fate]) -> Fate:
    """Of a file in which nothing is left to decide: already only when every hunk is."""
    return Fate.already if set(fates) == {Fate.already} else Fate.clean
