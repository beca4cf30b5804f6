"""An overlay's manifest.toml as frozen values, and the folders where overlays are looked for.

The format is in overlays/README.md. All is checked here, at the door; names match a pattern before they become paths.
"""

import tomllib
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from pathlib import Path

from overlays.errors import OverlayError
from overlays.schema import Table
from overlays.values import Knob, Overlay, PatchedFile, Plugin, Target, Upstream, Witness

__all__ = [
    "Knob",
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

NAME = r"[a-z][a-z0-9_]*"
VARIABLE = r"[A-Z][A-Z0-9_]*"
VERSION = r"\d+(\.\d+)+[a-z0-9.]*"
SHA256 = r"[0-9a-f]{64}"
OBJECT = r"[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)*:[a-z][a-z0-9_]*"
_PART = r"[A-Za-z0-9_+-][A-Za-z0-9_.+-]*"
ENGINE_PATH = rf"vllm(/{_PART})+"
OWN_PATH = rf"{_PART}(/{_PART})*"


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
        *("variables", "knob", "target", "plugin"),
    )
    knobs = tuple(_knob(table) for table in root.tables("knob")) if root.has("knob") else ()
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
    )
    _check_whole(overlay, root.where)
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


def _knob(table: Table) -> Knob:
    table.only("name", "variable", "values", "default", "witness")
    knob = Knob(
        name=table.text("name", NAME),
        variable=table.text("variable", VARIABLE),
        values=table.texts("values"),
        default=table.text("default"),
        witness=_witnesses(table.table("witness")),
    )
    if knob.default not in knob.values:
        raise OverlayError(f"{table.where}: default is {knob.default!r}, but must be one of {list(knob.values)}")
    if set(knob.witness) != set(knob.values):
        raise OverlayError(
            f"{table.where}: witness is given for {sorted(knob.witness)}, but must be for each of {sorted(knob.values)}"
        )
    return knob


def _witnesses(table: Table) -> dict[str, Witness]:
    return {value: _witness(table.table(value)) for value in table.values}


def _witness(table: Table) -> Witness:
    table.only("resolved", "behaved")
    resolved = dict(table.table("resolved").values) if table.has("resolved") else {}
    for key, value in resolved.items():
        if not isinstance(value, (bool, int, str)):
            raise OverlayError(f"{table.where}: resolved.{key} is {value!r}, but must be a boolean, integer or text")
    behaved = table.table("behaved") if table.has("behaved") else Table({}, table.where)
    return Witness(resolved, {key: _bounds(behaved.table(key)) for key in behaved.values})


def _bounds(table: Table) -> dict[str, float]:
    table.only("min", "max")
    bounds: dict[str, float] = {}
    for key, value in table.values.items():
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise OverlayError(f"{table.where}: {key} is {value!r}, but must be a number")
        bounds[key] = float(value)
    if not bounds:
        raise OverlayError(f"{table.where}: give min, max or both")
    return bounds


def _variables(root: Table, knobs: tuple[Knob, ...]) -> tuple[str, ...]:
    declared = root.texts("variables", VARIABLE) if root.has("variables") else ()
    every = (*(knob.variable for knob in knobs), *declared)
    if len(set(every)) != len(every):
        raise OverlayError(f"{root.where}: a variable is declared twice: {list(every)}")
    return every


def _target(table: Table, folder: Path) -> Target:
    table.only("version", "builds", "file")
    files = tuple(_file(entry, folder) for entry in table.tables("file"))
    paths = [file.path for file in files]
    if len(set(paths)) != len(paths):
        raise OverlayError(f"{table.where}: a file is named twice: {paths}")
    return Target(table.text("version", VERSION), table.texts("builds", NAME), files)


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
        raise OverlayError(f"{table.where}: {key} {file} is not there as a regular file")
    return file


def _plugin(table: Table, folder: Path) -> Plugin:
    table.only("entry_point", "object", "payload", "wraps")
    payload = folder / table.text("payload", OWN_PATH)
    if not payload.is_dir():
        raise OverlayError(f"{table.where}: payload {payload} is not a folder")
    return Plugin(
        table.text("entry_point", NAME), table.text("object", OBJECT), payload, table.texts("wraps", ENGINE_PATH)
    )


def _check_whole(overlay: Overlay, where: str) -> None:
    if overlay.name in overlay.requires:
        raise OverlayError(f"{where}: {overlay.name} requires itself")
    seen = [(target.version, build) for target in overlay.targets for build in target.builds]
    if not seen or len(set(seen)) != len(seen):
        raise OverlayError(f"{where}: there must be one target for each engine, once; found {seen}")
    wraps = overlay.plugin.wraps if overlay.plugin else ()
    for target in overlay.targets:
        missing = sorted(set(wraps) - {file.path for file in target.files})
        if missing:
            raise OverlayError(f"{where}: the plugin wraps {missing[0]}, which target {target.version} does not pin")
