"""What the lines of a profile mean: each is a knob, a serve argument or a variable, and nothing else. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from campaign.asked import variables
from campaign.asked.knobs import read, serves, without_overlay
from campaign.asked.pinned import Pinned
from campaign.config import Written
from campaign.errors import ConfigError
from campaign.limits import near
from overlays.values import Knob, Overlay


@dataclass
class Assigned:
    """A profile's lines by what they set; the values are typed. `notes` say what was read otherwise than written."""

    knobs: dict[str, Written] = field(default_factory=dict)
    serve: dict[str, Written] = field(default_factory=dict)
    variables: dict[str, Written] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


def assign(lines: Iterable[Written], known: Mapping[str, Overlay], pinned: Pinned) -> Assigned:
    """Every line of a profile under what it sets. Raises ConfigError with file and line."""
    knobs = [*without_overlay(), *(knob for overlay in known.values() for knob in overlay.knobs)]
    found = Assigned()
    for line in lines:
        owners = [knob for knob in knobs if line.key in (knob.variable, knob.profile_key)]
        if owners:
            for knob in owners:
                _to_knob(found, knob, line)
        elif line.key.lower() in pinned.arguments and line.key.isupper():
            _to_argument(found, line, knobs, pinned)
        else:
            _to_variable(found, line, knobs, known, pinned)
    return found


def place(line: Written) -> str:
    """`team.env:3`"""
    return line.origin.removeprefix("profile ")


def _to_knob(found: Assigned, knob: Knob, line: Written) -> None:
    where, value = place(line), str(line.value)
    if value in knob.legacy:
        value, note = knob.legacy[value]
        found.notes.append(f"{where}: {line.key}={line.value} is read as {value}: {note}")
    value = read(f"{where}: {line.key}", knob, value)
    before = found.knobs.get(knob.name)
    if before is not None and before.value != value:
        raise ConfigError(f"{where}: {line.key} sets knob {knob.name}, as {place(before)} does; keep one of the lines")
    found.knobs[knob.name] = replace(line, value=value)


def _to_argument(found: Assigned, line: Written, knobs: list[Knob], pinned: Pinned) -> None:
    where, name = f"{place(line)}: {line.key}", line.key.lower()
    knob = serves({knob.name: (knob, "") for knob in knobs}).get(name)
    if knob is not None:
        key = next(k.profile_key or k.variable for k in knobs if k.name == knob)
        raise ConfigError(f"{where}: knob {knob} sets this argument; write {key}=... instead")
    found.serve[name] = replace(line, value=pinned.argument(where, name).from_text(where, str(line.value)))


def _to_variable(
    found: Assigned, line: Written, knobs: list[Knob], known: Mapping[str, Overlay], pinned: Pinned
) -> None:
    where = place(line)
    variables.refuse(where, line.key)
    declared = {name for overlay in known.values() for name in overlay.variables}
    names = pinned.variables | declared
    if not variables.reaches_the_engine(line.key, names):
        keys = {key for knob in knobs for key in (knob.variable, knob.profile_key) if key}
        hint = near(line.key.upper(), [*keys, *names, *(name.upper() for name in pinned.arguments), *variables.SINGLE])
        raise ConfigError(
            f"{where}: {line.key} is no knob, no serve argument of vLLM {pinned.version} in upper case, and no "
            f"variable that reaches the engine{hint}; correct it, or leave it out"
        )
    found.variables[line.key] = line
