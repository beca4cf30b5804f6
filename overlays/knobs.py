"""Knobs as they are written down: `[[knob]]` tables of a manifest, or of a file of knobs without an overlay."""

import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar, cast

from overlays.errors import OverlayError
from overlays.schema import Table
from overlays.values import Knob, Served, Witness

NAME = r"[a-z][a-z0-9_]*"
VARIABLE = r"[A-Z][A-Z0-9_]*"
T = TypeVar("T")


def knobs_of(file: Path) -> tuple[Knob, ...]:
    """The knobs of a file that belongs to no overlay: `[[knob]]` tables, and nothing else. Raises OverlayError."""
    try:
        root = Table(tomllib.loads(file.read_text(encoding="utf-8")), str(file))
    except (OSError, tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise OverlayError(f"{file} is not TOML: {error}") from error
    root.only("knob")
    return tuple(knob(table) for table in root.tables("knob"))


def knob(table: Table) -> Knob:
    """One `[[knob]]` table. Raises OverlayError."""
    table.only(*("name", "variable", "values", "default", "witness"), *("serve", "profile_key", "not_given", "legacy"))
    found = Knob(
        name=table.text("name", NAME),
        variable=table.text("variable", VARIABLE) if table.has("variable") else None,
        values=table.texts("values"),
        default=table.text("default"),
        witness=_witnesses(table.table("witness")),
        served=_each(table, "serve", _served),
        profile_key=table.text("profile_key", VARIABLE) if table.has("profile_key") else None,
        not_given=table.text("not_given") if table.has("not_given") else None,
        legacy=_each(table, "legacy", _legacy),
    )
    _check(found, table.where)
    return found


def _check(knob: Knob, where: str) -> None:
    """Every value that is spoken of is one of the knob's, and each has a witness and a way to the engine."""
    if knob.default not in knob.values:
        raise OverlayError(f"{where}: default is {knob.default!r}, but must be one of {list(knob.values)}")
    if set(knob.witness) != set(knob.values):
        raise OverlayError(
            f"{where}: witness is given for {sorted(knob.witness)}, but must be for each of {sorted(knob.values)}"
        )
    spoken_of = {*knob.served, *(value for value, _ in knob.legacy.values()), *filter(None, [knob.not_given])}
    if spoken_of - set(knob.values):
        raise OverlayError(f"{where}: {sorted(spoken_of - set(knob.values))[0]!r} is none of {list(knob.values)}")
    silent = [v for v in knob.values if not knob.variable and v not in knob.served and v != knob.not_given]
    if silent:
        raise OverlayError(
            f"{where}: {silent[0]!r} reaches no engine; give the knob a variable, or serve for this value"
        )


def _each(table: Table, key: str, read: Callable[[Table], T]) -> dict[str, T]:
    entries = table.table(key) if table.has(key) else Table({}, table.where)
    return {name: read(entries.table(name)) for name in entries.values}


def _served(table: Table) -> Served:
    table.only("arguments", "methods", "reason")
    arguments = table.table("arguments").values
    for name, value in arguments.items():
        if not isinstance(value, (bool, int, str)):
            raise OverlayError(f"{table.where}: arguments.{name} is {value!r}, but must be a boolean, integer or text")
    methods = table.texts("methods", NAME) if table.has("methods") else ()
    return Served(cast(dict[str, bool | int | str], dict(arguments)), methods, table.text("reason"))


def _legacy(table: Table) -> tuple[str, str]:
    table.only("value", "note")
    return table.text("value"), table.text("note")


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
