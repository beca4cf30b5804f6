import json
from pathlib import Path
from typing import Any

import pytest
from scipy import stats
from statsmodels.stats.contingency_tables import mcnemar

from verdict.errors import VerdictError
from verdict.proportions import (
    chance_of_seeing_one,
    difference_bounds,
    fisher_exact_p,
    lower_bound,
    mcnemar_exact_p,
    n_eff,
    two_sided_bounds,
    upper_bound,
    zero_failures_needed,
)

TABLES = json.loads(Path(__file__).with_name("vectors.json").read_text())["k_of_n"]


@pytest.mark.parametrize("row", TABLES["clopper_pearson"], ids=lambda row: f"{row['k']} of {row['n']}")
def test_k_of_n_shows_the_reference_bounds(row: dict[str, Any]) -> None:
    k, n = row["k"], row["n"]
    assert lower_bound(k, n) == pytest.approx(row["cp_one_sided95_lower"], rel=1e-9)
    assert upper_bound(k, n) == pytest.approx(row["cp_one_sided95_upper"], rel=1e-9)
    assert two_sided_bounds(k, n) == pytest.approx(tuple(row["cp95_two_sided"]), rel=1e-9)


@pytest.mark.parametrize("n", [1, 7, 60])
def test_the_bounds_agree_with_scipy_for_every_k(n: int) -> None:
    for k in range(n + 1):
        oracle = stats.binomtest(k, n).proportion_ci(0.95, "exact")
        assert two_sided_bounds(k, n) == pytest.approx((oracle.low, oracle.high), rel=1e-9)


@pytest.mark.parametrize(("rate", "n"), [(float(r), n) for r, n in TABLES["zero_failure_n_for_95pct"].items()])
def test_so_many_flawless_items_prove_a_rate_and_one_fewer_does_not(rate: float, n: int) -> None:
    assert zero_failures_needed(rate) == n
    assert upper_bound(0, n) < rate < upper_bound(0, n - 1)


@pytest.mark.parametrize("key", TABLES["detect_prob_at_least_one"])
def test_few_items_miss_a_rare_failure(key: str) -> None:
    rate, n = key.removeprefix("rate").split("_n")
    expected = TABLES["detect_prob_at_least_one"][key]
    assert chance_of_seeing_one(float(rate), int(n)) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("row", TABLES["mcnemar_exact"], ids=lambda row: f"p {row['p']}")
def test_discordant_items_give_the_exact_p(row: dict[str, Any]) -> None:
    base, candidate = row["base_bad_cand_ok"], row["base_ok_cand_bad"]
    assert mcnemar_exact_p(base, candidate) == pytest.approx(row["p"], rel=1e-9)
    assert mcnemar_exact_p(candidate, base) == mcnemar_exact_p(base, candidate)


@pytest.mark.parametrize(("base", "candidate"), [(3, 3), (7, 2), (1, 0), (20, 9)])
def test_the_exact_p_agrees_with_statsmodels(base: int, candidate: int) -> None:
    oracle = mcnemar([[0, base], [candidate, 0]], exact=True).pvalue
    assert mcnemar_exact_p(base, candidate) == pytest.approx(oracle, rel=1e-9)


def test_no_discordant_item_says_nothing() -> None:
    assert mcnemar_exact_p(0, 0) == 1


@pytest.mark.parametrize("row", TABLES["fisher_two_sided"], ids=lambda row: f"p {row['p']:.3f}")
def test_two_counts_give_the_reference_p(row: dict[str, Any]) -> None:
    assert fisher_exact_p(*row["base"], *row["cand"]) == pytest.approx(row["p"], rel=1e-9)


@pytest.mark.parametrize("row", TABLES["diff_ci_newcombe95"], ids=lambda row: str(row["cand"]))
def test_two_counts_give_the_reference_interval_of_their_difference(row: dict[str, Any]) -> None:
    assert difference_bounds(*row["base"], *row["cand"]) == pytest.approx(tuple(row["ci"]), abs=1e-9)


@pytest.mark.parametrize("table", [(0, 3, 3, 3), (2, 7, 5, 9), (1, 1, 0, 1), (4, 20, 15, 21)], ids=str)
def test_the_p_of_two_counts_agrees_with_scipy_and_does_not_depend_on_their_order(table: tuple[int, ...]) -> None:
    k1, n1, k2, n2 = table
    oracle = stats.fisher_exact([[k1, n1 - k1], [k2, n2 - k2]]).pvalue
    assert fisher_exact_p(*table) == pytest.approx(oracle, rel=1e-9)
    assert fisher_exact_p(k2, n2, k1, n1) == pytest.approx(oracle, rel=1e-9)


def test_two_impossible_counts_are_refused() -> None:
    for refused in (fisher_exact_p, difference_bounds):
        with pytest.raises(VerdictError, match="count the items again"):
            refused(3, 2, 0, 1)


def test_repeats_of_a_prompt_are_not_new_items() -> None:
    example = TABLES["design_effect"]["example"]
    assert n_eff(example["n"], example["m"], example["rho"]) == pytest.approx(example["n_eff"], rel=1e-9)
    assert n_eff(16, 4, 1.0) == 16
    assert n_eff(16, 4, 0.0) == 64


@pytest.mark.parametrize(("k", "n"), [(-1, 3), (4, 3), (0, 0)])
def test_an_impossible_count_is_refused(k: int, n: int) -> None:
    with pytest.raises(VerdictError, match=f"found {k} of {n}"):
        lower_bound(k, n)
    with pytest.raises(VerdictError, match=f"found {k} of {n}"):
        upper_bound(k, n)


@pytest.mark.parametrize("rate", [0.0, 1.0, 5.0])
def test_a_rate_in_per_cent_is_refused(rate: float) -> None:
    with pytest.raises(VerdictError, match=r"write 0\.05 for 5 %"):
        zero_failures_needed(rate)


def test_impossible_repeats_and_items_are_refused() -> None:
    with pytest.raises(VerdictError, match=r"rho in 0\.\.1"):
        n_eff(16, 4, 1.5)
    with pytest.raises(VerdictError, match="counted from 0"):
        mcnemar_exact_p(-1, 0)
