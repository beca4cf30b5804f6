"""By what two arms, base and another one, differ: as planned, and as their engines show it. Pure.

Arms that are alike measure nothing, and a change that nothing but its own word shows is never enough for a PASS. Where
sameness is all that is claimed (exp=aa), alike arms are what is wanted.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from campaign.asked.arms import ResolvedArm, spelled
from campaign.asked.knobs import KnobValue
from campaign.errors import InvalidError
from campaign.names import BASE
from overlays.values import Overlay
from verdict.claims import Claim, ClaimKind

OWN_WORD = "overlays."  # a resolved key that an overlay publishes of itself
PROFILED = ("kv_blocks", "kv_groups")  # what a memory profile makes anew at each boot
Arms = Mapping[str, ResolvedArm]  # base and one more, by their names


def _other(arms: Arms) -> str:
    """The arm beside base."""
    return next(name for name in arms if name != BASE)


def _both_ways(arms: Arms) -> tuple[tuple[str, str], ...]:
    """Each arm with the one that it is compared with."""
    return ((_other(arms), BASE), (BASE, _other(arms)))


def sameness_claimed(claims: Mapping[str, Claim]) -> bool:
    """Whether sameness is all that is claimed: a no_difference beside another claim excuses nothing."""
    return bool(claims) and all(claim.kind is ClaimKind.no_difference for claim in claims.values())


# as planned


def require_planned(arms: Arms, claims: Mapping[str, Claim]) -> None:
    """Raises InvalidError for arms that reach the engine alike, or that differ by an overlay that nobody switched."""
    if sameness_claimed(claims):
        return
    base, candidate = arms[BASE], arms[_other(arms)]
    if _reaching(base, ()) == _reaching(candidate, ()):
        raise InvalidError(
            f"arms identical: base and {_other(arms)} ask for the same overlays, knobs, serve arguments and environment"
            f"{_other_words(base, candidate)}; nothing could be measured (exp=aa is the experiment for equal arms)"
        )
    idle = {
        name: overlay for arm, other in _both_ways(arms) for name, overlay in _untouched(arms[arm], arms[other]).items()
    }
    if idle and _reaching(base, idle) == _reaching(candidate, idle):
        raise InvalidError(f"arms alike but for what is staged: {_not_switched(arms, next(iter(idle.values())))}")


def notes(arms: Arms, claims: Mapping[str, Claim]) -> list[str]:
    """What the plan alone tells of a bracket that cannot PASS, or that looks forgotten."""
    idle = [overlay for arm, other in _both_ways(arms) for overlay in _untouched(arms[arm], arms[other]).values()]
    return [
        *(_not_switched(arms, overlay) for overlay in ([] if sameness_claimed(claims) else idle)),
        *(
            f"overlay {name}: {why}; nothing could show that it works, so INCONCLUSIVE is the best it can give"
            for name, why in bare(arms).items()
        ),
    ]


def _reaching(arm: ResolvedArm, apart: Iterable[str]) -> dict[str, Any]:
    """All that the engine gets, whatever words asked for it, apart from some overlays and their knobs."""
    names = set(apart)
    knobs = _values(arm, names)
    served = {argument for value in knobs if value.served for argument in value.served.arguments}
    variables = {value.knob.variable for value in knobs}
    return {
        "overlays": {overlay.name for overlay in arm.overlays} - names,
        "serve": {name: spelled(value) for name, value in arm.serve if name not in served},
        "environment": {name: value for name, value in arm.environment.items() if name not in variables},
        "passed": set(arm.passed),
    }


def _values(arm: ResolvedArm, overlays: Iterable[str]) -> list[KnobValue]:
    """The values of the knobs that these overlays declare."""
    wanted = set(overlays)
    names = {knob.name for overlay in arm.overlays if overlay.name in wanted for knob in overlay.knobs}
    return [value for value in arm.knobs if value.knob.name in names]


def _other_words(base: ResolvedArm, candidate: ResolvedArm) -> str:
    theirs = {value.knob.name: value.value for value in base.knobs}
    words = [
        f"{value.knob.name}={theirs[value.knob.name]} and {value.knob.name}={value.value} are one to the engine"
        for value in candidate.knobs
        if theirs.get(value.knob.name, value.value) != value.value
    ]
    return f" ({', '.join(words)})" if words else ""


def _apart(arm: ResolvedArm, other: ResolvedArm) -> list[Overlay]:
    """The overlays that only this arm stages."""
    there = {overlay.name for overlay in other.overlays}
    return [overlay for overlay in arm.overlays if overlay.name not in there]


def _untouched(arm: ResolvedArm, other: ResolvedArm) -> dict[str, Overlay]:
    """The overlays of only this arm that have knobs, none of which anybody set."""
    return {overlay.name: overlay for overlay in _apart(arm, other) if overlay.knobs and _is_untouched(arm, overlay)}


def _is_untouched(arm: ResolvedArm, overlay: Overlay) -> bool:
    return all(value.origin == f"default of overlay {overlay.name}" for value in _values(arm, [overlay.name]))


def _not_switched(arms: Arms, overlay: Overlay) -> str:
    arm = next(name for name, found in arms.items() if overlay in found.overlays)
    knob = overlay.knobs[0]
    return (
        f"nobody set a knob of overlay {overlay.name} in arm {arm}, {knob.name}={knob.default} is only its default; "
        f"write arms.{arm}.knobs.{knob.name}=... (one of {', '.join(knob.values)}), or claim no_difference alone to "
        "measure what being staged costs"
    )


def bare(arms: Arms) -> dict[str, str]:
    """Overlay -> why nothing could show that it works, of those by which the arms differ: never enough for a PASS.

    What is required by an overlay that can be shown is a part of it.
    """
    return {name: why for arm, other in _both_ways(arms) for name, why in _bare(arms[arm], arms[other]).items()}


def _bare(arm: ResolvedArm, other: ResolvedArm) -> dict[str, str]:
    apart = _apart(arm, other)
    why = {overlay.name: _why_bare(arm, overlay) for overlay in apart}
    parts = _required_by(apart, [name for name, reason in why.items() if not reason])
    return {name: reason for name, reason in why.items() if reason and name not in parts}


def _why_bare(arm: ResolvedArm, overlay: Overlay) -> str:
    asking = [value.witness for value in _values(arm, [overlay.name]) if value.witness is not None]
    if any(witness.behaved or set(witness.resolved) - set(_own(witness.resolved)) for witness in asking):
        return ""
    own = [key for witness in asking for key in _own(witness.resolved)]
    return f"no witness but its own word ({', '.join(own)})" if own else "no knob with a witness"


def _own(resolved: Mapping[str, object]) -> list[str]:
    return [key for key in resolved if key.startswith(OWN_WORD)]


def _required_by(overlays: Sequence[Overlay], names: Iterable[str]) -> set[str]:
    """All that these overlays require, and what that requires."""
    requires = {overlay.name: overlay.requires for overlay in overlays}
    found: set[str] = set()
    waiting = list(names)
    while waiting:
        more = [name for name in requires.get(waiting.pop(), ()) if name not in found]
        found.update(more)
        waiting.extend(more)
    return found


# as shown


@dataclass(frozen=True)
class Shown:
    """What an arm's engine showed of itself in a boot."""

    stage: str
    resolved: Mapping[str, object]
    holds: Mapping[str, bool]  # knob.counter of the other arm -> whether what that arm must show holds here too

    @classmethod
    def of(cls, facts: Mapping[str, str]) -> "Shown":
        """From a boot's facts (campaign/bracket/proof.py)."""
        return cls(facts["stage"], json.loads(facts["resolved"]), json.loads(facts.get("other_arms_behaviour", "{}")))


