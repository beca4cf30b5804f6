import json
from math import log
from pathlib import Path

import pytest

from verdict.errors import VerdictError
from verdict.fit import ErrorBar, Scale, fit
from verdict.history import (
    History,
    base_disagreement_ln,
    moderated,
    noisy_limit,
    variance_ratio,
    void_cap,
    void_threshold_ln,
    worst_drift_bias_ln,
)

VECTORS = json.loads(Path(__file__).with_name("vectors.json").read_text())
DATA = {d["id"]: d for d in VECTORS["datasets"]}
THRESHOLDS = {k: x for k, x in VECTORS["aa_calibration"]["void_threshold_in_sd"].items() if k != "known"}


def _history(name: str) -> History:
    return History(**DATA[name]["history"])


@pytest.mark.parametrize("name", ["D3b_void", "D3c_not_void"])
def test_bases_that_disagree_by_more_than_the_host_allows_are_told(name: str) -> None:
    data = DATA[name]
    apart = base_disagreement_ln(data["boot_metric"], "ABA")
    threshold = void_threshold_ln(_history(name))
    assert apart == pytest.approx(data["expected"]["base_disagreement_ln"], rel=1e-9)
    assert threshold == pytest.approx(data["expected"]["void_threshold_ln"], rel=1e-9)
    assert (apart > threshold) is data["expected"]["void"]


def test_the_worst_monotone_drift_costs_half_the_disagreement() -> None:
    data = DATA["D3b_void"]
    expected = data["expected"]["worst_case_monotone_drift_bias_ln"]
    assert worst_drift_bias_ln(data["boot_metric"], "ABA") == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("key", THRESHOLDS)
def test_the_void_threshold_grows_as_the_host_is_less_known(key: str) -> None:
    assert void_threshold_ln(History(1.0, int(key[4:]))) == pytest.approx(THRESHOLDS[key], rel=1e-9)


def test_the_void_threshold_of_a_well_known_host_is_the_normal_one() -> None:
    known = VECTORS["aa_calibration"]["void_threshold_in_sd"]["known"]
    assert void_threshold_ln(History(1.0, 10**9)) == pytest.approx(known, rel=1e-6)


@pytest.mark.parametrize(
    ("history", "cap"),
    [(None, None), (History(0.008, 8), log(1.05)), (History(0.054, 8), 4.74523427099 * 0.054)],
    ids=["no registry", "quiet host", "noisy host"],
)
def test_the_void_cap_is_five_per_cent_or_the_hosts_own(history: History | None, cap: float | None) -> None:
    assert void_cap(history) == (None if cap is None else pytest.approx(cap, rel=1e-9))


def test_the_outer_pair_may_be_of_either_arm_and_of_one_only() -> None:
    assert base_disagreement_ln([100.0, 1.0, 1.0, 110.0], "BAAB") == pytest.approx(log(1.1))
    assert base_disagreement_ln([100.0, 1.0, 1.0, 110.0], "ABAB") is None
    assert worst_drift_bias_ln([100.0, 1.0, 1.0, 110.0], "ABAB") is None


def test_the_effect_of_the_candidate_does_not_void_a_block() -> None:
    assert base_disagreement_ln([100.0, 200.0, 300.0, 100.0], "ABBA") == 0


@pytest.mark.parametrize("bad", [float("nan"), 0.0, float("inf")])
def test_a_failed_base_is_a_crash_not_a_disagreement(bad: float) -> None:
    with pytest.raises(VerdictError, match="CRASH, never a number"):
        base_disagreement_ln([100.0, 1.0, bad], "ABA")


def test_a_block_with_a_lost_reading_is_refused() -> None:
    with pytest.raises(VerdictError, match="wants a reading a boot"):
        base_disagreement_ln([100.0, 1.0], "ABA")


@pytest.mark.parametrize("name", ["D3c_not_void", "D5a_tiny_ABA"])
def test_an_aba_borrows_its_error_bar_from_the_host(name: str) -> None:
    data = DATA[name]
    expected = data["expected"]["fit"]
    found = moderated(fit(data["boot_metric"], "ABA", scale=Scale.LOG), _history(name))
    assert found.se == pytest.approx(expected["se"], rel=1e-9)
    assert found.s2 == pytest.approx(expected["s2_used"], rel=1e-9)
    assert (found.df, found.own_df, found.error_bar) == (8, 0, ErrorBar.BORROWED)
    assert found.is_screen


def test_an_abba_mixes_its_own_variance_with_the_hosts() -> None:
    data = DATA["D5b_tiny_ABBA"]
    expected = data["expected"]["moderated"]
    own = fit(data["boot_metric"], "ABBA", scale=Scale.LOG)
    history = _history("D5b_tiny_ABBA")
    found = moderated(own, history)
    assert variance_ratio(own, history) == pytest.approx(expected["F_vs_history"], rel=1e-9)
    assert noisy_limit(1, history) == pytest.approx(expected["F_crit_99"], rel=1e-9)
    assert found.s2 == pytest.approx(expected["s2_used"], rel=1e-9)
    assert found.se == pytest.approx(expected["se"], rel=1e-9)
    assert found.df == expected["df_used"]


def test_a_bracket_noisier_than_its_host_keeps_its_own_variance() -> None:
    own = fit([100.0, 109.0, 104.0, 99.0], "ABBA", scale=Scale.LOG)
    found = moderated(own, History(0.001, 20))
    assert found.error_bar is ErrorBar.HOST_NOISY
    assert (found.se, found.df) == (own.se, 1)


@pytest.mark.parametrize(("nu0", "usable"), [(7, False), (8, True)])
def test_a_history_of_few_boots_is_not_usable(nu0: int, usable: bool) -> None:
    assert History(0.01, nu0).is_usable is usable


@pytest.mark.parametrize(("s0", "nu0"), [(0.0, 8), (-1.0, 8), (float("nan"), 8), (0.01, 0)])
def test_a_history_without_a_spread_is_refused(s0: float, nu0: int) -> None:
    with pytest.raises(VerdictError, match="needs s0 > 0 and nu0 >= 1"):
        History(s0, nu0)
