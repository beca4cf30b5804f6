"""What the client saw of a window: four rates by four rules, bursts, tokens that are not seen, drift, strata."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from campaign.evidence import DraftCounts
from campaign.names import clock_of
from campaign.traffic.sample import Sample
from campaign.traffic.timing import (
    Rates,
    by_chunks,
    counted_apart,
    hidden,
    in_bursts,
    lost,
    parts,
    rates,
    step_trend,
    trend,
)
from tests.fakes.streams import SECOND, sample

MS = SECOND // 1000


def paced(step_ms: float, steps: int = 10, **fields: object) -> Sample:
    """An answer of so many steps of two tokens, and the prefill's token before."""
    times = tuple(round(MS * step_ms * i) for i in range(steps + 1))
    return sample(chunk_tokens=(1, *(2,) * steps), chunk_ns=times, **fields)


@pytest.mark.case("D2")
def test_four_rates_of_one_stream_are_four_things_each_by_its_rule() -> None:
    one = sample(chunk_tokens=(1, 4, 1, 4), chunk_ns=(0, 30 * MS, 60 * MS, 90 * MS))
    found = rates([one])
    assert found == Rates(*(pytest.approx(value) for value in (0.030, 0.010, 33.333333, 100.0)))  # type: ignore[arg-type]


@pytest.mark.case("D2")
@pytest.mark.parametrize(
    ("metric", "clock"),
    [
        ("step_per_s", "engine's own decode seconds"),
        ("tpot_s", "engine's own decode seconds"),
        ("ttft_median_s", "client's perf_counter"),
        ("chunk_gap_s", "client's perf_counter"),
        ("window_s", "host's monotonic clock"),
        ("acceptance_length", ""),
    ],
)
def test_every_duration_names_its_clock(metric: str, clock: str) -> None:
    assert clock_of(metric) == clock


def test_an_answer_of_one_chunk_has_no_rate() -> None:
    assert rates([sample(chunk_tokens=(3,))]) == Rates(None, None, None, None) or rates([]).tok_per_s is None


