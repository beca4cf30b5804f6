"""Prompts that share a prefix, asked on an emptied prefix cache and then on a full one, each pass counted by itself.

Cold: the cache is reset before every request (`POST /reset_prefix_cache`, vLLM's development mode). Then every prompt
is asked once more, uncounted, so that the cache holds all of them; only then are its blocks written. Warm: the same
requests again. An engine without a prefix cache is asked the same, and computes every prompt.

While the cache is filled, a long request may be under way beside each prompt: an engine that drafts for a batch as a
whole, or not at all, then leaves the prompt's blocks without draft KV (vLLM 0.29.0, `_input_fits_in_drafter` in
vllm/v1/worker/gpu_model_runner.py: any request within K + 1 tokens of the drafter's longest).
"""

import json
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import cycle, islice, takewhile
from statistics import fmean

from campaign.errors import EngineFailedError
from campaign.evidence import Answer, DraftCounts, PrefixFacts, PrefixPass, pooled
from campaign.names import PREFIX_COLD, PREFIX_WARM
from campaign.prompting.checks import Prompt
from campaign.traffic.answers import Counted, step_by_step, worst_of
from campaign.traffic.client import Ask, Client
from campaign.traffic.metrics import Counters

RESET = "/reset_prefix_cache"
RESET_TRIES, RESET_PAUSE_S = 20, 0.05  # blocks of a request that has just ended are free a step later
HEAD_START_S = 0.03  # of the long request: its prompt takes longer than that
BESIDE_TOKENS = 5  # that the long request generates: its own steps leave the others' drafts out too
Asked = list[tuple[Prompt, Counted]]


@dataclass(frozen=True)
class Passes:
    """How often the warm pass asks each prompt, and how long the request beside the filling ones is, in tokens."""

    rounds: int = 1
    beside_tokens: int | None = None


def ask_cold_and_warm(
    client: Client, prompts: Sequence[Prompt], passes: Passes, timeout_s: float
) -> tuple[PrefixFacts, tuple[Answer, ...]]:
    """What the cache did, and the answers of both passes, under two names.

    Raises EngineFailedError where the engine is gone or has no such route.
    """
    rendered = [_rendered(client, prompt, timeout_s) for prompt in prompts]
    cold = [(p, step_by_step(client, p, timeout_s, lambda: empty_the_cache(client, timeout_s))) for p in prompts]
    empty_the_cache(client, timeout_s)
    for prompt, ids in zip(prompts, rendered, strict=True):
        with _beside(client, ids, passes.beside_tokens, timeout_s):
            client.stream(prompt, _ask(prompt, timeout_s))
    warm = [(p, step_by_step(client, p, timeout_s)) for _ in range(passes.rounds) for p in prompts]
    facts = PrefixFacts(shared_tokens(rendered), counted(cold), counted(warm))
    return facts, (*_answers(PREFIX_COLD, prompts, cold), *_answers(PREFIX_WARM, prompts, warm))


def empty_the_cache(client: Client, timeout_s: float) -> None:
    """The prefix cache reset. A 200 alone says nothing: the answer must not say that it was not done.

    Raises EngineFailedError where the engine is gone, has no such route, or keeps saying that it did not.
    """
    for _ in range(RESET_TRIES):
        answer = client.post(RESET, timeout_s)
        if _was_done(answer):
            return
        time.sleep(RESET_PAUSE_S)
    raise EngineFailedError(
        f"POST {RESET} answered {answer[:200]} {RESET_TRIES} times: the prefix cache was not emptied, so no pass is "
        "cold; a request of somebody else that still holds blocks does this"
    )


def _was_done(answer: str) -> bool:
    """vLLM 0.29.0 answers with nothing, or with its success."""
    try:
        found = json.loads(answer or "{}")
    except ValueError:
        return True
    return not isinstance(found, dict) or found.get("success", True) is True


def shared_tokens(rendered: Sequence[Sequence[int]]) -> int:
    """The shortest prefix that a prompt has in common with any other one, in tokens; 0 of a single prompt."""
    return min((max((_common(a, b) for b in rendered if b is not a), default=0) for a in rendered), default=0)


def _common(left: Sequence[int], right: Sequence[int]) -> int:
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(left, right, strict=False)))


def counted(asked: Asked) -> PrefixPass:
    """A pass, of its requests: totals, and what each prompt showed over its rounds."""
    by_prompt = {prompt.id: [found for p, found in asked if p.id == prompt.id] for prompt, _ in asked}
    deltas = [found.delta for _, found in asked]
    return PrefixPass(
        prompt_tokens=sum(found.sample.prompt_tokens for _, found in asked),
        queries=_total(deltas, "prefix_queries"),
        hits=_total(deltas, "prefix_hits"),
        preemptions=_total(deltas, "preemptions") or 0,
        counts={name: counts for name, found in by_prompt.items() if (counts := _drafts(found))},
        hits_of={name: _total([found[0].delta], "prefix_hits") or 0 for name, found in by_prompt.items()},
        tokens_of={name: found[0].sample.prompt_tokens for name, found in by_prompt.items()},
        ttft_s={name: fmean(one.sample.ttft_s for one in found) for name, found in by_prompt.items()},
        rounds=max(map(len, by_prompt.values()), default=1),
    )


def _drafts(found: Sequence[Counted]) -> DraftCounts | None:
    return pooled(one.counts for one in found if one.counts is not None)


def _total(deltas: Sequence[Counters], name: str) -> int | None:
    """The sum over requests; None where a scrape does not show the counter: missing is never 0."""
    return int(sum(d.total(name) for d in deltas)) if all(d.has(name) for d in deltas) else None


def _answers(name: str, prompts: Sequence[Prompt], asked: Asked) -> list[Answer]:
    """One answer a prompt, the worst of all its rounds and tries."""
    return [
        worst_of(prompt, tuple(s for p, found in asked if p.id == prompt.id for s in found.tries), name)
        for prompt in prompts
    ]


@contextmanager
def _beside(client: Client, ids: Sequence[int], tokens: int | None, timeout_s: float) -> Iterator[None]:
    """Within it a request of so many tokens is under way, made of a prompt's own tokens backwards: it shares no prefix.

    Raises EngineFailedError where it is refused.
    """
    if tokens is None:
        yield
        return
    long = list(islice(cycle(reversed(ids)), tokens))
    with ThreadPoolExecutor(1) as pool:
        ask = Ask(BESIDE_TOKENS, ignore_eos=True, timeout_s=timeout_s)
        found = pool.submit(client.whole, Prompt("beside", "prefix", None, "", BESIDE_TOKENS), ask, prompt=long)
        time.sleep(HEAD_START_S)
        yield
        found.result()


def _rendered(client: Client, prompt: Prompt, timeout_s: float) -> list[int]:
    """The tokens of a prompt as the engine renders it; none where it does not give them."""
    found = client.whole(prompt, Ask(1, ignore_eos=False, timeout_s=timeout_s))
    choices = found.get("choices") or [{}]
    return list(found.get("prompt_token_ids") or choices[0].get("prompt_token_ids") or ())


def _ask(prompt: Prompt, timeout_s: float) -> Ask:
    return Ask(prompt.max_tokens, ignore_eos=False, timeout_s=timeout_s)
