"""Acceptance position by position, each given the one before it, and whether a chain collapsed (house.md)."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from campaign.evidence import DraftCounts, pooled
from verdict.proportions import lower_bound, upper_bound


@dataclass(frozen=True)
class Together(DraftCounts):
    """Counters of several boots; `repeats` is how often the same prompts were asked for them.

    A prompt that is asked again is no new trial (statistics.md section 1.7, point 4): what is shown by these counts is
    what one round of the prompts shows.
    """

    repeats: int = 1


@dataclass(frozen=True)
class Conditional:
    """How often a position is accepted where the one before it was."""

    accepted: int
    reached: int
    repeats: int = 1

    @property
    def rate(self) -> float:
        """From 0 to 1; 0 where the position was never reached."""
        return self.accepted / self.reached if self.reached else 0.0

    @property
    def text(self) -> str:
        """The rate with its counts."""
        return f"{100 * self.rate:.1f} % ({self.accepted}/{self.reached})"

    @property
    def worth(self) -> int:
        """Trials that are no repeats of others."""
        return self.reached // self.repeats

    @property
    def bounds(self) -> tuple[float, float]:
        """Exact one-sided 95 % bounds of the rate, lower and upper, by what the trials are worth (section 1.7)."""
        n = max(1, self.worth)
        k = min(n, round(self.accepted / self.repeats))
        return lower_bound(k, n), upper_bound(k, n)


def chain(counts: Together) -> list[Conditional]:
    """Position 1 of all drafts, position 2 given position 1, and so on; empty where nothing was counted."""
    reached = (counts.drafts, *counts.accepted)
    steps = zip(reached, counts.accepted, strict=False)
    return [Conditional(after, before, counts.repeats) for before, after in steps]


def totals(found: Iterable[DraftCounts], rounds: int = 1) -> Together | None:
    """Counters of boots together: totals over totals, never a mean of rates. None of none.

    All boots ask the same prompts, each boot `rounds` times.
    """
    counts = list(found)
    whole = pooled(counts)
    return None if whole is None else Together(whole.drafts, whole.accepted, len(counts) * rounds)


def same_length(base: Together, candidate: Together) -> tuple[Together, Together]:
    """Both with the positions of the longer one: a position that an arm never shows was never accepted there."""
    longest = max(len(base.accepted), len(candidate.accepted))
    padded = [c.accepted + (0,) * (longest - len(c.accepted)) for c in (base, candidate)]
    return replace(base, accepted=padded[0]), replace(candidate, accepted=padded[1])


def is_thin(ours: Conditional, theirs: Conditional, min_reached: int) -> bool:
    """Whether an arm has too few trials of its own for its rate to be judged."""
    return min(ours.worth, theirs.worth) < max(1, min_reached)


def is_under(ours: Conditional, theirs: Conditional, ratio: float) -> bool:
    """Whether the candidate's rate is seen under this share of base's."""
    return theirs.rate < ratio * ours.rate


def is_shown_under(ours: Conditional, theirs: Conditional, ratio: float) -> bool:
    """Whether the exact bounds of both rates exclude that the candidate keeps this share of base's."""
    return theirs.bounds[1] < ratio * ours.bounds[0]


def limit_text(ours: Conditional, theirs: Conditional, ratio: float) -> str:
    """The limit with what is shown of both: the repeats of a prompt shrink no bound."""
    most, least = 100 * theirs.bounds[1], 100 * ratio * ours.bounds[0]
    trials = f"{theirs.worth} drafts and {ours.worth} of base that are no repeats"
    return (
        f"limit {100 * ratio * ours.rate:.1f} % (95 %: at most {most:.1f} %, limit at least {least:.1f} %, by {trials})"
    )


def collapse(base: Together, candidate: Together, ratio: float, min_reached: int) -> str:
    """The first position after pos1 whose conditional rate is shown to be under `ratio` of base's; else empty."""
    low = _low(base, candidate, ratio, min_reached)
    return next((f"chain collapse after {told}" for shown, told in low if shown), "")


def doubt(base: Together, candidate: Together, ratio: float, min_reached: int) -> str:
    """The first position after pos1 whose rate is seen under `ratio` of base's, by too few drafts to show it."""
    low = _low(base, candidate, ratio, min_reached)
    return next(
        (f"a chain collapse is neither shown nor excluded after {told}" for shown, told in low if not shown), ""
    )


def _low(base: Together, candidate: Together, ratio: float, min_reached: int) -> Iterator[tuple[bool, str]]:
    """The positions after pos1 that are seen under the limit: whether that is shown, and where."""
    pairs = list(zip(chain(base), chain(candidate), strict=True))[1:]
    for position, (ours, theirs) in enumerate(pairs, start=1):
        if is_thin(ours, theirs, min_reached) or not is_under(ours, theirs, ratio):
            continue
        told = f"pos{position}: pos{position + 1} given pos{position} {theirs.text}, base {ours.text}"
        yield is_shown_under(ours, theirs, ratio), f"{told}, {limit_text(ours, theirs, ratio)}"
