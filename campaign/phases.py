"""An experiment in phases: each one a run of its own, and the next only where the one before passed.

A phase changes values of the composed configuration, by their path; what was typed on the command line stays. Pure.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from campaign.config import Campaign, Level, Origins, Phase, Written, from_plain, to_plain
from campaign.errors import ConfigError

OPEN_MAPS = ("knobs", "serve", "env")  # their keys have an origin that is told (asked/origins.py)


def of(campaign: Campaign, overrides: Iterable[str]) -> tuple[Campaign, ...]:
    """The campaign of each phase that is asked for, in their order; itself where it has none.

    Raises ConfigError for a phase that there is not, two of one name, and a path that leads nowhere.
    """
    names = [phase.name for phase in campaign.phases]
    if len(set(names)) < len(names) or any(not name.isidentifier() for name in names):
        raise ConfigError(f"phases: found the names {', '.join(names)}; wanted words, each once")
    if campaign.phase is not None and campaign.phase not in names:
        raise ConfigError(f"phase={campaign.phase}: experiment {campaign.name} has {', '.join(names) or 'no phases'}")
    if not campaign.phases:
        return (campaign,)
    typed = tuple(text.lstrip("+~").partition("=")[0].strip() for text in overrides)
    asked = [phase for phase in campaign.phases if campaign.phase in (None, phase.name)]
    return tuple(_changed(campaign, phase, typed) for phase in asked)


def _changed(campaign: Campaign, phase: Phase, typed: tuple[str, ...]) -> Campaign:
    plain = to_plain(campaign)
    _expect_itself(phase, typed)
    changes = {path: value for path, value in phase.changes.items() if not _is_typed(path, typed)}
    for path, value in changes.items():
        _put(plain, path, value, f"phase {phase.name}")
    plain["phase"] = phase.name
    found = from_plain(plain)
    origin = f"experiment {campaign.name}, phase {phase.name}"
    found.origins = Origins(_written(campaign, changes, origin), campaign.origins.profile)
    return found


def _expect_itself(phase: Phase, typed: tuple[str, ...]) -> None:
    """Raises ConfigError where the command line takes away what makes a phase what it is called: an arm's knob."""
    for path in phase.changes:
        if path.startswith("arms.") and _is_typed(path, typed):
            raise ConfigError(
                f"{path}: phase {phase.name} is the one that sets it to {phase.changes[path]}; leave it out, or ask "
                "for another phase alone with phase=NAME"
            )


def _is_typed(path: str, typed: tuple[str, ...]) -> bool:
    """Whether the command line wrote it, or a map that it is part of."""
    return any(path == key or path.startswith(f"{key}.") for key in typed if key)


def _put(plain: dict[str, Any], path: str, value: Any, where: str) -> None:
    """Sets a value; null takes an entry out of an open map or of the claims. Raises ConfigError for an unknown path."""
    *parents, last = path.split(".")
    node: Any = plain
    for part in parents:
        node = node.get(part) if isinstance(node, dict) else None
    is_open = bool(parents) and (parents[-1] in OPEN_MAPS or parents == ["claims"])
    if not isinstance(node, dict) or (last not in node and not is_open):
        raise ConfigError(f"{where}: no key {path}; wanted the path of a value, as on the command line")
    if is_open and value is None:
        node.pop(last, None)
    else:
        node[last] = value


def _written(campaign: Campaign, changes: Mapping[str, Any], origin: str) -> list[Written]:
    """Who wrote what: a phase goes over its experiment's file, and under the command line."""
    before = campaign.origins.written
    own = [
        Written(path, Level.experiment, origin, value)
        for path, value in changes.items()
        if path.split(".")[-2:-1] and path.split(".")[-2] in OPEN_MAPS
    ]
    stronger = [line for line in before if line.level is Level.command_line]
    return [*(line for line in before if line.level is not Level.command_line), *own, *stronger]
