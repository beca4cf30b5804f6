"""From /metrics to counters: real samples of vLLM 0.29.0, the cases of family B, and runs that are exactly known."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from campaign.errors import InvalidError
from campaign.evidence import DraftCounts
from campaign.traffic.metrics import Counters, clock_gap, draft_counts, identity_gap, parse
from campaign.traffic.sample import Sample
from tests.fakes.streams import SECOND, sample

SAMPLES = Path(__file__).resolve().parents[2] / "samples"
DRAFTS = "vllm:spec_decode_num_drafts_total"
PER_POSITION = "vllm:spec_decode_num_accepted_tokens_per_pos_total"


def real(name: str) -> Counters:
    """Counters of a sample that the real engine wrote."""
    return parse((SAMPLES / f"metrics_{name}.txt").read_text(encoding="utf-8"))


def text(*lines: tuple[str, str, float]) -> str:
    """An exposition of counters: name, labels, value."""
    names = dict.fromkeys(name for name, _, _ in lines)
    blocks = [
        f"# HELP {name} x\n# TYPE {name} counter\n"
        + "".join(f"{name}{{{labels}}} {value}\n" for found, labels, value in lines if found == name)
        for name in names
    ]
    return "".join(blocks)


def counters(**values: float) -> Counters:
    """Engine 0's counters by our names."""
    return Counters({"0": values})


# what the real engine wrote


@pytest.mark.parametrize("name", ["base", "async"])
def test_a_real_sample_gives_its_counters(name: str) -> None:
    found = real(name)
    totals = {key: found.total(key) for key in ("drafts", "draft_tokens", "accepted", "generation_tokens", "finished")}
    assert totals == {
        "drafts": 3807, "draft_tokens": 19035, "accepted": 4459, "generation_tokens": 8256, "finished": 33,
    }  # fmt: skip


def test_a_real_sample_gives_its_decode_seconds_and_iterations() -> None:
    found = real("base")
    assert (found.total("decode_s"), found.total("iterations")) == (pytest.approx(20.527694), 3840)


def test_the_engines_position_0_is_pos1() -> None:
    assert draft_counts(real("base")) == DraftCounts(3807, (1375, 923, 747, 715, 699))


def test_the_positions_of_a_real_sample_sum_to_its_accepted_tokens() -> None:
    found = real("async")
    assert sum(found.accepted()) == found.total("accepted")


def test_real_tokens_are_what_real_drafts_explain() -> None:
    tokens = [256] * 32 + [64]  # 33 requests, 8256 tokens; each ended within a step of at most 6 tokens
    samples = tuple(sample(chunk_tokens=(1, n - 3, 2)) for n in tokens)
    assert identity_gap(DraftCounts(3807, (1375, 923, 747, 715, 699)), samples) == 0.0


# family B


@pytest.mark.case("B3")
def test_engines_of_one_server_are_summed_and_gaps_are_zero() -> None:
    """B3: two engines, labels out of order, one with two digits."""
    found = parse(
        text(
            (PER_POSITION, 'engine="0",position="10"', 1),
            (PER_POSITION, 'engine="0",position="2"', 5),
            (PER_POSITION, 'engine="0",position="0"', 70),
            (PER_POSITION, 'engine="1",position="0"', 30),
        )
    )
    assert found.accepted() == (100, 0, 5, 0, 0, 0, 0, 0, 0, 0, 1)


@pytest.mark.case("B3", "B7")
def test_engines_of_one_server_are_kept_apart_too() -> None:
    found = parse(text((DRAFTS, 'engine="0"', 7), (DRAFTS, 'engine="1"', 3)))
    assert ({engine: row["drafts"] for engine, row in found.by_engine.items()}) == {"0": 7, "1": 3}


def test_samples_of_one_engine_that_differ_in_another_label_are_summed() -> None:
    name = "vllm:request_success_total"
    found = parse(
        text((name, 'engine="0",finished_reason="stop"', 4), (name, 'engine="0",finished_reason="length"', 5))
    )
    assert found.total("finished") == 9


