"""An arm, resolved: which overlays are staged, which value each knob has, which arguments the engine gets. Pure.

Names and values are checked here, before anything is started: knobs against the staged overlays, serve arguments
against the engine version's pinned list.
"""

import contextlib
import difflib
import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from campaign.config import Arm, Campaign
from campaign.errors import ConfigError
from overlays.errors import OverlayError
from overlays.manifest import with_required
from overlays.values import Knob, Overlay, Witness

ARGUMENTS = Path(__file__).parent / "serve_arguments"
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
Scalar = str | int | float | bool | None


@dataclass(frozen=True)
class KnobValue:
    """A knob with the value that an arm gives it (or its default), and what must then be seen."""

    knob: Knob
    value: str
    origin: str  # "arm base", "default of overlay async_dflash"

    @property
    def witness(self) -> Witness | None:
        """What the engine must show for this value; None where the manifest declares nothing."""
        return self.knob.witness.get(self.value)


@dataclass(frozen=True)
class ResolvedArm:
    """All that decides how the engine of one arm is started, apart from port, nonce and folders."""

    name: str
    overlays: tuple[Overlay, ...]
    knobs: tuple[KnobValue, ...]
    serve: tuple[tuple[str, Any], ...]

    @property
    def knob_variables(self) -> dict[str, str]:
        """Variable -> value, for every knob that travels in the environment."""
        return {k.knob.variable: k.value for k in self.knobs}

    @property
    def asked(self) -> dict[str, Any]:
        """The arm as plain data: the same asked twice is the same arm."""
        return {
            "overlays": [o.name for o in self.overlays],
            "knobs": {k.knob.name: k.value for k in self.knobs},
            "serve": {name: spelled(value) for name, value in self.serve},
        }

    @property
    def digest(self) -> str:
        """SHA-256 of what is asked."""
        return digest(self.asked)


