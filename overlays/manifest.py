"""An overlay's manifest.toml as frozen values, and the folders where overlays are looked for.

The format is in overlays/README.md. All is checked here, at the door; names match a pattern before they become paths.
"""

import re
import tomllib
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from pathlib import Path

from overlays.errors import OverlayError
from overlays.knobs import NAME, VARIABLE, knob
from overlays.schema import Table
from overlays.values import Knob, Landed, Overlay, PatchedFile, Plugin, Target, Upstream, Witness

__all__ = [
    "Knob",
    "Landed",
    "Overlay",
    "PatchedFile",
    "Plugin",
    "Target",
    "Upstream",
    "Witness",
    "known",
    "load",
    "parse",
    "with_required",
]

BUILT_IN = Path(__file__).parent
MANIFEST = "manifest.toml"

VERSION = r"\d+(\.\d+)+[a-z0-9.]*"
SHA256 = r"[0-9a-f]{64}"
OBJECT = r"[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)*:[a-z][a-z0-9_]*"
_PART = r"[A-Za-z0-9_+-][A-Za-z0-9_.+-]*"
_ENGINE_PART = r"[A-Za-z0-9_+-][A-Za-z0-9_.+,=()\[\]-]*"  # tuned tables: E=8,N=512,block_shape=[128,128].json
ENGINE_PATH = rf"vllm(/{_ENGINE_PART})+"
OWN_PATH = rf"{_PART}(/{_PART})*"
KERNEL_PATH = r"kernels/[a-z][a-z0-9_]*/[a-z_][a-z0-9_]*\.py"


def known(search: Sequence[Path]) -> dict[str, Overlay]:
    """Every overlay of the built-in folder and of `search`, by name. Raises OverlayError for a name found twice."""
    return {name: parse(folder) for name, folder in sorted(_folders(search).items())}


def load(name: str, search: Sequence[Path] = ()) -> Overlay:
    """The overlay of that name. Raises OverlayError that names the nearest one, or lists all."""
    folders = _folders(search)
    if name not in folders:
        near = get_close_matches(name, folders, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(sorted(folders))}"
        raise OverlayError(f"no overlay is called {name!r}; {hint}")
    return parse(folders[name])


def with_required(names: Iterable[str], search: Sequence[Path] = ()) -> tuple[Overlay, ...]:
    """The overlays of these names and all that they require, once each."""
    found: dict[str, Overlay] = {}
    waiting = list(names)
    while waiting:
        name = waiting.pop(0)
        if name not in found:
            found[name] = load(name, search)
            waiting.extend(found[name].requires)
    return tuple(found.values())


