"""Which overlays go together, in which order, and what they make of the engine's files. Nothing is written here."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from graphlib import CycleError, TopologicalSorter
from hashlib import sha256
from itertools import combinations
from pathlib import Path

from overlays import landed, payload, syntax
from overlays.base import BaseTree
from overlays.errors import DriftError, OverlayError
from overlays.patch import apply, read
from overlays.rows import Kind, Row, expect_fit
from overlays.values import Overlay, PatchedFile, Plugin


@dataclass(frozen=True)
class Composed:
    """Overlays in the order they apply; the whole text of every file that they change or add, by path; one row a file.

    `owners` names the last overlay that touched each of those files.
    """

    overlays: tuple[Overlay, ...]
    files: Mapping[str, bytes]
    rows: tuple[Row, ...]
    owners: Mapping[str, str]


def compose(base: BaseTree, overlays: Sequence[Overlay]) -> Composed:
    """`overlays` applied to the texts of `base`. Raises OverlayError for a wrong set, DriftError for hashes."""
    composed = survey(base, overlays)
    expect_fit(composed.rows)
    return composed


def survey(base: BaseTree, overlays: Sequence[Overlay]) -> Composed:
    """The same, and a row that does not fit says so. Raises OverlayError only for a set that cannot go together."""
    ordered = order(overlays)
    _refuse_unreviewed(base, ordered)
    refuse_conflicts(base, ordered)
    making = _Making(base)
    for overlay in ordered:
        for file in overlay.target(base.version, base.build).files:
            making.touch(overlay, file)
        if overlay.plugin:
            making.plug(overlay, overlay.plugin)
    return Composed(ordered, making.texts, tuple(making.rows), making.owners)


@dataclass
class _Making:
    """A composed manifest while it is being made."""

    base: BaseTree
    texts: dict[str, bytes] = field(default_factory=dict)
    rows: list[Row] = field(default_factory=list)
    owners: dict[str, str] = field(default_factory=dict)
    broken: dict[str, str] = field(default_factory=dict)  # path -> the overlay whose row on it does not fit

    def touch(self, overlay: Overlay, file: PatchedFile) -> None:
        """One row of a target."""
        found = before(self.base, file.path, self.texts)
        problem = None
        try:
            self._expect_sound(overlay, file.path)
            after = changed(self.base, overlay, file, found)
            if _changes(file):
                self.texts[file.path], self.owners[file.path] = after, overlay.name
        except OverlayError as error:
            problem = error
            self.broken.setdefault(file.path, overlay.name)
        pins = (file.preimage_sha256, _hash(found) if found is not None else None, file.postimage_sha256)
        self.rows.append(_row(overlay, file.path, _kind(file), pins, problem))

    def plug(self, overlay: Overlay, plugin: Plugin) -> None:
        """Every file of a plugin's package; the row of its __init__ speaks for the payload as a whole."""
        own, first = dict(payload.files(plugin)), f"{plugin.package}/__init__.py"
        for path, content in {first: b"", **own}.items():
            problem = None
            try:
                self._expect_free(overlay, path)
                expect_sense(overlay, path, content)
                if path == first:
                    payload.expect_pinned(overlay, plugin)
                self.texts[path], self.owners[path] = content, overlay.name
            except OverlayError as error:
                problem = error
            self.rows.append(_row(overlay, path, Kind.plugin, (None, None, _hash(content)), problem))

    def _expect_free(self, overlay: Overlay, path: str) -> None:
        if path in self.texts or (self.base.root / Path(path).parts[0]).exists():
            raise OverlayError(f"{overlay.name}'s plugin would hide {path}; give its package another name")

    def _expect_sound(self, overlay: Overlay, path: str) -> None:
        if path in self.broken:
            raise DriftError(f"{overlay.name}: {path} stands on {self.broken[path]}'s, which does not fit")


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
    """Raise one OverlayError that names every file which two overlays touch while one changes it, and shared knobs."""
    found: list[str] = []
    for first, second in combinations(ordered, 2):
        found += _shared_names(first, second)
        if first.name in _required_by(second, ordered):
            continue
        theirs = {file.path: file for file in second.target(base.version, base.build).files}
        for file in first.target(base.version, base.build).files:
            other = theirs.get(file.path)
            if other and (_changes(file) or _changes(other)):
                found.append(
                    f"{first.name} and {second.name} both touch {file.path}, and neither requires the other "
                    f"({_source(first, file)}; {_source(second, other)}); drop one of them from the arm"
                )
    if found:
        raise OverlayError("\n  ".join(found))


def before(base: BaseTree, path: str, texts: Mapping[str, bytes]) -> bytes | None:
    """The bytes of `path` as overlays so far left them; None if there is no such file."""
    if path in texts:
        return texts[path]
    file = base.root / path
    return file.read_bytes() if file.is_file() else None


