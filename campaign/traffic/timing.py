"""What the client saw of a window: rates by their rules, whether it could be timed, whether it drifted. Pure.

All seconds are the client's perf_counter on the host. Four rates of one stream are four things (cases D2): the chunk
gap is seconds a chunk, TPOT seconds a token, step/s counts chunks and never tokens, tok/s tokens and never chunks.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean

from campaign.evidence import DraftCounts
from campaign.traffic.sample import Sample

PARTS = 3  # of a window, by which a drift is seen: first and last are told
BURSTS = 0.5  # of the chunks that full acceptance would need; fewer, and the server held tokens back


@dataclass(frozen=True)
class Rates:
    """Of requests one after another, first to last chunk; None where it would divide by nothing."""

    chunk_gap_s: float | None
    tpot_s: float | None
    step_per_s: float | None  # a chunk is a step: only where the server merges none
    tok_per_s: float | None


def rates(samples: Sequence[Sample]) -> Rates:
    """Totals over totals (statistics.md 1.1), each by its own rule."""
    seconds = sum(s.decode_s for s in samples)
    chunks, tokens = sum(len(s.chunk_ns) - 1 for s in samples), sum(s.tokens - 1 for s in samples)
    return Rates(_ratio(seconds, chunks), _ratio(seconds, tokens), _ratio(chunks, seconds), _ratio(tokens, seconds))


def _ratio(part: float, whole: float) -> float | None:
    return part / whole if whole > 0 else None


def in_bursts(samples: Sequence[Sample], draft_tokens: int) -> str:
    """Why the stream's times say nothing of the steps, one sentence; empty where a chunk can be a step (cases D4).

    With K draft tokens a step gives at most K + 1 tokens, so that so many tokens need a least number of chunks.
    """
    chunks, tokens = sum(len(s.chunk_tokens) for s in samples), sum(s.tokens for s in samples)
    least = tokens / (draft_tokens + 1)
    if chunks >= BURSTS * least:
        return ""
    return (
        f"the stream came in bursts: {chunks} chunks for {tokens} tokens, at least {least:.0f} steps with "
        f"K={draft_tokens}; its times are INVALID, and rates are by the engine's own decode seconds alone"
    )


def merged(sample: Sample, draft_tokens: int) -> str:
    """Why an answer's chunks are not its steps, one sentence: some hold more than a step can give, or are too few."""
    chunks, most = len(sample.chunk_tokens), draft_tokens + 1
    if max(sample.chunk_tokens) <= most and chunks * most >= sample.tokens:
        return ""
    return (
        f"chunks hold several steps: {chunks} for {sample.tokens} tokens, the largest of {max(sample.chunk_tokens)}, "
        f"a step gives at most {most} with K={draft_tokens}; its times are INVALID"
    )


def lost(samples: Sequence[Sample]) -> str:
    """What the stream did not show of the tokens that the server counted, one sentence; the count is the server's."""
    tokens, seen = sum(s.tokens for s in samples), sum(len(s.token_ids) for s in samples)
    if tokens == seen:
        return ""
    return f"the server counts {tokens} tokens, its streams held the ids of {seen}: the server's count is used"


def hidden(samples: Sequence[Sample]) -> str:
    """What a count of the visible text would miss (cases D3), one sentence; empty where nothing is hidden."""
    reasoning, tokens = sum(s.reasoning_tokens for s in samples), sum(s.tokens for s in samples)
    return f"{reasoning} of {tokens} tokens are reasoning: visible text alone would say {tokens - reasoning}" * bool(
        reasoning
    )


@dataclass(frozen=True)
class Trend:
    """A reading in the first and the last part of a stretch."""

    first: float
    last: float
    falls: bool  # from part to part, all the way

    @property
    def change_pct(self) -> float:
        """Of the last part against the first, in per cent; negative is a fall."""
        return 100 * (self.last / self.first - 1)


def trend(readings: Sequence[float]) -> Trend | None:
    """First third against last third of readings in the order they were taken (cases D14, C11); None under three."""
    if len(readings) < PARTS or min(readings) <= 0:
        return None
    bounds = [round(i * len(readings) / PARTS) for i in range(PARTS + 1)]
    return _trend([fmean(readings[low:high]) for low, high in pairwise(bounds)])


def _trend(parts: Sequence[float]) -> Trend:
    return Trend(parts[0], parts[-1], all(after < before for before, after in pairwise(parts)))


def parts(samples: Sequence[Sample], turns: int) -> list[Sequence[Sample]]:
    """The window in its order: by turns where the prompts came more than once, so that their texts cancel; else thirds.

    Empty where there are too few requests for either.
    """
    count = min(turns, PARTS) if turns > 1 else PARTS if len(samples) >= PARTS else 0
    unit = len(samples) // turns if turns > 1 else 1
    bounds = [round(i * len(samples) / unit / count) * unit for i in range(count + 1)] if count else []
    return [samples[low:high] for low, high in pairwise(bounds)]


def step_trend(samples: Sequence[Sample], turns: int) -> Trend | None:
    """Client's step/s in the first and last part of a window. A prompt's steps are those of its best-seen turn.

    The server may merge chunks under load; an answer that came twice alike took the same steps both times.
    """
    steps: dict[tuple[str, tuple[int, ...]], int] = defaultdict(int)
    for s in samples:
        steps[s.prompt_id, s.token_ids] = max(steps[s.prompt_id, s.token_ids], len(s.chunk_ns) - 1)
    found = []
    for part in parts(samples, turns):
        seconds = sum(s.decode_s for s in part)
        found.append(sum(steps[s.prompt_id, s.token_ids] for s in part) / seconds if seconds > 0 else 0.0)
    return _trend(found) if found and min(found) > 0 else None


def by_chunks(samples: Sequence[Sample], draft_tokens: int, low: float = 0, high: float = float("inf")) -> DraftCounts:
    """Drafts and accepted tokens as the stream shows them, of steps that began at a context of low <= tokens < high.

    The first chunk is the prefill's, and the length limit cuts the last one: neither is counted, nor one that holds
    more than a step can give.
    """
    drafts, accepted = 0, [0] * draft_tokens
    for s in samples:
        context = s.prompt_tokens
        for place, tokens in enumerate(s.chunk_tokens):
            if 0 < place < len(s.chunk_tokens) - 1 and tokens <= draft_tokens + 1 and low <= context < high:
                drafts += 1
                accepted = [a + (position < tokens) for position, a in enumerate(accepted, 1)]
            context += tokens
    return DraftCounts(drafts, tuple(accepted))


def counted_apart(
    samples: Sequence[Sample], turns: int, draft_tokens: int, context_edges: Sequence[int]
) -> dict[str, DraftCounts]:
    """Acceptance by the stream's chunks: in the first and last part of a window, and by the context's length."""
    split = parts(samples, turns)
    named = {"first": split[0], "last": split[-1]} if turns > 1 else {}  # else their texts differ
    found = {name: by_chunks(part, draft_tokens) for name, part in named.items()}
    edges = [0, *sorted(context_edges), float("inf")]
    for low, high in pairwise(edges):
        counts = by_chunks(samples, draft_tokens, low, high)
        if counts.drafts:
            found[context_name(low, high)] = counts
    return found


def context_name(low: float, high: float) -> str:
    """A stratum's name: tokens of prompt and answer before the step."""
    return f"context {low:g}-{high - 1:g}" if high != float("inf") else f"context {low:g}+"
