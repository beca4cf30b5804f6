"""A serve argument in force: compared in the engine's own values, and said where nothing shows it."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from campaign.engine import arguments
from campaign.engine.reports import Report

NOBODY = "asked only: no process shows what became of it"


def server(parsed: dict[str, Any], serve: dict[str, Any], role: str = "APIServer", rank: int = 0) -> Report:
    """A process that tells what it parsed and what it holds."""
    return Report(role, rank, 7, {"arguments": parsed, "serve": serve})


@pytest.mark.parametrize(
    ("asked", "parsed", "found", "ok"),
    [
        (2048, 2048, 2048, True),
        ("2k", 2000, 2000, True),
        (2048, 2048, 1024, False),
        (True, True, False, False),
        (True, True, 1, False),
        (1, 1, True, False),
        (12, 12.0, 12.0, True),
        ("auto", "auto", "bfloat16", True),
        ("auto", -1, 2048, True),
        ("half", "half", "float16", True),
        ("flash_attn", "flash_attn", "FLASH_ATTN", True),
        ("fp8", "fp8", None, False),
        (
            {"mode": 3},
            {"mode": "VLLM_COMPILE", "backend": "inductor"},
            {"mode": "VLLM_COMPILE", "backend": "eager"},
            True,
        ),
        ({"mode": 3}, {"mode": "VLLM_COMPILE"}, {"mode": "NONE"}, False),
        ('{"mode": 3}', {"mode": "VLLM_COMPILE"}, {"mode": "NONE"}, False),
        ([1, 2], [1, 2], [1, 2], True),
        ([1, 2], [1, 2], [2, 1], False),
        (8, None, 8, True),
    ],
    ids=str,
)
def test_what_was_asked_is_compared_in_the_engines_own_values(asked: Any, parsed: Any, found: Any, ok: bool) -> None:
    row = arguments.row("serve.x", "x", asked, [server({"x": parsed}, {"x": found})])
    assert (row.layer, row.ok) == ("resolved", ok)


@pytest.mark.case("C9")
def test_an_argument_that_nobody_shows_is_asked_only_and_says_so() -> None:
    row = arguments.row("serve.x", "x", 12, [server({"x": 12}, {"y": 1})])
    assert (row.layer, row.found, row.ok) == ("asked", NOBODY, True)


def test_a_rank_that_holds_another_value_is_told() -> None:
    row = arguments.row("serve.x", "x", 1, [server({"x": 1}, {"x": 1}), server({}, {"x": 1}, "Worker"),
                                            server({}, {}, "Worker", 1)])  # fmt: skip
    assert (row.ok, row.found, row.source) == (False, "(absent)", "Worker 1 (pid 7)")


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(VALUES)
def test_a_value_is_always_the_same_as_itself(value: Any) -> None:
    assert arguments.same(value, value)


@given(VALUES, VALUES)
def test_any_two_values_can_be_compared(one: Any, other: Any) -> None:
    assert arguments.same(one, other) in (True, False)