@pytest.mark.case("B3")
def test_created_samples_are_no_counters() -> None:
    """B3: `_created` is exposed as a gauge family of its own, near 1.75e9."""
    created = "# TYPE vllm:spec_decode_num_drafts_created gauge\n" + (
        'vllm:spec_decode_num_drafts_created{engine="0"} 1.75e9\n'
        "# TYPE vllm:spec_decode_num_accepted_tokens_per_pos_created gauge\n"
        'vllm:spec_decode_num_accepted_tokens_per_pos_created{engine="0",position="0"} 1.75e9\n'
    )
    found = parse(text((DRAFTS, 'engine="0"', 7), (PER_POSITION, 'engine="0",position="0"', 6)) + created)
    assert draft_counts(found) == DraftCounts(7, (6,))


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ((DRAFTS, 'engine="0"', float("nan")), "num_drafts_total nan"),
        ((DRAFTS, 'engine="0"', float("inf")), "num_drafts_total inf"),
        (("vllm:generation_tokens_total", 'engine="0"', -1), "generation_tokens_total -1"),
        ((PER_POSITION, 'engine="0"', 7), "at position ''"),
        ((PER_POSITION, 'engine="0",position="first"', 7), "at position 'first'"),
        ((PER_POSITION, 'engine="0",position="-1"', 7), "at position '-1'"),
    ],
    ids=["NaN", "infinite", "negative", "no position", "a word", "a negative position"],
)
def test_a_sample_that_is_no_count_is_invalid_and_named(line: tuple[str, str, float], sentence: str) -> None:
    with pytest.raises(InvalidError, match=sentence):
        parse(text(line))


OLD, NEW = "vllm:gpu_prefix_cache_hits_total", "vllm:prefix_cache_hits_total"


@pytest.mark.case("B1")
@pytest.mark.parametrize(
    ("lines", "hits"),
    [
        ([(OLD, 'engine="0"', 40)], 40),
        ([(NEW, 'engine="0"', 41)], 41),
        ([(OLD, 'engine="0"', 40), (NEW, 'engine="0"', 41)], 41),
        ([(NEW, 'engine="0"', 41), (OLD, 'engine="0"', 40)], 41),
        ([(OLD, 'engine="0"', 1), (OLD, 'engine="1"', 2), (NEW, 'engine="0"', 10), (NEW, 'engine="1"', 20)], 30),
        ([(NEW, 'engine="0"', 10), (NEW, 'engine="1"', 20), (OLD, 'engine="0"', 1), (OLD, 'engine="1"', 2)], 30),
    ],
    ids=["old alone", "new alone", "old first", "new first", "two engines, old first", "two engines, new first"],
)
def test_a_renamed_metric_is_read_by_its_newest_name_and_never_summed(lines, hits: float) -> None:
    """B1."""
    assert parse(text(*lines)).total("prefix_hits") == hits


@pytest.mark.case("B1")
def test_a_missing_metric_is_invalid_and_never_zero() -> None:
    """B1: neither name."""
    with pytest.raises(InvalidError, match=r"metric missing: .*vllm:prefix_cache_hits_total, vllm:gpu_prefix_cache"):
        parse(text((DRAFTS, 'engine="0"', 7))).total("prefix_hits")


def untyped(*lines: tuple[str, str, float]) -> str:
    """As `text`, of what is no counter."""
    return "".join(f"{name}{{{labels}}} {value}\n" for name, labels, value in lines)


USAGE = ("vllm:gpu_cache_usage_perc", "vllm:kv_cache_usage_perc")
TOKEN_S = ("vllm:time_per_output_token_seconds_sum", "vllm:request_time_per_output_token_seconds_sum")


@pytest.mark.case("B1", "B7")
@pytest.mark.parametrize(("values", "found"), [((0.2, None), 0.2), ((None, 0.3), 0.3), ((0.2, 0.3), 0.3)])
def test_a_gauge_and_a_histogram_that_were_renamed_are_read_by_their_newest_name(values, found: float) -> None:
    for names, read in ((USAGE, lambda c: c.highest("kv_usage")), (TOKEN_S, lambda c: c.total("token_s"))):
        lines = [(name, 'engine="0"', value) for name, value in zip(names, values, strict=True) if value is not None]
        assert read(parse(untyped(*lines))) == found


