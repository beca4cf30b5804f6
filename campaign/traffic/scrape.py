"""What saved /metrics texts say, under our names: totals, a window or a series of them, and what a run concludes.

Pure, over metrics.py. Acceptance is always token-weighted over the window or since the start, and says which.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from math import isfinite

from campaign.engine import speculation
from campaign.errors import ExitCode
from campaign.evidence import DraftCounts
from campaign.traffic import metrics
from verdict.words import agreeing, number_of

Rows = Iterator[tuple[str, str]]
Concluded = tuple[ExitCode, str]
HIT_SHARES_ALIKE_PP = 5.0  # prefix-hit shares of windows that may be compared (cases D1)
SLIDE_WINDOWS, SLIDE_PCT = 4, 5.0  # acceptance that only falls, over so many windows and by so much (cases C11)
WORK = frozenset(("generation_tokens", "prompt_tokens", "iterations", "finished", "drafts"))
COLLAPSED_TO = 0.5  # of the first window's acceptance length above 1 (cases C6)


def rows(counters: metrics.Counters, text: str) -> Rows:
    """Name and words, line by line. `text` is what the counters were parsed from."""
    yield from _counters(counters, text)
    yield from _gauges(counters, text)
    yield from drafting(counters, "since the start")


def window_rows(delta: metrics.Counters, *, rates: bool) -> Rows:
    """A window's counters, and where it counts its rates (by the engine's own clock) and acceptance."""
    for ours in metrics.ALIASES:
        if delta.has(ours):
            yield ours, f"{delta.total(ours):+g}{_by_engine(delta, ours)}"
    if rates:
        yield from _rates(delta)
        yield from drafting(delta, "in the window")


def drafting(counters: metrics.Counters, when: str) -> Rows:
    """Acceptance with its chain, and whether the counters agree with each other; prefix hits beside preemptions."""
    counts = metrics.draft_counts(counters)
    if metrics.unplaced(counters):
        yield "acceptance", f"metric missing: none of {metrics.PER_POSITION} (missing is never 0)"
    elif counts is None or not counts.drafts:
        yield "acceptance", f"no drafts {when}: not speculating, or the counters are not wired (never 0 %)"
    else:
        yield "acceptance", f"{counts.acceptance_length:.3f} tokens a step {when}, {_chain(counts)}"
        yield from (("", f"contradicts itself: {told}") for told in _contradictions(counters, counts))
    share = hit_share_pct(counters)
    if broken := hits_contradict(counters):
        yield "prefix hits", broken
    if share is not None:
        preempted = counters.total("preemptions") if counters.has("preemptions") else float("nan")
        yield "prefix hits", f"{share:.1f} % of the tokens asked for, beside {number_of(preempted, 'preemption')}"
        yield from _too_many_queries(counters)


def hit_share_pct(counters: metrics.Counters) -> float | None:
    """Prefix-cache hits per token asked for, in per cent; None where nothing was asked for, or more was found."""
    both = counters.has("prefix_queries") and counters.has("prefix_hits")
    if not both or not counters.total("prefix_queries") or hits_contradict(counters):
        return None
    return 100 * counters.total("prefix_hits") / counters.total("prefix_queries")


def hits_contradict(counters: metrics.Counters) -> str:
    """That more tokens were found in the prefix cache than were looked up, in words; empty where it is not so."""
    if not (counters.has("prefix_queries") and counters.has("prefix_hits")):
        return ""
    hits, queries = counters.total("prefix_hits"), counters.total("prefix_queries")
    if hits <= queries:
        return ""
    return f"{hits:g} tokens were found in the prefix cache, {queries:g} looked up: no hit rate of such counters"


def concluded(counters: metrics.Counters) -> Concluded:
    """What a run would make of a window's counters, or of totals. PASS and no words where nothing is wrong."""
    if not any(counters.has(name) for name in metrics.ALIASES) and not counters.gauges:
        return ExitCode.INVALID, "metric missing: none of the engine's counters is there, by any of their names"
    if broken := hits_contradict(counters):
        return ExitCode.INVALID, f"the counters contradict each other: {broken}"
    counts = metrics.draft_counts(counters)
    return (ExitCode.PASS, "") if counts is None else _drafting_concluded(counters, counts)


