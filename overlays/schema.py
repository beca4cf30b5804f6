"""TOML tables read strictly: an unknown key, a wrong type or a text of the wrong shape is refused where it stands."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

from overlays.errors import OverlayError


@dataclass(frozen=True)
class Table:
    """One TOML table and the words that say where it stands. Every reader raises OverlayError."""

    values: Mapping[str, object]
    where: str

    def only(self, *keys: str) -> None:
        """Refuse any key that is not one of `keys`."""
        unknown = sorted(set(self.values) - set(keys))
        if unknown:
            raise OverlayError(f"{self.where}: unknown key {unknown[0]!r}; known here: {', '.join(sorted(keys))}")

    def has(self, key: str) -> bool:
        """Whether the key is written down at all."""
        return key in self.values

    def text(self, key: str, pattern: str = r".*\S.*") -> str:
        """The text under `key`, which must match `pattern` as a whole."""
        return self._text(self._need(key), key, pattern)

    def texts(self, key: str, pattern: str = r".*\S.*") -> tuple[str, ...]:
        """The array of texts under `key`; none is named twice."""
        items = tuple(self._text(item, key, pattern) for item in self._array(key))
        if len(set(items)) != len(items):
            raise OverlayError(f"{self.where}: {key} names something twice: {list(items)}")
        return items

    def flag(self, key: str) -> bool:
        """The boolean under `key`."""
        value = self._need(key)
        if not isinstance(value, bool):
            raise OverlayError(f"{self.where}: {key} is {value!r}, but must be true or false")
        return value

    def table(self, key: str) -> "Table":
        """The table under `key`."""
        return self._table(self._need(key), key)

    def tables(self, key: str) -> tuple["Table", ...]:
        """The array of tables under `key`."""
        return tuple(self._table(item, f"{key} {number}") for number, item in enumerate(self._array(key), start=1))

    def _need(self, key: str) -> object:
        if key not in self.values:
            raise OverlayError(f"{self.where}: {key} is missing")
        return self.values[key]

    def _array(self, key: str) -> list[object]:
        value = self._need(key)
        if not isinstance(value, list):
            raise OverlayError(f"{self.where}: {key} is {value!r}, but must be an array")
        return value

    def _text(self, value: object, key: str, pattern: str) -> str:
        if not isinstance(value, str):
            raise OverlayError(f"{self.where}: {key} is {value!r}, but must be a text (in quotes)")
        if re.fullmatch(pattern, value, re.DOTALL) is None:
            raise OverlayError(f"{self.where}: {key} is {value!r}, but must match {pattern}")
        return value

    def _table(self, value: object, key: str) -> "Table":
        if not isinstance(value, dict):
            raise OverlayError(f"{self.where}: {key} is {value!r}, but must be a table")
        return Table(cast(dict[str, object], value), f"{self.where} [{key}]")
