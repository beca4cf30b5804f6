"""Write an overlay's hashes into its manifest, from the engine that is installed. For the author of a patch."""

import re
from hashlib import sha256
from itertools import pairwise
from pathlib import Path

from overlays import payload
from overlays.base import BaseTree
from overlays.compose import before, compose, expect_sense, patched
from overlays.errors import OverlayError
from overlays.manifest import MANIFEST
from overlays.values import Overlay, PatchedFile, Plugin

BLOCK = re.compile(r"^[ \t]*\[\[\s*target\s*\.\s*file\s*\]\][ \t]*(?:#.*)?$", re.MULTILINE)
PLUGIN = re.compile(r'(^\s*\[plugin\][^\n]*\n(?:(?!\s*\[)[^\n]*\n)*?\s*payload_sha256\s*=\s*)"\w+"', re.MULTILINE)


def pin(base: BaseTree, overlay: Overlay, required: tuple[Overlay, ...]) -> list[str]:
    """Pin `overlay` to `base` with `required` applied: one line a file, and one for a plugin's payload.

    Raises OverlayError if it does not apply.
    """
    texts = dict(compose(base, required).files)
    lines = []
    for file in overlay.target(base.version, base.build).files:
        found = before(base, file.path, texts)
        after = _after(overlay, file, found)
        _rewrite(overlay.folder / MANIFEST, file, found, after)
        lines.append(f"{file.path} {_hash(found) if found else 'added'} -> {_hash(after)}")
    return [*lines, *([_pin_payload(overlay, overlay.plugin)] if overlay.plugin else [])]


def _after(overlay: Overlay, file: PatchedFile, found: bytes | None) -> bytes:
    if not file.added and found is None:
        raise OverlayError(f"{file.path} is not in the engine; correct the path")
    after = file.added.read_bytes() if file.added else patched(file, found or b"")
    if file.added or file.patch:
        expect_sense(overlay, file.path, after)
    return after


def _pin_payload(overlay: Overlay, plugin: Plugin) -> str:
    manifest, found = overlay.folder / MANIFEST, payload.digest(plugin)
    text, count = PLUGIN.subn(rf'\g<1>"{found}"', manifest.read_text(encoding="utf-8"))
    if count != 1:
        raise OverlayError(f"{manifest} has no payload_sha256 on a line of its own in [plugin]; write it there")
    manifest.write_text(text, encoding="utf-8")
    return f"{plugin.payload.name}/ -> {found}"


def _rewrite(manifest: Path, file: PatchedFile, found: bytes | None, after: bytes) -> None:
    """Replace the two hashes in the block that names the file with its old ones."""
    text = manifest.read_text(encoding="utf-8")
    starts = [match.start() for match in BLOCK.finditer(text)] + [len(text)]
    for start, end in pairwise(starts):
        block = text[start:end]
        if f'"{file.path}"' in block and file.postimage_sha256 in block:
            new = re.sub(r'(postimage_sha256\s*=\s*)"\w+"', rf'\g<1>"{_hash(after)}"', block, count=1)
            if found:
                new = re.sub(r'(preimage_sha256\s*=\s*)"\w+"', rf'\g<1>"{_hash(found)}"', new, count=1)
            manifest.write_text(text[:start] + new + text[end:], encoding="utf-8")
            return
    raise OverlayError(f"{manifest} has no [[target.file]] block of {file.path}")


def _hash(content: bytes) -> str:
    return sha256(content).hexdigest()
