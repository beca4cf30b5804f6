"""A boot's record as JSON data and back, by the types that its fields are declared with."""

import math
from dataclasses import asdict, fields, is_dataclass
from types import UnionType
from typing import Any, Literal, get_args, get_origin, get_type_hints

from campaign.errors import ConfigError
from campaign.evidence import BootRecord


def plain(boot: BootRecord) -> dict[str, Any]:
    """A boot's record as JSON data."""
    return asdict(boot)


def record(data: Any) -> BootRecord:
    """The inverse of `plain`. Raises ConfigError on a record of another schema, or with a value of another kind."""
    wanted = {f.name for f in fields(BootRecord)}
    if not isinstance(data, dict):
        raise ConfigError(f"a boot record is a map, found {kind_of(data)}")
    if data.keys() != wanted:
        raise ConfigError(
            f"a boot record has keys {sorted(data.keys() ^ wanted)} too many or too few: another version?"
        )
    try:
        found: BootRecord = _built(data, BootRecord)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ConfigError(f"a boot record cannot be read: {error} ({type(error).__name__})") from error
    for name, hint in get_type_hints(BootRecord).items():
        if not _fits(getattr(found, name), hint):
            raise ConfigError(
                f"a boot record's {name} holds {kind_of(data[name])}, or something in it is of another kind"
            )
    return found


def _built(data: Any, hint: Any) -> Any:
    """The value that a field declared as `hint` holds, of what JSON holds of it. Raises as a constructor does."""
    inner, kind = get_args(hint), get_origin(hint)
    if is_dataclass(hint):
        hints = get_type_hints(hint)
        return hint(**{name: _built(value, hints[name]) for name, value in data.items()})  # type: ignore[operator]
    if kind is tuple and isinstance(data, list):  # a text is no list of its letters
        return tuple(_built(part, inner[0]) for part in data)
    if kind is dict and isinstance(data, dict):
        return {name: _built(part, inner[1]) for name, part in data.items()}
    if kind is UnionType and data is not None:
        return _built(data, next(one for one in inner if one is not type(None)))
    return data


def _fits(value: Any, hint: Any) -> bool:
    """Whether a value is of the kind that a field is declared as, down to its last part."""
    inner, kind = get_args(hint), get_origin(hint)
    if is_dataclass(hint):
        hints = get_type_hints(hint)
        return type(value) is hint and all(_fits(getattr(value, name), part) for name, part in hints.items())
    if kind is tuple:
        return isinstance(value, tuple) and all(_fits(part, inner[0]) for part in value)
    if kind is dict:
        return isinstance(value, dict) and all(_fits(part, inner[1]) for part in value.values())
    if kind is Literal:
        return type(value) is str and value in inner
    return any(_fits(value, one) for one in inner) if inner else _is_plain(value, hint)


def _is_plain(value: Any, hint: Any) -> bool:
    """A truth value is no number, and a number is finite."""
    if hint is float:
        return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    return isinstance(value, hint) and (hint is bool or not isinstance(value, bool))


def kind_of(value: object) -> str:
    """What JSON calls it."""
    return {dict: "a map", list: "a list", str: "text", type(None): "nothing"}.get(type(value), type(value).__name__)
