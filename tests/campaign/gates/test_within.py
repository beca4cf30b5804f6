"""Twin of campaign.gates.within, through the gate of step/s: drift in the windows, a prefix cache read unequally."""

import pytest

from campaign.gates.step_rate import StepRate
from campaign.names import (
    ACCEPTANCE_LENGTH,
    PREFIX_HIT_PCT,
    STEP_PER_S,
    TOK_PER_S,
    WINDOW_FIRST_STEP_PER_S,
    WINDOW_LAST_STEP_PER_S,
)
from tests.fakes.evidence import ALIKE, STEADY, VERDICT, bracket, step_rate
from verdict.claims import Claim, ClaimKind, Direction
from verdict.fit import Scale
from verdict.history import History
from verdict.words import Verdict


def check(changes_pct=(0.0,) * 8, rates=STEADY, gate: StepRate | None = None, **fields):
    """The gate on boots whose windows change by so much from their first part to their last."""
    parts = {
        WINDOW_FIRST_STEP_PER_S: rates,
        WINDOW_LAST_STEP_PER_S: [rate * (1 + change / 100) for rate, change in zip(rates, changes_pct, strict=True)],
    }
    columns = {STEP_PER_S: rates} | parts | fields.pop("metrics", {})
    return (gate or StepRate()).check(bracket(**({"metrics": columns, "claims": (step_rate(),)} | fields)))


@pytest.mark.case("D14")
def test_a_speed_that_falls_in_every_window_makes_no_verdict_and_says_by_how_much():
    """1425 to 1237 and the like: power throttling within each boot."""
    found = check((-11.8, -9.2, -8.8, -12.4, -7.5, -10.1, -9.9, -8.2))
    assert found.verdict is Verdict.INCONCLUSIVE
    assert "drift within the window: -9.8 % step/s from first part to last, in all 8 boots" in found.line
    assert "gate" not in found.line
    assert found.details[-1].endswith("boot 08-B 108.6 to 99.7 (-8.2 %)")
    assert found.judgement.verdict is Verdict.INCONCLUSIVE


@pytest.mark.case("D14")
def test_windows_that_drift_in_one_arm_alone_make_no_verdict():
    changes = [-9.0 if letter == "B" else 0.3 for letter in VERDICT]
    found = check([change + 0.1 * (i % 3) for i, change in enumerate(changes)])
    assert found.verdict is Verdict.INCONCLUSIVE
    assert (
        "drift within the window differs: step/s from first part to last, base +0.3 %, candidate -8.9 %" in found.line
    )


@pytest.mark.parametrize(
    "changes",
    [(0.0,) * 8, (-4.0,) * 8, (-9.0, *(0.0,) * 7), (-9, 9, -9, 9, -9, 9, -9, 9), (8.0,) * 8],
    ids=["none", "within the limit", "one boot", "to and fro", "faster"],
)
def test_a_drift_that_is_small_or_of_single_boots_leaves_the_verdict(changes):
    assert check(changes).verdict is Verdict.PASS


def test_three_boots_that_happen_to_fall_together_are_told_and_are_no_reason():
    """As seen on a restless machine: -6.9, -11.9 and -8.6 %."""
    found = check((-6.9, -11.9, -8.6), rates=(100.0, 101.0, 100.0), letters="ABA")
    assert "drift within the window" not in found.line
    assert "boot 02-B 101.0 to 89.0 (-11.9 %)" in found.details[-1]


def test_of_a_duet_what_falls_for_both_of_a_pair_cancels():
    pairs = {i: {"pair": (i + 1) // 2} for i in range(1, 9)}
    assert "drift within the window" not in check((-9.0, -9.1) * 4, letters="ABBABAAB", at=pairs).line


@pytest.mark.case("D14")
def test_a_single_boot_that_falls_is_told_and_is_no_reason():
    found = check((-9.0, *(0.0,) * 7))
    assert found.details[-1].endswith("by the client's clock: boot 01-A 100.0 to 91.0 (-9.0 %)")


@pytest.mark.case("D8")
def test_boots_that_were_not_steady_or_not_equally_warm_are_told():
    facts = [
        {"warm_up_requests": n, "steady_after_warm_up": is_steady} for n, is_steady in (("4", "true"), ("12", "false"))
    ]
    found = check(at={i: {"facts": facts[i == 3]} for i in range(1, 9)})
    assert found.details[-2:] == (
        "not steady after the warm-up: boot 03-B; a drift within the window would show it",
        "warm-up requests thrown away differ between boots: 4, 12",
    )
    assert found.verdict is Verdict.PASS


def test_on_a_noisy_host_a_window_may_fall_by_twice_the_sd_of_a_boot():
    changes = (-7.0,) * 8
    noisy = check(changes, history=History(0.05, 20)).verdict
    assert (check(changes).verdict, noisy) == (Verdict.INCONCLUSIVE, Verdict.PASS)


def test_the_limit_of_the_drift_is_a_field():
    assert check((-7.0,) * 8, gate=StepRate(drift_pct=8.0)).verdict is Verdict.PASS
    unlooked = check((-30.0,) * 8, gate=StepRate(drift_pct=None))
    assert unlooked.verdict is Verdict.PASS
    assert not any("drift within" in line for line in unlooked.details)


@pytest.mark.case("D1")
@pytest.mark.parametrize(
    ("hits", "verdict"),
    [
        ((0.1, 92.0, 92.5, 93.0, 92.0, 93.0, 93.0, 92.0), Verdict.INVALID),
        ((92.0, 93.0, 92.5, 93.0, 92.0, 93.0, 93.0, 92.0), Verdict.PASS),
    ],
    ids=["later boots read what the first one left", "all boots alike"],
)
def test_boots_that_read_the_prefix_cache_unequally_give_no_rate(hits, verdict):
    found = check(metrics={PREFIX_HIT_PCT: hits})
    assert found.verdict is verdict
    if verdict is Verdict.INVALID:
        assert "0.1 % of the window's tokens in boot 01-A, 93.0 % in boot 04-A" in found.line
        assert found.judgement is None


def test_an_experiment_on_the_prefix_cache_may_switch_that_off():
    hits = [90.0 if letter == "B" else 0.0 for letter in VERDICT]
    assert check(metrics={PREFIX_HIT_PCT: hits}, gate=StepRate(prefix_hits_pp=None)).verdict is Verdict.PASS


@pytest.mark.case("D11")
def test_a_token_rate_is_never_told_without_what_the_text_made_of_it():
    """Session 1: 302, 242, 168 tok/s at 5.6, 4.4, 2.8 tokens a step; session 2: 200, 180, 168 at 3.7, 3.2, 2.8."""
    lengths = [{"A": 4.4, "B": 3.2}[letter] for letter in VERDICT]
    tokens = [rate * length for rate, length in zip(ALIKE, lengths, strict=True)]
    claim = Claim("step_rate", TOK_PER_S, ClaimKind.superiority, 0.0, Scale.LOG, Direction.HIGHER)
    columns = {TOK_PER_S: tokens, ACCEPTANCE_LENGTH: lengths}
    found = check(rates=ALIKE, metrics=columns, claims=(claim,))
    assert found.line.endswith("at 4.40 (base) and 3.20 (candidate) tokens a step")
    assert any("ln step/s +0.0" in line or "ln step/s -0.0" in line for line in found.details)