def changed(base: BaseTree, overlay: Overlay, file: PatchedFile, found: bytes | None) -> bytes:
    """The file after the overlay. Raises DriftError unless both hashes are the pinned ones."""
    if file.added:
        after = _added(overlay, file, file.added.read_bytes(), found)
    else:
        present = _preimage(base, overlay, file, found)
        after = patched(file, present) if file.patch else present
    if _hash(after) != file.postimage_sha256:
        raise DriftError(
            f"{overlay.name} makes {file.path} {_hash(after)}, but its manifest pins {file.postimage_sha256}; "
            f"review it, then: python -m overlays pin {overlay.name}"
        )
    if _changes(file):
        expect_sense(overlay, file.path, after)
    return after


def patched(file: PatchedFile, present: bytes) -> bytes:
    """`present` with the file's patch applied, whatever its hash. Raises OverlayError or DriftError."""
    if file.patch is None:
        return present
    try:
        text = present.decode("utf-8")
    except UnicodeDecodeError as error:
        raise OverlayError(
            f"{file.path} is no text ({error}), so no patch fits it; add a file of another name"
        ) from error
    return apply(read(file.patch), text, file.path).encode("utf-8")


def expect_sense(overlay: Overlay, path: str, content: bytes) -> None:
    """Raise OverlayError for JSON that does not parse or says a thing twice. (Python is compiled in the stage.)"""
    if path.endswith(".json") and (wrong := syntax.problem(path, content)):
        raise OverlayError(f"{overlay.name} makes {path} such that {wrong}; correct the overlay, then pin it again")


def nearest(base: BaseTree, path: str) -> str:
    """A hint that names the engine file most like `path`: one in its folder, else one of its name anywhere."""
    there = [str(file.relative_to(base.root)) for file in (base.root / path).parent.glob("*") if file.is_file()]
    near = get_close_matches(path, there, n=1)
    if not near:
        everywhere = {file.name: str(file.relative_to(base.root)) for file in sorted(base.package.rglob("*.*"))}
        near = [everywhere[name] for name in get_close_matches(Path(path).name, everywhere, n=1, cutoff=0.85)]
    return f"; did you mean {near[0]}?" if near else ""


def _refuse_unreviewed(base: BaseTree, ordered: Sequence[Overlay]) -> None:
    for overlay in ordered:
        target = overlay.target(base.version, base.build)
        if not target.reviewed:
            raise OverlayError(
                f"{overlay.name}: the target for vLLM {target.version} was made by rebase and nobody has reviewed it; "
                f"read the REVIEW.md beside it, then take `reviewed = false` out of {overlay.folder}/manifest.toml"
            )


def _row(
    overlay: Overlay, path: str, kind: Kind, pins: tuple[str | None, str | None, str], error: OverlayError | None
) -> Row:
    return Row(overlay.name, path, kind, *pins, str(error or ""), isinstance(error, DriftError))


def _kind(file: PatchedFile) -> Kind:
    if file.added:
        return Kind.added
    return Kind.patched if file.patch else Kind.watched


def _added(overlay: Overlay, file: PatchedFile, ours: bytes, found: bytes | None) -> bytes:
    if found is not None:
        already = f"; {landed.ALREADY}: the very same file" if found == ours else ""
        raise DriftError(
            f"{overlay.name} adds {file.path}, but the engine has that file already ({_hash(found)}){already}; "
            "give the added file another path, or leave the overlay out"
        )
    return ours


def _preimage(base: BaseTree, overlay: Overlay, file: PatchedFile, found: bytes | None) -> bytes:
    if found is None:
        raise DriftError(
            f"{overlay.name} patches {file.path}, but {base.root} has no such file "
            f"(the manifest pins {file.preimage_sha256}){nearest(base, file.path)}"
        )
    if _hash(found) != file.preimage_sha256:
        already = landed.words(overlay, file, found.decode("utf-8", errors="replace"))
        raise DriftError(
            f"{overlay.name}: {file.path} is {_hash(found)}, but the manifest pins {file.preimage_sha256}; this is "
            f"another engine than the patch was written for{f' ({already})' if already else ''}. Install that engine "
            f"again, or carry the patch over: python -m overlays rebase {overlay.name} --from ... --to {base.python}"
        )
    return found


def _shared_names(first: Overlay, second: Overlay) -> list[str]:
    shared = _declared(first) & _declared(second)
    if not shared:
        return []
    return [f"{first.name} and {second.name} both declare {sorted(shared)[0]}; use one of them"]


def _declared(overlay: Overlay) -> set[str]:
    """Every name that only one overlay of a set may have: of two equal entry points the engine loads one."""
    found = {*overlay.variables, *(knob.name for knob in overlay.knobs)}
    if overlay.plugin:
        found |= {f"the entry point {overlay.plugin.entry_point_name}", f"the package {overlay.plugin.package}"}
    return found


def _source(overlay: Overlay, file: PatchedFile) -> str:
    return str(file.patch or file.added or overlay.folder / "manifest.toml")


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