@pytest.mark.case("B1", "B7")
def test_a_gauge_of_several_engines_is_their_largest_and_a_missing_one_is_never_zero() -> None:
    assert parse(untyped((USAGE[1], 'engine="1"', 0.7), (USAGE[1], 'engine="0"', 0.2))).highest("kv_usage") == 0.7
    with pytest.raises(InvalidError, match=r"metric missing: .*vllm:kv_cache_usage_perc, vllm:gpu_cache_usage_perc"):
        parse(text((DRAFTS, 'engine="0"', 7))).highest("kv_usage")


def test_an_engine_without_speculation_has_no_draft_counts() -> None:
    assert draft_counts(parse(text(("vllm:generation_tokens_total", 'engine="0"', 7)))) is None


@pytest.mark.case("B9")
def test_no_drafts_in_the_window_is_no_rate_at_all() -> None:
    """B9, B11: no exception, no 0 %, no NaN."""
    still = draft_counts(real("base").since(real("base")))
    assert still is not None
    assert (still.drafts, still.rates_pp(), still.acceptance_length) == (0, (), None)


def test_text_that_is_not_prometheus_is_invalid() -> None:
    with pytest.raises(InvalidError, match="not Prometheus text"):
        parse('vllm:x{engine="0" 1\n')


@pytest.mark.case("D12")
def test_running_requests_of_all_engines_are_summed() -> None:
    """D12."""
    name = "vllm:num_requests_running"
    lines = f'# TYPE {name} gauge\n{name}{{engine="0"}} 1\n{name}{{engine="1"}} 1\n'
    assert parse(lines).running == 2


# two scrapes


def test_a_window_is_the_difference_of_two_scrapes() -> None:
    before = Counters({"0": {"drafts": 100.0}}, {"0": {1: 70.0}})
    after = Counters({"0": {"drafts": 160.0}}, {"0": {1: 112.0, 2: 4.0}})
    assert draft_counts(after.since(before)) == DraftCounts(60, (42, 4))


@pytest.mark.case("B8")
@pytest.mark.parametrize(
    "scrapes", [(1000, 240), (1100, 30)], ids=["several processes answer in turn", "a restart within the window"]
)
def test_a_counter_that_fell_gives_no_rate(scrapes: tuple[float, float]) -> None:
    """B8."""
    before, after = (counters(generation_tokens=value) for value in scrapes)
    with pytest.raises(InvalidError, match="engine 0 fell within the window"):
        after.since(before)


def test_accepted_tokens_that_fell_give_no_rate() -> None:
    with pytest.raises(InvalidError, match="fell within the window"):
        Counters({"0": {}}, {"0": {1: 5.0}}).since(Counters({"0": {}}, {"0": {1: 9.0}}))


@pytest.mark.case("B3")
def test_an_engine_that_stops_reporting_is_named() -> None:
    """B3."""
    both = Counters({"0": {"drafts": 1.0}, "1": {"drafts": 1.0}})
    with pytest.raises(InvalidError, match="engine 1 stopped reporting"):
        counters(drafts=9).since(both)


def test_a_metric_that_vanishes_between_two_scrapes_is_invalid() -> None:
    """B1, B3: of two engines one goes on counting drafts; their sum would look like a slow engine."""
    before = Counters({"0": {"drafts": 100.0}, "1": {"drafts": 100.0}})
    after = Counters({"0": {"drafts": 200.0}, "1": {}})
    with pytest.raises(InvalidError):
        after.since(before).total("drafts")


def test_an_engine_that_joins_counts_from_zero() -> None:
    joined = Counters({"0": {"drafts": 5.0}, "1": {"drafts": 3.0}}).since(counters(drafts=4))
    assert joined.total("drafts") == 4


# tokens against drafts


@dataclass(frozen=True)
class Run:
    """Requests of which everything is known: what the client saw and what the engine counted."""

    samples: tuple[Sample, ...]
    counts: DraftCounts
    may_be_cut: int


