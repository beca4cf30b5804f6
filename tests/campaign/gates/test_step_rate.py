"""Twin of campaign.gates.step_rate."""

from dataclasses import replace

import pytest

from campaign.gates.step_rate import StepRate, consistency
from campaign.names import ACCEPTANCE_LENGTH, STEP_PER_S, TOK_PER_S
from tests.fakes.evidence import ALIKE, STEADY, answer, boot, bracket, died, step_rate, whole
from verdict.history import History
from verdict.words import Verdict


def check(rates=STEADY, **fields):
    return StepRate().check(bracket(**({"metrics": {STEP_PER_S: rates}, "claims": (step_rate(),)} | fields)))


def test_a_clear_win_passes_with_effect_interval_gate_boots_and_resolution():
    result = check()
    assert result.verdict is Verdict.PASS
    for piece in ("step/s", "+8.", "[+", "gate >= +5", "8 boots ABBABAAB", "could see"):
        assert piece in result.line


def test_nothing_fails_a_gate_of_five_per_cent():
    result = check(ALIKE)
    assert result.verdict is Verdict.FAIL
    assert "whole interval below the gate" in result.line


def test_nothing_against_a_gate_of_zero_is_inconclusive_and_says_what_would_resolve_it():
    result = check(ALIKE, claims=(step_rate(0.0),))
    assert result.verdict is Verdict.INCONCLUSIVE
    assert "would" in result.line


def test_the_same_value_in_every_boot_is_inconclusive():
    result = check([100.0] * 8)
    assert result.verdict is Verdict.INCONCLUSIVE
    assert "identical" in result.line


def test_a_dead_boot_gives_no_number():
    result = check(at={5: died()}, rates=STEADY)
    assert "boot 05-B failed" not in check().line
    assert result.verdict is Verdict.INCONCLUSIVE
    assert result.judgement is None
    assert "%" not in result.line


def test_a_missing_reading_names_its_boot():
    evidence = bracket(claims=(step_rate(),), at={i: {"metrics": {STEP_PER_S: 100.0}} for i in (1, 2, 3, 4, 5, 6, 8)})
    assert "step_per_s is missing in boot 07-A" in StepRate().check(evidence).line


def test_a_reading_that_is_no_rate_is_inconclusive_not_a_crash():
    result = check([0.0, *STEADY[1:]])
    assert result.verdict is Verdict.INCONCLUSIVE
    assert "never a number" in result.line


def test_lost_answers_fail_before_any_speed_is_shown():
    many = tuple(answer(f"q{i}") for i in range(100))
    result = check(base={"answers": many}, candidate={"answers": many[:1]})
    assert result.verdict is Verdict.FAIL
    assert "answered 1 of 100 prompts: no rate of lost answers" in result.line
    assert result.judgement is None


def test_a_screen_is_never_a_verdict():
    result = check([100.0, 109.0, 100.2], letters="ABA")
    assert result.verdict is Verdict.INCONCLUSIVE
    assert "no error bar yet" in result.line


def test_the_history_of_the_host_lends_its_error_bar_to_a_screen():
    result = check([100.0, 109.0, 100.2], letters="ABA", history=History(0.006, 8))
    assert result.line.startswith("SCREEN-PROMOTE")
    assert result.verdict is Verdict.INCONCLUSIVE


def test_voided_boots_are_on_the_line():
    evidence = whole()
    void = boot(9, "A", status="void", reason="busy")
    assert "1 voided" in StepRate().check(replace(evidence, boots=(*evidence.boots, void))).line


def test_no_claim_is_inconclusive():
    assert "no claim is registered as step_rate" in check(claims=()).line


def test_rates_and_acceptance_length_add_up():
    (line,) = consistency(whole())
    assert line.endswith("adds up")
    assert "ln acceptance length +0.0000" in line


def test_counters_that_do_not_add_up_are_told():
    columns = {STEP_PER_S: STEADY, TOK_PER_S: [3 * rate for rate in ALIKE], ACCEPTANCE_LENGTH: [3.0] * 8}
    (line,) = consistency(bracket(metrics=columns))
    assert "does not add up, the counters are suspect" in line


def test_without_counters_there_is_nothing_to_add_up():
    assert consistency(bracket(metrics={STEP_PER_S: STEADY})) == ()


def test_the_numbers_are_finite_and_carry_their_unit():
    numbers = check().numbers
    assert set(numbers) == {"effect_pct", "lo_pct", "hi_pct", "mde_pct", "boot_sd_pct"}
    assert numbers["lo_pct"] < numbers["effect_pct"] < numbers["hi_pct"]
    assert numbers["effect_pct"] == pytest.approx(8.6, abs=0.3)


LOGIC_ONLY = "logic only (Triton's interpreter)"


@pytest.mark.parametrize("rates", [STEADY, ALIKE, tuple(reversed(STEADY))], ids=["a win", "nothing", "a loss"])
def test_a_speed_that_is_logic_only_neither_passes_nor_fails_and_is_never_told_bare(rates):
    result = check(rates, logic_only="Triton's interpreter")
    assert result.verdict is Verdict.INCONCLUSIVE
    assert result.line.startswith("INCONCLUSIVE")
    assert result.line.index(LOGIC_ONLY) < result.line.index("%")
    assert all(name.startswith("logic_only.") for name in result.numbers)
    assert result.judgement.verdict is Verdict.INCONCLUSIVE


def test_a_logic_only_screen_advises_nothing():
    result = check([100.0, 109.0, 100.2], letters="ABA", history=History(0.006, 8), logic_only="Triton's interpreter")
    assert result.line.startswith("INCONCLUSIVE")
    assert "SCREEN" not in result.line


def test_a_logic_only_bracket_does_not_say_how_many_boots_would_resolve_it():
    result = check(ALIKE, claims=(step_rate(0.0),), logic_only="Triton's interpreter")
    assert "would" not in result.line


def test_lost_answers_fail_on_a_logic_only_engine_too():
    many = tuple(answer(f"q{i}") for i in range(100))
    result = check(base={"answers": many}, candidate={"answers": many[:1]}, logic_only="Triton's interpreter")
    assert result.verdict is Verdict.FAIL


def test_counters_that_contradict_each_other_are_invalid_on_a_logic_only_engine_too_and_told_with_the_label():
    columns = {STEP_PER_S: STEADY, TOK_PER_S: [3 * rate for rate in ALIKE], ACCEPTANCE_LENGTH: [3.0] * 8}
    result = StepRate().check(bracket(metrics=columns, claims=(step_rate(),), logic_only="Triton's interpreter"))
    assert result.verdict is Verdict.INVALID
    assert result.line.index(LOGIC_ONLY) < result.line.index("ln tok/s")


def test_a_logic_only_bracket_that_broke_off_says_both():
    result = check(at={5: died()}, rates=STEADY, logic_only="Triton's interpreter")
    assert f"{LOGIC_ONLY}: boot 05-B failed" in result.line
