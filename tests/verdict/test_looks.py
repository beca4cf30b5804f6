"""Planned looks: their levels, when a claim is given up, and that all looks together err as often as promised."""

import json
from collections.abc import Sequence
from itertools import pairwise
from math import exp, log, sqrt
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import ndtri, stdtr

from verdict.claims import Claim, ClaimKind, Direction, judge
from verdict.design import design_matrix
from verdict.errors import VerdictError
from verdict.fit import Scale
from verdict.looks import CALIBRATED, futility, planned, projected_half_width
from verdict.power import half_width, standard_letters
from verdict.words import Verdict

VECTORS = json.loads(Path(__file__).with_name("vectors.json").read_text())
DATA = {d["id"]: d for d in VECTORS["datasets"]}
SEQUENTIAL = VECTORS["sequential"]
THREE = planned(SEQUENTIAL["looks_boots"])
SIXTEEN = standard_letters(16)


def claim(kind: ClaimKind = ClaimKind.superiority, bound: float = 0.0) -> Claim:
    return Claim("speed", "step_per_s", kind, bound, Scale.LOG, Direction.HIGHER)


def readings(shape: tuple[int, ...], seed: int, letters: str, *, effect_ln: float = 0.0) -> np.ndarray:
    """Readings with a boot sd of 1 % and a drift of -3 % over the session."""
    noise = np.random.default_rng(seed).normal(0, 0.01, shape)
    place = np.arange(len(letters)) / (len(letters) - 1)
    return np.exp(log(150) + noise - 0.03 * place + effect_ln * np.array([letter == "B" for letter in letters]))


def stopped(of: Claim, values: Sequence[float], letters: str = SIXTEEN) -> tuple[Verdict, int, float, float]:
    """The verdict of the first look that gives one, its boots, and its interval."""
    for boots in THREE.boots:
        found = judge(of, values[:boots], letters[:boots], level=THREE.level(of.kind))
        if found.verdict is not Verdict.INCONCLUSIVE or boots == THREE.last:
            assert found.interval is not None
            return found.verdict, boots, found.interval.lo, found.interval.hi
    raise AssertionError


# levels


def test_the_levels_of_three_looks_are_the_reference_ones() -> None:
    nominal = SEQUENTIAL["nominal_t_levels"]
    assert THREE.level(ClaimKind.superiority) == pytest.approx(1 - nominal["two_sided_for_95"])
    for kind in (ClaimKind.equivalence, ClaimKind.non_inferiority):
        assert THREE.level(kind) == pytest.approx(1 - 2 * nominal["one_sided_for_tost_05"])


def test_sameness_is_decided_at_the_first_look_and_has_the_level_of_one() -> None:
    assert THREE.level(ClaimKind.no_difference) == 0.95


@pytest.mark.parametrize("kind", list(ClaimKind))
def test_one_look_is_what_a_bracket_always_was(kind: ClaimKind) -> None:
    values = DATA["D1_clear_win"]["boot_metric"]
    of = claim(kind, 2.0 if kind in (ClaimKind.equivalence, ClaimKind.non_inferiority) else 0.0)
    assert planned([8]).level(kind) == pytest.approx(kind.level)
    assert (
        judge(of, values, SIXTEEN[:8], level=planned([8]).level(kind)).verdict is judge(of, values, SIXTEEN[:8]).verdict
    )


@pytest.mark.parametrize("looks", [(), (4, 8), (8, 9), (16, 8), (8, 8)], ids=str)
def test_looks_whose_level_nobody_knows_are_refused_with_those_that_are(looks: tuple[int, ...]) -> None:
    with pytest.raises(VerdictError, match=r"\[8, 12, 16\]"):
        planned(looks)


