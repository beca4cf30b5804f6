"""The prompts with their checkers, to their natural end, and the acceptance that is counted on them alone.

Every boot asks the same prompts in the same order with the same limits.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

from campaign.errors import InvalidError
from campaign.evidence import Answer, DraftCounts
from campaign.names import ACCEPTANCE_ALL_PP, acceptance_pp
from campaign.prompting.checks import Prompt, check_answer, scripts
from campaign.traffic.client import Ask, Client
from campaign.traffic.metrics import Counters, draft_counts
from campaign.traffic.polling import scrape
from campaign.traffic.sample import Sample

BY_THE_COUNTERS = "token-weighted, counters' differences a prompt, to the end token"  # and never since the start
MOST_ASKED = 4  # times a prompt is asked to get every chunk alone


def natural(
    client: Client, sets: dict[str, tuple[Prompt, ...]], timeout_s: float
) -> tuple[dict[str, DraftCounts], tuple[Answer, ...]]:
    """Prompts with their checkers, to their natural end.

    Acceptance is counted per prompt, up to the end token; not on prompts that are drawn, which two boots need not
    answer alike.
    """
    by_prompt: dict[str, DraftCounts] = {}
    answers = []
    for prompt in (p for prompts in sets.values() for p in prompts):
        if prompt.sampling is not None:
            ask = Ask(prompt.max_tokens, ignore_eos=False, timeout_s=timeout_s)
            answers.append(worst_of(prompt, (client.stream(prompt, ask),)))
            continue
        found = step_by_step(client, prompt, timeout_s)
        if found.counts is not None:
            by_prompt[f"{prompt.prompt_set}/{prompt.id}"] = found.counts
        answers.append(worst_of(prompt, found.tries))
    return by_prompt, tuple(answers)


def worst_of(prompt: Prompt, asked: tuple[Sample, ...], name: str = "") -> Answer:
    """The answer that counts: the first that its checker refuses, else the first; a second try repairs nothing.

    It is kept under its prompt set, or under `name`.
    Raises InvalidError when good answers differ: at temperature 0, one request at a time, nothing is comparable then.
    """
    checked = [(s, *check_answer(prompt, s.text, s.finish_reason)) for s in asked]
    sample, ok, why = next((row for row in checked if row[1] is False), checked[0])
    if ok is not False and len({s.token_ids for s in asked}) > 1:
        raise InvalidError(f"prompt {prompt.id} was answered in two ways in one boot, alone and at temperature 0")
    foreign, hangul = scripts(prompt, sample.text)
    prompt_set = name or prompt.prompt_set
    answer = answer_of(prompt, sample)
    return replace(answer, prompt_set=prompt_set, ok=ok, why=why, foreign=foreign, hangul=hangul)


@dataclass(frozen=True)
class Counted:
    """The last try of a prompt, alone between two scrapes, and all tries."""

    sample: Sample
    delta: Counters
    tries: tuple[Sample, ...]

    @property
    def counts(self) -> DraftCounts | None:
        """Its drafts up to the end token; None where the engine counts none."""
        counts = draft_counts(self.delta)
        return None if counts is None else until_the_end(counts, self.sample)


def step_by_step(
    client: Client, prompt: Prompt, timeout_s: float, prepare: Callable[[], None] = lambda: None
) -> Counted:
    """An answer in which every chunk is one step: under load the server may merge two, and it is asked again.

    `prepare` goes before every try.
    """
    asked: list[Sample] = []
    for _ in range(MOST_ASKED):
        prepare()
        before = scrape(client, timeout_s)
        asked.append(client.stream(prompt, Ask(prompt.max_tokens, ignore_eos=False, timeout_s=timeout_s)))
        delta = scrape(client, timeout_s).since(before)
        counts = draft_counts(delta)
        if counts is None or counts.drafts == len(asked[-1].chunk_tokens) - 1:
            break
    return Counted(asked[-1], delta, tuple(asked))


def until_the_end(counts: DraftCounts, sample: Sample) -> DraftCounts:
    """Without draft tokens accepted behind the end of the answer: the engine counts what it then throws away.

    One request at a time, so the surplus 1 + drafts + accepted - tokens is what the last step lost.
    """
    surplus = 1 + counts.drafts + sum(counts.accepted) - sample.tokens
    merged = counts.drafts != len(sample.chunk_tokens) - 1
    if merged or not counts.drafts:
        return counts  # the last chunk does not say what the last step showed
    visible = sample.chunk_tokens[-1]
    thrown_away = range(visible + 1, visible + surplus)  # draft positions of the last step, from 1
    return DraftCounts(
        counts.drafts, tuple(a - 1 if p in thrown_away and a > 0 else a for p, a in enumerate(counts.accepted, 1))
    )


def acceptance_metrics(counts: DraftCounts | None) -> dict[str, float]:
    """Acceptance in percentage points, per position and of all together; nothing when nothing was drafted."""
    rates = counts.rates_pp() if counts is not None else ()
    kept = {} if counts is None or counts.kept_pp is None else {ACCEPTANCE_ALL_PP: counts.kept_pp}
    return {acceptance_pp(position): rate for position, rate in enumerate(rates, 1)} | kept


def answer_of(prompt: Prompt, sample: Sample) -> Answer:
    """A sample as an answer that nobody checked."""
    return Answer(
        prompt.id,
        prompt.prompt_set,
        sample.text,
        sample.token_ids,
        sample.finish_reason,
        sample.prompt_tokens,
        reasoning=sample.reasoning,
        prompt_hash=sample.prompt_hash,
        max_tokens=prompt.max_tokens,
        sampled=prompt.sampling is not None,
    )
