"""Several scrapes of one server, in order: the windows between them, or why no window may be made of them. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from campaign.errors import InvalidError
from campaign.traffic.metrics import Counters


@dataclass(frozen=True)
class Series:
    """The differences of neighbours, and the one of the last and the first; or the sentence that refuses both."""

    deltas: tuple[Counters, ...] = ()
    delta: Counters | None = None
    refusal: str = ""


def series(scrapes: Sequence[Counters]) -> Series:
    """The windows of two scrapes or more. A counter that falls makes none: never a negative or huge rate (B8)."""
    falls = [(at, why) for at, pair in enumerate(pairwise(scrapes), 1) if (why := _refused(*pair))]
    if not falls:
        deltas = tuple(after.since(before) for before, after in pairwise(scrapes))
        return Series(deltas, scrapes[-1].since(scrapes[0]))
    if len(falls) > 1 and _alternate(scrapes):
        return Series(
            refusal=f"the counters bounce ({len(falls)} falls in {len(scrapes)} scrapes): several processes answer "
            "/metrics in turn, each with a registry of its own; scrape each by itself"
        )
    at, why = falls[0]
    return Series(refusal=f"between scrape {at} and {at + 1}: {why}")


def _refused(before: Counters, after: Counters) -> str:
    try:
        after.since(before)
    except InvalidError as error:
        return str(error)
    return ""


def _alternate(scrapes: Sequence[Counters]) -> bool:
    """Whether every second scrape goes on from the last but one: two registries that answer in turn."""
    return len(scrapes) > len(("one", "two", "three")) and not any(map(_refused, scrapes, scrapes[2:]))
