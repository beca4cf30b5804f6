"""Twin of campaign.engine.behaved: what overlays say of themselves over a window. Its rows: test_witness.py."""

import pytest

from campaign.engine import behaved
from campaign.engine.reports import Report
from campaign.evidence import Shown


def report(counters: dict[str, object], state: dict[str, object] | None = None, rank: int = 0) -> Report:
    raw = {"behaved": counters, "overlays": {} if state is None else {"fused": state}}
    return Report("Worker", rank, 7, raw)


def test_an_overlays_counters_are_their_growth_and_its_state_is_text_a_rank_each():
    before = [report({"fused.steps": 10, "steps": 5}, rank=rank) for rank in (0, 1)]
    after = [report({"fused.steps": 30 + rank, "steps": 9}, {"state": "ARMED", "every": 64}, rank) for rank in (0, 1)]
    assert behaved.shown(before, after) == (
        Shown("fused", "Worker 0", {"steps": 20.0}, {"state": "ARMED", "every": "64"}),
        Shown("fused", "Worker 1", {"steps": 21.0}, {"state": "ARMED", "every": "64"}),
    )


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        ([], report({"fused.steps": 3}), "no report before the window"),
        ([report({"fused.steps": 5})], report({"fused.steps": 3}), "it fell from 5 to 3: the process started anew"),
        ([report({"fused.steps": 5})], report({"fused.steps": "KeyError: x"}), "KeyError: x"),
        ([report({"fused.steps": "KeyError: x"})], report({"fused.steps": 3}), "3"),
    ],
    ids=["started within", "fell", "cannot be read", "could not be read before"],
)
def test_a_counter_that_gives_no_growth_is_told_and_is_no_number(before, after, told):
    (found,) = behaved.shown(before, [after])
    assert (found.grown, found.state) == ({}, {"steps": told})


def test_what_says_nothing_of_itself_is_not_shown():
    assert behaved.shown([report({"steps": 1})], [report({"steps": 2})]) == ()


def test_the_largest_growth_of_any_process_is_told_and_nothing_where_none_counts():
    before, after = [report({"fused.steps": 1})], [report({"fused.steps": 8}), report({"fused.steps": 2}, rank=1)]
    assert behaved.grown("fused.steps", before, after) == "7"
    assert behaved.grown("fused.steps", before, [report({})]) == ""
