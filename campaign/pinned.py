"""What an engine version can be asked for: its serve arguments with their types, and the variables that it reads.

The lists are taken from the engine itself (`make serve-arguments`) and committed, so that a wrong name, a wrong type
and a wrong choice are refused without a boot. Pure.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from campaign.errors import ConfigError
from campaign.limits import NOT_NULL, near

FOLDER = Path(__file__).parent / "serve_arguments"
OURS = (  # the runner sets these itself, or they start no engine
    "host",
    "port",
    "model",
    "served_model_name",
    "speculative_config",
    "spec_method",
    "spec_model",
    "spec_tokens",
    "help",
)
SECRET = ("api_key", "hf_token")  # never in argv
INTEGER = re.compile(r"-?\d+")
HUMAN = re.compile(r"\d+(\.\d+)?[kKmMgGtT]")  # 2k, 1.5M: the engine reads these itself
NUMBER = re.compile(r"-?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?")
SWITCH_WORDS = {"1": True, "true": True, "0": False, "false": False}


@dataclass(frozen=True)
class Argument:
    """One serve argument: switch, int, float, json, choice or text; `words` are texts it takes beside its type.

    Where it takes `several` values, a list becomes a tuple: its items are words of their own on the command line.
    """

    takes: str
    choices: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    several: bool = False

    def read(self, where: str, value: Any) -> Any:
        """The value in one spelling (a number as a number, JSON as data). Raises ConfigError; null stays null."""
        if value is None or (isinstance(value, str) and value in self.words):
            return value
        if isinstance(value, bool) and self.takes != "switch":
            raise ConfigError(f"{where}: found the truth value {str(value).lower()}, wanted {self.wanted}; quote text")
        if isinstance(value, str) and value.lower() in NOT_NULL and value not in self.choices:
            raise ConfigError(f"{where}: found the text {value!r}, wanted {self.wanted}; write null for nothing")
        if isinstance(value, list) and self.several and value:
            return tuple(replace(self, several=False).item(f"{where}[{i}]", each) for i, each in enumerate(value))
        found = READERS[self.takes](value, self)
        if found is None:
            raise ConfigError(f"{where}: found {value!r}, wanted {self.wanted}{self._hint(value)}")
        return found

    def item(self, where: str, value: Any) -> Any:
        """One of several values: null and lists have no place among them."""
        if value is None or isinstance(value, dict | list):
            raise ConfigError(f"{where}: found {value!r}, wanted {self.wanted}")
        return self.read(where, value)

    def from_text(self, where: str, text: str) -> Any:
        """The value that a profile's text stands for. Raises ConfigError."""
        if self.takes == "switch":
            if text.lower() not in SWITCH_WORDS:
                raise ConfigError(f"{where}: found {text!r}, wanted 1, 0, true or false: it is a switch")
            return SWITCH_WORDS[text.lower()]
        return self.read(where, text)

    @property
    def wanted(self) -> str:
        """The type in words."""
        words = "".join(f' or "{word}"' for word in self.words)
        plain = {"int": "a whole number", "float": "a number", "text": "text", "json": "a map or a list"}
        return {
            **plain,
            "switch": "true, false or null",
            "choice": f"one of {', '.join(self.choices)}",
        }[self.takes] + words

    def _hint(self, value: Any) -> str:
        if self.takes == "choice":
            return near(str(value), self.choices)
        if self.takes == "text":
            return f'; quote it: "{value}"'
        return ": it is a switch" if self.takes == "switch" else ""


def _switch(value: Any, _: Argument) -> bool | None:
    return value if isinstance(value, bool) else None


def _int(value: Any, _: Argument) -> int | str | None:
    if isinstance(value, int):
        return value
    if not isinstance(value, str) or not value.isascii():
        return None
    return int(value) if INTEGER.fullmatch(value) else value if HUMAN.fullmatch(value) else None


def _float(value: Any, _: Argument) -> int | float | None:
    if isinstance(value, int | float):
        return value if abs(value) < float("inf") else None  # a NaN is not below it either
    return float(value) if isinstance(value, str) and value.isascii() and NUMBER.fullmatch(value) else None


def _json(value: Any, _: Argument) -> Any:
    if isinstance(value, dict | list):
        return value
    try:
        found = json.loads(value) if isinstance(value, str) else None
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict | list) else None


def _choice(value: Any, argument: Argument) -> str | int | None:
    return value if isinstance(value, str | int) and str(value) in argument.choices else None


def _text(value: Any, argument: Argument) -> Any:
    """Text as it is written; a map or a list becomes JSON text. A number is not guessed to be one (0123 became 83)."""
    data = _json(value, argument)
    return data if data is not None else value if isinstance(value, str) else None


READERS = {"switch": _switch, "int": _int, "float": _float, "json": _json, "choice": _choice, "text": _text}


@dataclass(frozen=True)
class Pinned:
    """The pinned lists of one engine version."""

    version: str
    arguments: Mapping[str, Argument]
    variables: frozenset[str]

    def argument(self, where: str, name: str) -> Argument:
        """The argument of that name, for a value found at `where`. Raises ConfigError when nobody may set it."""
        if name in OURS:
            raise ConfigError(f"{where}: the runner sets {name} itself (model.*, host.port); leave it out")
        if name in SECRET:
            raise ConfigError(f"{where}: a secret must not stand in an argument list; use engine.pass_env")
        if name not in self.arguments:
            hint = near(name, self.arguments)
            raise ConfigError(f"{where}: vLLM {self.version} has no serve argument {name!r}{hint}")
        return self.arguments[name]


@cache
def load(version: str) -> Pinned:
    """The lists of a version. Raises ConfigError for one that has none."""
    path = FOLDER / f"{version}.json"
    have = sorted(p.stem for p in FOLDER.glob("*.json"))
    if version not in have:
        raise ConfigError(
            f"no serve-argument list for engine version {version} (there is {', '.join(have)}): make serve-arguments"
        )
    plain = json.loads(path.read_text(encoding="utf-8"))
    arguments = {name: _argument(entry) for name, entry in plain["arguments"].items()}
    return Pinned(version, arguments, frozenset(plain["variables"]))


def _argument(entry: dict[str, Any]) -> Argument:
    choices, words = tuple(entry.get("choices", ())), tuple(entry.get("words", ()))
    return Argument(entry["takes"], choices, words, bool(entry.get("list", False)))
