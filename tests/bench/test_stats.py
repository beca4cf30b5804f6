"""The statistics against their reference and against simulated brackets: the short version of `make bench-stats`."""

import pytest

from bench import sessions, stats
from bench.vectors import Compared, compared


@pytest.fixture(scope="module")
def vectors() -> list[Compared]:
    """Every figure of the reference vectors beside what the product finds."""
    return compared()


def test_every_figure_of_the_reference_vectors_holds(vectors: list[Compared]) -> None:
    assert [f"{leaf.path}: {leaf.wanted} {leaf.found}" for leaf in vectors if not leaf.holds] == []
    assert len(vectors) > 900


def test_a_figure_that_nothing_computes_or_that_is_off_does_not_hold() -> None:
    assert not Compared("planning.0.mde80", 0.1, None).holds
    assert not Compared("planning.0.mde80", 0.1, 0.1001).holds
    assert not Compared("datasets.x.verdict", "PASS", "FAIL").holds


@pytest.mark.parametrize("scenario", ["none", "linear 3 %"])
def test_simulated_brackets_are_judged_right_as_often_as_is_promised(scenario: str) -> None:
    found = stats.ours(scenario, stats.DEFAULT, 300)
    assert found.false_positives <= 5 + 4  # three standard errors of 300
    assert found.coverage >= 95 - 4
    assert found.power is not None
    assert 55 < found.power < 85


def test_the_habits_of_others_err_on_the_same_brackets() -> None:
    found = stats.naive("linear 3 %", stats.SEQUENTIAL, 300)
    assert found["pooled-request Welch, AAAABBBB"].false_positives > 70
    assert found["boot-mean Welch, AAAABBBB"].false_positives > 12


def test_the_page_tells_what_does_not_hold(vectors: list[Compared]) -> None:
    rates = {scenario: stats.Rates(5.0, 95.0, 70.0) for scenario in sessions.SCENARIOS}
    rows = {f"OLS + slope, t (ours), {stats.DEFAULT}": rates}
    assert stats.broken(vectors, rows) == []
    off = rates | {"none": stats.Rates(9.0, 90.0, 70.0)}
    told = stats.broken([Compared("planning.0.df", 5, 4)], {next(iter(rows)): off})
    assert len(told) == 3
    assert "planning.0.df: wanted 5, found 4" in stats.page([Compared("planning.0.df", 5, 4)], rows, 10, 1.0)
