"""A registered claim, judged over the bracket: what the gates that judge claims share."""

from collections.abc import Sequence
from math import isfinite

from campaign.evidence import Evidence
from campaign.gates.base import GateResult
from campaign.gates.footing import boot_name, incomplete, sound, voided
from campaign.names import STEP_PER_S, TOK_PER_S, TPOT_S, TTFT_MEDIAN_S
from verdict.claims import Claim, Judgement, judge
from verdict.errors import VerdictError
from verdict.fit import Scale
from verdict.sentence import claim_line, head
from verdict.words import Verdict

LABELS = {STEP_PER_S: "step/s", TOK_PER_S: "tok/s", TTFT_MEDIAN_S: "TTFT", TPOT_S: "TPOT"}


def label_of(metric: str) -> str:
    """A metric in at most eleven characters, as lines and plots call it."""
    if metric.startswith("acceptance_pos"):
        return f"accept {metric.removeprefix('acceptance_').removesuffix('_pp')}"
    return LABELS.get(metric, metric)


def judge_claim(
    gate: str, claim: Claim, evidence: Evidence, paired_differences: Sequence[float] | None = None
) -> GateResult:
    """The claim's verdict with its line; INCONCLUSIVE with the reason where a reading is missing or unusable."""
    values = evidence.values(claim.metric)
    reason = incomplete(evidence) or (_silent(evidence, claim.metric) if values is None else "")
    if values is None or reason:
        return unjudged(gate, label_of(claim.metric), reason)
    try:
        found = judge(
            claim,
            values,
            letters(evidence, claim.metric),
            history=evidence.history if claim.metric == STEP_PER_S else None,
            paired_differences=paired_differences,
        )
    except VerdictError as error:
        return unjudged(gate, label_of(claim.metric), str(error))
    return _told(gate, found, evidence)


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
    unit = "%" if found.claim.scale is Scale.LOG else "pp"
    line = claim_line(found, label_of(found.claim.metric), unit, voided_boots=voided(evidence))
    return GateResult(gate, found.verdict, line, (), _numbers(found), found)


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
