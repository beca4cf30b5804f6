"""A registered claim, judged over the bracket: what the gates that judge claims share."""

from collections.abc import Sequence
from dataclasses import replace
from math import isfinite

from campaign.evidence import BootRecord, Evidence
from campaign.gates import sittings
from campaign.gates.base import GateResult
from campaign.gates.footing import boot_name, incomplete, sound, voided
from campaign.gates.spread import spoiled
from campaign.gates.within import at_length
from campaign.names import (
    ACCEPTANCE_ALL_PP,
    SPEED,
    STEP_PER_S,
    TOK_PER_S,
    TPOT_S,
    TTFT_COLD_S,
    TTFT_MEDIAN_S,
    TTFT_WARM_S,
    UNLIKE,
    logic_only_label,
)
from verdict.claims import Claim, Judgement, judge
from verdict.errors import VerdictError
from verdict.fit import Scale
from verdict.sentence import applied_margin, claim_line, effect_text, head
from verdict.words import Verdict

LABELS = {
    STEP_PER_S: "step/s",
    TOK_PER_S: "tok/s",
    TPOT_S: "TPOT",
    TTFT_MEDIAN_S: "TTFT",
    TTFT_COLD_S: "TTFT cold",
    TTFT_WARM_S: "TTFT warm",
    ACCEPTANCE_ALL_PP: "accept all",
}


def label_of(metric: str) -> str:
    """A metric in at most eleven characters, as lines and plots call it."""
    if metric.startswith("acceptance_pos"):
        return f"accept {metric.removeprefix('acceptance_').removesuffix('_pp')}"
    return LABELS.get(metric, metric)


def judge_claim(
    gate: str, claim: Claim, evidence: Evidence, paired_differences: Sequence[float] | None = None
) -> GateResult:
    """The claim's verdict with its line; INCONCLUSIVE with the reason where a reading is missing or unusable.

    A speed of an engine that only proves its logic is INCONCLUSIVE whatever it is, and never told without that label.
    """
    mark = logic_only(evidence, claim.metric)
    values = evidence.values(claim.metric)
    reason = incomplete(evidence) or (_silent(evidence, claim.metric) if values is None else "")
    if values is None or reason:
        return unjudged(gate, label_of(claim.metric), _marked(mark, reason))
    order = letters(evidence, claim.metric)
    try:
        shared = claim.name in evidence.contrasts  # of several arms in rows, which have no outer pair
        if not (mark or shared) and (
            no_effect := spoiled(gate, label_of(claim.metric), claim, evidence, values, order)
        ):
            return no_effect
        boots = [boot for boot in sound(evidence) if claim.metric in boot.metrics]
        found = _judged(claim, boots, evidence, paired_differences)
    except VerdictError as error:
        return unjudged(gate, label_of(claim.metric), _marked(mark, str(error)))
    told = _without_a_verdict(gate, found, mark) if mark else _told(gate, found, evidence)
    unlike = _unlike(evidence, claim.metric)
    if unlike and not mark:
        told = _unproven_beside(told, found, unlike)
    apart = sittings.told(evidence)
    line = told.line + at_length(claim.metric, evidence) + (f", {len(apart) + 1} sittings" if apart else "")
    all_boots = _with_the_voided(claim, evidence, paired_differences, mark)
    return replace(told, line=line, details=(*told.details, *all_boots, *apart))


