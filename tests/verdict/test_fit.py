import json
from math import exp, log
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import statsmodels.api as sm

from verdict.design import design_matrix
from verdict.errors import VerdictError
from verdict.fit import Fit, Scale, fit, flag_limit, flagged_boots, session_deltas, studentised_residuals

VECTORS = json.loads(Path(__file__).with_name("vectors.json").read_text())
DATA = {d["id"]: d for d in VECTORS["datasets"]}
EIGHT = "ABBABAAB"


def _case(name: str, expected: dict[str, Any], scale: Scale = Scale.LOG, letters: str | None = None) -> tuple[Any, ...]:
    data = DATA[name]
    return _readings(data), letters or data["schedule"], scale, data.get("sessions"), expected


def _readings(data: dict[str, Any]) -> list[float]:
    if "accepted_drafts" in data:
        return [100 * accepted / drafts for accepted, drafts in data["accepted_drafts"]]
    if "requests_steps_seconds" in data:
        return [sum(s for s, _ in boot) / sum(t for _, t in boot) for boot in data["requests_steps_seconds"]]
    return list(data["boot_metric"])


D3 = DATA["D3a_drift"]["expected"]
LOOKS = DATA["D8_sequential"]["expected"]["path"]
FITS = {
    "D1": _case("D1_clear_win", DATA["D1_clear_win"]["expected"]["fit"]),
    "D2": _case("D2_null", DATA["D2_null"]["expected"]["fit"]),
    "D3a sequential": _case("D3a_drift", D3["sequential_AAAABBBB"]["ols_lin"], letters="AAAABBBB"),
    "D3a interleaved": _case("D3a_drift", D3["interleaved_ABBABAAB"]["ols_lin"], letters=EIGHT),
    "D4 boot level": _case("D4_autocorrelation", DATA["D4_autocorrelation"]["expected"]["fit"]),
    "D5b own": _case("D5b_tiny_ABBA", DATA["D5b_tiny_ABBA"]["expected"]["own"]),
    "D5c": _case("D5c_ABABA", DATA["D5c_ABABA"]["expected"]["fit"]),
    "D6a": _case("D6a_accept_pass", DATA["D6a_accept_pass"]["expected"]["fit"], Scale.LINEAR),
    "D6b": _case("D6b_accept_inconclusive", DATA["D6b_accept_inconclusive"]["expected"]["fit"], Scale.LINEAR),
    "D6c": _case("D6c_accept_fail", DATA["D6c_accept_fail"]["expected"]["fit"], Scale.LINEAR),
    "D7 raw": _case("D7_lower_is_better", DATA["D7_lower_is_better"]["expected"]["fit_raw"]),
    "D9": _case("D9_two_sessions", DATA["D9_two_sessions"]["expected"]["fit"]),
    "D12": _case("D12_outlier_boot", DATA["D12_outlier_boot"]["expected"]["fit"]),
}


@pytest.mark.parametrize(("values", "letters", "scale", "sessions", "expected"), FITS.values(), ids=FITS)
def test_a_fit_gives_the_reference_numbers(
    values: list[float], letters: str, scale: Scale, sessions: list[int] | None, expected: dict[str, float]
) -> None:
    found = fit(values, letters, scale=scale, sessions=sessions)
    assert found.delta == pytest.approx(expected["delta"], rel=1e-9)
    assert found.v == pytest.approx(expected["v"], rel=1e-9)
    assert found.df == found.own_df == expected["df_own"]
    assert found.s2 == pytest.approx(expected["s2_own"], rel=1e-9)
    assert found.se == pytest.approx(expected["se"], rel=1e-9)
    assert found.slope_per_boot == pytest.approx(expected["slope_per_boot"], rel=1e-9)
    assert found.boot_sd == pytest.approx(expected["s2_own"] ** 0.5, rel=1e-9)


@pytest.mark.parametrize("look", LOOKS, ids=lambda look: f"{look['boots']} boots")
def test_every_look_of_a_sequential_bracket_gives_the_reference_fit(look: dict[str, Any]) -> None:
    data, n = DATA["D8_sequential"], look["boots"]
    found = fit(data["boot_metric"][:n], data["schedule"][:n], scale=Scale.LOG)
    assert found.delta == pytest.approx(look["fit"]["delta"], rel=1e-9)
    assert found.se == pytest.approx(look["fit"]["se"], rel=1e-9)
    assert found.df == look["fit"]["df_own"]


@pytest.mark.parametrize("name", ["D3b_void", "D3c_not_void", "D5a_tiny_ABA"])
def test_an_aba_has_an_effect_and_no_error_bar(name: str) -> None:
    data = DATA[name]
    expected = data["expected"].get("fit") or data["expected"]["fit_if_not_voided"]
    found = fit(data["boot_metric"], "ABA", scale=Scale.LOG)
    assert found.delta == pytest.approx(expected["delta"], rel=1e-9)
    assert (found.df, found.s2, found.se, found.boot_sd) == (0, None, None, None)
    assert not found.zero_variance


def test_an_aba_is_candidate_less_the_mean_of_its_bases() -> None:
    found = fit([10.0, 13.0, 12.0], "ABA", scale=Scale.LINEAR)
    assert found.delta == pytest.approx(2.0, rel=1e-12)


@pytest.mark.parametrize("requests", [1, 2], ids=["once", "every request twice"])
def test_requests_inside_a_boot_are_no_replicates(requests: int) -> None:
    data = DATA["D4_autocorrelation"]
    boots = [boot * requests for boot in data["requests_steps_seconds"]]
    rates = [sum(steps for steps, _ in boot) / sum(seconds for _, seconds in boot) for boot in boots]
    np.testing.assert_allclose(rates, data["expected"]["boot_metric"], rtol=1e-9)
    found = fit(rates, data["schedule"], scale=Scale.LOG)
    assert found.se == pytest.approx(data["expected"]["fit"]["se"], rel=1e-9)
    assert found.df == 5


