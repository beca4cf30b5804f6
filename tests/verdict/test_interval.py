import json
from pathlib import Path
from typing import Any

import pytest
from scipy import stats

from verdict.errors import VerdictError
from verdict.fit import Scale, fit
from verdict.history import History, moderated
from verdict.interval import Interval, combined_interval, interval, prompt_se

VECTORS = json.loads(Path(__file__).with_name("vectors.json").read_text())
DATA = {d["id"]: d for d in VECTORS["datasets"]}


def _log_case(name: str, expected: list[float], level: float = 0.95, letters: str | None = None) -> tuple[Any, ...]:
    data = DATA[name]
    values = data.get("boot_metric") or _rates(data["requests_steps_seconds"])
    return values, letters or data["schedule"], data.get("sessions"), level, expected


def _rates(boots: list[list[tuple[float, float]]]) -> list[float]:
    return [sum(steps for steps, _ in boot) / sum(seconds for _, seconds in boot) for boot in boots]


D3 = DATA["D3a_drift"]["expected"]
OWN = {
    "D1 95": _log_case("D1_clear_win", DATA["D1_clear_win"]["expected"]["ci95"]),
    "D1 90": _log_case("D1_clear_win", DATA["D1_clear_win"]["expected"]["ci90"], 0.9),
    "D2 95": _log_case("D2_null", DATA["D2_null"]["expected"]["ci95"]),
    "D2 90": _log_case("D2_null", DATA["D2_null"]["expected"]["ci90"], 0.9),
    "D3a sequential": _log_case("D3a_drift", D3["sequential_AAAABBBB"]["ci95"], letters="AAAABBBB"),
    "D3a interleaved": _log_case("D3a_drift", D3["interleaved_ABBABAAB"]["ci95"], letters="ABBABAAB"),
    "D4 boot level": _log_case("D4_autocorrelation", DATA["D4_autocorrelation"]["expected"]["ci95"]),
    "D5b own": _log_case("D5b_tiny_ABBA", DATA["D5b_tiny_ABBA"]["expected"]["own_ci95"]),
    "D5c": _log_case("D5c_ABABA", DATA["D5c_ABABA"]["expected"]["ci95"]),
    "D9": _log_case("D9_two_sessions", DATA["D9_two_sessions"]["expected"]["ci95"]),
    "D12": _log_case("D12_outlier_boot", DATA["D12_outlier_boot"]["expected"]["ci95"]),
}


@pytest.mark.parametrize(("values", "letters", "sessions", "level", "expected"), OWN.values(), ids=OWN)
def test_an_interval_of_a_ratio_is_the_reference_in_per_cent(
    values: list[float], letters: str, sessions: list[int] | None, level: float, expected: list[float]
) -> None:
    found = interval(fit(values, letters, scale=Scale.LOG, sessions=sessions), level, scale=Scale.LOG)
    assert [found.lo, found.hi] == pytest.approx([100 * end for end in expected], rel=1e-9)
    assert found.level == level


@pytest.mark.parametrize("name", ["D1_clear_win", "D2_null", "D4_autocorrelation", "D5c_ABABA", "D9_two_sessions"])
def test_the_estimate_is_the_ratio_of_geometric_means_in_per_cent(name: str) -> None:
    values, letters, sessions, level, _ = _log_case(name, [])
    found = interval(fit(values, letters, scale=Scale.LOG, sessions=sessions), level, scale=Scale.LOG)
    assert found.estimate == pytest.approx(100 * DATA[name]["expected"]["effect"], rel=1e-9)


@pytest.mark.parametrize(
    ("name", "key"), [("D3c_not_void", "ci95"), ("D5a_tiny_ABA", "ci95"), ("D5b_tiny_ABBA", "moderated_ci95")]
)
def test_a_screen_with_a_history_has_the_reference_interval(name: str, key: str) -> None:
    data = DATA[name]
    borrowed = moderated(fit(data["boot_metric"], data["schedule"], scale=Scale.LOG), History(**data["history"]))
    found = interval(borrowed, 0.95, scale=Scale.LOG)
    assert [found.lo, found.hi] == pytest.approx([100 * end for end in data["expected"][key]], rel=1e-9)


@pytest.mark.parametrize("name", ["D6a_accept_pass", "D6b_accept_inconclusive", "D6c_accept_fail"])
@pytest.mark.parametrize(("level", "key"), [(0.9, "ci90"), (0.95, "ci95")])
def test_an_interval_of_an_acceptance_is_the_reference_in_points(name: str, level: float, key: str) -> None:
    data = DATA[name]
    rates = [100 * accepted / drafts for accepted, drafts in data["accepted_drafts"]]
    assert rates == pytest.approx(data["expected"]["acceptance_pp"], rel=1e-9)
    found = interval(fit(rates, data["schedule"], scale=Scale.LINEAR), level, scale=Scale.LINEAR)
    assert [found.lo, found.hi] == pytest.approx(data["expected"][key], rel=1e-9)


