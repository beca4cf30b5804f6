"""What a boot is asked before its window: it is warmed up, then come the prompts with their checkers."""

from statistics import median
from typing import Any

from campaign.bracket.bench import Bench
from campaign.bracket.draft import Draft
from campaign.evidence import PrefixFacts, pooled
from campaign.gates.footing import has_prefix_cache
from campaign.names import (
    ACCEPTANCE_ESTIMATOR,
    DECODE_SET,
    PREFIX_SET,
    TTFT_COLD_S,
    TTFT_WARM_S,
)
from campaign.prompting.checks import Prompt
from campaign.traffic.answers import BY_THE_COUNTERS, natural
from campaign.traffic.client import Client
from campaign.traffic.second_look import Questioner
from campaign.traffic.shared_prefix import Passes, ask_cold_and_warm
from campaign.traffic.warm_up import WarmUp, least, warm_up

ON_A_FULL_CACHE = f"{BY_THE_COUNTERS}, of the prompts with a shared prefix, on a full prefix cache where there is one"


def ask_all(bench: Bench, draft: Draft, client: Client) -> dict[str, Any]:
    """Warm up, then the prompts with their checkers, to their natural end: what the boot's record holds of them.

    With a workload that has a shared prefix, acceptance is that of its warm pass, and of no other prompt.
    """
    warmed = _warmed_up(bench, draft, client)
    draft.facts |= warmed.facts | {ACCEPTANCE_ESTIMATOR: BY_THE_COUNTERS}
    with draft.timed("prompts"):
        by_prompt, checked = natural(client, _checked_sets(bench), bench.longest_silence_s)
        quality = bench.plan.campaign.gates.quality
        if quality is not None and quality.warm and has_prefix_cache(draft.facts):
            checked = Questioner(client, bench.longest_silence_s, bench.prompts).warmed(checked)
            draft.facts["prompts_cache"] = "warm: every prompt was asked twice"
    found = {
        "natural": pooled(by_prompt.values()),
        "by_prompt": by_prompt,
        "answers": checked,
        "counted": warmed.counted,
    }
    return found | _cold_and_warm(bench, draft, client, found)


def prefix_metrics(facts: PrefixFacts | None) -> dict[str, float]:
    """Time to first token of both passes, by names.py; nothing where there were none."""
    if facts is None:
        return {}
    return {TTFT_COLD_S: median(facts.cold.ttft_s.values()), TTFT_WARM_S: median(facts.warm.ttft_s.values())}


def _warmed_up(bench: Bench, draft: Draft, client: Client) -> WarmUp:
    workload = bench.plan.campaign.workload
    with draft.timed("warm_up"):
        return warm_up(
            client,
            bench.prompts[DECODE_SET],
            workload,
            bench.longest_silence_s,
            at_least=least(workload, bench.folder.records()),
            draft_tokens=bench.plan.campaign.model.num_speculative_tokens,
        )


def _cold_and_warm(bench: Bench, draft: Draft, client: Client, found: dict[str, Any]) -> dict[str, Any]:
    if PREFIX_SET not in bench.prompts:
        return {}
    with draft.timed("prefix"):
        workload = bench.plan.campaign.workload
        passes = Passes(workload.prefix_rounds, _longest(draft) if workload.prefix_beside else None)
        facts, answers = ask_cold_and_warm(client, bench.prompts[PREFIX_SET], passes, bench.longest_silence_s)
    draft.facts[ACCEPTANCE_ESTIMATOR] = ON_A_FULL_CACHE
    by_prompt = {f"{PREFIX_SET}/{name}": counts for name, counts in facts.warm.counts.items()}
    return {
        "prefix": facts,
        "natural": pooled(by_prompt.values()),
        "by_prompt": found["by_prompt"] | by_prompt,
        "answers": (*found["answers"], *answers),
    }


def _longest(draft: Draft) -> int:
    """Tokens of a prompt at which a request of a full drafter's length has no room for K drafts any more."""
    assert draft.kv is not None
    return draft.kv.max_model_len - draft.kv.draft_tokens


def _checked_sets(bench: Bench) -> dict[str, tuple[Prompt, ...]]:
    apart = (DECODE_SET, PREFIX_SET)
    return {name: prompts for name, prompts in bench.prompts.items() if name not in apart}
