"""Which steps the kernel takes, and in which words it declines the others."""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernels.prep_fused.guard import LONGEST_QUERY, Limits, PlanError, block_for, refusal_of_runner
from kernels.prep_fused.plan import Constants

LIMITS = Limits(max_reqs=4, max_tokens=32, max_query=6)


def runner(**changed):
    """A runner whose steps may all be fused."""
    changed = dict(changed)
    window = changed.pop("rswa_window", None)
    tables = SimpleNamespace(cp_size=changed.pop("cp_size", 1), num_kv_cache_groups=changed.pop("groups", 2))
    plain = {"use_pp": False, "use_dcp": False, "pcp_manager": None, "adaptive_verification": None}
    return SimpleNamespace(block_tables=tables, model_config=SimpleNamespace(rswa_window=window), **(plain | changed))


@pytest.mark.parametrize(
    ("changed", "name"),
    [
        ({}, None),
        ({"use_pp": True}, "pipeline_parallel"),
        ({"use_dcp": True}, "decode_context_parallel"),
        ({"pcp_manager": object()}, "prefill_context_parallel"),
        ({"adaptive_verification": object()}, "adaptive_verification"),
        ({"rswa_window": 128}, "rswa"),
        ({"cp_size": 2}, "context_parallel"),
        ({"groups": 0}, "no_kv_groups"),
    ],
    ids=lambda value: str(value),
)
def test_a_runner_is_declined_by_the_name_of_what_the_kernel_does_not_know(changed, name):
    refusal = refusal_of_runner(runner(**changed))
    assert (refusal.name if refusal else None) == name
    assert refusal is None or refusal.why


def batch(scheduled=(6, 1), prefilling=()):
    """A decode batch."""
    rows = np.array([row in prefilling for row in range(len(scheduled))])
    return SimpleNamespace(
        req_ids=[f"r{row}" for row in range(len(scheduled))], has_prefill=bool(rows.any()), is_prefilling_np=rows,
        num_scheduled_tokens=np.array(scheduled), num_tokens=sum(scheduled),
    )  # fmt: skip


def graph(tokens=0, rows=None):
    """What the dispatch answers."""
    return SimpleNamespace(num_tokens=tokens, num_reqs=rows)


@pytest.mark.parametrize(
    ("step", "name", "why"),
    [
        (({"r0": [1]}, batch(), graph()), None, ""),
        (({"r0": [1]}, batch(), graph(32, 4)), None, ""),
        (({"r0": [1]}, batch(prefilling=(1,)), graph()), "prefill", "1 of 2 rows are prefilled"),
        (({}, batch(), graph()), "no_drafts", "no drafts are scheduled"),
        (({"r0": [1]}, batch((7, 1)), graph()), "long_query", "a query of 7 tokens; the plan was built for 6"),
        (({"r0": [1]}, batch((1,) * 5), graph()), "many_requests", "5 rows with padding; the buffers hold 4"),
        (({"r0": [1]}, batch(), graph(8, 5)), "many_requests", "5 rows with padding; the buffers hold 4"),
        (({"r0": [1]}, batch(), graph(33, 4)), "many_tokens", "33 tokens with padding; the buffers hold 32"),
    ],
    ids=[
        "eligible",
        "eligible, padded",
        "prefill",
        "no drafts",
        "long",
        "requests",
        "padded requests",
        "padded tokens",
    ],
)
def test_a_step_is_declined_by_name_with_what_was_found_and_what_is_held(step, name, why):
    refusal = LIMITS.refusal(*step)
    assert (refusal.name if refusal else None) == name
    assert why in (refusal.why if refusal else "")


@pytest.mark.case("J1")
@given(st.integers(1, LONGEST_QUERY))
def test_a_block_is_the_smallest_power_of_two_that_holds_the_query(longest):
    block = block_for(longest)
    assert block & (block - 1) == 0
    assert longest <= block < 2 * longest


@pytest.mark.case("J1")
@pytest.mark.parametrize("longest", [0, -1, LONGEST_QUERY + 1, 7168, 2_097_152])
def test_a_query_that_no_block_was_checked_for_is_refused_and_not_cut(longest):
    with pytest.raises(PlanError, match=f"a query of {longest} tokens was asked for, wanted 1 to {LONGEST_QUERY}"):
        block_for(longest)


@pytest.mark.parametrize(
    ("pad", "sampled", "said"),
    [(0, 1, "PAD_SLOT_ID is 0, wanted -1"), (-1, 2, "2 sampled tokens a step, wanted 0 or 1")],
    ids=["another padding slot", "two sampled tokens"],
)
def test_constants_that_the_kernel_was_not_proven_with_build_no_plan(pad, sampled, said):
    with pytest.raises(PlanError, match=said):
        Constants(pad, sampled, True, 2, 6)
