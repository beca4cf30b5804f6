"""Acceptance position by position, each given the one before it, and whether a chain collapsed (house.md)."""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import zip_longest

from campaign.evidence import DraftCounts


@dataclass(frozen=True)
class Conditional:
    """How often a position is accepted where the one before it was."""

    accepted: int
    reached: int

    @property
    def rate(self) -> float:
        """From 0 to 1; 0 where the position was never reached."""
        return self.accepted / self.reached if self.reached else 0.0

    @property
    def text(self) -> str:
        """The rate with its counts."""
        return f"{100 * self.rate:.1f} % ({self.accepted}/{self.reached})"


def chain(counts: DraftCounts) -> list[Conditional]:
    """Position 1 of all drafts, position 2 given position 1, and so on; empty where nothing was counted."""
    reached = (counts.drafts, *counts.accepted)
    return [Conditional(after, before) for before, after in zip(reached, counts.accepted, strict=False)]


def totals(found: Iterable[DraftCounts]) -> DraftCounts | None:
    """Counters together: totals over totals, never a mean of rates. None of none."""
    counts = list(found)
    if not counts:
        return None
    accepted = tuple(sum(column) for column in zip_longest(*(c.accepted for c in counts), fillvalue=0))
    return DraftCounts(sum(c.drafts for c in counts), accepted)


def same_length(base: DraftCounts, candidate: DraftCounts) -> tuple[DraftCounts, DraftCounts]:
    """Both with the positions of the longer one: a position that an arm never shows was never accepted there."""
    longest = max(len(base.accepted), len(candidate.accepted))
    padded = [c.accepted + (0,) * (longest - len(c.accepted)) for c in (base, candidate)]
    return DraftCounts(base.drafts, padded[0]), DraftCounts(candidate.drafts, padded[1])


def collapse(base: DraftCounts, candidate: DraftCounts, ratio: float, min_reached: int) -> str:
    """The first position after pos1 whose conditional rate is under `ratio` of base's, one sentence; else empty."""
    pairs = list(zip(chain(base), chain(candidate), strict=True))[1:]
    for position, (ours, theirs) in enumerate(pairs, start=1):
        if min(ours.reached, theirs.reached) < min_reached or theirs.rate >= ratio * ours.rate:
            continue
        return (
            f"chain collapse after pos{position}: pos{position + 1} given pos{position} {theirs.text}, "
            f"base {ours.text}, limit {100 * ratio * ours.rate:.1f} %"
        )
    return ""
