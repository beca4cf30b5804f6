"""Whether an engine has by itself what an overlay adds: by hash, by the patch's own lines, by what is declared."""

from hashlib import sha256

from overlays.errors import OverlayError
from overlays.patch import Change, changes, lines
from overlays.values import Landed, Overlay, PatchedFile

ALREADY = "already in this engine"
SPEAKING_CHARS = 16  # fewer characters of added text stand in many a file by chance


def words(overlay: Overlay, file: PatchedFile, found: str) -> str:
    """What of this file's patch the engine's text `found` has already, in words; empty when nothing."""
    if sha256(found.encode()).hexdigest() == file.postimage_sha256:
        return f"{ALREADY}: the file is the patched one"
    parts = [landed.what for landed in declared(overlay, file.path, found)]
    parts += [f"the change at line {change.start + 1}" for change in _by_lines(file, found)]
    return f"{ALREADY}: {', '.join(parts)}" if parts else ""


def declared(overlay: Overlay, path: str, found: str) -> tuple[Landed, ...]:
    """The [[landed]] entries whose text stands in the engine's file."""
    return tuple(landed for landed in overlay.landed if landed.path == path and landed.text in found)


def stands(change: Change, text: list[str]) -> bool:
    """Whether the added lines stand in `text` as they are, and the removed ones do not."""
    speaking = len("".join("".join(change.added).split()))
    removed_too = bool(change.removed) and _contains(text, change.removed)
    return speaking >= SPEAKING_CHARS and _contains(text, change.added) and not removed_too


def _contains(text: list[str], block: tuple[str, ...]) -> bool:
    """Whether the lines of `block` stand in `text` one after the other."""
    size = len(block)
    return any(tuple(text[at : at + size]) == block for at in range(len(text) - size + 1))


def _by_lines(file: PatchedFile, found: str) -> list[Change]:
    if file.patch is None:
        return []
    try:
        made = changes(file.patch.read_text(encoding="utf-8"), file.path)
    except OverlayError:
        return []  # a bad patch is told by the one who applies it
    return [change for change in made if stands(change, lines(found))]
