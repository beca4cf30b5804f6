"""Several candidates of one base: the fit that they share, what each is worth by its claim, and what two add up to."""

import json
from math import exp, expm1
from pathlib import Path

import numpy as np
import pytest
from statsmodels.api import OLS

from verdict.claims import Claim, ClaimKind, Direction
from verdict.errors import VerdictError
from verdict.fit import Scale, fit
from verdict.interval import interval
from verdict.latin import square
from verdict.many import Correction, holm
from verdict.power import mde_pct
from verdict.several import contrasts, detectable_pct, interaction, judge_each, strictest
from verdict.words import Verdict

VECTORS = json.loads(Path(__file__).with_name("vectors.json").read_text())
DATA = {d["id"]: d for d in VECTORS["datasets"]}
EIGHT = "ABBABAAB"
FOUR = square(4).letters
# several candidates of one base


def test_two_arms_are_fitted_as_a_bracket_is() -> None:
    values = DATA["D1_clear_win"]["boot_metric"]
    (found,) = contrasts(values, EIGHT, scale=Scale.LOG)
    wanted = interval(fit(values, EIGHT, scale=Scale.LOG), 0.95, scale=Scale.LOG)
    assert (found.interval.lo, found.interval.hi) == pytest.approx((wanted.lo, wanted.hi), rel=1e-9)
    assert found.p == found.p_holm


def test_each_candidate_has_its_own_effect_and_they_share_base_drift_and_error_bar() -> None:
    letters = "ABCCBAABCCBA"
    effect = {"A": 0.0, "B": 0.05, "C": -0.03}
    resid = np.random.default_rng(5).normal(0, 0.002, len(letters))
    values = [100 * exp(effect[x] - 0.01 * i + r) for i, (x, r) in enumerate(zip(letters, resid, strict=True))]
    b, c = contrasts(values, letters, scale=Scale.LOG)
    assert (b.letter, c.letter) == ("B", "C")
    assert b.interval.lo < 100 * (exp(0.05) - 1) < b.interval.hi
    assert c.interval.lo < 100 * (exp(-0.03) - 1) < c.interval.hi
    assert (b.p_holm, c.p_holm) == holm([b.p, c.p])


@pytest.mark.parametrize(
    ("letters", "words"),
    [
        ("AB", "not separable"),
        ("ABC", "rank deficient|no residual"),
        ("BCCB", "base A and candidates"),
        ("AAAA", "base A"),
    ],
)
def test_what_cannot_be_told_apart_is_refused(letters: str, words: str) -> None:
    with pytest.raises(VerdictError, match=words):
        contrasts([100.0] * len(letters), letters, scale=Scale.LOG)


LATIN = "ABCDBADCCDABDCBA"  # base, one change, the other, both; each arm once in every block and every place


def test_an_interaction_is_the_coefficient_of_a_two_by_two_design() -> None:
    rng = np.random.default_rng(20261201)
    effect = {"A": 0.0, "B": 0.05, "C": 0.03, "D": 0.08 + 0.02}
    y = np.array([effect[letter] for letter in LATIN]) + 0.001 * np.arange(16) + rng.normal(0, 0.005, 16)
    found = interaction(list(100 * np.exp(y)), LATIN, both="D", parts=("B", "C"), scale=Scale.LOG)
    one, other = (np.array([letter in holders for letter in LATIN], float) for holders in ("BD", "CD"))
    design = np.column_stack([one * other, one, other, np.ones(16), np.arange(16) - 7.5])
    fitted = OLS(y, design).fit()
    low, high = fitted.conf_int()[0]
    assert found.p == pytest.approx(fitted.pvalues[0], rel=1e-6)
    assert (found.interval.lo, found.interval.hi) == pytest.approx((100 * expm1(low), 100 * expm1(high)), rel=1e-6)


def test_an_interaction_of_an_arm_that_is_not_there_is_refused() -> None:
    with pytest.raises(VerdictError, match=r"no candidate D in .*it has B, C"):
        interaction([100.0] * 6, "ABCCBA", both="D", parts=("B", "C"), scale=Scale.LOG)


# each judged by a claim


def claim(gate_pct: float = 0.0) -> Claim:
    """A superiority claim on a rate."""
    return Claim("step_rate", "step_per_s", ClaimKind.superiority, gate_pct, Scale.LOG, Direction.HIGHER)


def readings(effects: dict[str, float], sd: float = 0.005, seed: int = 1, letters: str = FOUR) -> list[float]:
    """Rates of one session: 100 for base, a drift, and noise of the boots."""
    noise = np.random.default_rng(seed).normal(0, sd, len(letters))
    return [
        100 * exp(effects.get(letter, 0.0) + 0.001 * at + e)
        for at, (letter, e) in enumerate(zip(letters, noise, strict=True))
    ]