def _drafting_concluded(counters: metrics.Counters, counts: DraftCounts) -> Concluded:
    if not counts.drafts:
        if counters.has("generation_tokens") and counters.total("generation_tokens"):
            return ExitCode.INCONCLUSIVE, "tokens were generated and no draft was counted: speculation is not confirmed"
        return ExitCode.INCONCLUSIVE, "nothing was drafted: speculation is not confirmed"
    if metrics.unplaced(counters):
        return ExitCode.INVALID, f"metric missing: {counts.drafts} drafts, and none of {metrics.PER_POSITION}"
    told = _contradictions(counters, counts)
    if told:
        return ExitCode.INVALID, f"the counters contradict themselves ({told[0]}): no rate is made of them"
    shape = speculation.shape(_as_line(counts))
    if shape == speculation.INEFFECTIVE:
        length = counts.acceptance_length
        return ExitCode.FAIL, f"{shape}: {length:.2f} tokens a step of {len(counts.accepted)} drafted"
    return ExitCode.PASS, ""


def series_rows(deltas: Sequence[metrics.Counters]) -> Rows:
    """A line a window."""
    for number, delta in enumerate(deltas, 1):
        yield f"window {number}", "; ".join(_window_words(delta)) or "no counter moved"


def series_concluded(
    deltas: Sequence[metrics.Counters], waiting: Sequence[float], running: Sequence[float]
) -> Iterator[Concluded]:
    """What the windows say together; of the scrapes, the requests that waited and those that ran."""
    yield from _stalled(deltas, waiting, running)
    shares = [share for delta in deltas if (share := hit_share_pct(delta)) is not None]
    lengths = [length for d in deltas if (c := metrics.draft_counts(d)) and (length := c.acceptance_length)]
    yield from _unlike(shares, lengths)
    if len(lengths) == len(deltas) >= SLIDE_WINDOWS:
        fell = 100 * (1 - lengths[-1] / lengths[0])
        if fell > SLIDE_PCT and all(after <= before for before, after in pairwise(lengths)):
            slide = f"{lengths[0]:.2f} to {lengths[-1]:.2f} tokens a step over {len(lengths)} windows"
            yield ExitCode.INCONCLUSIVE, f"trend: acceptance only falls, {slide}; late and early are not comparable"


def _stalled(
    deltas: Sequence[metrics.Counters], waiting: Sequence[float], running: Sequence[float]
) -> Iterator[Concluded]:
    """An engine that has requests at every scrape and does none of its work between them; preempting is no work."""
    there = [waits + runs for waits, runs in zip(waiting, running, strict=True)]
    still = all(d.has("generation_tokens") and not WORK & {*d.moved()} for d in deltas)
    if not still or not all(there):
        return
    what = "no token was generated" if any(d.moved() for d in deltas) else "no counter moved"
    least = min(there)
    who = f"{number_of(least, 'request')} {agreeing(least, 'was', 'were')} there"
    who = f"{number_of(min(waiting), 'request')} waited" if all(waiting) else who
    yield ExitCode.FAIL, f"engine stalled: {what} in {number_of(len(deltas), 'window')} while {who}; never a rate of 0"


def _unlike(shares: Sequence[float], lengths: Sequence[float]) -> Iterator[Concluded]:
    """Windows that read the prefix cache unlike: no speed of theirs is comparable, and drafting may fall with it."""
    if len(shares) < len(("one", "another")) or max(shares) - min(shares) <= HIT_SHARES_ALIKE_PP:
        return
    told = ", ".join(f"{share:.1f}" for share in shares)
    yield (
        ExitCode.INVALID,
        f"prefix hits differ between windows ({told} %): not comparable, and not correctable",
    )
    drafted = len(lengths) == len(shares)
    if drafted and lengths[shares.index(max(shares))] - 1 < COLLAPSED_TO * (lengths[shares.index(min(shares))] - 1):
        yield ExitCode.FAIL, "acceptance collapses where prefix hits are many: drafting is broken on a warm cache"


def _window_words(delta: metrics.Counters) -> Iterator[str]:
    if delta.has("generation_tokens"):
        yield f"{delta.total('generation_tokens'):+g} tokens"
    if delta.has("finished"):
        yield f"{number_of(delta.total('finished'), 'request')} finished"
    counts = metrics.draft_counts(delta)
    if counts is not None:
        length = counts.acceptance_length
        yield "no drafts" if length is None else f"{length:.3f} tokens a step"
    share = hit_share_pct(delta)
    if share is not None:
        yield f"prefix hits {share:.1f} %"


