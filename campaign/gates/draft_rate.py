"""Of all drafted tokens, are as many accepted as in base? What the first position alone does not show."""

from dataclasses import dataclass

from campaign.evidence import Evidence
from campaign.gates.base import GateResult
from campaign.gates.paired import judge_acceptance

GATE = "draft_rate"
LABEL = "accept all"


@dataclass
class DraftRate:
    """Judges the registered claim of this name, on accepted tokens per drafted token over all positions.

    A drafter may keep its first position and lose at the later ones, too little at each to be called a collapse; what
    it loses of the acceptance length, this claim sees: K times its points, by 100, are tokens a step.
    """

    claim: str = "draft_rate"

    def check(self, evidence: Evidence) -> GateResult:
        """The claim's verdict."""
        return judge_acceptance(GATE, LABEL, self.claim, evidence)