def simulated(k: int, requests: Iterable[tuple[int, list[int]]]) -> Run:
    """One token by the prefill, then draft steps that accept what is given (in turn), cut at the length limit."""
    samples, drafts, accepted, may_be_cut = [], 0, [0] * k, 0
    for length, accepts in requests:
        chunks = [1]
        while sum(chunks) < length:
            found = accepts[(len(chunks) - 1) % len(accepts)]
            drafts += 1
            accepted = [a + (position < found) for position, a in enumerate(accepted)]
            chunks.append(min(found + 1, length - sum(chunks)))
        samples.append(sample(chunk_tokens=tuple(chunks)))
        may_be_cut += k + 1 - chunks[-1] if len(chunks) > 1 else 0
    return Run(tuple(samples), DraftCounts(drafts, tuple(accepted)), may_be_cut)


@st.composite
def runs(draw: st.DrawFn) -> Run:
    """Runs with random accepted counts and lengths."""
    k = draw(st.integers(1, 8))
    accepts = st.lists(st.integers(0, k), min_size=1, max_size=12)
    return simulated(k, draw(st.lists(st.tuples(st.integers(1, 80), accepts), min_size=1, max_size=6)))


@given(runs())
def test_an_exact_run_explains_all_its_tokens(run: Run) -> None:
    assert identity_gap(run.counts, run.samples) == 0.0


@given(runs(), st.integers(1, 50))
def test_accepted_tokens_that_are_missing_open_a_gap(run: Run, missing: int) -> None:
    tokens = sum(len(s.token_ids) for s in run.samples)
    surplus = len(run.samples) + run.counts.drafts + sum(run.counts.accepted) - tokens
    first, *rest = run.counts.accepted
    wrong = DraftCounts(run.counts.drafts, (first - surplus - missing, *rest))
    assert identity_gap(wrong, run.samples) == pytest.approx(missing / tokens)


@given(runs(), st.integers(1, 50))
def test_accepted_tokens_beyond_what_a_cut_can_hide_open_a_gap(run: Run, too_many: int) -> None:
    tokens = sum(len(s.token_ids) for s in run.samples)
    surplus = len(run.samples) + run.counts.drafts + sum(run.counts.accepted) - tokens
    first, *rest = run.counts.accepted
    wrong = DraftCounts(run.counts.drafts, (first + run.may_be_cut - surplus + too_many, *rest))
    assert identity_gap(wrong, run.samples) == pytest.approx(too_many / tokens)


def test_counters_of_a_run_that_drafted_twice_as_often_contradict_its_tokens() -> None:
    run = simulated(5, [(256, [5, 2, 0])] * 4)
    twice = DraftCounts(2 * run.counts.drafts, run.counts.accepted)
    assert identity_gap(twice, run.samples) > 0.25


@pytest.mark.parametrize("merged", [2, 3], ids=["two steps in the last chunk", "three steps in the last chunk"])
def test_chunks_that_the_server_merged_are_no_contradiction(merged: int) -> None:
    """The engine's collector merges steps when the client's connection is slow: the tokens are the same."""
    run = simulated(5, [(60, [5])])  # one by the prefill, then 6 a step: the last one shows 5 of 6
    chunks = run.samples[0].chunk_tokens
    slow = sample(chunk_tokens=(*chunks[:-merged], sum(chunks[-merged:])))
    assert identity_gap(run.counts, (slow,)) == 0.0


def test_no_tokens_are_no_gap() -> None:
    assert identity_gap(DraftCounts(0, ()), ()) == 0.0


# the two clocks


@pytest.mark.parametrize(
    ("engine_s", "gap"), [(2.0, 0.0), (2.5, 0.2), (1.6, 0.25)], ids=["equal", "engine longer", "engine shorter"]
)
def test_the_clock_gap_is_relative_to_the_engines_seconds(engine_s: float, gap: float) -> None:
    samples = (sample(chunk_ns=(0, SECOND // 2, SECOND)), sample(chunk_ns=(5 * SECOND, 6 * SECOND)))
    assert clock_gap(engine_s, samples) == pytest.approx(gap)


def test_an_engine_that_counted_no_decode_seconds_agrees_with_nobody() -> None:
    assert clock_gap(0.0, (sample(chunk_ns=(0, SECOND)),)) == float("inf")