def test_each_candidate_is_judged_with_the_error_bar_that_all_share() -> None:
    values = readings({"B": 0.05, "D": 0.09})
    found = judge_each(claim(), values, FOUR)
    bars = {one.letter: one for one in contrasts(values, FOUR, scale=Scale.LOG)}
    assert list(found) == ["B", "C", "D"]
    for letter, one in found.items():
        assert one.judgement.interval is not None
        assert one.judgement.interval.lo == pytest.approx(bars[letter].interval.lo)
        assert one.judgement.fit.df == 16 - 3 - 2
        assert one.p.passing == pytest.approx(bars[letter].p_holm, abs=1e-3) or letter == "C"
    assert [one.verdict for one in found.values()] == [Verdict.PASS, Verdict.INCONCLUSIVE, Verdict.PASS]
    assert any("Holm over 3: p " in note for note in found["B"].judgement.notes)


def test_a_candidate_that_its_interval_alone_would_pass_is_taken_back_by_holm() -> None:
    """The least of three has to be three times as surprising."""
    taken = 0
    for seed in range(60):
        values = readings({}, sd=0.01, seed=seed)
        alone = [one for one in contrasts(values, FOUR, scale=Scale.LOG) if one.interval.lo >= 0]
        found = judge_each(claim(), values, FOUR)
        passed = [letter for letter, one in found.items() if one.verdict is Verdict.PASS]
        assert set(passed) <= {one.letter for one in alone}
        taken += len(alone) - len(passed)
        for one in alone:
            assert (one.p_holm <= 0.05) is (one.letter in passed)
    assert taken > 0


def test_what_holm_takes_back_says_how_many_whole_squares_would_decide_it() -> None:
    for seed in range(60):
        values = readings({"B": 0.012, "C": 0.01, "D": 0.011}, sd=0.01, seed=seed)
        for found in judge_each(claim(), values, FOUR).values():
            boots = found.judgement.boots_to_resolve
            assert found.judgement.verdict is found.verdict
            if found.verdict is Verdict.INCONCLUSIVE and boots is not None:
                assert (boots % 16, boots > 16) == (0, True)
            raw = found.judgement.interval
            if raw is not None and raw.lo >= 0 and found.verdict is Verdict.INCONCLUSIVE:
                assert boots == 32


def test_readings_that_never_vary_are_no_gain() -> None:
    found = judge_each(claim(), [{"A": 100.0}.get(letter, 103.0) for letter in FOUR], FOUR)
    assert {one.verdict for one in found.values()} == {Verdict.INCONCLUSIVE}
    assert {one.correction for one in found.values()} == {Correction.none}


def test_a_session_of_its_own_has_a_level_and_a_drift_of_its_own() -> None:
    values = readings({"B": 0.05})
    jump = [value * (1.2 if at >= 8 else 1.0) for at, value in enumerate(values)]
    sessions = [at // 8 for at in range(16)]
    one, split = (contrasts(jump, FOUR, scale=Scale.LOG, sessions=s)[0] for s in (None, sessions))
    assert split.interval.half_width < one.interval.half_width / 3
    assert split.interval.covers(100 * expm1(0.05))


def test_a_planted_interaction_is_found_and_sums_alone_show_none() -> None:
    """What both add to their parts: found where it is, and in 5 % where it is not."""
    both = {"both": "D", "parts": ("B", "C"), "scale": Scale.LOG}
    planted = [
        interaction(readings({"B": 0.05, "C": 0.03, "D": 0.12}, seed=n), FOUR, **both).interval for n in range(50)
    ]
    additive = [
        interaction(readings({"B": 0.05, "C": 0.03, "D": 0.08}, seed=n), FOUR, **both).interval for n in range(400)
    ]
    assert sum(found.lo > 0 for found in planted) >= 45
    assert 0.92 < sum(found.covers(0) for found in additive) / len(additive) < 0.98


def test_what_a_square_can_see_is_what_the_fit_of_one_shows() -> None:
    seen = detectable_pct(0.01, FOUR, {"B": 1.0}, 0.95)
    values = readings({}, sd=0.01, seed=3)
    found = judge_each(claim(), values, FOUR)["B"].judgement
    assert found.mde is not None
    assert found.fit.boot_sd is not None
    assert seen == pytest.approx(found.mde * 0.01 / found.fit.boot_sd)
    assert detectable_pct(0.01, EIGHT, {"B": 1.0}, 0.95) == pytest.approx(mde_pct(0.01, EIGHT))


def test_holms_first_step_is_held_to_a_share_of_the_level() -> None:
    assert strictest(0.95, 3) == pytest.approx(1 - 0.05 / 3)
