"""Which overlays go together, in which order, and what they make of the engine's files. Nothing is written here."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from graphlib import CycleError, TopologicalSorter
from hashlib import sha256
from itertools import combinations

from overlays.base import BaseTree
from overlays.errors import DriftError, OverlayError
from overlays.patch import apply
from overlays.values import Overlay, PatchedFile


@dataclass(frozen=True)
class Composed:
    """Overlays in the order they apply, and the whole text of every engine file that they change or add, by path."""

    overlays: tuple[Overlay, ...]
    files: Mapping[str, bytes]


def compose(base: BaseTree, overlays: Sequence[Overlay]) -> Composed:
    """`overlays` applied to the texts of `base`. Raises OverlayError for a wrong set, DriftError for a hash."""
    ordered = order(overlays)
    refuse_conflicts(base, ordered)
    texts: dict[str, bytes] = {}
    for overlay in ordered:
        for file in overlay.target(base.version, base.build).files:
            after = changed(base, overlay, file, before(base, file.path, texts))
            if file.patch or file.added:
                texts[file.path] = after
    return Composed(ordered, texts)


def order(overlays: Sequence[Overlay]) -> tuple[Overlay, ...]:
    """What is required first, then by name. Raises OverlayError for a missing requirement, a double name, a circle."""
    named = {overlay.name: overlay for overlay in sorted(overlays, key=lambda overlay: overlay.name)}
    if len(named) != len(overlays):
        raise OverlayError(f"an overlay is named twice: {[overlay.name for overlay in overlays]}")
    for overlay in named.values():
        missing = sorted(set(overlay.requires) - set(named))
        if missing:
            raise OverlayError(f"{overlay.name} requires {missing[0]}, which is not among {list(named)}; add it")
    try:
        names = TopologicalSorter({name: sorted(overlay.requires) for name, overlay in named.items()}).static_order()
        return tuple(named[name] for name in names)
    except CycleError as error:
        raise OverlayError(f"overlays require each other in a circle: {error.args[1]}") from error


def refuse_conflicts(base: BaseTree, ordered: Sequence[Overlay]) -> None:
    """Raise OverlayError where two overlays touch one file and one of them changes it, or where they share a knob."""
    for first, second in combinations(ordered, 2):
        _refuse_shared_names(first, second)
        if first.name in _required_by(second, ordered):
            continue
        theirs = {file.path: file for file in second.target(base.version, base.build).files}
        for file in first.target(base.version, base.build).files:
            other = theirs.get(file.path)
            if other and (_changes(file) or _changes(other)):
                raise OverlayError(
                    f"{first.name} and {second.name} both touch {file.path}, and neither requires the other; drop one"
                )


def before(base: BaseTree, path: str, texts: Mapping[str, bytes]) -> bytes | None:
    """The bytes of `path` as overlays so far left them; None if there is no such file."""
    if path in texts:
        return texts[path]
    file = base.root / path
    return file.read_bytes() if file.is_file() else None


def changed(base: BaseTree, overlay: Overlay, file: PatchedFile, found: bytes | None) -> bytes:
    """The file after the overlay. Raises DriftError unless both hashes are the pinned ones."""
    if file.added:
        if found is not None:
            raise DriftError(f"{overlay.name} adds {file.path}, but the engine has that file already ({_hash(found)})")
        after = file.added.read_bytes()
    else:
        present = _preimage(base, overlay, file, found)
        after = patched(file, present) if file.patch else present
    if _hash(after) != file.postimage_sha256:
        raise DriftError(
            f"{overlay.name} makes {file.path} {_hash(after)}, but its manifest pins {file.postimage_sha256}; "
            f"review it, then: python -m overlays pin {overlay.name}"
        )
    return after


def patched(file: PatchedFile, present: bytes) -> bytes:
    """`present` with the file's patch applied, whatever its hash. Raises OverlayError or DriftError."""
    if file.patch is None:
        return present
    return apply(file.patch.read_text(encoding="utf-8"), present.decode("utf-8"), file.path).encode("utf-8")


def nearest(base: BaseTree, path: str) -> str:
    """A hint that names the engine file most like `path`."""
    there = [str(file.relative_to(base.root)) for file in (base.root / path).parent.glob("*") if file.is_file()]
    near = get_close_matches(path, there, n=1)
    return f"; did you mean {near[0]}?" if near else ""


def _preimage(base: BaseTree, overlay: Overlay, file: PatchedFile, found: bytes | None) -> bytes:
    if found is None:
        raise DriftError(
            f"{overlay.name} patches {file.path}, but {base.root} has no such file "
            f"(the manifest pins {file.preimage_sha256}){nearest(base, file.path)}"
        )
    if _hash(found) != file.preimage_sha256:
        raise DriftError(
            f"{overlay.name}: {file.path} is {_hash(found)}, but the manifest pins {file.preimage_sha256}; "
            "this is another engine than the patch was written for"
        )
    return found


def _refuse_shared_names(first: Overlay, second: Overlay) -> None:
    shared = set(first.variables) & set(second.variables) | (
        {knob.name for knob in first.knobs} & {knob.name for knob in second.knobs}
    )
    if shared:
        raise OverlayError(f"{first.name} and {second.name} both declare {sorted(shared)[0]}; use one of them")


def _required_by(overlay: Overlay, overlays: Sequence[Overlay]) -> set[str]:
    named = {other.name: other for other in overlays}
    found: set[str] = set()
    waiting = list(overlay.requires)
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting.extend(named[name].requires)
    return found


def _changes(file: PatchedFile) -> bool:
    return file.patch is not None or file.added is not None


def _hash(content: bytes) -> str:
    return sha256(content).hexdigest()
