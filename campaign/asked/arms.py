"""An arm, resolved: which overlays are staged, which value each knob has, which arguments the engine gets. Pure.

Names and values are checked here, before anything is started, and of every value it is said who wrote it and what it
goes over (campaign/asked/origins.py).
"""

import contextlib
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from campaign.asked import environment, knobs, origins, pinned, variables
from campaign.asked.assigned import Assigned, assign, place
from campaign.asked.environment import Readers
from campaign.asked.knobs import KnobValue, Owned
from campaign.asked.origins import Setting, choose, layers
from campaign.asked.pinned import Pinned
from campaign.config import Arm, Campaign, Level, Written
from campaign.errors import ConfigError
from campaign.limits import near
from overlays.errors import OverlayError
from overlays.manifest import with_required
from overlays.values import Knob, Overlay


@dataclass(frozen=True)
class ResolvedArm:
    """All that decides how the engine of one arm is started, apart from port, nonce and folders."""

    name: str
    overlays: tuple[Overlay, ...]
    knobs: tuple[KnobValue, ...]
    settings: tuple[Setting, ...]
    notes: tuple[str, ...] = ()  # what is not given to this arm, or read otherwise than it is written

    @property
    def serve(self) -> tuple[tuple[str, Any], ...]:
        """The serve arguments, those of the knobs last."""
        own = [(s.name, s.value) for s in self.settings if s.kind == "serve" and s.value is not None]
        return (*own, *(pair for k in self.knobs if k.served for pair in k.served.arguments.items()))

    @property
    def knob_variables(self) -> dict[str, str]:
        """Variable -> value, for every knob that travels in the environment."""
        return {k.knob.variable: k.given for k in self.knobs if k.knob.variable and k.given is not None}

    @property
    def environment(self) -> dict[str, str]:
        """Variable -> value, for all that the configuration and the knobs set."""
        own = {s.name: str(s.value) for s in self.settings if s.kind == "env" and s.value is not None}
        return own | self.knob_variables

    @property
    def passed(self) -> tuple[str, ...]:
        """The variables that are passed on from the caller, whatever their value."""
        return tuple(s.name for s in self.settings if s.kind == "passed")

    @property
    def asked(self) -> dict[str, Any]:
        """The arm as plain data, with what its engine must show: the same asked twice is the same arm."""
        return {
            "overlays": [o.name for o in self.overlays],
            "knobs": {k.knob.name: k.value for k in self.knobs},
            "witness": {k.knob.name: asdict(k.witness) for k in self.knobs if k.witness is not None},
            "serve": {name: spelled(value) for name, value in self.serve},
            "environment": self.environment,
            "passed": sorted(self.passed),
        }

    @property
    def digest(self) -> str:
        """SHA-256 of what is asked."""
        return digest(self.asked)


def digest(value: object) -> str:
    """SHA-256 of plain data in one canonical spelling."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()


def spelled(value: object) -> str:
    """A serve value in one spelling, so that 8 and "8", or a map and its JSON text, are the same asked."""
    if isinstance(value, str) and value[:1] in ("{", "["):
        with contextlib.suppress(ValueError, RecursionError):
            value = json.loads(value)
    if isinstance(value, bool | dict | list | tuple):
        return json.dumps(value, sort_keys=True, ensure_ascii=False)
    return str(value)


def resolve(campaign: Campaign, name: str) -> ResolvedArm:
    """One arm of an experiment. Raises ConfigError on any name or value that the engine or the overlays do not know."""
    arm = _arm(campaign, name)
    overlays = _overlays(campaign, arm)
    lists = pinned.load(campaign.engine.serve_arguments or campaign.engine.version)
    known = _known(campaign, overlays, lists)
    profile = assign(campaign.origins.profile, known, lists)
    declared = knobs.declared(overlays)
    values = _knob_values(campaign, name, declared, profile, known)
    taken = {knob.variable: knob.name for knob, _ in declared.values() if knob.variable}
    serve = _serve(campaign, name, lists, profile, knobs.serves(declared))
    given, left_out = environment.settings(campaign, taken, profile, Readers(name, lists, overlays, known))
    notes = (*profile.notes, *_not_staged(campaign, name, declared, profile), *left_out)
    found = ResolvedArm(name, overlays, values, (*serve, *given), notes)
    _refuse_unsafe_async(found)
    return found


def _arm(campaign: Campaign, name: str) -> Arm:
    if name not in campaign.arms:
        raise ConfigError(f"no arm {name!r} in experiment {campaign.name}; it has {', '.join(campaign.arms)}")
    return campaign.arms[name]


def _overlays(campaign: Campaign, arm: Arm) -> tuple[Overlay, ...]:
    """The engine's base set, then what the arm adds, then what those require, each once."""
    try:
        return with_required([*campaign.engine.overlays, *arm.overlays], [Path(p) for p in campaign.host.overlay_path])
    except OverlayError as error:
        raise ConfigError(f"{error}; `python -m overlays list` shows them") from error


