"""Blocks that the host spoiled, seen by two boots of one arm that should agree (statistics.md 1.6; house.md, void cap).

The disagreement of an outer same-arm pair is independent of the effect estimate of its schedule (their covariance is
zero), so that leaving such a block out does not bias what is left. Nothing here reads an effect.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from verdict.history import (
    FLAT_CAP_LN,
    History,
    base_disagreement_ln,
    void_cap,
    void_threshold_ln,
)

ABA_BOOTS = 3


@dataclass(frozen=True)
class Apart:
    """The outer pair of a block: how far apart, and how far it may be, in ln; no limit without a registry."""

    block: int  # from 1
    letters: str
    apart_ln: float
    limit_ln: float | None

    @property
    def is_void(self) -> bool:
        """Whether it is further apart than it may be."""
        return self.limit_ln is not None and self.apart_ln > self.limit_ln


def pair_limit_ln(letters: str, history: History | None) -> float | None:
    """How far the outer pair may be apart, in ln; None without a usable registry.

    A lone ABA is held to the host's own threshold (section 1.6, V1); a block of a longer bracket, whose slope takes up
    a linear drift, to 5 % where the host is better than that (V2; house.md).
    """
    if history is None or not history.is_usable:
        return None
    return void_threshold_ln(history) if len(letters) == ABA_BOOTS else void_cap(history)


def outer_pairs(values: Sequence[float], letters: str, block_boots: int, history: History | None) -> tuple[Apart, ...]:
    """The outer same-arm pair of each whole block; a block whose ends are of different arms has none.

    Raises VerdictError for a reading that is not positive.
    """
    found = []
    for block, start in enumerate(range(0, len(letters) - block_boots + 1, block_boots), start=1):
        part = letters[start : start + block_boots]
        apart = base_disagreement_ln(values[start : start + block_boots], part)
        if apart is not None:
            found.append(Apart(block, part, apart, pair_limit_ln(part, history)))
    return tuple(found)


def voided_blocks(values: Sequence[float], letters: str, block_boots: int, history: History | None) -> tuple[int, ...]:
    """The blocks (from 1) whose outer pair voids them, of readings in run order; none without a usable registry.

    Raises VerdictError for a reading that is not positive.
    """
    return tuple(pair.block for pair in outer_pairs(values, letters, block_boots, history) if pair.is_void)


def closes(values: Sequence[float], letters: str) -> bool:
    """Whether the ends of a bracket without an error bar agree to 5 %, so that its effect means anything (case D10).

    Two bases further apart than that say that the host moved more than most effects: whatever lies between them is
    no effect. Raises VerdictError for a reading that is not positive.
    """
    apart = base_disagreement_ln(values, letters)
    return apart is None or apart <= FLAT_CAP_LN