def crossing(z: float, fractions: Sequence[float], sides: int) -> float:
    """Chance that a Brownian motion leaves +-z (or z) at any of these fractions: Armitage, McPherson and Rowe."""
    nodes, weights = np.polynomial.legendre.leggauss(160)
    low = -z if sides == 2 else -9.0
    grid = low + (nodes + 1) * (z - low) / 2  # of the standardised statistic
    weights = weights * (z - low) / 2
    density = np.exp(-(grid**2) / 2) / sqrt(2 * np.pi)
    for before, now in pairwise(fractions):
        step = sqrt(now - before)
        apart = (grid[:, None] * sqrt(now) - grid[None, :] * sqrt(before)) / step
        kernel = np.exp(-(apart**2) / 2) / sqrt(2 * np.pi) * sqrt(now) / step
        density = kernel @ (weights * density)
    return 1 - float((weights * density).sum())


@pytest.mark.parametrize(
    ("z", "fractions", "sides"),
    [
        (SEQUENTIAL["pocock_z_two_sided_05"], (0.5, 0.75, 1.0), 2),
        (SEQUENTIAL["pocock_z_one_sided_05"], (0.5, 0.75, 1.0), 1),
        (SEQUENTIAL["check_against_textbook"]["pocock_4_equal_looks"], (0.25, 0.5, 0.75, 1.0), 2),
    ],
    ids=["two-sided", "one-sided", "textbook"],
)
def test_the_recursion_gives_pococks_bounds(z: float, fractions: tuple[float, ...], sides: int) -> None:
    assert crossing(z, fractions, sides) == pytest.approx(0.05, abs=5e-6)


@pytest.mark.parametrize("looks", CALIBRATED, ids=str)
def test_every_calibrated_level_is_stricter_than_normal_theory(looks: tuple[int, ...]) -> None:
    """Few degrees of freedom can only cost: by the normal bound all looks together would err in less than 5 %."""
    two, one = CALIBRATED[looks]
    fractions = [boots / looks[-1] for boots in looks]
    for alpha, sides in ((two / 2, 2), (one, 1)):
        z = -float(ndtri(alpha))
        assert 0.04 < crossing(z, fractions, sides) < 0.05


@pytest.mark.parametrize("looks", CALIBRATED, ids=str)
def test_all_looks_together_err_in_one_of_twenty_simulated_sessions(looks: tuple[int, ...]) -> None:
    """60,000 sessions without an effect, by t at each look; three million gave the levels."""
    y = np.random.default_rng(7).standard_normal((60_000, looks[-1]))
    two, one = np.ones(len(y)), np.ones(len(y))
    for boots in looks:
        matrix = design_matrix(standard_letters(boots))
        inverse = np.linalg.inv(matrix.T @ matrix)
        b = y[:, :boots] @ (inverse @ matrix.T).T
        rest = y[:, :boots] - b @ matrix.T
        t = b[:, 0] / np.sqrt((rest**2).sum(1) / (boots - 3) * inverse[0, 0])
        two, one = np.minimum(two, 2 * stdtr(boots - 3, -np.abs(t))), np.minimum(one, stdtr(boots - 3, -t))
    alphas = CALIBRATED[looks]
    assert (two <= alphas[0]).mean() == pytest.approx(0.05, abs=0.003)
    assert (one <= alphas[1]).mean() == pytest.approx(0.05, abs=0.003)


# through the judge


def test_the_three_looks_of_the_judge_call_equal_arms_different_in_one_of_twenty_sessions() -> None:
    sessions = readings((1200, 16), 20261130, SIXTEEN).tolist()
    found = [stopped(claim(), values) for values in sessions]
    decided = sum(verdict is not Verdict.INCONCLUSIVE for verdict, *_ in found) / len(found)
    assert decided == pytest.approx(0.05, abs=0.015)
    covered = sum(lo <= 0 <= hi for _, _, lo, hi in found) / len(found)
    assert covered >= 0.95 - 0.015


