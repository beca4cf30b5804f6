"""Values out of JSON that somebody else wrote: each of the wanted kind, or one sentence that says what it is."""

from collections.abc import Collection, Mapping
from enum import StrEnum
from math import isfinite
from typing import Any, TypeVar

from campaign.errors import ConfigError

LARGEST_COUNT = 10**15
Word = TypeVar("Word", bound=StrEnum)


def known(data: Mapping[str, Any], keys: Collection[str], where: str) -> None:
    """Raises ConfigError for a key that nobody reads."""
    strange = sorted(data.keys() - set(keys))
    if strange:
        raise ConfigError(f"{where}: unknown key {strange[0]!r}; wanted some of {', '.join(keys)}")


def text(data: Mapping[str, Any], key: str, where: str) -> str:
    """A text; empty where the key is missing."""
    found = data.get(key)
    if found is None:
        return ""
    if not isinstance(found, str):
        raise ConfigError(f"{where}: {key} is {found!r}, wanted a text")
    return found


def number(data: Mapping[str, Any], key: str, where: str) -> float | None:
    """A finite number; None where the key is missing."""
    found = data.get(key)
    if found is None:
        return None
    if not _is_number(found):
        raise ConfigError(f"{where}: {key} is {repr(found)[:80]}, wanted a finite number")
    return float(found)


def numbers(data: Mapping[str, Any], key: str, where: str) -> tuple[float, ...] | None:
    """A list of finite numbers; None where the key is missing."""
    found = items(data, key, where)
    if found is None:
        return None
    if not all(_is_number(one) for one in found):
        raise ConfigError(f"{where}: {key} is {str(found)[:80]}, wanted finite numbers")
    return tuple(float(one) for one in found)


def whole(data: Mapping[str, Any], key: str, where: str, length: int | None = None) -> tuple[int, ...] | None:
    """A list of whole numbers, of this length where one is given; None where the key is missing."""
    found = items(data, key, where)
    if found is None:
        return None
    if not all(isinstance(one, int) and _is_number(one) for one in found):
        raise ConfigError(f"{where}: {key} is {repr(found)[:80]}, wanted whole numbers")
    if length is not None and len(found) != length:
        raise ConfigError(f"{where}: {key} has {len(found)} numbers, wanted {length}")
    return tuple(found)


def texts(data: Mapping[str, Any], key: str, where: str) -> tuple[str, ...]:
    """A list of texts; empty where the key is missing."""
    found = items(data, key, where) or []
    if not all(isinstance(one, str) for one in found):
        raise ConfigError(f"{where}: {key} is {repr(found)[:80]}, wanted texts")
    return tuple(found)


def count(data: Mapping[str, Any], key: str, where: str) -> int | None:
    """A whole number of 0 or more, as many as anything can be counted; None where the key is missing."""
    found = data.get(key)
    if found is not None and (not isinstance(found, int) or isinstance(found, bool) or not 0 <= found <= LARGEST_COUNT):
        raise ConfigError(f"{where}: {key} is {repr(found)[:80]}, wanted a whole number")
    return found


def items(data: Mapping[str, Any], key: str, where: str) -> list[Any] | None:
    """A list; None where the key is missing."""
    found = data.get(key)
    if found is not None and not isinstance(found, list):
        raise ConfigError(f"{where}: {key} is {str(found)[:80]}, wanted a list")
    return found


def mapping(data: Mapping[str, Any], key: str, where: str) -> dict[str, Any]:
    """A map."""
    found = data.get(key)
    if not isinstance(found, dict):
        raise ConfigError(f"{where}: {key} is {str(found)[:80]}, wanted a map")
    return found


def word(data: Mapping[str, Any], key: str, kind: type[Word], where: str, otherwise: Word | None = None) -> Word:
    """One word of a closed set; `otherwise` where the key is missing."""
    found = data.get(key, otherwise)
    if found not in list(kind):
        raise ConfigError(f"{where}: {key} is {found!r}, wanted {', '.join(kind)}")
    return kind(found)


def _is_number(found: object) -> bool:
    if not isinstance(found, int | float) or isinstance(found, bool):
        return False
    try:
        return isfinite(found)
    except OverflowError:  # whole numbers of 400 digits
        return False