def _known(campaign: Campaign, staged: Sequence[Overlay], lists: Pinned) -> dict[str, Overlay]:
    """Every overlay that can be found, where one that is not staged may be spoken of; else those that are staged."""
    engine = campaign.engine
    named = {*engine.env, *engine.pass_env}
    strange = {v for v in named if v.startswith(variables.ENGINE_PREFIX) and v not in lists.variables}
    if campaign.origins.profile or engine.knobs or strange:
        return knobs.known_overlays(campaign.host.overlay_path)
    return {overlay.name: overlay for overlay in staged}


# knobs


def _knob_values(
    campaign: Campaign, arm: str, declared: dict[str, Owned], profile: Assigned, known: dict[str, Overlay]
) -> tuple[KnobValue, ...]:
    elsewhere = {knob.name for overlay in known.values() for knob in overlay.knobs}
    for path, names in ((f"arms.{arm}", campaign.arms[arm].knobs), ("engine", campaign.engine.knobs)):
        for name in names:
            if name not in declared and not (path == "engine" and name in elsewhere):
                raise ConfigError(
                    f"{path}.knobs.{name}: no staged overlay declares knob {name!r}"
                    f"{_who_declares(campaign, arm, name, declared)}"
                )
    return tuple(_knob_value(campaign, arm, owned, profile) for owned in declared.values())


def _who_declares(campaign: Campaign, arm: str, name: str, declared: dict[str, Owned]) -> str:
    """The overlay to stage for a knob, or the nearest knob and where those of this arm come from."""
    for overlay in knobs.known_overlays(campaign.host.overlay_path).values():
        if name in {knob.name for knob in overlay.knobs}:
            staged = ",".join([*campaign.arms[arm].overlays, overlay.name])
            return f"; overlay {overlay.name} does, stage it: 'arms.{arm}.overlays=[{staged}]'"
    owners = dict.fromkeys(owner.removeprefix("overlay ") for _, owner in declared.values())
    return f"{near(name, declared)}; knobs come from {', '.join(owners)}"


def _not_staged(campaign: Campaign, arm: str, declared: dict[str, Owned], profile: Assigned) -> list[str]:
    """A knob that was set for all arms and that this one does not have: said, never an error."""
    lines = [(f"{place(line)}: {line.key}={line.value}", name) for name, line in profile.knobs.items()]
    lines += [(f"engine.knobs.{name}={value}", name) for name, value in campaign.engine.knobs.items()]
    return [
        f"{text} is not given to arm {arm}, which stages no overlay with knob {name}"
        for text, name in lines
        if name not in declared
    ]


def _knob_value(campaign: Campaign, arm: str, owned: Owned, profile: Assigned) -> KnobValue:
    knob, owner = owned
    own, engine = campaign.arms[arm].knobs, campaign.engine.knobs
    candidates = _written(campaign, arm, "knobs", knob.name, engine, own)
    candidates = [*filter(None, [profile.knobs.get(knob.name)]), *candidates]
    if not candidates:
        return KnobValue(knob, knob.default, f"default of {owner}", (), campaign.model.method)
    chosen = choose(candidates)
    value = knobs.read(chosen.winner.key, knob, chosen.winner.value)
    return KnobValue(knob, value, chosen.winner.origin, chosen.over, campaign.model.method)


def _written(
    campaign: Campaign, arm: str, kind: str, name: str, engine: dict[str, Any], own: dict[str, Any]
) -> list[Written]:
    """Who wrote a key for the engine and for the arm, lowest first. Raises ConfigError where one goes unheard."""
    for_all, for_one = f"engine.{kind}.{name}", f"arms.{arm}.{kind}.{name}"
    default = f"engine {campaign.engine.name}"
    wide = layers(campaign, for_all, engine[name], Level.default, default) if name in engine else []
    ours = layers(campaign, for_one, own[name], Level.experiment, f"arm {arm}") if name in own else []
    origins.refuse_unheard(arm, wide, ours)
    return [*wide, *ours]


# serve arguments


