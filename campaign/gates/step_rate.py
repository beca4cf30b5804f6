"""Does the candidate do more decode steps a second?"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import log
from statistics import fmean

from campaign.evidence import BootRecord, Evidence
from campaign.gates import within
from campaign.gates.base import GateResult
from campaign.gates.claimed import judge_claim, logic_only, unjudged
from campaign.gates.footing import incomplete, sound, unanswered
from campaign.names import ACCEPTANCE_LENGTH, DECODE_ANSWER_TOKENS, DECODE_SET, STEP_PER_S, TOK_PER_S
from verdict.sentence import head
from verdict.words import Verdict

GATE = "step_rate"
LABEL = "step/s"
SUSPECT = "the counters are suspect"
ADDS_UP_WITHIN_LN = 0.005


@dataclass
class StepRate:
    """Judges the registered claim of this name, superiority of step/s; a boot with lost answers is no speed (D7).

    On an engine that only proves its logic it is INCONCLUSIVE: neither PASS nor FAIL comes of that speed.
    """

    claim: str = "step_rate"
    drift_pct: float | None = 5.0  # by which step/s may fall within a window; null for no look at it
    prefix_hits_pp: float | None = 5.0  # by which boots may differ in prefix-cache hits; null where that is the point

    def check(self, evidence: Evidence) -> GateResult:
        """The claim's verdict, with the consistency of step/s, tok/s and acceptance length in the details."""
        claim = evidence.claims.get(self.claim)
        if claim is None:
            return unjudged(GATE, LABEL, f"no claim is registered as {self.claim}")
        missing = unanswered(evidence)
        if missing:
            return GateResult(GATE, Verdict.FAIL, f"{head(Verdict.FAIL, LABEL)}{missing}: no rate of lost answers")
        if self.prefix_hits_pp is not None and (apart := within.hits_apart(evidence, self.prefix_hits_pp)):
            return GateResult(GATE, Verdict.INVALID, f"{head(Verdict.INVALID, LABEL)}no rate: {apart}")
        found = judge_claim(GATE, claim, evidence)
        mark = logic_only(evidence, claim.metric)
        if not found.judgement:
            return found if mark or incomplete(evidence) else self._steady(evidence, found)
        told = tuple(f"{mark}: {line}" if mark else line for line in consistency(evidence))
        if any(SUSPECT in line for line in told):
            line = f"{head(Verdict.INVALID, LABEL)}no rate: {told[0]}"
            return GateResult(GATE, Verdict.INVALID, line)
        found = replace(found, details=found.details + told)
        return found if mark else self._steady(evidence, found)

    def _steady(self, evidence: Evidence, found: GateResult) -> GateResult:
        """The claim as it was judged, with what its windows say; INCONCLUSIVE where they drift (cases D14)."""
        drifts = () if self.drift_pct is None else tuple(within.remarks(evidence, self.drift_pct))
        found = replace(found, details=(*found.details, *drifts, *within.warmth(evidence)))
        why = "" if self.drift_pct is None else within.drift(evidence, self.drift_pct)
        if not why or found.verdict is Verdict.INVALID:
            return found
        line = f"{head(Verdict.INCONCLUSIVE, LABEL)}{why}"
        silenced = replace(found.judgement, verdict=Verdict.INCONCLUSIVE) if found.judgement else None
        return replace(found, verdict=Verdict.INCONCLUSIVE, line=line, judgement=silenced)


def consistency(evidence: Evidence) -> tuple[str, ...]:
    """That ln tok/s = ln step/s + ln acceptance length between the arms (statistics.md 1.1); empty without counters."""
    parts = [_ln_ratio(evidence, reading) for reading in (_tok_per_s, _step_per_s, _acceptance_length)]
    if None in parts:
        return ()
    tok, step, length = (part or 0.0 for part in parts)
    rest = tok - step - length
    adds_up = "adds up" if abs(rest) <= ADDS_UP_WITHIN_LN + _cut(evidence) else f"does not add up, {SUSPECT}"
    terms = f"ln tok/s {tok:+.4f} = ln step/s {step:+.4f} + ln acceptance length {length:+.4f}"
    return (f"{terms}, rest {rest:+.4f}: {adds_up}",)


def _cut(evidence: Evidence) -> float:
    """What the length limit may take off the arms' last steps unequally, as a share: their difference in length."""
    tokens = [tokens for boot in sound(evidence) for tokens in decode_tokens(boot)]
    lengths = [fmean([_acceptance_length(b) or 1.0 for b in sound(evidence, letter)] or [1.0]) for letter in "AB"]
    return abs(lengths[1] - lengths[0]) / fmean(tokens) if any(tokens) else 0.0


def decode_tokens(boot: BootRecord) -> list[float]:
    """Tokens of each answer of the window; of a record their mean, which it keeps; empty where there is neither."""
    found = [float(len(answer.token_ids)) for answer in boot.answers if answer.prompt_set == DECODE_SET]
    kept = boot.metrics.get(DECODE_ANSWER_TOKENS)
    return found or ([] if kept is None else [kept])


def _ln_ratio(evidence: Evidence, reading: Callable[[BootRecord], float | None]) -> float | None:
    """Mean ln of candidate less mean ln of base; None where a boot has no positive reading."""
    arms = [[reading(boot) for boot in sound(evidence, letter)] for letter in "AB"]
    logs = [[log(value) for value in arm if value is not None and value > 0] for arm in arms]
    if any(len(found) < len(arm) or not arm for found, arm in zip(logs, arms, strict=True)):
        return None
    return fmean(logs[1]) - fmean(logs[0])


def _tok_per_s(boot: BootRecord) -> float | None:
    return boot.metrics.get(TOK_PER_S)


def _step_per_s(boot: BootRecord) -> float | None:
    return boot.metrics.get(STEP_PER_S)


def _acceptance_length(boot: BootRecord) -> float | None:
    """Of the same window as the two rates, where its counters are kept."""
    return boot.window.acceptance_length if boot.window else boot.metrics.get(ACCEPTANCE_LENGTH)
