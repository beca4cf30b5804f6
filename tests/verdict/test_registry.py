import json
from math import sqrt
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from verdict.errors import VerdictError
from verdict.history import History
from verdict.registry import Residuals, aa_calibration, aa_limit, pooled

AA = json.loads(Path(__file__).with_name("vectors.json").read_text())["aa_calibration"]
LIMITS = {int(key.split("_")[0][1:]): limit for key, limit in AA["reject_calibration_if_fp_at_least"].items()}
BRACKETS = st.lists(st.builds(Residuals, st.floats(1e-8, 1), st.integers(1, 13)), min_size=8, max_size=12)


@pytest.mark.parametrize(("brackets", "limit"), LIMITS.items())
def test_so_many_differing_aa_brackets_ask_for_a_calibration(brackets: int, limit: int) -> None:
    assert aa_limit(brackets) == limit
    assert aa_calibration(limit, brackets).is_off
    assert not aa_calibration(limit - 1, brackets).is_off


@pytest.mark.parametrize("row", AA["fpr_ci95"], ids=lambda row: f"{row['false_positives']} of {row['runs']}")
def test_how_often_a_pipeline_errs_has_bounds(row: dict[str, float]) -> None:
    found = aa_calibration(int(row["false_positives"]), int(row["runs"]))
    assert [found.low, found.high] == pytest.approx(row["cp95"], rel=1e-9, abs=1e-12)


def test_one_aa_bracket_alone_never_asks_for_a_calibration() -> None:
    assert aa_limit(1) is None
    assert not aa_calibration(1, 1).is_off


def test_brackets_are_pooled_by_their_sums() -> None:
    assert pooled([Residuals(5e-4, 5), Residuals(1.1e-3, 5), Residuals(0.0, 1)]) == History(sqrt(1.6e-3 / 11), 11)


@pytest.mark.parametrize(
    ("brackets", "known"),
    [([], None), ([Residuals(1e-3, 5)], None), ([Residuals(1e-3, 5), Residuals(0, 3)], 8), ([Residuals(0, 9)], None),
     ([Residuals(1e-3, 13)] * 4, 30)],
    ids=["nothing", "5 df", "8 df", "never varied", "52 df count as 30"],
)  # fmt: skip
def test_a_registry_is_usable_from_eight_degrees_of_freedom(brackets: list[Residuals], known: int | None) -> None:
    found = pooled(brackets)
    assert (found.nu0 if found else None) == known


@given(BRACKETS)
def test_a_pooled_sd_lies_between_the_quietest_and_the_noisiest_bracket(brackets: list[Residuals]) -> None:
    found = pooled(brackets)
    sds = [sqrt(bracket.rss / bracket.df) for bracket in brackets]
    assert found is not None
    assert min(sds) * (1 - 1e-9) <= found.s0 <= max(sds) * (1 + 1e-9)
    assert found == pooled(brackets[::-1]) or found.s0 == pytest.approx(pooled(brackets[::-1]).s0)  # type: ignore[union-attr]


@pytest.mark.parametrize("bad", [Residuals(1e-3, 0), Residuals(-1e-3, 5), Residuals(float("nan"), 5)])
def test_a_bracket_without_an_error_is_left_out(bad: Residuals) -> None:
    with pytest.raises(VerdictError, match="leave it out"):
        pooled([Residuals(1e-3, 9), bad])
