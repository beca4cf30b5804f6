"""Is the candidate's Korean free of corruption where base's is?"""

from dataclasses import dataclass, replace

from campaign.evidence import Evidence
from campaign.gates.base import GateResult
from campaign.gates.counted import Asked, judge_items
from campaign.names import SAMPLED_SET
from verdict.sentence import Counted
from verdict.words import Verdict

WORST_FIRST = (Verdict.INVALID, Verdict.FAIL, Verdict.VOID, Verdict.INCONCLUSIVE, Verdict.PASS)
GREEDY_ONLY = "greedy answers only: what happens to drawn ones is not shown (gates.korean.sampled)"


@dataclass
class Korean:
    """No Korean prompt that base answers cleanly is corrupt in any boot of the candidate.

    `prompts` is the file that is sent in every boot (campaign.prompting reads it); `sampled` one more, of prompts that
    are drawn (case H2): counted apart, and never compared token by token. A `claimed_below_pct` of corrupt answers must
    be shown by the bound for a PASS (statistics.md section 1.7).
    """

    prompts: str
    sampled: str | None = None
    claimed_below_pct: float | None = None

    def check(self, evidence: Evidence) -> GateResult:
        """k corrupt of n, with what that shows; the greedy answers and the drawn ones, the worse of them first."""
        claimed = None if self.claimed_below_pct is None else self.claimed_below_pct / 100
        greedy = judge_items(Asked("korean", "Korean", "corrupt", Counted.FAILURES, claimed), evidence)
        if self.sampled is None:
            bare = (GREEDY_ONLY,) if greedy.verdict is Verdict.PASS else ()
            return replace(greedy, details=(*greedy.details, *bare))
        asked = Asked(SAMPLED_SET, "Korean", "corrupt when drawn", Counted.FAILURES, claimed)
        drawn = judge_items(asked, evidence)
        worse, other = sorted((greedy, drawn), key=lambda result: WORST_FIRST.index(result.verdict))
        numbers = greedy.numbers | {f"sampled_{name}": value for name, value in drawn.numbers.items()}
        details = (*worse.details, other.line, *other.details)
        counts = worse.verdict is not Verdict.INVALID
        return replace(worse, gate="korean", details=details, numbers=numbers if counts else {})
