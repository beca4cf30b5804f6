"""The paired design of a duet: by hand, beside statsmodels, under drift, and its coverage by simulation."""

from math import log

import numpy as np
import pytest
import statsmodels.api as sm
from hypothesis import given
from hypothesis import strategies as st

from verdict.claims import Claim, ClaimKind, Direction, judge
from verdict.design import paired_matrix
from verdict.errors import VerdictError
from verdict.fit import Scale, fit, flagged_boots
from verdict.plot import bracket_plot
from verdict.power import design_df, design_v, mde_pct
from verdict.schedule import Schedule, mirrored, parse_pairs
from verdict.sentence import claim_line
from verdict.student import two_sided_t
from verdict.words import Verdict

EIGHT = parse_pairs("AB BA BA AB BA AB AB BA")
SIX = parse_pairs("AB BA BA AB BA AB")
BY_HAND = (100.0, 104.0, 206.0, 200.0, 52.0, 50.0, 80.0, 84.0)  # AB BA BA AB: ratios 1.04, 1.03, 1.04, 1.05
FOUR = parse_pairs("AB BA BA AB")


def gain(gate_pct: float = 0.0) -> Claim:
    return Claim("step_rate", "step_per_s", ClaimKind.superiority, gate_pct, Scale.LOG, Direction.HIGHER)


def readings(schedule: Schedule, effect_ln: float, noise: np.ndarray, shared: np.ndarray) -> list[float]:
    """Boots in run order: what a pair shares, the arm's effect, and noise of each boot alone."""
    arm = np.array([letter == "B" for letter in schedule.letters], dtype=float)
    return list(np.exp(np.repeat(shared, 2) + effect_ln * arm + noise))


def test_the_effect_is_the_mean_of_the_pairs_differences_where_the_places_are_balanced() -> None:
    found = fit(BY_HAND, FOUR.letters, scale=Scale.LOG, pairs=FOUR.pairs)
    assert found.delta == pytest.approx(np.mean([log(r) for r in (1.04, 1.03, 1.04, 1.05)]))
    assert (found.df, found.n_pairs, found.slopes) == (2, 4, ())
    assert found.second_place == pytest.approx(np.mean([log(1.04), -log(1.03), -log(1.04), log(1.05)]))


@given(st.lists(st.floats(0.5, 2.0), min_size=16, max_size=16))
def test_least_squares_of_statsmodels_gives_the_same_effect_error_and_freedom(values: list[float]) -> None:
    matrix = paired_matrix(EIGHT.letters, EIGHT.pairs or ())
    oracle = sm.OLS(np.log(values), matrix).fit()
    found = fit(values, EIGHT.letters, scale=Scale.LOG, pairs=EIGHT.pairs)
    assert found.delta == pytest.approx(oracle.params[0], abs=1e-9)
    assert found.se == pytest.approx(oracle.bse[0], abs=1e-9)
    assert found.df == oracle.df_resid == 6


@given(st.lists(st.floats(-0.3, 0.3), min_size=8, max_size=8))
def test_what_both_boots_of_a_pair_share_changes_nothing(shared: list[float]) -> None:
    noise = np.sin(np.arange(16.0)) / 100
    plain = fit(readings(EIGHT, 0.02, noise, np.zeros(8)), EIGHT.letters, scale=Scale.LOG, pairs=EIGHT.pairs)
    drifted = fit(readings(EIGHT, 0.02, noise, np.array(shared)), EIGHT.letters, scale=Scale.LOG, pairs=EIGHT.pairs)
    assert drifted.delta == pytest.approx(plain.delta, abs=1e-9)
    assert drifted.se == pytest.approx(plain.se, abs=1e-9)


@given(st.floats(-0.1, 0.1))
def test_what_the_second_place_costs_changes_nothing_and_is_told(cost: float) -> None:
    noise = np.cos(np.arange(16.0)) / 100
    placed = noise + cost * (np.arange(16) % 2)
    plain = fit(readings(EIGHT, 0.02, noise, np.zeros(8)), EIGHT.letters, scale=Scale.LOG, pairs=EIGHT.pairs)
    found = fit(readings(EIGHT, 0.02, placed, np.zeros(8)), EIGHT.letters, scale=Scale.LOG, pairs=EIGHT.pairs)
    assert found.delta == pytest.approx(plain.delta, abs=1e-9)
    assert (found.second_place or 0.0) - (plain.second_place or 0.0) == pytest.approx(cost, abs=1e-9)


def test_the_place_goes_with_the_arm_where_every_pair_has_one_order() -> None:
    schedule = parse_pairs("AB AB AB AB")
    found = fit(BY_HAND, schedule.letters, scale=Scale.LOG, pairs=schedule.pairs)
    assert (found.df, found.second_place, schedule.own_df) == (3, None, 3)


