"""The looks of a bracket, from the configuration: what fits its schedule, and what is said of what does not."""

from collections.abc import Sequence

import pytest

from campaign.brackets import planned_looks
from campaign.config import Campaign
from campaign.errors import ConfigError
from campaign.planning.plan import make


@pytest.mark.parametrize(
    ("schedule", "max_boots", "looks"),
    [
        ("ABBA BAAB", 16, [8, 12, 16]), ("ABBA BAAB", 12, [8, 12]), ("ABBA BAAB", 8, []),
        ("ABBA BAAB", 40, [8, 12, 16]), ("ABA", 16, []), ("BAAB ABBA", 16, []),
    ],
)  # fmt: skip
def test_the_shipped_looks_go_as_far_as_max_boots_and_with_no_other_schedule(
    schedule: str, max_boots: int, looks: list[int]
) -> None:
    assert planned_looks(schedule, max_boots) == looks


WRONG: dict[str, tuple[str, Sequence[int], int, str]] = {
    "another schedule": ("ABABA", [8, 12], 16, r"write bracket\.looks=\[\] for a schedule of your own"),
    "a first look within the schedule": ("ABBA BAAB", [4, 8], 16, "goes on from the first 4 boots"),
    "beyond max_boots": ("ABBA BAAB", [8, 12, 16], 12, r"the last look is beyond bracket\.max_boots=12"),
    "no level known": ("ABBA BAAB", [8, 9], 16, r"whose levels are not known; wanted one of \[8, 12\]"),
}


@pytest.mark.parametrize(("schedule", "looks", "most", "words"), WRONG.values(), ids=WRONG)
def test_looks_that_do_not_fit_are_refused(
    exp8: Campaign, schedule: str, looks: Sequence[int], most: int, words: str
) -> None:
    exp8.bracket.schedule, exp8.bracket.looks, exp8.bracket.max_boots = schedule, list(looks), most
    with pytest.raises(ConfigError, match=words):
        make(exp8, "exp8-1")


def test_minutes_that_end_before_the_first_look_are_refused(exp8: Campaign) -> None:
    exp8.bracket.max_minutes = 5.0
    with pytest.raises(ConfigError, match=r"bracket\.max_minutes=5 ends before .* first 8 boots take about 10 minutes"):
        make(exp8, "exp8-1")


def test_the_minutes_before_the_first_look_count_base_beside_base(compose) -> None:
    with pytest.raises(ConfigError, match=r"4 of base beside base and the first 16 boots take about 28 minutes"):
        make(compose("exp=exp8", "bracket=duet", "bracket.max_minutes=22"), "exp8-1")


def test_sameness_alone_has_one_look(compose) -> None:
    plan = make(compose("exp=aa"), "aa-1")
    assert (plan.looks.boots, plan.schedule.n_boots) == ((8,), 8)
