import json
from pathlib import Path
from typing import Any

import pytest

from verdict.errors import VerdictError
from verdict.fit import Scale, fit
from verdict.history import History, moderated
from verdict.power import (
    boots_for_mde,
    boots_to_resolve,
    costly,
    design_df,
    design_v,
    half_width,
    mde,
    mde_from_fit,
    mde_from_se,
    mde_pct,
    standard_letters,
    standard_mde,
    superiority_power,
    tost_power,
    tost_power_at_zero,
)

VECTORS = json.loads(Path(__file__).with_name("vectors.json").read_text())
DATA = {d["id"]: d for d in VECTORS["datasets"]}
CONSTANTS = VECTORS["design_constants"]
SPEED = [row for row in VECTORS["planning"] if "sd_bootmean" in row]
ACCEPTANCE = [row for row in VECTORS["planning"] if "sd_accept_pp" in row]
EIGHT = "ABBABAAB"


def _row_id(row: dict[str, Any]) -> str:
    return f"{row['schedule']}-{row.get('sd_bootmean', row.get('sd_accept_pp'))}"


@pytest.mark.parametrize("letters", CONSTANTS)
def test_the_variance_of_a_schedule_is_the_reference(letters: str) -> None:
    expected = CONSTANTS[letters]
    assert len(letters) == expected["boots"]
    assert design_v(letters) == pytest.approx(expected["v"], rel=1e-9)
    assert design_df(letters) == expected["df_own"]
    balanced = 1 / letters.count("A") + 1 / letters.count("B")
    assert design_v(letters) / balanced == pytest.approx(expected["lin_drift_loss"], rel=1e-9)


RESOLUTIONS = [(letters, key) for letters, c in CONSTANTS.items() for key in ("own", "borrowed_nu0_8") if key in c]


@pytest.mark.parametrize(("letters", "key"), RESOLUTIONS, ids=lambda x: x)
def test_the_resolution_of_a_schedule_is_the_reference(letters: str, key: str) -> None:
    expected = CONSTANTS[letters][key]
    df = expected["df"] if key != "own" else None
    assert half_width(1.0, letters, 0.95, df=df) == pytest.approx(expected["halfwidth95_in_sd"], rel=1e-9)
    assert half_width(1.0, letters, 0.90, df=df) == pytest.approx(expected["halfwidth90_in_sd"], rel=1e-9)
    assert mde(1.0, letters, df=df) == pytest.approx(expected["mde80_in_sd"], rel=1e-6)
    assert mde(1.0, letters, power=0.9, df=df) == pytest.approx(expected["mde90_in_sd"], rel=1e-6)


@pytest.mark.parametrize("row", SPEED, ids=_row_id)
def test_a_plan_for_speed_gives_the_reference_numbers(row: dict[str, Any]) -> None:
    sd, letters, df = row["sd_bootmean"], row["schedule"], row["df"] if row["borrowed"] else None
    assert half_width(sd, letters, df=df) == pytest.approx(row["halfwidth95"], rel=1e-9)
    assert mde_pct(sd, letters, df=df) == pytest.approx(100 * row["mde80"], rel=1e-6)
    assert mde_pct(sd, letters, power=0.9, df=df) == pytest.approx(100 * row["mde90"], rel=1e-6)
    assert superiority_power(sd, letters, 5, 9, df=df) == pytest.approx(row["power_gate5_true9"], abs=1e-6)
    assert superiority_power(sd, letters, 0, 3, df=df) == pytest.approx(row["power_gate0_true3"], abs=1e-6)


@pytest.mark.parametrize("row", ACCEPTANCE, ids=_row_id)
def test_a_plan_for_acceptance_gives_the_reference_numbers(row: dict[str, Any]) -> None:
    sd, letters, df = row["sd_accept_pp"], row["schedule"], row["df"] if row["borrowed"] else None
    assert tost_power_at_zero(sd, letters, 2.0, df=df) == pytest.approx(row["tost2pp_power_at_0"], abs=1e-6)
    assert tost_power(sd, letters, 2.0, 1.0, df=df) == pytest.approx(row["tost2pp_power_at_1"], abs=1e-6)


def test_a_measured_bracket_says_what_it_could_have_seen() -> None:
    found = fit(DATA["D2_null"]["boot_metric"], EIGHT, scale=Scale.LOG)
    expected = 100 * DATA["D2_null"]["expected"]["mde80"]
    assert mde_from_fit(found, 0.95, 0.8, Scale.LOG) == pytest.approx(expected, rel=1e-6)
    assert mde_from_se(found.se or 0, 5, 0.95, 0.8, Scale.LINEAR) == pytest.approx(expected / 100, rel=1e-6)