def test_the_fit_agrees_with_statsmodels() -> None:
    values = DATA["D9_two_sessions"]["boot_metric"]
    matrix = design_matrix("ABBAABBA", [0, 0, 0, 0, 1, 1, 1, 1])
    oracle = sm.OLS(np.log(values), matrix).fit()
    found = fit(values, "ABBAABBA", scale=Scale.LOG, sessions=[0, 0, 0, 0, 1, 1, 1, 1])
    assert found.delta == pytest.approx(oracle.params[0], rel=1e-9)
    assert found.se == pytest.approx(oracle.bse[0], rel=1e-9)
    np.testing.assert_allclose(found.residuals, oracle.resid, atol=1e-12)
    np.testing.assert_allclose(found.fitted, oracle.fittedvalues, rtol=1e-12)
    np.testing.assert_allclose(found.intercepts, oracle.params[1:3], rtol=1e-12)
    np.testing.assert_allclose(found.leverages, oracle.get_influence().hat_matrix_diag, rtol=1e-9)


def test_each_session_shows_its_own_effect() -> None:
    data = DATA["D9_two_sessions"]
    found = session_deltas(data["boot_metric"], data["schedule"], data["sessions"], scale=Scale.LOG)
    assert list(found) == [0, 1]
    assert list(found.values()) == pytest.approx(data["expected"]["per_session_delta"], rel=1e-9)


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), 0.0, -1.0])
def test_a_failed_boot_is_a_crash_and_never_a_number(bad: float) -> None:
    with pytest.raises(VerdictError, match="a failed boot is CRASH, never a number"):
        fit([100.0, 101.0, bad, 100.0], "ABBA", scale=Scale.LOG)


def test_a_linear_metric_may_be_zero_but_not_missing() -> None:
    assert fit([0.0, 1.0, 0.0], "ABA", scale=Scale.LINEAR).delta == pytest.approx(1.0)
    with pytest.raises(VerdictError, match="never a number"):
        fit([0.0, float("nan"), 0.0], "ABA", scale=Scale.LINEAR)


def test_a_lost_boot_is_noticed() -> None:
    with pytest.raises(VerdictError, match="ABBA wants 4 readings, one a boot, found 3"):
        fit([1.0, 2.0, 3.0], "ABBA", scale=Scale.LOG)


@pytest.mark.parametrize(
    ("values", "delta"),
    [([70.1] * 8, 0.0), ([70.1 if arm == "A" else 71.3 for arm in EIGHT], 1.2)],
    ids=["no boot differs", "only the arms differ"],
)
def test_readings_that_never_vary_have_exactly_no_variance(values: list[float], delta: float) -> None:
    found = fit(values, EIGHT, scale=Scale.LINEAR)
    assert found.zero_variance
    assert found.se == 0
    assert found.delta == (0 if delta == 0 else pytest.approx(delta))


@pytest.mark.parametrize("scale", list(Scale))
@pytest.mark.parametrize("rate", [70.1, 157.3, 162.937, 1 / 3])
def test_the_rounding_of_a_fit_is_not_a_variance(rate: float, scale: Scale) -> None:
    found = fit([rate] * 5, "ABABA", scale=scale)
    assert (found.delta, found.s2, set(found.residuals)) == (0, 0, {0})


def test_a_difference_of_one_in_a_million_is_a_variance() -> None:
    assert not fit([70.1, *[70.1] * 6, 70.1 * (1 + 1e-6)], EIGHT, scale=Scale.LOG).zero_variance


def _d12() -> Fit:
    return fit(DATA["D12_outlier_boot"]["boot_metric"], EIGHT, scale=Scale.LOG)


def test_a_boot_that_stands_apart_is_flagged() -> None:
    expected = DATA["D12_outlier_boot"]["expected"]
    assert studentised_residuals(_d12()) == pytest.approx(expected["externally_studentized_residuals"], rel=1e-8)
    assert flag_limit(_d12()) == pytest.approx(expected["flag_if_abs_gt"], rel=1e-9)
    assert list(flagged_boots(_d12())) == expected["flagged_positions_1based"]


def test_an_ordinary_bracket_has_no_flagged_boot() -> None:
    assert flagged_boots(fit(DATA["D1_clear_win"]["boot_metric"], EIGHT, scale=Scale.LOG)) == ()


def test_the_only_boot_that_varies_is_beyond_measure_and_flagged() -> None:
    values = [70.0] * 8
    values[3] = 71.0
    assert flagged_boots(fit(values, EIGHT, scale=Scale.LINEAR)) == (4,)


def test_a_screen_has_no_studentised_residuals() -> None:
    screen = fit([100.0, 109.0, 108.0, 99.0], "ABBA", scale=Scale.LOG)
    assert flagged_boots(screen) == ()
    with pytest.raises(VerdictError, match="needs two residual degrees of freedom, found 1"):
        studentised_residuals(screen)


def test_an_effect_is_told_in_per_cent_or_in_points() -> None:
    assert Scale.LOG.effect(log(1.05)) == pytest.approx(5)
    assert Scale.LOG.difference(5) == pytest.approx(log(1.05))
    assert Scale.LINEAR.effect(1.5) == Scale.LINEAR.difference(1.5) == Scale.LINEAR.resolution(1.5) == 1.5
    assert Scale.LOG.resolution(0.02) == pytest.approx(2)


def test_a_hopeless_width_does_not_overflow() -> None:
    assert Scale.LOG.effect(1e6) == pytest.approx(100 * (exp(700) - 1))
