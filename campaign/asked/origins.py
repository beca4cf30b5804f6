"""Who wrote which value, and who wins: command line over experiment over profile over default. Pure.

A default is what the engine's YAML, an overlay's manifest or knobs.toml says.
"""

import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from campaign.config import INTERPOLATION, Campaign, Level, Written
from campaign.errors import ConfigError

COMMAND_LINE = "command line"
EXPERIMENTS = "exp/"
UNREAD = "an interpolation"  # what was overridden is shown, not resolved
MISSING = object()
BEFORE_QUOTE = re.compile(r'(\\*)("|$)')
PATH = re.compile(r"\w+(?:\.\w+)+")
PLAIN = re.compile(r"[A-Za-z0-9_./:-]+")
Kind = Literal["serve", "env", "passed"]


@dataclass(frozen=True)
class Setting:
    """One serve argument or variable of an arm (None: not given), who wrote it, and what it goes over."""

    kind: Kind
    name: str
    value: Any
    origin: str
    over: tuple[Written, ...]


@dataclass(frozen=True)
class Source:
    """One file of the composed tree: `engine/reference_cpu`, where it hangs (`engine`), and what it says."""

    file: str
    package: str
    tree: Any

    @property
    def level(self) -> Level:
        """An experiment's file goes over every other."""
        return Level.experiment if self.file.startswith(EXPERIMENTS) else Level.default

    @property
    def origin(self) -> str:
        """`experiment exp8`, `engine reference_cpu`."""
        return self.file.replace(EXPERIMENTS, "experiment ", 1).replace("/", " ")

    def value(self, path: Sequence[str]) -> object:
        """What the file says of a path; MISSING where it says nothing."""
        package = self.package.split(".") if self.package else []
        if list(path[: len(package)]) != package:
            return MISSING
        return _down(self.tree, path[len(package) :])


def _down(node: Any, path: Sequence[str]) -> object:
    """What stands at a path. Whoever writes a text where others have a map (an interpolation) writes all below it."""
    for part in path:
        if not isinstance(node, Mapping):
            return node if isinstance(node, str) else MISSING
        if part not in node:
            return MISSING
        node = node[part]
    return node


def written(campaign: Campaign, files: Iterable[Source], overrides: Iterable[tuple[str, Any]]) -> list[Written]:
    """Every value that a file or an override (path and value) wrote for the keys of the open maps, lowest first."""
    lines = [_Override(tuple(path.split(".")), value) for path, value in overrides]
    sources: list[Source | _Override] = [*files, *lines]
    found = []
    for path in _open_paths(campaign):
        for source in sources:
            value = source.value(path)
            if value is not MISSING:
                shown = UNREAD if isinstance(value, str) and "${" in value else value
                found.append(Written(".".join(path), source.level, source.origin, shown))
    return found


@dataclass(frozen=True)
class _Override:
    path: tuple[str, ...]
    given: Any
    level: Level = Level.command_line
    origin: str = COMMAND_LINE

    def value(self, path: Sequence[str]) -> object:
        if tuple(path[: len(self.path)]) != self.path:
            return MISSING
        return _down(self.given, path[len(self.path) :])


def _open_paths(campaign: Campaign) -> list[tuple[str, ...]]:
    """The keys of the open maps that the composed tree has."""
    engine = campaign.engine
    found: list[tuple[str, ...]] = [
        ("engine", kind, name) for kind in ("knobs", "serve", "env") for name in getattr(engine, kind)
    ]
    for arm, given in campaign.arms.items():
        found += [("arms", arm, kind, name) for kind in ("knobs", "serve") for name in getattr(given, kind)]
    return [*found, ("engine", "pass_env")]


def layers(campaign: Campaign, path: str, final: Any, level: Level, origin: str) -> list[Written]:
    """Who wrote the value at a path, lowest first; the last wrote the one that was composed (`final`).

    `level` and `origin` are for a value that nobody is on record for.
    """
    found = [entry for entry in campaign.origins.written if entry.key == path]
    if not found:
        return [Written(path, level, origin, final)]
    return [*found[:-1], replace(found[-1], value=final)]


@dataclass(frozen=True)
class Chosen:
    """The value that counts, who wrote it, and what it goes over (nearest first)."""

    winner: Written
    over: tuple[Written, ...]


def choose(candidates: Sequence[Written]) -> Chosen:
    """The strongest of the candidates; of equally strong ones the later. Raises ValueError when there is none."""
    ranked = sorted(enumerate(candidates), key=lambda item: (item[1].level.value, item[0]), reverse=True)
    winner, *rest = [candidate for _, candidate in ranked]
    return Chosen(winner, tuple(entry for entry in rest if str(entry.value) != str(winner.value)))


def refuse_unheard(arm: str, engine: Sequence[Written], own: Sequence[Written]) -> None:
    """A value typed for the engine that the arm itself sets lower would be lost for this arm. Raises ConfigError."""
    if not engine or not own or engine[-1].level is not Level.command_line:
        return
    typed, kept = engine[-1], own[-1]
    if kept.level is Level.command_line or str(kept.value) == str(typed.value):
        return
    raise ConfigError(
        f"{typed.key}={typed.value}: arm {arm} sets its own ({kept.value}; {kept.origin}), so this would not reach it; "
        f"write {kept.key}={typed.value}"
    )


def typed(path: str, value: str) -> str:
    """A value as it is typed on the command line; a variable is quoted, because a bare 1 would be a number."""
    plain = PLAIN.fullmatch(value) and not path.startswith("engine.env.")
    return f"{path}={value}" if plain else quoted(path, value)


def quoting(path: str, value: object) -> str:
    """How a value that was read as something else is written as text, in a file and where a shell takes quotes away."""
    text = str(value).lower() if isinstance(value, bool) else str(value)
    typed_too = f" in a file, {quoted(path, text)} on the command line" if PATH.fullmatch(path) else ""
    return f'quote it: "{text}"{typed_too}'


def quoted(path: str, value: str) -> str:
    """An override whose value is text, whatever it holds, as a shell takes it."""
    literal = INTERPOLATION.sub(lambda m: m[1] * 2 + "\\${", value)
    escaped = BEFORE_QUOTE.sub(lambda m: m[1] * 2 + ('\\"' if m[2] else ""), literal)
    return f"{path}={shlex.quote(f'{chr(34)}{escaped}{chr(34)}')}"
