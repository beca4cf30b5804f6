"""Are the answers of the candidate as right as base's?"""

from dataclasses import dataclass

from campaign.evidence import Evidence
from campaign.gates.base import GateResult
from campaign.gates.counted import Asked, judge_items
from verdict.sentence import Counted


@dataclass
class Quality:
    """Every quality prompt that base answers right is answered right in every boot of the candidate.

    `prompts` is the file that is sent in every boot (prompting/ reads it). A `claimed_above_pct` of right answers
    must be shown by the bound for a PASS (statistics.md section 1.7).
    """

    prompts: str
    claimed_above_pct: float | None = None
    warm: bool = True  # where the engine has a prefix cache, all prompts are asked again from it (case H13)

    def check(self, evidence: Evidence) -> GateResult:
        """k right of n, with what that shows."""
        claimed = None if self.claimed_above_pct is None else 1 - self.claimed_above_pct / 100
        return judge_items(Asked("quality", "quality", "correct", Counted.SUCCESSES, claimed), evidence)