@pytest.mark.case("D4")
@pytest.mark.parametrize(
    ("chunks", "tokens", "k", "bursts"),
    [
        (7, 384, 5, True), (64, 384, 5, False), (120, 384, 5, False), (33, 384, 5, False), (31, 384, 5, True),
        (384, 384, 0, False),
    ],
    ids=["seven deltas", "full acceptance", "usual", "some merged", "most merged", "no drafts"],
)  # fmt: skip
def test_a_stream_with_far_fewer_chunks_than_steps_came_in_bursts(
    chunks: int, tokens: int, k: int, bursts: bool
) -> None:
    sizes = [tokens // chunks] * (chunks - 1)
    assert bool(in_bursts([sample(chunk_tokens=(*sizes, tokens - sum(sizes)))], k)) is bursts


@pytest.mark.case("D3")
def test_reasoning_is_counted_and_what_the_visible_text_would_say_is_told() -> None:
    one = sample(chunk_tokens=(480, 32), completion_tokens=512, reasoning_tokens=480)
    assert (hidden([one]), hidden([sample(chunk_tokens=(4,))])) == (
        "480 of 512 tokens are reasoning: visible text alone would say 32", "",
    )  # fmt: skip


@pytest.mark.case("D5")
def test_tokens_that_the_stream_did_not_show_are_told_and_the_servers_count_is_used() -> None:
    assert lost([sample(chunk_tokens=(1, 12), completion_tokens=15)]) == (
        "the server counts 15 tokens, its streams held the ids of 13: the server's count is used"
    )
    assert lost([sample(chunk_tokens=(1, 14), completion_tokens=15)]) == ""


# drift


@pytest.mark.case("D14", "C11")
@pytest.mark.parametrize(
    ("readings", "falls", "change_pct"),
    [
        ([1425, 1450, 1400, 1373, 1300, 1237], True, -11.76),
        ([3.07, 3.05, 3.02, 2.98, 2.93, 2.88, 2.84, 2.80], True, -6.78),
        ([100, 102, 100, 99, 100, 102], False, 0.0),
        ([100, 100, 80, 80, 95, 95], False, -5.0),
    ],
    ids=["power throttling", "acceptance over hours", "steady", "down and up"],
)
def test_first_and_last_third_of_a_series_and_whether_it_falls_all_the_way(readings, falls, change_pct) -> None:
    found = trend(readings)
    assert found is not None
    assert (found.falls, round(found.change_pct, 2)) == (falls, pytest.approx(change_pct, abs=0.01))


@pytest.mark.parametrize("readings", [[], [1.0, 2.0], [1.0, 0.0, 1.0]], ids=["none", "two", "a zero"])
def test_too_little_is_no_trend(readings: list[float]) -> None:
    assert trend(readings) is None


@pytest.mark.case("D14")
def test_a_window_that_slows_down_is_seen_by_its_turns_so_that_texts_cancel() -> None:
    """A prompt with long steps stands last in both turns: by thirds that would be a drift, by turns it is none."""
    turn = [paced(10, prompt_id="p0"), paced(10, prompt_id="p1"), paced(30, prompt_id="p2")]
    slower = [paced(12, prompt_id="p0"), paced(12, prompt_id="p1"), paced(36, prompt_id="p2")]
    steady, slow = step_trend(turn * 2, 2), step_trend([*turn, *slower], 2)
    assert steady is not None
    assert slow is not None
    assert (steady.change_pct, slow.change_pct, slow.falls) == (0.0, pytest.approx(-100 / 6), True)


def test_chunks_that_the_server_merged_in_one_turn_are_no_drift() -> None:
    whole = paced(10, steps=4)
    merged = sample(chunk_tokens=(1, 4, 4), chunk_ns=(0, 20 * MS, 40 * MS))
    found = step_trend([whole, merged], 2)
    assert found is not None
    assert found.change_pct == pytest.approx(0.0)


@given(st.integers(1, 9), st.integers(1, 6))
def test_the_parts_of_a_window_are_in_order_and_whole(prompts: int, turns: int) -> None:
    samples = [sample(chunk_tokens=(1,), prompt_id=f"p{i}") for i in range(prompts * turns)]
    split = parts(samples, turns)
    assert [s for part in split for s in part] == (samples if split else [])
    assert all(len(part) % prompts == 0 for part in split) or turns == 1


# acceptance by the stream's chunks


def test_each_chunk_between_the_first_and_the_last_is_a_draft_step() -> None:
    one = sample(chunk_tokens=(1, 6, 3, 1, 4, 2))
    assert by_chunks([one], 5) == DraftCounts(4, (3, 3, 2, 1, 1))


def test_a_chunk_that_holds_more_than_a_step_can_give_is_not_counted() -> None:
    assert by_chunks([sample(chunk_tokens=(1, 3, 4, 2, 2))], 2) == DraftCounts(2, (2, 1))


@given(st.lists(st.lists(st.integers(1, 6), min_size=1, max_size=30), min_size=1, max_size=5), st.integers(1, 60))
def test_strata_of_the_context_hold_every_step_once(chunks: list[list[int]], edge: int) -> None:
    samples = [sample(chunk_tokens=(1, *some)) for some in chunks]
    whole = by_chunks(samples, 5)
    split = [by_chunks(samples, 5, 0, edge), by_chunks(samples, 5, edge)]
    assert whole == DraftCounts(
        sum(s.drafts for s in split), tuple(map(sum, zip(*(s.accepted for s in split), strict=True)))
    )


def test_a_step_belongs_to_the_context_at_which_it_began() -> None:
    one = sample(chunk_tokens=(1, 6, 6, 1, 1), prompt_tokens=100)  # contexts 101, 107, 113
    found = counted_apart([one], 1, 5, [108])
    assert found == {"context 0-107": DraftCounts(2, (2, 2, 2, 2, 2)), "context 108+": DraftCounts(1, (0, 0, 0, 0, 0))}


def test_first_and_last_part_are_told_only_where_their_texts_are_the_same() -> None:
    one = sample(chunk_tokens=(1, 2, 2))
    assert [sorted(counted_apart([one] * 6, turns, 5, [])) for turns in (1, 2)] == [
        ["context 0+"], ["context 0+", "first", "last"],
    ]  # fmt: skip
