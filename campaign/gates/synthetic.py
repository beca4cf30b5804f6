"""Synthetic acceptance: the engine makes up which drafts are accepted, whatever the drafter drafted.

A lane for the speed of a step at a given acceptance length. Its texts are no answers, and its acceptance is what was
asked for: neither says anything of a patch, so no gate that reads them may pass or fail.
"""

from dataclasses import replace

from campaign.evidence import Evidence
from campaign.gates.base import GateResult
from verdict.sentence import GAP, head
from verdict.words import Verdict

MADE_UP = {  # gate -> label
    "acceptance": "acceptance",
    "draft_rate": "accept all",
    "quality": "quality",
    "korean": "Korean",
    "outputs": "outputs",
}


def label(length: float | None) -> str:
    """What stands beside everything that such an engine gave; empty for an engine that drafts for real."""
    return "" if length is None else f"synthetic acceptance ({length:g} tokens a step, made up by the engine)"


def read(name: str, result: GateResult, evidence: Evidence) -> GateResult:
    """A gate's result as it may be told of such boots: labelled, and no verdict where it read what was made up.

    A claim's line has the label itself: it is copied without its details.
    """
    if not evidence.synthetic:
        return result
    if name not in MADE_UP and result.judgement is not None:
        return replace(result, line=f"{result.line}{GAP}with {evidence.synthetic}")
    if name not in MADE_UP:
        return replace(result, details=(evidence.synthetic, *result.details))
    why = f"{evidence.synthetic}: it says nothing of a drafter or of an answer"
    line = f"{head(Verdict.INCONCLUSIVE, MADE_UP[name])}{why}"
    return GateResult(result.gate, Verdict.INCONCLUSIVE, line)
