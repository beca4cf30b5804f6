"""Is the candidate's Korean free of corruption where base's is?"""

from dataclasses import dataclass

from campaign.evidence import Evidence
from campaign.gates.base import GateResult
from campaign.gates.counted import judge_items
from verdict.sentence import Counted


@dataclass
class Korean:
    """No Korean prompt that base answers cleanly is corrupt in any boot of the candidate.

    `prompts` is the file that is sent in every boot (campaign.checks reads it).
    """

    prompts: str

    def check(self, evidence: Evidence) -> GateResult:
        """k corrupt of n, with what that shows."""
        return judge_items("korean", "Korean", evidence, "corrupt", Counted.FAILURES)