def test_the_resolution_of_the_reference_engine_is_what_the_house_says() -> None:
    assert mde_pct(0.054, EIGHT) == pytest.approx(13, abs=0.5)
    assert mde_pct(0.054, standard_letters(16)) == pytest.approx(8, abs=0.5)


@pytest.mark.parametrize("ask", [mde_pct, half_width, lambda sd, letters: tost_power_at_zero(sd, letters, 2.0)])
def test_a_schedule_without_an_error_bar_cannot_promise_anything(ask: Any) -> None:
    with pytest.raises(VerdictError, match="no residual df and no history"):
        ask(0.01, "ABA")


def test_a_screen_could_see_nothing_until_it_borrows() -> None:
    screen = fit([100.3, 109.6, 99.5], "ABA", scale=Scale.LOG)
    with pytest.raises(VerdictError, match="no residual df and no history"):
        mde_from_fit(screen, 0.95, 0.8, Scale.LOG)
    assert mde_from_fit(moderated(screen, History(0.01, 8)), 0.95, 0.8, Scale.LOG) == pytest.approx(3.9203130, rel=1e-6)


@pytest.mark.parametrize(
    ("n_boots", "half", "wanted", "boots"),
    [
        (8, 1.1, 0.9, 12),
        (8, 1.0, 1.0, 8),
        (8, 2.0, 1.0, 32),
        (8, 1.0, 2.0, 4),
        (3, 2.0, 1.0, 12),
        (8, 3.0**0.5, 1, 24),
        (8, 2.1, 0.7, 72),
    ],
)
def test_boots_to_resolve_grow_with_the_square_in_blocks_of_four(
    n_boots: int, half: float, wanted: float, boots: int
) -> None:
    assert boots_to_resolve(n_boots, half, wanted) == boots


@pytest.mark.parametrize("wanted", [0.0, -1.0, float("nan")])
def test_a_width_of_nothing_is_refused(wanted: float) -> None:
    with pytest.raises(VerdictError, match="a wanted half width is positive"):
        boots_to_resolve(8, 1.0, wanted)


@pytest.mark.parametrize(
    ("letters", "times"),
    [("AAAABBBB", "4.2"), ("AAABBB", "4.4"), ("ABABABAB", ""), ("ABABA", ""), ("ABA", ""), ("ABBABAABABBA", "")],
)
def test_a_schedule_that_wastes_its_boots_is_told_with_what_it_costs(letters: str, times: str) -> None:
    found = costly(letters)
    assert bool(found) is bool(times)
    assert found.startswith(f"{letters} gives {times} times the variance" if times else "")


@pytest.mark.parametrize("n_boots", [4, 8, 12, 16, 40])
def test_the_standard_schedule_has_a_variance_of_four_over_its_boots(n_boots: int) -> None:
    assert design_v(standard_letters(n_boots)) == pytest.approx(4 / n_boots, rel=1e-9)
    assert standard_mde(0.7, n_boots) == pytest.approx(mde(0.7, standard_letters(n_boots)), rel=1e-9)


@pytest.mark.parametrize("n_boots", [0, 3, 6, 9])
def test_the_standard_schedule_comes_in_blocks_of_four(n_boots: int) -> None:
    with pytest.raises(VerdictError, match="4, 8, 12"):
        standard_letters(n_boots)


@pytest.mark.parametrize("wanted_pct", [2.5, 1.9, 1.0, 0.5])
def test_the_boots_for_an_effect_are_the_fewest_that_see_it(wanted_pct: float) -> None:
    n_boots = boots_for_mde(1.0, wanted_pct)
    assert n_boots is not None
    assert mde(1.0, standard_letters(n_boots)) <= wanted_pct
    assert n_boots == 8 or mde(1.0, standard_letters(n_boots - 4)) > wanted_pct


def test_an_effect_that_a_thousand_boots_cannot_see_has_no_plan() -> None:
    assert boots_for_mde(5.0, 0.01) is None


def test_a_plan_wants_a_spread_and_an_effect() -> None:
    with pytest.raises(VerdictError, match="sd and wanted effect are positive"):
        boots_for_mde(0.0, 1.0)


def test_two_sessions_cost_two_degrees_of_freedom() -> None:
    assert design_v("ABBAABBA", [0, 0, 0, 0, 1, 1, 1, 1]) == pytest.approx(0.5)
    assert design_df("ABBAABBA", [0, 0, 0, 0, 1, 1, 1, 1]) == 3