def _judged(
    claim: Claim, boots: Sequence[BootRecord], evidence: Evidence, paired_differences: Sequence[float] | None
) -> Judgement:
    if claim.name in evidence.contrasts:
        return _in_one_fit(claim, boots, evidence)
    planned = evidence.looks.level(claim.kind) if evidence.looks else None
    return judge(
        claim,
        [boot.metrics[claim.metric] for boot in boots],
        "".join(boot.letter for boot in boots),
        sessions=[boot.session for boot in boots] if any(boot.session for boot in evidence.boots) else None,
        history=evidence.history if claim.metric == STEP_PER_S else None,
        paired_differences=paired_differences,
        level=planned if evidence.level is None else evidence.level,
        pairs=[place // 2 for place in range(len(boots))] if any(boot.pair for boot in evidence.boots) else None,
    )


def _in_one_fit(claim: Claim, boots: Sequence[BootRecord], evidence: Evidence) -> Judgement:
    """The claim as it was judged for all candidates of base together. Raises VerdictError with why it was not."""
    sound_ones = all(boot.status == "ok" for boot in boots)
    found = (evidence.contrasts if sound_ones else evidence.contrasts_with_voided)[claim.name]
    if isinstance(found, str):
        raise VerdictError(found)
    return found


def _with_the_voided(
    claim: Claim, evidence: Evidence, paired_differences: Sequence[float] | None, mark: str
) -> tuple[str, ...]:
    """What the boots say together with those that the environment tainted, beside the verdict (section 1.6)."""
    boots = [b for b in evidence.boots if b.status in ("ok", "void") and claim.metric in b.metrics]
    if all(boot.status == "ok" for boot in boots):
        return ()
    try:
        found = _judged(claim, boots, evidence, paired_differences)
    except VerdictError as error:
        return (f"with the voided boots: no effect, {error}",)
    seen = f"{effect_text(found, _unit(claim))}, which would be {found.verdict.value}"
    return (_marked(mark, f"with the voided boots: {seen} ({found.fit.n_boots} boots {found.letters})"),)


def logic_only(evidence: Evidence, metric: str) -> str:
    """The label that a metric of these boots must carry; empty where it counts."""
    return logic_only_label(evidence.logic_only) if metric in SPEED else ""


def unjudged(gate: str, label: str, reason: str, details: tuple[str, ...] = ()) -> GateResult:
    """INCONCLUSIVE, with the reason on the line."""
    return GateResult(gate, Verdict.INCONCLUSIVE, f"{head(Verdict.INCONCLUSIVE, label)}{reason}", details)


def letters(evidence: Evidence, metric: str) -> str:
    """The arms of the boots that gave a metric, in run order: what belongs to Evidence.values."""
    return "".join(boot.letter for boot in sound(evidence) if metric in boot.metrics)


def _silent(evidence: Evidence, metric: str) -> str:
    missing = [boot_name(boot) for boot in sound(evidence) if metric not in boot.metrics]
    return f"{metric} is missing in boot {', '.join(missing)}" if missing else f"no boot gave {metric}"


def _told(gate: str, found: Judgement, evidence: Evidence) -> GateResult:
    label, unit = label_of(found.claim.metric), _unit(found.claim)
    line = claim_line(found, label, unit, voided_boots=voided(evidence), look=evidence.which_look)
    margin = applied_margin(found.claim)
    details = (f"the margin as it is applied: {margin}",) if margin else ()
    return GateResult(gate, found.verdict, line, details, _numbers(found), found)


def _without_a_verdict(gate: str, found: Judgement, mark: str) -> GateResult:
    """What was seen, labelled, for whoever debugs the line; more boots would not make a verdict of it."""
    seen = f"{effect_text(found, _unit(found.claim))} in {found.fit.n_boots} boots {found.letters}"
    line = f"{head(Verdict.INCONCLUSIVE, label_of(found.claim.metric))}{mark}, no speed of a device: {seen}"
    numbers = {f"logic_only.{name}": value for name, value in _numbers(found).items()}
    silenced = replace(found, verdict=Verdict.INCONCLUSIVE, screen=None, boots_to_resolve=None, mde_then=None)
    return GateResult(gate, Verdict.INCONCLUSIVE, line, (), numbers, silenced)


def _unlike(evidence: Evidence, metric: str) -> str:
    """Why no speed of two engines beside each other counts on this machine, of a duet; else empty."""
    return next((boot.facts[UNLIKE] for boot in evidence.boots if UNLIKE in boot.facts), "") if metric in SPEED else ""


def _unproven_beside(told: GateResult, found: Judgement, why: str) -> GateResult:
    """A duet whose base beside base differed: what was seen is told, and is no verdict."""
    seen = effect_text(found, _unit(found.claim))
    line = f"{head(Verdict.INCONCLUSIVE, label_of(found.claim.metric))}{why}; seen {seen}"
    silenced = replace(found, verdict=Verdict.INCONCLUSIVE, screen=None, boots_to_resolve=None, mde_then=None)
    return replace(told, verdict=Verdict.INCONCLUSIVE, line=line, judgement=silenced)


def _unit(claim: Claim) -> str:
    return "%" if claim.scale is Scale.LOG else "pp"


def _marked(mark: str, reason: str) -> str:
    return f"{mark}: {reason}" if mark else reason


def _numbers(found: Judgement) -> dict[str, float]:
    """Effect, interval and resolution with their unit; only what is a finite number."""
    unit = "pct" if found.claim.scale is Scale.LOG else "pp"
    bar = found.interval
    numbers = {
        f"effect_{unit}": found.estimate if bar else None,
        f"lo_{unit}": bar.lo if bar else None,
        f"hi_{unit}": bar.hi if bar else None,
        f"mde_{unit}": found.mde,
        "boot_sd_pct" if unit == "pct" else "boot_sd_pp": _boot_sd(found),
    }
    return {name: value for name, value in numbers.items() if value is not None and isfinite(value)}


def _boot_sd(found: Judgement) -> float | None:
    sd = found.fit.boot_sd
    return None if sd is None else found.claim.scale.resolution(sd)