def test_the_interval_at_the_stop_covers_a_true_effect_and_needs_fewer_boots_than_the_last_look() -> None:
    sessions = readings((600, 16), 3, SIXTEEN, effect_ln=log(1.03)).tolist()
    found = [stopped(claim(), values) for values in sessions]
    assert sum(lo <= 3 <= hi for _, _, lo, hi in found) / len(found) >= 0.95 - 0.02
    assert sum(verdict is Verdict.PASS for verdict, *_ in found) / len(found) > 0.95
    assert sum(boots for _, boots, *_ in found) / len(found) < 11


@given(st.floats(-0.1, 0.1), st.integers(0, 2**32 - 1))
def test_more_evidence_for_a_claim_never_takes_a_pass_back(shift: float, seed: int) -> None:
    """The candidate's readings all rise: PASS stays PASS, and FAIL never comes of it."""
    values = readings((8,), seed, SIXTEEN[:8], effect_ln=shift)
    raised = [v * (1.05 if letter == "B" else 1.0) for v, letter in zip(values.tolist(), SIXTEEN, strict=False)]
    order = [Verdict.FAIL, Verdict.INCONCLUSIVE, Verdict.PASS]
    before, after = (
        judge(claim(), found, SIXTEEN[:8], level=THREE.level(ClaimKind.superiority)).verdict
        for found in (values.tolist(), raised)
    )
    assert order.index(after) >= order.index(before)


# giving up


def judged_at(effect_ln: float, bound: float = 0.0, kind: ClaimKind = ClaimKind.superiority, **more: object):
    """Eight boots with a boot sd of 1 % and exactly this effect."""
    resid = np.array([1, -1, 1, -1, -1, 1, -1, 1.0])
    matrix = design_matrix(SIXTEEN[:8])
    resid -= matrix @ np.linalg.lstsq(matrix, resid, rcond=None)[0]
    resid *= 0.01 * sqrt(5) / np.linalg.norm(resid)
    values = [150 * exp(r + effect_ln * (x == "B")) for r, x in zip(resid, SIXTEEN[:8], strict=True)]
    return judge(claim(kind, bound), values, SIXTEEN[:8], level=THREE.level(kind), **more)  # type: ignore[arg-type]


def test_the_projected_half_width_is_that_of_the_last_look_at_this_boot_sd() -> None:
    found = judged_at(0.0)
    assert projected_half_width(found, 16) == pytest.approx(half_width(0.01, SIXTEEN, 0.978), rel=1e-9)


@pytest.mark.parametrize(("share", "given_up"), [(0.0, True), (0.24, True), (0.26, False), (1.0, False)])
@pytest.mark.parametrize("side", [-1, 1])
def test_a_quarter_of_the_projected_half_width_decides_what_is_futile(share: float, side: int, given_up: bool) -> None:
    reach = share * half_width(0.01, SIXTEEN, 0.978)
    why = futility(judged_at(side * reach), 16)
    assert bool(why) is given_up, why
    if given_up:
        assert "from its bound, and 16 boots would see +-" in why


def test_a_margin_is_given_up_near_either_bound_and_not_in_its_middle() -> None:
    found = [judged_at(at, 2.0, ClaimKind.equivalence) for at in (-log(1.02), 0.0, log(1.02))]
    assert [bool(futility(one, 16)) for one in found] == [True, False, True]


def test_boots_are_given_up_where_only_more_prompts_would_tell() -> None:
    of = Claim("acceptance", "acceptance_pos1_pp", ClaimKind.equivalence, 2, Scale.LINEAR, Direction.TWO_SIDED)
    boots = [70, 71.0, 71.2, 70.1, 71.1, 70.2, 70, 71.0]
    why = futility(judge(of, boots, SIXTEEN[:8], paired_differences=[9, -7, 8, -6, 9, -8, 2, 1.0]), 16)
    assert "more prompts would tell, not more boots" in why


def test_readings_that_never_vary_are_not_called_futile() -> None:
    assert futility(judge(claim(), [70.0] * 8, SIXTEEN[:8]), 16) == ""