def _serve(campaign: Campaign, arm: str, lists: Pinned, profile: Assigned, owned: dict[str, str]) -> list[Setting]:
    """The arm's serve arguments over the engine's and the profile's. An argument set to null is left out."""
    engine, own = campaign.engine.serve, campaign.arms[arm].serve
    found = []
    for name in dict.fromkeys([*engine, *own, *profile.serve]):
        candidates = _written(campaign, arm, "serve", name, engine, own)
        if candidates and name in owned:
            raise ConfigError(
                f"{candidates[-1].key}: knob {owned[name]} sets {name}; use arms.{arm}.knobs.{owned[name]}, "
                f"or engine.knobs.{owned[name]} for both arms"
            )
        chosen = choose([*filter(None, [profile.serve.get(name)]), *candidates])
        winner = chosen.winner
        if winner.level is not Level.profile:  # a profile's line is typed already
            winner = replace(winner, value=lists.argument(winner.key, name).read(winner.key, winner.value))
        found.append(Setting("serve", name, winner.value, winner.origin, chosen.over))
    return found


# async scheduling


def _refuse_unsafe_async(arm: ResolvedArm) -> None:
    """An arm that asks for async scheduling must not carry an overlay that reads draft ids on the scheduler's side."""
    wanted = [k.witness.resolved.get("async_scheduling") for k in arm.knobs if k.witness is not None]
    if True not in wanted and dict(arm.serve).get("async_scheduling") is not True:
        return
    for overlay in arm.overlays:
        if not overlay.async_safe:
            raise ConfigError(
                f"arm {arm.name} asks for async scheduling, but overlay {overlay.name} declares async_safe = false: "
                f"{overlay.async_reason}"
            )


# the caller's shell


def strays(arms: dict[str, ResolvedArm], profile: Sequence[Written], shell: Mapping[str, str]) -> list[str]:
    """Variables of the shell that are not used though an arm has another value, or are to be passed on and not there.

    Nothing of the shell reaches an engine (but engine.pass_env), so a value that looks set there is not.
    """
    found = []
    for name, paths in _spoken_of(arms, profile).items():
        has = {arm.name: _has(arm, name) for arm in arms.values()}
        if name in shell and any(value != shell[name] for value in has.values()):
            kept = ", ".join(f"arm {arm} has {'none' if value is None else value}" for arm, value in has.items())
            ways = " ".join(origins.typed(path, shell[name]) for path in paths)
            found.append(f"{name}={shell[name]} of this shell is not used ({kept}); to use it: {ways}")
    return [*found, *_missing(arms, shell)]


def _missing(arms: dict[str, ResolvedArm], shell: Mapping[str, str]) -> list[str]:
    """Variables that are to be passed on and are not there. An engine's file may name what not every host has."""
    passed = {s.name: s.origin for arm in arms.values() for s in arm.settings if s.kind == "passed"}
    return [
        f"{name} is not set in this shell, so {environment.PASS_ENV} ({origin}) gives the engine nothing"
        for name, origin in passed.items()
        if name not in shell and not (origin.startswith("engine ") and variables.reaches_the_engine(name, ()))
    ]


def _spoken_of(arms: dict[str, ResolvedArm], profile: Sequence[Written]) -> dict[str, list[str]]:
    """The variables of all knobs and the keys of the profile, with the paths that set each."""
    keys = {line.key for line in profile}
    found: dict[str, list[str]] = {}
    for arm in arms.values():
        names = {v: f"arms.{arm.name}.knobs.{k.knob.name}" for k in arm.knobs for v in _names(k.knob, keys)}
        for setting in arm.settings:
            serve = setting.kind == "serve"
            name = setting.name.upper() if serve else setting.name
            if name in keys:
                names[name] = f"arms.{arm.name}.serve.{setting.name}" if serve else f"engine.env.{setting.name}"
        for name, path in names.items():
            found[name] = list(dict.fromkeys([*found.get(name, []), path]))
    return found


def _names(knob: Knob, keys: set[str]) -> list[str]:
    """What a shell may call a knob: its variable, and its key where the profile has it."""
    return [name for name in (knob.variable, knob.profile_key) if name and (name == knob.variable or name in keys)]


def _has(arm: ResolvedArm, name: str) -> str | None:
    """What an arm has for a variable, a profile's key of a knob, or a serve argument in upper case."""
    found = {key.upper(): spelled(value) for key, value in arm.serve}
    found |= {k.knob.profile_key: k.value for k in arm.knobs if k.knob.profile_key}
    return (found | arm.environment).get(name)
