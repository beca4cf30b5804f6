"""Whether an engine has by itself what an overlay adds: by hash, by the patch's own lines, by what is declared."""

from hashlib import sha256

from overlays.errors import OverlayError
from overlays.patch import Change, changes, lines, read
from overlays.values import Landed, Overlay, PatchedFile

ALREADY = "already in this engine"
SPEAKING_CHARS = 16  # fewer characters of added text stand in many a file by chance


def words(overlay: Overlay, file: PatchedFile, found: str) -> str:
    """What of this file's patch the engine's text `found` has already, in words; empty when nothing."""
    if sha256(found.encode()).hexdigest() == file.postimage_sha256:
        return f"{ALREADY}: the file is the patched one"
    parts = [landed.what for landed in declared(overlay, file.path, found)]
    if parts:
        return f"{ALREADY}: {', '.join(parts)}"
    return f"perhaps {ALREADY}: all lines that the patch adds stand in the file" if _by_lines(file, found) else ""


def declared(overlay: Overlay, path: str, found: str) -> tuple[Landed, ...]:
    """The [[landed]] entries whose text stands in the engine's file."""
    return tuple(landed for landed in overlay.landed if landed.path == path and landed.text in found)


def _stands(change: Change, text: list[str]) -> bool:
    """Whether the added lines stand in `text` as they are, and the removed ones do not."""
    speaking = len("".join("".join(change.added).split()))
    removed_too = bool(change.removed) and _contains(text, change.removed)
    return speaking >= SPEAKING_CHARS and _contains(text, change.added) and not removed_too


def _contains(text: list[str], block: tuple[str, ...]) -> bool:
    """Whether the lines of `block` stand in `text` one after the other."""
    size = len(block)
    return any(tuple(text[at : at + size]) == block for at in range(len(text) - size + 1))


def _by_lines(file: PatchedFile, found: str) -> bool:
    """Whether every hunk's lines stand in `found`: a hint, since without the older text nobody knows where."""
    if file.patch is None:
        return False
    try:
        made = changes(read(file.patch), file.path)
    except OverlayError:
        return False  # a bad patch is told by the one who applies it
    return all(_stands(change, lines(found)) for change in made)
