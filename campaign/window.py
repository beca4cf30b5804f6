"""The passes of one boot over HTTP: warm up, the prompts with their checkers, the measured window. Numbers only.

Every pass is the same in every boot: same prompts, same order, same limits.
"""

import math
import statistics
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from campaign.checks import Prompt, check_answer
from campaign.client import Ask, Client, Sample, Silence
from campaign.config import Workload
from campaign.errors import CampaignError, EngineFailedError, HostUnfitError, InvalidError
from campaign.evidence import Answer, DraftCounts
from campaign.journal import write_text
from campaign.metrics import CLOCK_TOLERANCE, IDENTITY_TOLERANCE, Counters, clock_gap, draft_counts, identity_gap, parse
from campaign.names import ACCEPTANCE_LENGTH, STEP_PER_S, TOK_PER_S, TPOT_S, TTFT_MEDIAN_S, acceptance_pp

WARM_UP_TOKENS = 64
MOST_ASKED = 4  # times a prompt is asked to get every chunk alone
MERGED_SHARE = 0.02  # of the draft steps may lie in a chunk with another; more, and the two counts contradict
WINDOWS = 5  # tries
METRICS_TIMEOUT_S = 10.0  # an engine that is silent need not answer this either
STEADY_TOLERANCE = 0.1


@dataclass(frozen=True)
class Measured:
    """What the window gave; metrics by names.py."""

    metrics: dict[str, float]
    counts: DraftCounts | None
    answers: tuple[Answer, ...]
    samples: tuple[Sample, ...]
    delta: Counters
    discarded: int = 0  # disturbed windows before this one


@dataclass(frozen=True)
class WarmUp:
    """The cold request apart, and whether the last two warm ones agreed on the speed."""

    cold_s: float
    requests: int
    steady: bool


def scrape(client: Client, timeout_s: float, keep: Path | None = None) -> Counters:
    """The engine's counters now; the text is kept when asked."""
    text = client.get_text("/metrics", timeout_s)
    if keep is not None:
        write_text(keep, text)
    return parse(text)


def warm_up(client: Client, prompts: tuple[Prompt, ...], workload: Workload, timeout_s: float) -> WarmUp:
    """A fixed number of requests, equal in all boots, after one cold one. None of them is ever measured."""
    ask = Ask(min(WARM_UP_TOKENS, workload.max_tokens), ignore_eos=True, timeout_s=timeout_s)
    turns = [prompts[i % len(prompts)] for i in range(workload.warm_up_requests + 1)]
    samples = [client.stream(prompt, ask) for prompt in turns]
    cold_s = samples[0].ttft_s + samples[0].decode_s
    rates = [len(s.chunk_ns) / s.decode_s for s in samples[1:] if s.decode_s > 0]
    steady = len(rates) > 1 and abs(math.log(rates[-1] / rates[-2])) < STEADY_TOLERANCE
    return WarmUp(cold_s, workload.warm_up_requests, steady)


def natural(
    client: Client, sets: dict[str, tuple[Prompt, ...]], timeout_s: float
) -> tuple[dict[str, DraftCounts], tuple[Answer, ...]]:
    """Prompts with their checkers, to their natural end. Acceptance is counted per prompt, up to the end token."""
    by_prompt: dict[str, DraftCounts] = {}
    answers = []
    for prompt in (p for prompts in sets.values() for p in prompts):
        sample, counts, asked = _step_by_step(client, prompt, timeout_s)
        if counts is not None:
            by_prompt[f"{prompt.prompt_set}/{prompt.id}"] = until_the_end(counts, sample)
        answers.append(_worst(prompt, asked))
    return by_prompt, tuple(answers)


def _worst(prompt: Prompt, asked: tuple[Sample, ...]) -> Answer:
    """The answer that counts: the first that its checker refuses, else the first; a second try repairs nothing.

    Raises InvalidError when good answers differ: at temperature 0, one request at a time, nothing is comparable then.
    """
    checked = [(s, *check_answer(prompt, s.text, s.finish_reason)) for s in asked]
    sample, ok, why = next((row for row in checked if row[1] is False), checked[0])
    if ok is not False and len({s.token_ids for s in asked}) > 1:
        raise InvalidError(f"prompt {prompt.id} was answered in two ways in one boot, alone and at temperature 0")
    return replace(_answer(prompt, sample), ok=ok, why=why)


