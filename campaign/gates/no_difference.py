"""Do two arms that must be alike show no difference? For A/A brackets and negative controls."""

from dataclasses import dataclass, replace

from campaign.evidence import Evidence
from campaign.gates.base import GateResult
from campaign.gates.claimed import judge_claim, unjudged
from verdict.claims import ClaimKind
from verdict.words import Verdict

GATE = "no_difference"
WORST_FIRST = (Verdict.FAIL, Verdict.INCONCLUSIVE, Verdict.PASS)


@dataclass
class NoDifference:
    """Judges every registered claim of this kind; the worst one speaks for all. A logic-only speed says nothing."""

    def check(self, evidence: Evidence) -> GateResult:
        """The worst claim's line; the lines of the others are details."""
        claims = [claim for claim in evidence.claims.values() if claim.kind is ClaimKind.no_difference]
        if not claims:
            return unjudged(GATE, "no diff", "no claim of kind no_difference is registered")
        results = [judge_claim(GATE, claim, evidence) for claim in claims]
        first, *others = sorted(results, key=lambda result: WORST_FIRST.index(result.verdict))
        numbers = {
            f"{claim.name}.{name}": value
            for claim, result in zip(claims, results, strict=True)
            for name, value in result.numbers.items()
        }
        details = first.details + tuple(other.line for other in others)
        judged = tuple(other.judgement for other in others if other.judgement is not None)
        return replace(first, details=details, numbers=numbers, others=judged)
