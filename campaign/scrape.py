"""What a saved /metrics text says, under our names: its counters, and acceptance since the start with its chain."""

import re
from collections.abc import Iterator

from campaign import metrics
from campaign.evidence import DraftCounts

Rows = Iterator[tuple[str, str]]


def rows(counters: metrics.Counters, text: str) -> Rows:
    """Name and words, line by line. `text` is what the counters were parsed from."""
    yield from _counters(counters, text)
    yield from _drafts(counters)


def _counters(counters: metrics.Counters, text: str) -> Rows:
    yield "running", f"{counters.running:g}"
    for ours, names in metrics.ALIASES.items():
        if not counters.has(ours):
            yield ours, f"metric missing: none of {', '.join(names)} (missing is never 0)"
            continue
        there = [series for series in names if re.search(rf"^{series}[{{ ]", text, re.MULTILINE)]
        left_out = f"; left out {', '.join(there[1:])}" if len(there) > 1 else ""
        each = {engine: row[ours] for engine, row in sorted(counters.by_engine.items()) if ours in row}
        by_engine = f"; by engine {', '.join(f'{e}: {v:g}' for e, v in each.items())}" if len(each) > 1 else ""
        yield ours, f"{counters.total(ours):g}  ({there[0]}{left_out}{by_engine})"


def _drafts(counters: metrics.Counters) -> Rows:
    """Acceptance since the start, with its chain, and whether the counters agree with each other."""
    counts = metrics.draft_counts(counters)
    if counts is None or not counts.drafts:
        yield "acceptance", "no drafts since the start: not speculating, or the counters are not wired (never 0 %)"
        return
    yield "acceptance", f"{counts.acceptance_length:.3f} tokens a step since the start, {_chain(counts)}"
    if counters.has("accepted") and sum(counts.accepted) != counters.total("accepted"):
        told = counters.total("accepted")
        yield "", f"contradicts itself: positions add up to {sum(counts.accepted)}, accepted tokens are {told:g}"
    if counters.has("prefix_queries") and counters.total("prefix_queries"):
        share = 100 * counters.total("prefix_hits") / counters.total("prefix_queries")
        preempted = counters.total("preemptions") if counters.has("preemptions") else float("nan")
        yield "prefix hits", f"{share:.1f} % of the tokens asked for, beside {preempted:g} preemptions"


def _chain(counts: DraftCounts) -> str:
    plain = counts.rates_pp()
    before = (counts.drafts, *counts.accepted)
    given = [f"{100 * a / b:.0f} %" if b else "never reached" for a, b in zip(counts.accepted, before, strict=False)]
    rates = ", ".join(f"pos{i} {rate:.1f} %" for i, rate in enumerate(plain, 1))
    return f"{rates}; each given the one before: {', '.join(given[1:])}"