def _step_by_step(
    client: Client, prompt: Prompt, timeout_s: float
) -> tuple[Sample, DraftCounts | None, tuple[Sample, ...]]:
    """One answer in which every chunk is one step, and all tries: under load the server may merge two chunks."""
    asked: list[Sample] = []
    for _ in range(MOST_ASKED):
        before = scrape(client, timeout_s)
        sample = client.stream(prompt, Ask(prompt.max_tokens, ignore_eos=False, timeout_s=timeout_s))
        counts = draft_counts(scrape(client, timeout_s).since(before))
        asked.append(sample)
        if counts is None or counts.drafts == len(sample.chunk_tokens) - 1:
            break
    return sample, counts, tuple(asked)


def until_the_end(counts: DraftCounts, sample: Sample) -> DraftCounts:
    """Without draft tokens accepted behind the end of the answer: the engine counts what it then throws away.

    One request at a time, so the surplus 1 + drafts + accepted - tokens is what the last step lost.
    """
    surplus = 1 + counts.drafts + sum(counts.accepted) - len(sample.token_ids)
    merged = counts.drafts != len(sample.chunk_tokens) - 1
    if merged or not counts.drafts:
        return counts  # the last chunk does not say what the last step showed
    visible = sample.chunk_tokens[-1]
    thrown_away = range(visible + 1, visible + surplus)  # draft positions of the last step, from 1
    return DraftCounts(
        counts.drafts, tuple(a - 1 if p in thrown_away and a > 0 else a for p, a in enumerate(counts.accepted, 1))
    )


def pooled(by_prompt: dict[str, DraftCounts]) -> DraftCounts | None:
    """All prompts together: totals, not a mean of rates. None when nothing was counted."""
    if not by_prompt:
        return None
    longest = max(len(c.accepted) for c in by_prompt.values())
    padded = [c.accepted + (0,) * (longest - len(c.accepted)) for c in by_prompt.values()]
    return DraftCounts(sum(c.drafts for c in by_prompt.values()), tuple(map(sum, zip(*padded, strict=True))))


class StallWatch:
    """For `Client`'s on_silence: a request that gets no token, by what the engine's counters did since the last look.

    Stalled is an engine of which no counter moved while a request waits and none runs. One that moves, or runs a
    request (a long prefill is one step, and shows nothing before its end), is waited for up to `longest_s`; a request
    without a token for so long has failed too, and so has an engine that shows no counters.
    """

    def __init__(self, longest_s: float) -> None:
        self.longest_s = longest_s
        self.last: Counters | None = None

    def __call__(self, client: Client, silence: Silence) -> CampaignError | None:
        """The error, once it is one: EngineFailedError, or HostUnfitError when others are served meanwhile."""
        before, self.last = None if silence.first else self.last, None
        try:
            self.last = now = scrape(client, min(METRICS_TIMEOUT_S, max(1.0, silence.allowed_s)))
            return self._judged(silence, now, now.since(before)) if silence.over and before is not None else None
        except CampaignError as error:
            hangs = EngineFailedError(f"engine hangs: {silence}, and it shows no metrics either ({error})")
            return hangs if silence.over else None

    def _judged(self, silence: Silence, now: Counters, delta: Counters) -> CampaignError | None:
        shown = f"/metrics shows {now.running:g} running, {now.waiting:g} waiting"
        moved, tokens = delta.moved(), delta.total("generation_tokens")
        if tokens and now.running + now.waiting > 1:
            return HostUnfitError(f"contended: {silence}, while {tokens:g} tokens went to other requests; {shown}")
        if (moved or now.running) and silence.seconds < self.longest_s:
            return None
        flat = f"generation tokens flat at {now.total('generation_tokens'):g}"
        if not moved:
            return EngineFailedError(f"engine stalled: {silence}; {shown}, {flat}, and no other counter moved")
        if not tokens:
            return EngineFailedError(f"engine stalled: {silence}; {shown}, {flat}, although {', '.join(moved)} moved")
        return EngineFailedError(f"engine stalled for us: {silence}, although {tokens:g} tokens were counted; {shown}")


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
    last = ""
    for discarded in range(WINDOWS):
        try:
            return replace(_window(client, prompts, workload, timeout_s, folder, drafting), discarded=discarded)
        except TaintedError as error:
            last = str(error)
    raise HostUnfitError(f"contended: {WINDOWS} windows in a row were disturbed; the last one: {last}")


