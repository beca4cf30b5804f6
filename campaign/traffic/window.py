"""The measured window of one boot: fixed lengths, the same prompts in the same order in every boot. Numbers only."""

import statistics
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeVar

from campaign.config import Workload
from campaign.errors import HostUnfitError, InvalidError
from campaign.evidence import Answer, DraftCounts
from campaign.names import (
    ACCEPTANCE_LENGTH,
    CHUNK_GAP_S,
    DRAFT_COUNTERS,
    PREFIX_HIT_PCT,
    STEP_PER_S,
    TOK_PER_S,
    TPOT_S,
    TTFT_MEDIAN_S,
    WINDOW_FIRST_STEP_PER_S,
    WINDOW_LAST_STEP_PER_S,
)
from campaign.prompting.checks import Prompt
from campaign.traffic.answers import answer_of
from campaign.traffic.client import Ask, Client
from campaign.traffic.metrics import (
    CLOCK_TOLERANCE,
    IDENTITY_TOLERANCE,
    Counters,
    clock_gap,
    draft_counts,
    identity_gap,
)
from campaign.traffic.polling import elapsed, scrape
from campaign.traffic.sample import Sample
from campaign.traffic.scrape import hits_contradict
from campaign.traffic.timing import hidden, in_bursts, lost, rates, step_trend
from verdict.words import agreeing, number_of

MERGED_SHARE = 0.02  # of the draft steps may lie in a chunk with another; more, and the two counts contradict
WINDOWS = 5  # tries
MOST_DRAFT_TOKENS = 16  # where the counters show no position
MORE_THAN_ONE = 1.05  # tokens a step, from which something must have been drafted
STREAM, TOKENS, REASONING = "stream_timing", "token_count", "reasoning_tokens"  # facts of a boot
PREFIX_COUNTERS = "prefix_counters"  # another one
T = TypeVar("T")


@dataclass(frozen=True)
class Measured:
    """What the window gave; metrics by names.py."""

    metrics: dict[str, float]
    counts: DraftCounts | None
    answers: tuple[Answer, ...]
    samples: tuple[Sample, ...]
    delta: Counters
    discarded: tuple[str, ...] = ()  # why each disturbed window before this one was
    facts: dict[str, str] = field(default_factory=dict)  # sentences about its streams, for the boot's record


class TaintedError(InvalidError):
    """The window was disturbed, not the engine: it may be measured again, and the discard is counted."""


def measure(
    client: Client,
    prompts: tuple[Prompt, ...],
    workload: Workload,
    timeout_s: float,
    folder: Path,
    *,
    drafting: bool = True,
) -> Measured:
    """The window, measured again when it was disturbed (decided without a look at the metric).

    Raises HostUnfitError when every try was disturbed; InvalidError at once when lengths or counters are wrong.
    """
    measured, discarded = undisturbed(lambda: _window(client, prompts, workload, timeout_s, folder, drafting))
    return replace(measured, discarded=discarded)


def undisturbed(window: Callable[[], T]) -> tuple[T, tuple[str, ...]]:
    """A window, and why each before it was disturbed. Raises HostUnfitError when every try was."""
    discarded: list[str] = []
    while len(discarded) < WINDOWS:
        try:
            return window(), tuple(discarded)
        except TaintedError as error:
            discarded.append(str(error))
    raise HostUnfitError(f"contended: {WINDOWS} windows in a row were disturbed; the last one: {discarded[-1]}")


def _window(
    client: Client, prompts: tuple[Prompt, ...], workload: Workload, timeout_s: float, folder: Path, drafting: bool
) -> Measured:
    """One try: fixed lengths, one request at a time, counters as deltas. Raises as `opened` and `closed` do."""
    before = opened(client, timeout_s, folder)
    ask = asking(workload, timeout_s)
    samples = tuple(client.stream(prompt, ask) for prompt in turns_of(prompts, workload.repeats))
    after = scrape(client, timeout_s, folder / "metrics-after.txt")
    return closed(elapsed(client, before, after, timeout_s), samples, prompts, workload.max_tokens, drafting=drafting)