def digest(value: object) -> str:
    """SHA-256 of plain data in one canonical spelling."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def spelled(value: object) -> str:
    """A serve value in one spelling, so that 8 and "8", or a map and its JSON text, are the same asked."""
    if isinstance(value, str) and value[:1] in ("{", "["):
        with contextlib.suppress(ValueError):
            value = json.loads(value)
    if isinstance(value, bool | dict | list):
        return json.dumps(value, sort_keys=True, ensure_ascii=False)
    return str(value)


def resolve(campaign: Campaign, name: str) -> ResolvedArm:
    """One arm of an experiment. Raises ConfigError on any name or value that the engine or the overlays do not know."""
    arm = _arm(campaign, name)
    overlays = _overlays(campaign, arm)
    values = _knob_values(name, arm, overlays)
    serve = _serve(campaign, name, arm)
    _check_environment(campaign, values)
    _refuse_unsafe_async(name, overlays, values, serve)
    return ResolvedArm(name, overlays, values, serve)


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


def _knob_values(arm_name: str, arm: Arm, overlays: tuple[Overlay, ...]) -> tuple[KnobValue, ...]:
    knobs = _declared(overlays)
    for name in arm.knobs:
        if name not in knobs:
            staged = ", ".join(o.name for o in overlays) or "none"
            raise ConfigError(
                f"arms.{arm_name}.knobs.{name}: no staged overlay declares knob {name!r}{_close(name, knobs)}; "
                f"staged overlays: {staged}"
            )
    return tuple(_knob_value(arm_name, arm, knob, owner) for knob, owner in knobs.values())


def _declared(overlays: tuple[Overlay, ...]) -> dict[str, tuple[Knob, str]]:
    """Knob name -> knob and the overlay that declares it. Two owners of a knob or a variable are an error."""
    knobs: dict[str, tuple[Knob, str]] = {}
    variables: dict[str, str] = {}
    for overlay in overlays:
        for knob in overlay.knobs:
            other = knobs.get(knob.name, (knob, variables.get(knob.variable)))[1]
            if other:
                raise ConfigError(
                    f"overlays {other} and {overlay.name} both declare knob {knob.name} ({knob.variable})"
                )
            knobs[knob.name] = (knob, overlay.name)
            variables[knob.variable] = overlay.name
    return knobs


def _knob_value(arm_name: str, arm: Arm, knob: Knob, owner: str) -> KnobValue:
    if knob.name not in arm.knobs:
        return KnobValue(knob, knob.default, f"default of overlay {owner}")
    value = arm.knobs[knob.name]
    where = f"arms.{arm_name}.knobs.{knob.name}"
    if isinstance(value, bool):
        raise ConfigError(
            f"{where}: found the YAML truth value {str(value).lower()}, wanted text, one of {_listed(knob.values)}; "
            f'quote it: "{knob.values[-1]}"'
        )
    text = str(value)
    if text not in knob.values:
        raise ConfigError(f"{where}: found {text!r}, wanted one of {_listed(knob.values)}")
    return KnobValue(knob, text, f"arm {arm_name}")


def _serve(campaign: Campaign, arm_name: str, arm: Arm) -> tuple[tuple[str, Any], ...]:
    """The arm's serve arguments over the engine's. An argument set to null is left out."""
    pinned = pinned_arguments(campaign.engine.serve_arguments or campaign.engine.version)
    merged = {str(k): v for k, v in {**campaign.engine.serve, **arm.serve}.items()}
    for name, value in merged.items():
        where = f"arms.{arm_name}.serve.{name}" if name in arm.serve else f"engine.serve.{name}"
        _check_argument(where, name, value, pinned, campaign.engine.version)
    return tuple((name, value) for name, value in merged.items() if value is not None)


def _check_argument(where: str, name: str, value: object, pinned: dict[str, str], version: str) -> None:
    if name in OURS:
        raise ConfigError(f"{where}: the runner sets {name} itself (model.*, host.port); leave it out")
    if name in SECRET:
        raise ConfigError(f"{where}: a secret must not stand in an argument list; use engine.pass_env")
    if name not in pinned:
        raise ConfigError(f"{where}: vLLM {version} has no serve argument {name!r}{_close(name, pinned)}")
    if pinned[name] == "switch" and not isinstance(value, bool | None):
        raise ConfigError(f"{where}: found {value!r}, wanted true, false or null: {name} is a switch")
    if pinned[name] == "value" and isinstance(value, bool):
        raise ConfigError(f"{where}: found the truth value {str(value).lower()}, wanted a value; quote text")


def pinned_arguments(version: str) -> dict[str, str]:
    """The serve arguments of an engine version: name -> "switch" or "value". Raises ConfigError for another version."""
    path = ARGUMENTS / f"{version}.json"
    if not path.is_file():
        have = ", ".join(sorted(p.stem for p in ARGUMENTS.glob("*.json")))
        raise ConfigError(
            f"no serve-argument list for engine version {version} (there is {have}): make serve-arguments"
        )
    arguments = json.loads(path.read_text(encoding="utf-8"))["arguments"]
    assert isinstance(arguments, dict)
    return arguments


def _check_environment(campaign: Campaign, knobs: tuple[KnobValue, ...]) -> None:
    """engine.env holds text, and no variable that a knob sets. null means unset."""
    taken = {k.knob.variable: k.knob.name for k in knobs}
    for name, value in campaign.engine.env.items():
        where = f"engine.env.{name}"
        if value is not None and not isinstance(value, str):  # YAML reads 12:30 as 750 and off as false
            raise ConfigError(f'{where}: found {value!r}, but a variable is text; quote it, for instance "1" or "off"')
        if name in taken:
            raise ConfigError(f"{where}: knob {taken[name]} sets this variable; use arms.<arm>.knobs.{taken[name]}")


def _refuse_unsafe_async(
    arm: str, overlays: tuple[Overlay, ...], knobs: tuple[KnobValue, ...], serve: tuple[tuple[str, Any], ...]
) -> None:
    """An arm that asks for async scheduling must not carry an overlay that reads draft ids on the scheduler's side."""
    wanted = [k.witness.resolved.get("async_scheduling") for k in knobs if k.witness is not None]
    if True not in wanted and dict(serve).get("async_scheduling") is not True:
        return
    for overlay in overlays:
        if not overlay.async_safe:
            raise ConfigError(
                f"arm {arm} asks for async scheduling, but overlay {overlay.name} declares async_safe = false: "
                f"{overlay.async_reason}"
            )


def _close(name: str, names: Iterable[str]) -> str:
    near = difflib.get_close_matches(name, list(names), n=1)
    return f" (did you mean {near[0]!r}?)" if near else ""


def _listed(values: tuple[str, ...]) -> str:
    return ", ".join(f'"{v}"' for v in values)
