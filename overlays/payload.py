"""What a plugin brings along: the files of its payload folder, as they go into the stage, and one digest over them."""

from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

from overlays.errors import DriftError, OverlayError
from overlays.values import Overlay, Plugin


def files(plugin: Plugin) -> Iterator[tuple[str, bytes]]:
    """The path in the stage and the bytes of each file, in a fixed order. Raises OverlayError for a link.

    What is brought lies in a package of its kernel's name, inside the plugin's own.
    """
    own = ((file.relative_to(plugin.payload), file) for file in sorted(plugin.payload.rglob("*")))
    brought = ((Path(file.parent.name, file.name), file) for file in sorted(plugin.brings))
    for place, file in (*own, *brought):
        if file.is_symlink():
            raise OverlayError(f"{file} is a link, whose target no hash here speaks for; put the file itself there")
        if file.is_file() and "__pycache__" not in file.parts:
            yield f"{plugin.package}/{place}", file.read_bytes()


def digest(plugin: Plugin) -> str:
    """The sha256 (hex) over the paths and bytes of all files: what the manifest pins."""
    whole = sha256()
    for path, content in files(plugin):
        for part in (path.encode(), content):
            whole.update(f"{len(part)}:".encode() + part)
    return whole.hexdigest()


def expect_pinned(overlay: Overlay, plugin: Plugin) -> None:
    """Raise DriftError unless the payload is the pinned one."""
    found = digest(plugin)
    if found != plugin.payload_sha256:
        raise DriftError(
            f"{overlay.name}'s payload {plugin.payload} is {found}, but its manifest pins {plugin.payload_sha256}; "
            f"review what changed there, then: python -m overlays pin {overlay.name}"
        )