def asking(workload: Workload, timeout_s: float) -> Ask:
    """How every prompt of a window is sent."""
    return Ask(workload.max_tokens, ignore_eos=True, timeout_s=timeout_s)


def opened(client: Client, timeout_s: float, folder: Path) -> Counters:
    """The counters before a window. Raises TaintedError when somebody else's requests run."""
    before = scrape(client, timeout_s, folder / "metrics-before.txt")
    if there := _others(before):
        raise TaintedError(f"{there} before the window")
    return before


def _others(now: Counters) -> str:
    """The requests of somebody else at a moment when none is ours; empty for none."""
    found = [(now.running, "running"), (now.waiting, "waiting")]
    told = [
        f"{number_of(count, 'request')} of somebody else {agreeing(count, 'is', 'are')} {state}"
        for count, state in found
        if count
    ]
    return " and ".join(told)


def closed(
    delta: Counters, samples: tuple[Sample, ...], prompts: tuple[Prompt, ...], max_tokens: int, *, drafting: bool
) -> Measured:
    """What an engine gave in a window: `samples` are one a prompt and turn, in order, `delta` its counters over it.

    Raises TaintedError when somebody else's requests fell into it, or the engine's clock and the client's differ by
    over 1 %; InvalidError when a length is not the asked one, or tokens, drafts and accepted contradict each other. A
    stream in bursts has no times of its own: what is left are the engine's own seconds.
    """
    counts, turns = draft_counts(delta), len(samples) // len(prompts)
    bursts = in_bursts(samples, _draft_tokens(counts, drafting=drafting))
    _check_ours(delta, samples, max_tokens)
    if not bursts:
        _check_times(delta, counts, samples)
    _check_tokens(counts, samples)
    metrics = _metrics(delta, counts, samples, drafting) | ({} if bursts else _by_the_client(samples, turns))
    silent = _not_wired(delta, counts, samples) if drafting else ""
    told = {STREAM: bursts, TOKENS: lost(samples), REASONING: hidden(samples), DRAFT_COUNTERS: silent}
    told |= {PREFIX_COUNTERS: hits_contradict(delta)}
    answers = tuple(
        _turn_answer(i // len(prompts), p, s)
        for i, (p, s) in enumerate(zip(turns_of(prompts, turns), samples, strict=True))
    )
    return Measured(metrics, counts, answers, samples, delta, facts={name: text for name, text in told.items() if text})


def _draft_tokens(counts: DraftCounts | None, *, drafting: bool) -> int:
    """K, by the positions that the counters show."""
    if counts is not None and counts.accepted:
        return len(counts.accepted)
    return MOST_DRAFT_TOKENS if drafting else 0


def turns_of(prompts: tuple[Prompt, ...], repeats: int) -> tuple[Prompt, ...]:
    """The prompts of a window in the order they are sent: all of them, so many times."""
    return prompts * repeats


def _check_ours(delta: Counters, samples: tuple[Sample, ...], max_tokens: int) -> None:
    finished = delta.total("finished")
    if finished != len(samples):
        of_us = f"{len(samples)} {agreeing(len(samples), 'was', 'were')} ours"
        raise TaintedError(f"window shared: {number_of(finished, 'request')} finished in it, {of_us}")
    ours = sum(s.tokens for s in samples)
    if delta.has("generation_tokens") and (given := delta.total("generation_tokens")) != ours:
        raise TaintedError(f"window shared: {given:g} tokens were generated in it, {ours} were ours")
    if there := _others(delta):
        raise TaintedError(f"window shared: {there} at its end")
    short = [s for s in samples if s.tokens != max_tokens]
    if short:
        raise InvalidError(
            f"early stop: prompt {short[0].prompt_id} gave {short[0].tokens} tokens of {max_tokens} asked "
            f"with ignore_eos ({len(short)} of {len(samples)} requests); the request was {short[0].asked}"
        )


def _check_times(delta: Counters, counts: DraftCounts | None, samples: tuple[Sample, ...]) -> None:
    gap = clock_gap(delta.total("decode_s"), samples)
    if gap > CLOCK_TOLERANCE:
        raise TaintedError(f"clocks disagree: client and engine differ by {gap:.1%} of the decode seconds (limit 1 %)")
    if counts is not None and counts.drafts:
        chunks = sum(len(s.chunk_tokens) - 1 for s in samples)
        if abs(counts.drafts - chunks) > MERGED_SHARE * counts.drafts:
            raise TaintedError(f"{counts.drafts} draft steps were counted, {chunks} chunks came after the first tokens")


def _check_tokens(counts: DraftCounts | None, samples: tuple[Sample, ...]) -> None:
    if counts is not None and counts.drafts and identity_gap(counts, samples) > IDENTITY_TOLERANCE:
        raise InvalidError(
            f"counters contradict the tokens: {counts.drafts} drafts and {sum(counts.accepted)} accepted tokens do not "
            f"explain {sum(s.tokens for s in samples)} tokens (off by {identity_gap(counts, samples):.2%})"
        )


def _metrics(
    delta: Counters, counts: DraftCounts | None, samples: tuple[Sample, ...], drafting: bool
) -> dict[str, float]:
    """house.md: step/s = drafts (or engine iterations when not speculating) over the engine's own decode seconds.

    An engine that was to draft and counted no draft has no step rate: iterations would be another thing.
    """
    decode_s = delta.total("decode_s")
    after_first = sum(s.tokens - 1 for s in samples)
    drafts = counts.drafts if counts is not None else 0
    steps = drafts if drafting else delta.total("iterations") - len(samples)
    found = {STEP_PER_S: steps / decode_s} if steps else {}
    found |= {TOK_PER_S: after_first / decode_s, TPOT_S: decode_s / after_first}
    if counts is not None and counts.acceptance_length is not None:
        found[ACCEPTANCE_LENGTH] = counts.acceptance_length
    counted = delta.has("prefix_hits") and delta.has("prefix_queries") and not hits_contradict(delta)
    if counted:  # an engine without a prefix cache queries nothing
        found[PREFIX_HIT_PCT] = 100 * delta.total("prefix_hits") / max(1.0, delta.total("prefix_queries"))
    return found


def _by_the_client(samples: tuple[Sample, ...], turns: int) -> dict[str, float]:
    """What only the client's clock tells: of a stream in which a chunk is a step."""
    found, drift = {TTFT_MEDIAN_S: statistics.median(s.ttft_s for s in samples)}, step_trend(samples, turns)
    gap_s = rates(samples).chunk_gap_s
    if gap_s is not None:
        found[CHUNK_GAP_S] = gap_s
    if drift is not None:
        found |= {WINDOW_FIRST_STEP_PER_S: drift.first, WINDOW_LAST_STEP_PER_S: drift.last}
    return found


def _not_wired(delta: Counters, counts: DraftCounts | None, samples: tuple[Sample, ...]) -> str:
    """That drafts happen although none is counted, by the engine's own steps (cases B11), one sentence."""
    if counts is None or counts.drafts or not delta.has("iterations"):
        return ""
    steps, tokens = delta.total("iterations") - len(samples), sum(s.tokens - 1 for s in samples)
    if tokens <= MORE_THAN_ONE * steps:
        return ""
    return f"the counters show 0 drafts, but {steps:g} engine steps gave {tokens} tokens after the first ones"


def _turn_answer(turn: int, prompt: Prompt, sample: Sample) -> Answer:
    """An answer of the window; later turns have ids of their own, so that every text of the window is compared."""
    answer = answer_of(prompt, sample)
    return answer if turn == 0 else replace(answer, prompt_id=f"{prompt.id}.turn{turn + 1}")
