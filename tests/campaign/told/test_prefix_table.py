"""Twin of campaign.told.prefix_table."""

import pytest

from campaign.evidence import PrefixFacts, PrefixPass
from campaign.told.prefix_table import prefix_cache
from tests.fakes.evidence import bracket, drafts

COUNTED = {"p1": drafts(435, 79, 10), "p2": drafts(435, 79, 10)}


def one(hits: int | None, ttft_s: float) -> PrefixPass:
    queries = None if hits is None else 1000
    times = {"p1": ttft_s, "p2": 3 * ttft_s, "p3": ttft_s}
    return PrefixPass(1000, queries, hits, 0, COUNTED, {"p1": hits or 0}, {"p1": 500}, times)


def table(cold: PrefixPass, warm: PrefixPass, **fields):
    return prefix_cache(bracket("A", base={"prefix": PrefixFacts(468, cold, warm)}, **fields))


def test_a_boot_has_two_rows_with_hits_rates_and_the_median_first_token():
    found = table(one(0, 0.05), one(896, 0.02))
    assert found is not None
    assert found.rows == (
        ("01-A", "cold", "0.0 % (0/1000)", "43.5 %", "7.9 %", "1.524", "50.0"),
        ("01-A", "warm", "89.6 % (896/1000)", "43.5 %", "7.9 %", "1.524", "20.0"),
    )
    assert found.note.startswith("The shortest shared prefix is 468 tokens.")


@pytest.mark.parametrize(("hits", "shown"), [(None, "-"), (0, "0.0 % (0/1000)")])
def test_hits_that_nobody_counts_are_not_hits_of_zero(hits, shown):
    found = table(one(hits, 0.05), one(hits, 0.05))
    assert found is not None
    assert found.rows[1][2] == shown


def test_an_interpreted_engine_has_no_times():
    found = table(one(0, 0.05), one(896, 0.02), logic_only="an interpreter")
    assert found is not None
    assert [row[-1] for row in found.rows] == ["-", "-"]
    assert found.note.endswith("logic only (an interpreter).")


def test_without_such_prompts_there_is_no_table():
    assert prefix_cache(bracket("A")) is None
