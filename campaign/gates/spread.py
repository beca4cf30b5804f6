"""Boots of one arm that should agree and do not: no effect is told of what lies between them (statistics.md 1.6)."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import expm1

from campaign.evidence import Evidence
from campaign.gates.base import GateResult
from campaign.gates.footing import sound
from campaign.names import STEP_PER_S
from verdict.claims import Claim
from verdict.fit import Scale
from verdict.history import FLAT_CAP_LN, History
from verdict.schedule import BLOCK_BOOTS
from verdict.sentence import head
from verdict.voids import Apart, closes, outer_pairs
from verdict.words import Verdict

LEAST_FINAL_BOOTS = 5  # ABABA has an error bar of its own; a shorter bracket is a screen


def block_boots(letters: str) -> int:
    """Boots of a block: four, or the whole of a bracket that is not made of such."""
    return len(letters) if len(letters) % BLOCK_BOOTS else BLOCK_BOOTS


def spoiled(
    gate: str, label: str, claim: Claim, evidence: Evidence, values: Sequence[float], order: str
) -> GateResult | None:
    """VOID where the host's registry rules a block out, INCONCLUSIVE where a screen without one does not close.

    None where the readings may be judged. No percentage is told in either case. Raises VerdictError as the fit does.
    """
    if claim.scale is not Scale.LOG or any(boot.pair for boot in evidence.boots):
        return None
    history = evidence.history if claim.metric == STEP_PER_S else None
    void = next((pair for pair in _by_session(evidence, values, order, history) if pair.is_void), None)
    if void is not None and history is not None:
        return GateResult(gate, Verdict.VOID, f"{head(Verdict.VOID, label)}{_void_words(void, history)}")
    usable = history is not None and history.is_usable
    if usable or len(order) >= LEAST_FINAL_BOOTS or closes(values, order):
        return None
    arm = "bases" if order[0] == "A" else "candidates"
    return GateResult(
        gate,
        Verdict.INCONCLUSIVE,
        f"{head(Verdict.INCONCLUSIVE, label)}the bracket does not close: its outer {arm} read {values[0]:.4g} and "
        f"{values[-1]:.4g}, wanted within {100 * expm1(FLAT_CAP_LN):.0f} % of each other; no effect is told. "
        "Measure again on a quieter host, or with bracket=verdict",
    )


def _by_session(evidence: Evidence, values: Sequence[float], order: str, history: History | None) -> Iterator[Apart]:
    """The outer pairs of each session by itself, their blocks counted on: two hosts need not agree."""
    sessions, before = [boot.session for boot in sound(evidence)], 0
    for session in dict.fromkeys(sessions):
        places = [place for place, found in enumerate(sessions) if found == session]
        part = "".join(order[place] for place in places)
        for pair in outer_pairs([values[place] for place in places], part, block_boots(part), history):
            yield replace(pair, block=before + pair.block)
        before += len(part) // block_boots(part)


def _void_words(pair: Apart, history: History) -> str:
    assert pair.limit_ln is not None
    arm = "bases" if pair.letters[0] == "A" else "candidates"
    return (
        f"block {pair.block} ({pair.letters}): its outer {arm} are {100 * pair.apart_ln:.1f} % apart "
        f"(limit {100 * pair.limit_ln:.1f} %, host sd {100 * history.s0:.2g} %): measure again"
    )