def require_shown(arms: Arms, shown: Mapping[str, Shown]) -> None:
    """Raises InvalidError when both engines are alike, or when a knob that was to change something changed nothing."""
    compared = {name: _compared(name, arms, shown) for name in _differing(arms)}
    changed = any(differs for found in compared.values() for differs in found.values())
    base, candidate = shown[BASE], shown[_other(arms)]
    if not changed and base.stage == candidate.stage and _lasting(base.resolved) == _lasting(candidate.resolved):
        raise InvalidError(
            "arms identical: both engines run the same files and, as far as they show, resolved the same configuration"
        )
    for name, found in compared.items():
        if found and not any(found.values()):
            raise InvalidError(f"arms identical: knob {name} changes nothing, both engines show {', '.join(found)}")


def _lasting(resolved: Mapping[str, object]) -> dict[str, object]:
    return {key: value for key, value in resolved.items() if key not in PROFILED}


def _differing(arms: Arms) -> list[str]:
    """The knobs by which the engines are given different things."""
    of = {name: {value.knob.name: value for value in arm.knobs} for name, arm in arms.items()}
    base, other = of[BASE], of[_other(arms)]
    return [name for name in dict.fromkeys([*other, *base]) if _gives(other.get(name)) != _gives(base.get(name))]


def _gives(value: KnobValue | None) -> object:
    if value is None:
        return None
    return value.given, None if value.served is None else value.served.arguments


def _compared(name: str, arms: Arms, shown: Mapping[str, Shown]) -> dict[str, bool]:
    """All that an arm must show for a knob, in words, and whether the other arm shows otherwise.

    An overlay's own word counts only where the overlay speaks in both arms.
    """
    found: dict[str, bool] = {}
    for arm, other in _both_ways(arms):
        witness = next((value.witness for value in arms[arm].knobs if value.knob.name == name), None)
        if witness is None:
            continue
        for key in witness.resolved:
            here, there = shown[arm].resolved.get(key), shown[other].resolved.get(key)
            if there is not None or not key.startswith(OWN_WORD):
                found[f"{key}={here}"] = here != there
        for counter in witness.behaved:
            found[f"{counter} as arm {arm} must"] = shown[other].holds.get(f"{name}.{counter}", True) is False
    return found
