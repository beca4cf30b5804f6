"""What a gate is: a question asked of the evidence, answered with a verdict and one line in plain words."""

from dataclasses import dataclass, field
from typing import Any, Protocol

from campaign.evidence import Evidence
from verdict.claims import Judgement
from verdict.words import Verdict


@dataclass(frozen=True)
class GateResult:
    """A gate's answer."""

    gate: str
    verdict: Verdict
    line: str  # the words of statistics.md section 4, the verdict word first
    details: tuple[str, ...] = ()  # further lines: items that failed, first divergence, what would resolve it
    numbers: dict[str, float] = field(default_factory=dict)  # finite only; for MLflow, names with units
    judgement: Judgement | None = None  # for gates that judge a claim: what the bracket plot draws
    look: int = 0  # of a claim: which planned look it was judged at, from 1
    others: tuple[Judgement, ...] = ()  # of a gate that judges several claims: those that do not speak for it

    def plain(self) -> dict[str, Any]:
        """For JSON: all but the judgements, whose words the line has."""
        return {name: value for name, value in vars(self).items() if name not in ("judgement", "others")}


class Gate(Protocol):
    """All there is to a gate. It reads no file, no clock, no MLflow, and never raises because the answer is no."""

    def check(self, evidence: Evidence) -> GateResult: ...