def _rates(delta: metrics.Counters) -> Rows:
    """step/s and tok/s of a window by the engine's own decode seconds; tok/s never without the acceptance length."""
    decode_s = delta.total("decode_s") if delta.has("decode_s") else 0.0
    counts = metrics.draft_counts(delta)
    if decode_s <= 0 or counts is None or not counts.drafts:
        return
    yield "step/s", f"{counts.drafts / decode_s:.2f} (drafts over the engine's own decode seconds)"
    first = delta.total("finished") if delta.has("finished") else 0.0
    tokens = delta.total("generation_tokens") - first if delta.has("generation_tokens") else float("nan")
    if isfinite(tokens):
        length = counts.acceptance_length
        yield "tok/s", f"{tokens / decode_s:.2f} at {length:.3f} tokens a step (the first token of a request left out)"


def _counters(counters: metrics.Counters, text: str) -> Rows:
    yield "running", f"{counters.running:g}"
    for ours, names in metrics.ALIASES.items():
        if not counters.has(ours):
            yield ours, f"metric missing: none of {', '.join(names)} (missing is never 0)"
            continue
        there = [series for series in names if re.search(rf"^{series}[{{ ]", text, re.MULTILINE)]
        left_out = f"; left out {', '.join(there[1:])}" if len(there) > 1 else ""
        yield ours, f"{counters.total(ours):g}  ({there[0]}{left_out}{_by_engine(counters, ours)})"


def _gauges(counters: metrics.Counters, text: str) -> Rows:
    """Shares that have no sum: the largest of all engines."""
    for ours, names in metrics.GAUGES.items():
        if any(ours in row for row in counters.gauges.values()):
            there = [series for series in names if re.search(rf"^{series}[{{ ]", text, re.MULTILINE)]
            left_out = f"; left out {', '.join(there[1:])}" if len(there) > 1 else ""
            yield ours, f"{counters.highest(ours):g}  ({there[0]}{left_out}; the largest of all engines)"


def _by_engine(counters: metrics.Counters, ours: str) -> str:
    each = {engine: row[ours] for engine, row in sorted(counters.by_engine.items()) if ours in row}
    return f"; by engine {', '.join(f'{e}: {v:g}' for e, v in each.items())}" if len(each) > 1 else ""


def _contradictions(counters: metrics.Counters, counts: DraftCounts) -> list[str]:
    found = []
    if counters.has("accepted") and sum(counts.accepted) != counters.total("accepted"):
        told = counters.total("accepted")
        found.append(f"positions add up to {sum(counts.accepted)}, accepted tokens are {told:g}")
    shown = [n for n in (counts.drafts, *counts.accepted) if n]  # a gap is a position that was never labelled
    if any(after > before for before, after in pairwise(shown)):
        found.append("a position is accepted more often than the one before it")
    return found


def _too_many_queries(counters: metrics.Counters) -> Rows:
    """More prefix queries than prompt tokens without a preemption: queries are counted per attempt (cases B5)."""
    asked = counters.total("prompt_tokens") if counters.has("prompt_tokens") else float("inf")
    preempted = counters.total("preemptions") if counters.has("preemptions") else 0.0
    if counters.total("prefix_queries") > 1.01 * asked and not preempted:
        yield "", f"unreliable: {counters.total('prefix_queries'):g} tokens asked for, {asked:g} of prompts were served"


def _as_line(counts: DraftCounts) -> speculation.SpecLine:
    rates = tuple(rate / 100 for rate in counts.rates_pp())
    accepted, drafted = sum(counts.accepted), counts.drafts * len(counts.accepted)
    return speculation.SpecLine(
        1 + accepted / counts.drafts, accepted, drafted, rates, 100 * accepted / max(1, drafted)
    )


def _chain(counts: DraftCounts) -> str:
    plain = counts.rates_pp()
    before = (counts.drafts, *counts.accepted)
    given = [f"{100 * a / b:.0f} %" if b else "never reached" for a, b in zip(counts.accepted, before, strict=False)]
    rates = ", ".join(f"pos{i} {rate:.1f} %" for i, rate in enumerate(plain, 1))
    return f"{rates}; each given the one before: {', '.join(given[1:])}"