@pytest.mark.parametrize("look", DATA["D8_sequential"]["expected"]["path"], ids=lambda look: f"{look['boots']} boots")
def test_a_planned_look_has_its_repeated_interval(look: dict[str, Any]) -> None:
    data, n = DATA["D8_sequential"], look["boots"]
    found = fit(data["boot_metric"][:n], data["schedule"][:n], scale=Scale.LOG)
    repeated = interval(found, 1 - data["nominal_two_sided"], scale=Scale.LOG)
    naive = interval(found, 0.95, scale=Scale.LOG)
    assert [repeated.lo, repeated.hi] == pytest.approx([100 * end for end in look["rci"]], rel=1e-9)
    assert [naive.lo, naive.hi] == pytest.approx([100 * end for end in look["unadjusted_ci95"]], rel=1e-9)


def test_a_lone_aba_is_refused_an_interval_in_the_exact_words() -> None:
    data = DATA["D5a_tiny_ABA"]
    with pytest.raises(VerdictError) as caught:
        interval(fit(data["boot_metric"], "ABA", scale=Scale.LOG), 0.95, scale=Scale.LOG)
    assert data["expected"]["without_history_error"] in str(caught.value)
    assert "boot ABBA BAAB" in str(caught.value)


def _d6d() -> tuple[Any, list[float], dict[str, Any]]:
    prompts = DATA["D6d_prompts_x_boots"]
    rates = [100 * accepted / drafts for accepted, drafts in DATA["D6a_accept_pass"]["accepted_drafts"]]
    pairs = zip(prompts["cand_by_prompt"], prompts["base_by_prompt"], strict=True)
    return fit(rates, "ABBABAAB", scale=Scale.LINEAR), [c - b for c, b in pairs], prompts["expected"]


def test_prompts_and_boots_both_widen_the_interval() -> None:
    boots, differences, expected = _d6d()
    found = combined_interval(boots, differences, 0.9)
    assert found.se_boot == pytest.approx(expected["se_boot"], rel=1e-9)
    assert found.se_prompt == pytest.approx(expected["se_prompt"], rel=1e-9)
    assert found.se == pytest.approx(expected["se_combined"], rel=1e-9)
    assert found.df == pytest.approx(expected["df_welch_satterthwaite"], rel=1e-9)
    assert [found.interval.lo, found.interval.hi] == pytest.approx(expected["ci90_combined"], rel=1e-9)
    assert found.interval.estimate == pytest.approx(expected["delta_boot"], rel=1e-9)


def test_the_prompt_error_is_that_of_a_mean() -> None:
    _, differences, _ = _d6d()
    assert prompt_se(differences) == pytest.approx(stats.sem(differences), rel=1e-12)


def test_with_no_boot_variance_only_the_prompts_count() -> None:
    still = fit([70.0] * 8, "ABBABAAB", scale=Scale.LINEAR)
    found = combined_interval(still, [1.0, -1.0, 2.0, -2.0], 0.9)
    assert (found.se_boot, found.df) == (0, pytest.approx(3))
    assert found.interval.half_width == pytest.approx(stats.t.ppf(0.95, 3) * found.se_prompt, rel=1e-9)
    assert not found.identical


def test_with_no_prompt_moved_only_the_boots_count() -> None:
    boots, _, _ = _d6d()
    found = combined_interval(boots, [0.0] * 12, 0.9)
    assert (found.se, found.df) == (pytest.approx(boots.se), pytest.approx(5))
    assert found.interval == interval(boots, 0.9, scale=Scale.LINEAR)


def test_where_nothing_moved_the_interval_is_a_point_called_identical() -> None:
    still = fit([70.0] * 8, "ABBABAAB", scale=Scale.LINEAR)
    found = combined_interval(still, [0.0] * 12, 0.9)
    assert found.identical
    assert (found.interval.lo, found.interval.hi, found.se) == (0, 0, 0)


def test_a_point_off_zero_is_not_identical() -> None:
    assert not Interval(3.0, 3.0, 0.9, 3.0).identical


@pytest.mark.parametrize("differences", [[], [1.0], [1.0, float("nan")]], ids=["none", "one", "a lost one"])
def test_the_prompt_error_wants_two_prompts_and_no_lost_one(differences: list[float]) -> None:
    boots, _, _ = _d6d()
    with pytest.raises(VerdictError, match="two or more finite paired differences"):
        combined_interval(boots, differences, 0.9)


def test_a_combined_interval_needs_a_boot_error_too() -> None:
    screen = fit([70.0, 71.0, 70.5], "ABA", scale=Scale.LINEAR)
    with pytest.raises(VerdictError, match="no residual df and no history"):
        combined_interval(screen, [0.1, -0.1], 0.9)


def test_an_interval_covers_its_ends() -> None:
    found = Interval(-1.0, 2.0, 0.95, 0.5)
    assert found.covers(-1.0)
    assert found.covers(2.0)
    assert not found.covers(2.1)
    assert found.half_width == 1.5