def parse(folder: Path) -> Overlay:
    """The manifest in `folder`. Raises OverlayError for anything that is not exactly as the format says."""
    file = folder / MANIFEST
    try:
        values = tomllib.loads(file.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise OverlayError(f"{file} is not TOML: {error}") from error
    root = Table(values, str(file))
    root.only(
        *("why", "owner", "upstream", "requires", "async_safe", "async_reason"),
        *("variables", "knob", "target", "plugin", "landed"),
    )
    knobs = tuple(knob(table) for table in root.tables("knob")) if root.has("knob") else ()
    overlay = Overlay(
        name=folder.name,
        why=root.text("why"),
        owner=root.text("owner"),
        upstream=_upstream(root.table("upstream")),
        requires=root.texts("requires", NAME) if root.has("requires") else (),
        async_safe=root.flag("async_safe"),
        async_reason=root.text("async_reason"),
        knobs=knobs,
        targets=tuple(_target(table, folder) for table in root.tables("target")),
        plugin=_plugin(root.table("plugin"), folder) if root.has("plugin") else None,
        variables=_variables(root, knobs),
        folder=folder,
        landed=tuple(_landed(table) for table in root.tables("landed")) if root.has("landed") else (),
    )
    _check_whole(overlay, root.where)
    _refuse_unnamed(overlay, root.where)
    return overlay


def _folders(search: Sequence[Path]) -> dict[str, Path]:
    found: dict[str, Path] = {}
    for place in dict.fromkeys([BUILT_IN, *(path.absolute() for path in search)]):
        if not place.is_dir():
            raise OverlayError(f"the overlay path {place} is not a folder")
        for file in sorted(place.glob(f"*/{MANIFEST}")):
            name = _name(file.parent)
            if name in found:
                raise OverlayError(f"two overlays are called {name}: {found[name]} and {file.parent}; rename one")
            found[name] = file.parent
    return found


def _name(folder: Path) -> str:
    return Table({"name": folder.name}, f"the overlay folder {folder}").text("name", NAME)


def _upstream(table: Table) -> Upstream:
    table.only("link", "status", "drop_when")
    return Upstream(table.text("link"), table.text("status"), table.text("drop_when"))


def _variables(root: Table, knobs: tuple[Knob, ...]) -> tuple[str, ...]:
    declared = root.texts("variables", VARIABLE) if root.has("variables") else ()
    every = (*(each.variable for each in knobs if each.variable), *declared)
    if len(set(every)) != len(every):
        raise OverlayError(f"{root.where}: a variable is declared twice: {list(every)}")
    return every


def _target(table: Table, folder: Path) -> Target:
    table.only("version", "builds", "reviewed", "file")
    files = tuple(_file(entry, folder) for entry in table.tables("file"))
    paths = [file.path for file in files]
    if len(set(paths)) != len(paths):
        raise OverlayError(f"{table.where}: a file is named twice: {paths}")
    reviewed = table.flag("reviewed") if table.has("reviewed") else True
    return Target(table.text("version", VERSION), table.texts("builds", NAME), files, reviewed)


def _landed(table: Table) -> Landed:
    table.only("what", "path", "text", "instead_of")
    instead_of = table.text("instead_of") if table.has("instead_of") else ""
    return Landed(table.text("what"), table.text("path", ENGINE_PATH), table.text("text"), instead_of)


def _file(table: Table, folder: Path) -> PatchedFile:
    table.only("path", "patch", "added", "preimage_sha256", "postimage_sha256")
    file = PatchedFile(
        path=table.text("path", ENGINE_PATH),
        patch=_own_file(table, "patch", folder),
        added=_own_file(table, "added", folder),
        preimage_sha256=table.text("preimage_sha256", SHA256) if table.has("preimage_sha256") else None,
        postimage_sha256=table.text("postimage_sha256", SHA256),
    )
    if file.patch and file.added:
        raise OverlayError(f"{table.where}: {file.path} has both patch and added; a file is patched or added")
    if (file.added is None) == (file.preimage_sha256 is None):
        raise OverlayError(f"{table.where}: preimage_sha256 belongs to every file but an added one ({file.path})")
    if not file.patch and not file.added and file.preimage_sha256 != file.postimage_sha256:
        raise OverlayError(f"{table.where}: {file.path} is only watched, so both hashes must be the same")
    return file


def _own_file(table: Table, key: str, folder: Path) -> Path | None:
    if not table.has(key):
        return None
    file = folder / table.text(key, OWN_PATH)
    if not file.is_file() or file.is_symlink():
        near = [str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()]
        hint = get_close_matches(str(file.relative_to(folder)), near, n=1)
        raise OverlayError(
            f"{table.where}: {key} {file} is not there as a regular file"
            + (f"; did you mean {hint[0]}?" if hint else "; put the file there, or take the row out")
        )
    return file


def _plugin(table: Table, folder: Path) -> Plugin:
    table.only("entry_point", "object", "payload", "payload_sha256", "wraps", "brings")
    payload = folder / table.text("payload", OWN_PATH)
    if not payload.is_dir():
        raise OverlayError(f"{table.where}: payload {payload} is not a folder; nothing is made in its place")
    return Plugin(
        table.text("entry_point", NAME), table.text("object", OBJECT), payload, table.texts("wraps", ENGINE_PATH),
        table.text("payload_sha256", SHA256), _brought(table, payload),
    )  # fmt: skip


def _brought(table: Table, payload: Path) -> tuple[Path, ...]:
    """The kernel files that a plugin brings along. Raises OverlayError for one that is not there, or would hide one."""
    names = table.texts("brings", KERNEL_PATH) if table.has("brings") else ()
    files = tuple(BUILT_IN.parent / name for name in names)
    for name, file in zip(names, files, strict=True):
        if not file.is_file() or file.is_symlink():
            raise OverlayError(f"{table.where}: brings {name}, which is not there as a regular file; correct the path")
        if (payload / file.parent.name).exists():
            raise OverlayError(
                f"{table.where}: {payload / file.parent.name} would lie where {name} is brought; rename it"
            )
    return files


def _check_whole(overlay: Overlay, where: str) -> None:
    if overlay.name in overlay.requires:
        raise OverlayError(f"{where}: {overlay.name} requires itself")
    seen = [(target.version, build) for target in overlay.targets for build in target.builds]
    if not seen or len(set(seen)) != len(seen):
        raise OverlayError(f"{where}: there must be one target for each engine, once; found {seen}")
    paths = {file.path for target in overlay.targets for file in target.files}
    for part in overlay.landed:
        if part.path not in paths:
            raise OverlayError(f"{where}: landed {part.what!r} looks into {part.path}, which no target names")
    wraps = overlay.plugin.wraps if overlay.plugin else ()
    for target in overlay.targets:
        missing = sorted(set(wraps) - {file.path for file in target.files})
        if missing:
            raise OverlayError(f"{where}: the plugin wraps {missing[0]}, which target {target.version} does not pin")


def _refuse_unnamed(overlay: Overlay, where: str) -> None:
    """A patch or a file of a target that no row names would never reach the engine, and nothing would say so."""
    named = {path for target in overlay.targets for file in target.files for path in (file.patch, file.added) if path}
    for path in sorted(_meant_for_engines(overlay.folder) - named):
        raise OverlayError(
            f"{where}: {path.relative_to(overlay.folder)} lies in the overlay, but no [[target.file]] names it, so it "
            "would never reach the engine; name it (a comment does not count) or remove it"
        )


def _meant_for_engines(folder: Path) -> set[Path]:
    """Every patch, and whatever lies in a folder named for an engine version."""
    versions = [path for path in folder.iterdir() if path.is_dir() and re.fullmatch(VERSION, path.name)]
    lying = {path for version in versions for path in version.rglob("*")} | set(folder.rglob("*.patch"))
    return {
        path for path in lying if path.is_file() and "__pycache__" not in path.parts and not path.name.startswith(".")
    }
