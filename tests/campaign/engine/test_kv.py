"""The KV budget as evidence."""

from typing import Any

import pytest

from campaign.engine import kv, logs
from campaign.engine.reports import Report
from campaign.errors import InvalidError
from campaign.evidence import KvFacts

LOG = logs.kv("GPU KV cache size: 174,720 tokens, Maximum concurrency for 2,048 tokens per request: 85.31x")
CORE = {
    "kv_blocks": 1365,
    "kv_block_size": 128,
    "max_num_seqs": 8,
    "max_model_len": 2048,
    "max_concurrent_batches": 2,
    "spec_tokens": 5,
}


def report(role: str, rank: int = 0, **resolved: Any) -> Report:
    """One process's answer."""
    return Report(role, rank, 10 + rank, {"resolved": resolved})


def test_the_facts_are_the_engines_own() -> None:
    assert kv.facts([report("EngineCore", **CORE), report("Worker")], LOG, 5) == KvFacts(
        174_720, 128, 1365, 8, 2048, 2, 5
    )


def test_of_several_ranks_the_smallest_budget_counts() -> None:
    ranks = [report("EngineCore", **CORE), report("Worker", 0, kv_blocks=1365), report("Worker", 1, kv_blocks=900)]
    assert kv.facts(ranks, LOG, 5).blocks == 900


def test_a_number_that_nobody_reports_is_invalid() -> None:
    silent = {name: value for name, value in CORE.items() if name != "kv_blocks"}
    with pytest.raises(InvalidError, match=r"no process reports kv_blocks .* answering: EngineCore 0"):
        kv.facts([report("EngineCore", **silent)], LOG, 5)


def test_other_draft_tokens_than_configured_are_invalid() -> None:
    with pytest.raises(InvalidError, match="drafts 5 tokens a step, the configuration asks for 3"):
        kv.facts([report("EngineCore", **CORE)], LOG, 3)


def test_numbers_that_agree_have_nothing_to_say() -> None:
    assert kv.contradictions(kv.facts([report("EngineCore", **CORE)], LOG, 5), LOG) == ()


def test_blocks_that_disagree_with_the_log_are_told() -> None:
    found = kv.facts([report("EngineCore", **(CORE | {"kv_blocks": 1000}))], LOG, 5)
    assert kv.contradictions(found, LOG) == (
        "the log says 174,720 KV tokens, the processes 1,000 blocks of 128 (128,000 tokens)",
    )


def test_a_log_without_kv_lines_is_told_and_blocks_stand_in() -> None:
    found = kv.facts([report("EngineCore", **CORE)], None, 5)
    assert found.capacity_tokens == 174_720
    assert kv.contradictions(found, None) == ("the log has no KV line",)
