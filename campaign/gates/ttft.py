"""What does a full prefix cache save of the time to first token, and what does it cost?"""

from dataclasses import dataclass, replace

from campaign.evidence import Evidence
from campaign.gates import warm
from campaign.gates.base import GateResult
from campaign.gates.claimed import judge_claim, logic_only, unjudged

GATE = "ttft"
LABEL = "TTFT warm"


@dataclass
class Ttft:
    """Judges the registered claim of this name over the prompts with a shared prefix, with the price beside it."""

    claim: str = "ttft"

    def check(self, evidence: Evidence) -> GateResult:
        """The claim's verdict; the price is what a full cache does to the candidate's acceptance."""
        claim = evidence.claims.get(self.claim)
        if claim is None:
            return unjudged(GATE, LABEL, f"no claim is registered as {self.claim}")
        found = judge_claim(GATE, claim, evidence)
        if logic_only(evidence, claim.metric):
            return found
        price = tuple(f"price: {line}" for line in warm.lengths(evidence))
        return replace(found, details=(*found.details, *price))
