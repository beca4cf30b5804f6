"""Are the answers of the candidate as right as base's?"""

from dataclasses import dataclass

from campaign.evidence import Evidence
from campaign.gates.base import GateResult
from campaign.gates.counted import judge_items
from verdict.sentence import Counted


@dataclass
class Quality:
    """Every quality prompt that base answers right is answered right in every boot of the candidate.

    `prompts` is the file that is sent in every boot (campaign.checks reads it).
    """

    prompts: str

    def check(self, evidence: Evidence) -> GateResult:
        """k right of n, with what that shows."""
        return judge_items("quality", "quality", evidence, "correct", Counted.SUCCESSES)
