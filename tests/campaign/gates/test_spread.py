"""Bases that part: no percentage is told of what lies between them."""

import pytest

from campaign.gates.step_rate import StepRate
from campaign.names import STEP_PER_S
from tests.fakes.evidence import bracket, step_rate, whole
from verdict.history import History
from verdict.words import Verdict

RUN_ORDER = (100.0, 121.0, 120.0)  # case D10
QUIET = History(0.008, 8)


def check(letters: str, rates: tuple[float, ...], **fields: object):
    found = bracket(letters, metrics={STEP_PER_S: rates}, claims=(step_rate(0.0, expect_pct=(3, 6)),), **fields)
    return StepRate().check(found)


@pytest.mark.case("D10")
@pytest.mark.parametrize("history", [None, History(0.008, 7)], ids=["no registry", "a registry under 8 df"])
def test_a_gain_that_run_order_alone_makes_is_inconclusive_without_a_percentage(history: History | None) -> None:
    found = check("ABA", RUN_ORDER, history=history)
    assert found.verdict is Verdict.INCONCLUSIVE
    assert "does not close: its outer bases read 100 and 120" in found.line
    assert ("+" in found.line, found.numbers, found.judgement, found.details) == (False, {}, None, ())


@pytest.mark.case("D10")
def test_with_a_registry_the_same_bracket_is_void() -> None:
    found = check("ABA", RUN_ORDER, history=QUIET)
    assert found.verdict is Verdict.VOID
    assert "outer bases are 18.2 % apart (limit 3.8 %, host sd 0.8 %): measure again" in found.line
    assert found.numbers == {}


@pytest.mark.parametrize(
    ("letters", "rates", "history", "verdict"),
    [
        ("ABA", (100.0, 103.2, 98.6), QUIET, Verdict.INCONCLUSIVE),
        ("ABA", (100.0, 103.2, 94.6), QUIET, Verdict.VOID),
        ("ABA", RUN_ORDER, History(0.054, 20), Verdict.INCONCLUSIVE),
        ("ABBABAAB", (100, 109, 109.2, 100.4, 108.8, 100, 99.7, 109), QUIET, Verdict.PASS),
        ("ABBABAAB", (100, 109, 109, 94, 109, 100, 100, 109), QUIET, Verdict.VOID),
        ("ABBABAAB", (100, 109, 109, 100, 109, 100, 100, 117), QUIET, Verdict.VOID),
        ("ABBABAAB", (100, 108, 107, 97, 105, 96, 95, 103), None, Verdict.PASS),
    ],
    ids=["D3c", "D3b", "a noisy host allows it", "quiet", "first block", "the candidate's pair", "drift, no registry"],
)
def test_a_host_rules_out_what_it_should_not_do(
    letters: str, rates: tuple[float, ...], history: History | None, verdict: Verdict
) -> None:
    assert check(letters, rates, history=history).verdict is verdict


def test_a_screen_that_closes_shows_its_effect_without_an_error_bar() -> None:
    found = check("ABA", (100.0, 109.0, 101.0))
    assert "no error bar yet" in found.line
    assert found.judgement is not None


def test_an_engine_that_only_proves_its_logic_is_told_as_such() -> None:
    found = StepRate().check(whole("ABA", RUN_ORDER, logic_only="Triton's interpreter"))
    assert "logic only" in found.line
