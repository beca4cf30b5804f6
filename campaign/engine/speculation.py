"""The engine's SpecDecoding log lines: each one parsed, checked against itself, and named by the shape of its chain.

A line counts ten seconds of one API server, so it is never a run's total; even all of them together miss what the
server did after the last one. Positions are counted from 1.
"""

import re
from dataclasses import dataclass
from itertools import pairwise

NUMBER = r"\d+(?:\.\d+)?"
LINE = re.compile(
    rf"SpecDecoding metrics: Mean acceptance length: (?P<mean>{NUMBER}),[^\n]*?"
    rf"Accepted: (?P<accepted>\d+) tokens, Drafted: (?P<drafted>\d+) tokens, "
    rf"Per-position acceptance rate: (?P<positions>{NUMBER}(?:, {NUMBER})*), "
    rf"Avg Draft acceptance rate: (?P<average>{NUMBER})%"
)
MEAN_ROUNDING = 0.005  # the line prints two digits of the length,
RATE_ROUNDING = 0.0005  # three of a rate,
AVERAGE_ROUNDING_PCT = 0.05  # and one of the average
FLOAT = 1e-9  # a share that lies exactly between two printed ones (621 of 2160) is not over the limit
COLLAPSE_RATIO = 0.5  # a position accepted half as often as the one before it, each given its predecessor
JUDGED_FROM = 20  # accepted drafts of the position before, as the acceptance gate has it
FINE_AT_FIRST = 0.2  # below this the chain is short because the drafter is poor, not because it breaks
INEFFECTIVE_LENGTH = 1.05
PROVES_A_DRAFTER = 3
INEFFECTIVE = "drafter ineffective"


@dataclass(frozen=True)
class SpecLine:
    """One interval: tokens a step, accepted and drafted tokens, rate by position, accepted per drafted in percent."""

    mean_length: float
    accepted: int
    drafted: int
    rates: tuple[float, ...]
    average_pct: float

    @property
    def drafts(self) -> float:
        """Draft steps of the interval."""
        return self.drafted / len(self.rates)

    @property
    def conditional(self) -> tuple[float, ...]:
        """The rate of each position where the one before it was accepted; the first one's is plain."""
        return (self.rates[0], *(after / before if before else 0.0 for before, after in pairwise(self.rates)))


def lines(text: str) -> tuple[SpecLine, ...]:
    """Every SpecDecoding line of a log, in order."""
    return tuple(_line(found) for found in LINE.finditer(text))


def _line(found: re.Match[str]) -> SpecLine:
    return SpecLine(
        mean_length=float(found["mean"]),
        accepted=int(found["accepted"]),
        drafted=int(found["drafted"]),
        rates=tuple(float(rate) for rate in found["positions"].split(",")),
        average_pct=float(found["average"]),
    )


def contradictions(line: SpecLine) -> tuple[str, ...]:
    """Sentences for what a line says of itself that cannot be: its length, its average, a rate that grows."""
    by_rates = 1 + sum(line.rates)
    average = 100 * line.accepted / line.drafted if line.drafted else 0.0
    grows = next((i for i, (a, b) in enumerate(pairwise(line.rates), 2) if b > a), 0)
    found = []
    if abs(by_rates - line.mean_length) > MEAN_ROUNDING + RATE_ROUNDING * len(line.rates) + FLOAT:
        found.append(f"1 + the sum of its rates is {by_rates:.3f}, but it says a length of {line.mean_length:g}")
    if abs(average - line.average_pct) > AVERAGE_ROUNDING_PCT + FLOAT:
        found.append(f"{line.accepted} of {line.drafted} are {average:.1f} %, but it says {line.average_pct:g} %")
    if grows:
        found.append(f"pos{grows} is accepted more often than pos{grows - 1}, which must come first")
    return tuple(found)


def shape(line: SpecLine) -> str:
    """What the chain looks like: no drafts, drafter ineffective, low acceptance, chain collapse, or no collapse."""
    if not line.drafted:
        return "no drafts in this interval"
    if len(line.rates) >= PROVES_A_DRAFTER and line.mean_length <= INEFFECTIVE_LENGTH:
        return INEFFECTIVE
    if line.rates[0] < FINE_AT_FIRST:
        return f"low acceptance: pos1 {100 * line.rates[0]:.0f} %"
    for position, (before, after) in enumerate(pairwise(line.conditional), 1):
        if line.drafts * line.rates[position - 1] >= JUDGED_FROM and after < COLLAPSE_RATIO * before:
            return f"chain collapse after pos{position}: {100 * before:.0f} % there, {100 * after:.0f} % of those go on"
    return "no collapse"


def pooled(found: tuple[SpecLine, ...]) -> SpecLine | None:
    """The intervals together, weighted by their drafts; None without a draft, or where the lengths of drafts differ."""
    drafts = sum(line.drafts for line in found)
    if not drafts or len({len(line.rates) for line in found}) != 1:
        return None
    columns = zip(*(line.rates for line in found), strict=True)
    rates = tuple(sum(r * line.drafts for r, line in zip(c, found, strict=True)) / drafts for c in columns)
    accepted, drafted = sum(line.accepted for line in found), sum(line.drafted for line in found)
    return SpecLine(1 + accepted / drafts, accepted, drafted, rates, 100 * accepted / drafted)