def test_intervals_hold_the_truth_at_their_level_and_an_effect_is_seen_that_boots_alone_cannot() -> None:
    """2,000 duets of six pairs: boot sd 1 %, and a machine that takes up to 10 % of all for a while."""
    draw = np.random.default_rng(20261130)
    covered = {"duet": 0, "boots": 0}
    seen = {"duet": 0, "boots": 0}
    for _ in range(2000):
        noise, machine = draw.normal(0, 0.01, 12), draw.uniform(-0.1, 0, 12)
        pairs = fit(readings(SIX, log(1.03), noise, machine[:6]), SIX.letters, scale=Scale.LOG, pairs=SIX.pairs)
        alone = fit(np.exp(noise + machine + log(1.03) * (np.array([*"ABBABAABABBA"]) == "B")), "ABBABAABABBA",
                    scale=Scale.LOG)  # fmt: skip
        for name, found in (("duet", pairs), ("boots", alone)):
            half = two_sided_t(0.95, found.df) * (found.se or 0.0)
            covered[name] += abs(found.delta - log(1.03)) <= half
            seen[name] += found.delta - half >= 0
    assert 0.935 <= covered["duet"] / 2000 <= 0.965
    assert 0.935 <= covered["boots"] / 2000 <= 0.965  # drift costs power, not truth
    assert seen["duet"] / 2000 > 0.95
    assert seen["boots"] / 2000 < 0.35


def test_fewer_than_four_pairs_are_a_screen_and_never_a_verdict() -> None:
    schedule = parse_pairs("AB BA AB")
    found = judge(gain(), [100.0, 150.0, 151.0, 100.0, 100.0, 149.0], schedule.letters, pairs=schedule.pairs)
    assert schedule.is_screen
    assert found.verdict is Verdict.INCONCLUSIVE
    same_order = parse_pairs("AB AB AB")  # two degrees of freedom, and still too few pairs
    found = judge(gain(), [100.0, 150.0, 100.0, 151.0, 100.0, 149.0], same_order.letters, pairs=same_order.pairs)
    assert (found.verdict, found.interval) == (Verdict.INCONCLUSIVE, None)
    assert "3 pairs: not a verdict" in claim_line(found, "step/s", "%")


def test_a_duet_is_told_in_pairs() -> None:
    found = judge(gain(), BY_HAND, FOUR.letters, pairs=FOUR.pairs)
    line = claim_line(found, "step/s", "%")
    assert line.startswith("PASS          step/s      +4.0 %  [+2.")
    assert "4 pairs live at once AB BA BA AB" in line
    assert "boots" not in line
    undecided = claim_line(judge(gain(3.0), BY_HAND, FOUR.letters, pairs=FOUR.pairs), "step/s", "%")
    assert "pairs would resolve" in undecided
    assert "boots" not in undecided


def test_the_plot_links_the_two_boots_of_a_pair() -> None:
    found = judge(gain(), BY_HAND, FOUR.letters, pairs=FOUR.pairs)
    plot = bracket_plot(found, BY_HAND, FOUR.letters)
    assert plot.pairs[1] == ((3.0, 206.0), (4.0, 200.0))
    assert (plot.base_line, plot.candidate_line) == ((), ())
    assert "the second place of a pair reads" in plot.captions[0]


def test_a_pair_that_stands_apart_is_flagged_once_and_kept() -> None:
    noise = np.sin(np.arange(16.0)) / 1000
    values = readings(EIGHT, 0.02, noise, np.zeros(8))
    values[5] *= 1.2
    found = judge(gain(), values, EIGHT.letters, pairs=EIGHT.pairs)
    assert flagged_boots(found.fit) == (5, 6)
    assert [note for note in found.notes if "stands apart" in note] == [
        note for note in found.notes if note.startswith("pair 3 stands apart")
    ]
    assert found.fit.n_boots == 16


def test_power_is_that_of_the_pairs() -> None:
    assert design_v(EIGHT.letters, pairs=EIGHT.pairs) == pytest.approx(2 / 8)
    assert design_df(EIGHT.letters, pairs=EIGHT.pairs) == EIGHT.own_df == 6
    assert 1.4 < mde_pct(0.01, EIGHT.letters, pairs=EIGHT.pairs) < 1.8


def test_mirroring_exchanges_the_arms_and_keeps_the_pairs() -> None:
    assert mirrored(SIX).blocks == ("BA", "AB", "AB", "BA", "AB", "BA")
    assert mirrored(SIX).pairs == SIX.pairs


@pytest.mark.parametrize("text", ["", "ABBA", "AB BB", "AB A", "ab ba", "A B"], ids=repr)
def test_what_is_no_schedule_of_pairs_is_refused_with_one_that_is(text: str) -> None:
    with pytest.raises(VerdictError, match="AB BA AB BA"):
        parse_pairs(text)


@pytest.mark.parametrize(
    ("letters", "pairs"),
    [("ABA", (1, 1, 2)), ("ABBA", (1, 2, 1, 2)), ("AABB", (1, 1, 2, 2)), ("ABBA", (1, 1, 1, 1)), ("AB", (1,))],
    ids=["half a pair", "boots of a pair apart", "two of one arm", "four in a pair", "a number short"],
)
def test_boots_that_are_no_pairs_are_refused(letters: str, pairs: tuple[int, ...]) -> None:
    with pytest.raises(VerdictError, match="pair"):
        fit([1.0] * len(letters), letters, scale=Scale.LOG, pairs=pairs)