def _window(
    client: Client, prompts: tuple[Prompt, ...], workload: Workload, timeout_s: float, folder: Path, drafting: bool
) -> Measured:
    """One try: fixed lengths, one request at a time, counters as deltas.

    Raises TaintedError when somebody else's requests fell into it, or the engine's clock and the client's differ by
    over 1 %; InvalidError when a length is not the asked one, or tokens, drafts and accepted contradict each other.
    """
    before = scrape(client, timeout_s, folder / "metrics-before.txt")
    if before.running:
        raise TaintedError(f"{before.running:g} requests of somebody else are running before the window")
    ask = Ask(workload.max_tokens, ignore_eos=True, timeout_s=timeout_s)
    turns = list(_turns(prompts, workload.repeats))
    samples = tuple(client.stream(prompt, ask) for prompt in turns)
    delta = scrape(client, timeout_s, folder / "metrics-after.txt").since(before)
    counts = draft_counts(delta)
    _check_window(delta, counts, samples, workload.max_tokens)
    answers = tuple(_turn_answer(i // len(prompts), p, s) for i, (p, s) in enumerate(zip(turns, samples, strict=True)))
    return Measured(_metrics(delta, counts, samples, drafting), counts, answers, samples, delta)


def _turns(prompts: tuple[Prompt, ...], repeats: int) -> Iterator[Prompt]:
    for _ in range(repeats):
        yield from prompts


def _check_window(delta: Counters, counts: DraftCounts | None, samples: tuple[Sample, ...], max_tokens: int) -> None:
    finished = delta.total("finished")
    if finished != len(samples):
        raise TaintedError(f"window shared: {finished:g} requests finished in it, {len(samples)} were ours")
    short = [s for s in samples if len(s.token_ids) != max_tokens]
    if short:
        raise InvalidError(
            f"early stop: prompt {short[0].prompt_id} gave {len(short[0].token_ids)} tokens of {max_tokens} asked "
            f"with ignore_eos ({len(short)} of {len(samples)} requests)"
        )
    gap = clock_gap(delta.total("decode_s"), samples)
    if gap > CLOCK_TOLERANCE:
        raise TaintedError(f"clocks disagree: client and engine differ by {gap:.1%} of the decode seconds (limit 1 %)")
    if counts is not None and counts.drafts:
        chunks = sum(len(s.chunk_tokens) - 1 for s in samples)
        if abs(counts.drafts - chunks) > MERGED_SHARE * counts.drafts:
            raise TaintedError(f"{counts.drafts} draft steps were counted, {chunks} chunks came after the first tokens")
    if counts is not None and counts.drafts and identity_gap(counts, samples) > IDENTITY_TOLERANCE:
        raise InvalidError(
            f"counters contradict the tokens: {counts.drafts} drafts and {sum(counts.accepted)} accepted tokens do not "
            f"explain {sum(len(s.token_ids) for s in samples)} tokens (off by {identity_gap(counts, samples):.2%})"
        )


def _metrics(
    delta: Counters, counts: DraftCounts | None, samples: tuple[Sample, ...], drafting: bool
) -> dict[str, float]:
    """house.md: step/s = drafts (or engine iterations when not speculating) over the engine's own decode seconds.

    An engine that was to draft and counted no draft has no step rate: iterations would be another thing.
    """
    decode_s = delta.total("decode_s")
    after_first = sum(len(s.token_ids) - 1 for s in samples)
    drafts = counts.drafts if counts is not None else 0
    steps = drafts if drafting else delta.total("iterations") - len(samples)
    found = {STEP_PER_S: steps / decode_s} if steps else {}
    found |= {
        TOK_PER_S: after_first / decode_s,
        TPOT_S: decode_s / after_first,
        TTFT_MEDIAN_S: statistics.median(s.ttft_s for s in samples),
    }
    if counts is not None and counts.acceptance_length is not None:
        found[ACCEPTANCE_LENGTH] = counts.acceptance_length
    return found


def _turn_answer(turn: int, prompt: Prompt, sample: Sample) -> Answer:
    """An answer of the window; later turns have ids of their own, so that every text of the window is compared."""
    answer = _answer(prompt, sample)
    return answer if turn == 0 else replace(answer, prompt_id=f"{prompt.id}.turn{turn + 1}")


def acceptance_metrics(counts: DraftCounts | None) -> dict[str, float]:
    """Acceptance per position in percentage points, by names.py; nothing when nothing was drafted."""
    rates = counts.rates_pp() if counts is not None else ()
    return {acceptance_pp(position): rate for position, rate in enumerate(rates, 1)}


def _answer(prompt: Prompt, sample: Sample) -> Answer:
    return Answer(
        prompt.id, prompt.prompt_set, sample.text, sample.token_ids, sample.finish_reason, sample.prompt_tokens
    )
