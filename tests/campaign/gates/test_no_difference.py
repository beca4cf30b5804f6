"""Twin of campaign.gates.no_difference."""

import pytest

from campaign.gates.no_difference import NoDifference
from campaign.names import STEP_PER_S, TOK_PER_S
from tests.fakes.evidence import ALIKE, STEADY, bracket, died, no_difference, step_rate
from verdict.words import Verdict

NUMBERS = ("effect_pct", "lo_pct", "hi_pct", "mde_pct", "boot_sd_pct")


def check(**fields):
    plain = {"metrics": {STEP_PER_S: ALIKE}, "claims": (no_difference(),)}
    return NoDifference().check(bracket(**(plain | fields)))


def test_arms_that_are_alike_pass():
    result = check()
    assert result.verdict is Verdict.PASS
    assert "no difference shown" in result.line


def test_arms_that_differ_fail():
    result = check(metrics={STEP_PER_S: STEADY})
    assert result.verdict is Verdict.FAIL
    assert "zero lies outside the interval" in result.line


def test_the_same_value_in_every_boot_is_no_difference():
    assert check(metrics={STEP_PER_S: [100.0] * 8}).verdict is Verdict.PASS


def test_the_worst_of_several_claims_speaks():
    two = (no_difference("alike"), no_difference("apart", TOK_PER_S))
    result = check(claims=two, metrics={STEP_PER_S: ALIKE, TOK_PER_S: STEADY})
    assert result.verdict is Verdict.FAIL
    assert "tok/s" in result.line
    assert any(line.startswith("PASS          step/s") for line in result.details)
    assert {"alike.effect_pct", "apart.effect_pct"} <= set(result.numbers)


def test_claims_of_another_kind_are_left_alone():
    result = check(claims=(step_rate(),))
    assert result.verdict is Verdict.INCONCLUSIVE
    assert "no claim of kind no_difference" in result.line


def test_a_dead_boot_leaves_it_open():
    assert "boot 02-B failed" in check(at={2: died()}).line


def test_a_dead_boot_gives_no_number():
    assert check(at={2: died()}).numbers == {}


@pytest.mark.parametrize("rates", [ALIKE, STEADY], ids=["alike", "apart"])
def test_a_speed_that_is_logic_only_says_nothing_of_a_difference(rates):
    found = bracket(metrics={STEP_PER_S: rates}, claims=(no_difference(),), logic_only="Triton's interpreter")
    result = NoDifference().check(found)
    assert result.verdict is Verdict.INCONCLUSIVE
    assert "logic only (Triton's interpreter)" in result.line
    assert set(result.numbers) == {f"step_rate.logic_only.{name}" for name in NUMBERS}


def test_what_is_no_speed_is_judged_on_a_logic_only_engine_as_ever():
    found = bracket(
        metrics={"acceptance_length": [3.5, 3.1, 3.1, 3.5, 3.1, 3.5, 3.5, 3.1]},
        claims=(no_difference("length", "acceptance_length"),),
        logic_only="Triton's interpreter",
    )
    assert NoDifference().check(found).verdict is Verdict.FAIL
