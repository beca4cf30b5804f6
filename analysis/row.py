"""One verdict as the tracker holds it. Values only."""

from dataclasses import dataclass, field


class AnalysisError(Exception):
    """What was asked cannot be made of what is there; one sentence with what to do."""


@dataclass(frozen=True)
class Row:
    """One experiment's verdict. Texts are as the run told them; a claim's text holds its interval."""

    campaign_id: str
    experiment: str
    began_ms: int  # Unix time of the first boot, of the runner's host
    engine: str
    verdict: str
    boots: str  # those that gave data, and their order (A is base), or how many pairs
    voided: int = 0
    claims: dict[str, str] = field(default_factory=dict)  # by gate
    gates: dict[str, str] = field(default_factory=dict)  # gate -> verdict word
    supersedes: str = ""
    superseded_by: str = ""
    corrects: str = ""
    corrected_by: str = ""
    because: str = ""
