"""Warming up: what is thrown away before anything is measured, equally in every boot."""

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import repeat

import pytest
from hypothesis import given
from hypothesis import strategies as st

from campaign.config import Workload
from campaign.evidence import DraftCounts
from campaign.prompting.checks import Prompt
from campaign.traffic.client import Client
from campaign.traffic.warm_up import WarmUp, least, steady_after, warm_up
from tests.fakes.evidence import boot
from tests.fakes.streams import Drafting, serving

PROMPTS = tuple(Prompt(f"p{i}", "decode", None, "옛날", 256) for i in range(2))


def workload(**fields: int) -> Workload:
    """Two warm requests at least, five at most."""
    plain = {"max_tokens": 16, "warm_up_requests": 2, "max_warm_up_requests": 5}
    return Workload(name="w", prompts="p.jsonl", **(plain | fields))


@contextmanager
def engine(step_s: Iterator[float]) -> Iterator[tuple[Client, Drafting]]:
    """A drafting engine whose requests have these seconds a step, in turn."""
    drafting = Drafting()

    def answer(body: dict[str, object]) -> Iterator[bytes | float]:
        drafting.step_s = next(step_s)
        return drafting.answer(body)

    with serving(answer) as server:
        yield Client(server.url, "nonce"), drafting


def warmed(step_s: Iterator[float], most: int = 5, **more: int) -> tuple[WarmUp, int]:
    """What a warm-up was, and the requests that it sent."""
    with engine(step_s) as (client, drafting):
        found = warm_up(client, PROMPTS, workload(max_warm_up_requests=most), 10.0, draft_tokens=5, **more)
        return found, int(drafting.counted["finished"])


# which of a series of speeds are thrown away


@pytest.mark.case("D8")
def test_a_cold_draft_path_is_found_and_all_of_it_is_thrown_away() -> None:
    speeds = [43, 45, 52, 60, 68, 69, 69, 69, 69]
    assert [speeds[: steady_after(speeds, at_least=n)] for n in (2, 8)] == [speeds[:7], speeds]


@pytest.mark.case("D9")
def test_a_cold_cohort_agrees_with_itself_and_is_thrown_away_as_a_whole() -> None:
    cold_ms, warm_ms = [17062, 17061, 17061, 16985], [1100, 1104, 1098, 1102] * 3
    speeds = [1 / ms for ms in cold_ms + warm_ms]
    assert (steady_after(speeds, 2, concurrency=4), steady_after(speeds, 2, concurrency=1)) == (16, 4)


@pytest.mark.case("D9")
@pytest.mark.parametrize(("configured", "concurrency", "sent"), [(2, 4, 4), (6, 4, 6), (2, 1, 2)])
def test_at_least_one_warm_request_goes_for_each_stream(configured: int, concurrency: int, sent: int) -> None:
    assert least(workload(warm_up_requests=configured), (), concurrency) == sent


@pytest.mark.parametrize(
    "speeds",
    [[], [50], [50, 50, 50], [50, 60, 50, 60, 50, 60], [50, 0, 0, 0, 0]],
    ids=["nothing", "one", "the cold one and two", "to and fro", "no speed at all"],
)
def test_what_never_agrees_is_never_steady(speeds: list[float]) -> None:
    assert steady_after(speeds, at_least=1) is None


@given(st.lists(st.floats(1, 1000), max_size=20), st.integers(1, 8), st.integers(1, 3))
def test_more_is_never_thrown_away_than_was_sent_and_the_last_cohorts_agree(speeds, at_least, concurrency) -> None:
    found = steady_after(speeds, at_least, concurrency)
    assert found is None or (at_least < found <= len(speeds) and found % concurrency == 0)


# equal in all boots


@pytest.mark.case("D8")
def test_no_boot_is_less_warm_than_the_steady_ones_before_it() -> None:
    steady = boot(1, facts={"warm_up_requests": "6", "steady_after_warm_up": "true"})
    noisy = boot(2, facts={"warm_up_requests": "12", "steady_after_warm_up": "false"})
    dead = boot(3, status="failed", facts={"warm_up_requests": "9", "steady_after_warm_up": "true"})
    assert (least(workload(), ()), least(workload(), (steady, noisy, dead, boot(4)))) == (2, 6)


# over HTTP


def test_the_cold_request_is_sent_besides_and_not_counted_as_warm() -> None:
    found, sent = warmed(repeat(0.005))
    assert (found.requests >= 3, sent) == (True, found.requests + 1)


def test_the_cold_request_is_kept_apart_with_its_acceptance() -> None:
    found, _ = warmed(iter([0.05, 0.01, 0.01, 0.01]), most=3)
    assert found.cold_s >= 0.05
    assert found.counted == {"cold": DraftCounts(4, (3, 3, 2, 1, 1)), "warm up": DraftCounts(12, (9, 9, 6, 3, 3))}


@pytest.mark.case("D8")
def test_an_engine_that_still_gets_faster_is_given_up_at_the_cap_and_not_called_steady() -> None:
    found, sent = warmed(iter([0.05, 0.04, 0.03, 0.02, 0.01, 0.005]))
    assert (found.requests, found.steady, sent) == (5, False, 6)


def test_a_boot_sends_as_many_as_it_is_told_at_least() -> None:
    assert warmed(repeat(0.005), most=4, at_least=4)[0].requests == 4
