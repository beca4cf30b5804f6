"""The passes over HTTP, against a small engine that really drafts, and counters whose truth is known exactly."""

import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count, repeat
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from campaign.config import Workload
from campaign.errors import EngineFailedError, HostUnfitError, InvalidError
from campaign.evidence import DraftCounts, pooled
from campaign.prompting.checks import Check, Prompt
from campaign.traffic.answers import acceptance_metrics, natural, until_the_end, worst_of
from campaign.traffic.client import Ask, Client
from campaign.traffic.metrics import Counters
from campaign.traffic.polling import StallWatch, elapsed, scrape
from campaign.traffic.sample import Sample
from campaign.traffic.window import Measured, TaintedError, closed, measure, opened
from tests.fakes.streams import DONE, Drafting, Reply, chunk, role, sample, serving, usage

TIMEOUT_S = 10.0
PROMPTS = tuple(Prompt(f"p{i}", "decode", None, "옛날", 256) for i in range(2))
QUALITY = tuple(Prompt(f"q{i}", "quality", ({"role": "user", "content": "몇?"},), None, 32) for i in range(2))


@contextmanager
def engine(**fields: object) -> Iterator[tuple[Client, Drafting]]:
    """A drafting engine, and the client that asks it."""
    drafting = Drafting(**fields)  # type: ignore[arg-type]
    with serving(drafting.answer, {"/metrics": drafting.metrics}) as server:
        yield Client(server.url, "nonce"), drafting


def workload(**fields: int) -> Workload:
    """A window of two prompts of 40 tokens."""
    return Workload(name="w", prompts="p.jsonl", **({"max_tokens": 40, "repeats": 1, "warm_up_requests": 2} | fields))


def window(folder: Path, measured: Workload | None = None, **fields: object) -> Measured:
    """One measured window on an engine with these faults."""
    drafting = fields.pop("drafting", True)
    with engine(**fields) as (client, _):
        return measure(client, PROMPTS, measured or workload(), TIMEOUT_S, folder, drafting=bool(drafting))


# the measured window

STEADY: dict[str, Any] = {
    "step_s": 0.08
}  # slow on purpose: scheduling noise of a busy machine stays below 1 % of the decode seconds


@pytest.fixture(scope="module")
def steady(tmp_path_factory: pytest.TempPathFactory) -> tuple[Measured, Path]:
    """A window on a healthy engine."""
    folder = tmp_path_factory.mktemp("boot")
    return window(folder, workload(repeats=2), **STEADY), folder


def test_steps_are_drafts_over_the_engines_own_decode_seconds(steady: tuple[Measured, Path]) -> None:
    measured, _ = steady
    assert measured.counts is not None
    decode_s = measured.delta.total("decode_s")
    assert measured.metrics["step_per_s"] == pytest.approx(measured.counts.drafts / decode_s)
    assert 6 < measured.metrics["step_per_s"] <= 1 / 0.08


def test_tokens_after_each_first_one_make_the_token_rate(steady: tuple[Measured, Path]) -> None:
    measured, _ = steady
    decode_s = measured.delta.total("decode_s")
    assert measured.metrics["tok_per_s"] == pytest.approx(4 * 39 / decode_s)
    assert measured.metrics["tpot_s"] == pytest.approx(decode_s / (4 * 39))


def test_acceptance_is_counted_per_position_from_the_window_alone(steady: tuple[Measured, Path]) -> None:
    measured, _ = steady
    assert measured.counts is not None
    assert list(measured.counts.accepted) == sorted(measured.counts.accepted, reverse=True)
    assert measured.metrics["acceptance_length"] == pytest.approx(measured.counts.acceptance_length)


def test_every_prompt_is_sent_in_the_same_order_each_repeat(steady: tuple[Measured, Path]) -> None:
    measured, _ = steady
    assert [s.prompt_id for s in measured.samples] == ["p0", "p1", "p0", "p1"]
    assert [a.prompt_id for a in measured.answers] == ["p0", "p1", "p0.turn2", "p1.turn2"]


def test_both_scrapes_are_kept_beside_the_boot(steady: tuple[Measured, Path]) -> None:
    _, folder = steady
    kept = [(folder / f"metrics-{when}.txt").read_text(encoding="utf-8") for when in ("before", "after")]
    assert all("vllm:spec_decode_num_drafts_total" in text for text in kept)
    assert kept[0] != kept[1]


@pytest.mark.case("D12")
def test_requests_of_somebody_else_before_the_window_void_it(tmp_path: Path) -> None:
    """D12: running gauge 2 before the start."""
    with pytest.raises(HostUnfitError, match="2 requests of somebody else are running"):
        window(tmp_path, running=2)


@pytest.mark.case("D12")
def test_requests_of_somebody_else_within_the_window_void_it(tmp_path: Path) -> None:
    """D12: more finished than we sent."""
    with pytest.raises(HostUnfitError, match="window shared: 4 requests finished in it, 2 were ours"):
        window(tmp_path, foreign=1)


@pytest.mark.case("D12")
def test_a_request_of_somebody_else_that_waits_before_the_window_taints_it(tmp_path: Path) -> None:
    waits = 'vllm:num_requests_waiting{engine="0"} 1\n'
    with (
        serving(Reply.of(), {"/metrics": lambda: waits}) as server,
        pytest.raises(TaintedError, match="1 request of somebody else is waiting before the window"),
    ):
        opened(Client(server.url, "m"), TIMEOUT_S, tmp_path)


@pytest.mark.case("D12")
@pytest.mark.parametrize(
    ("tokens", "running", "waiting", "sentence"),
    [
        (456, 0, 0, "window shared: 456 tokens were generated in it, 256 were ours"),
        (256, 1, 0, "window shared: 1 request of somebody else is running at its end"),
        (256, 0, 2, "window shared: 2 requests of somebody else are waiting at its end"),
    ],
    ids=["its tokens", "it runs still", "it waits still"],
)
def test_a_request_of_somebody_else_that_outlives_the_window_taints_it(
    tokens: int, running: int, waiting: int, sentence: str
) -> None:
    ours = tuple(sample(chunk_tokens=(1,) * 64, chunk_ns=tuple(range(0, 64 * 10**7, 10**7))) for _ in range(4))
    row = {"finished": 4.0, "decode_s": 4 * 0.63, "iterations": 256.0, "generation_tokens": float(tokens)}
    prompts = (Prompt("p", "decode", None, "q", 64),)

    def end(rows: dict[str, float], *requests: int) -> Measured:
        return closed(Counters({"0": rows}, {}, *requests), ours, prompts, 64, drafting=False)

    assert end(row | {"generation_tokens": 256.0}, 0, 0).metrics["step_per_s"] == pytest.approx(100.0)
    with pytest.raises(TaintedError, match=sentence):
        end(row, running, waiting)


@pytest.mark.case("D12")
@pytest.mark.alone
def test_a_disturbed_window_is_measured_again_and_the_discard_is_told_with_its_reason(tmp_path: Path) -> None:
    """D12: decided without a look at the metric."""
    drafting = Drafting(foreign=1, **STEADY)

    def metrics() -> str:
        drafting.foreign = 0 if drafting.counted["finished"] else 1
        return drafting.metrics()

    with serving(drafting.answer, {"/metrics": metrics}) as server:
        measured = measure(Client(server.url, "m"), PROMPTS[:1], workload(max_tokens=20), TIMEOUT_S, tmp_path)
    assert measured.discarded == ("window shared: 2 requests finished in it, 1 was ours",)
    assert len(measured.samples) == 1


@pytest.mark.case("B5")
@pytest.mark.parametrize(("hits", "share"), [(40.0, 40.0), (140.0, None)], ids=["found", "more than looked up"])
def test_more_prefix_hits_than_queries_are_told_and_make_no_hit_rate(hits: float, share: float | None) -> None:
    row = {"finished": 1.0, "decode_s": 0.63, "iterations": 64.0, "prefix_queries": 100.0, "prefix_hits": hits}
    ours = (sample(chunk_tokens=(1,) * 64, chunk_ns=tuple(range(0, 64 * 10**7, 10**7))),)
    measured = closed(Counters({"0": row}, {}), ours, (Prompt("p", "decode", None, "q", 64),), 64, drafting=False)
    assert measured.metrics.get("prefix_hit_pct") == share
    assert ("prefix_counters" in measured.facts) == (share is None)


@pytest.mark.case("D12")
def test_windows_that_are_always_disturbed_give_no_number(tmp_path: Path) -> None:
    with pytest.raises(
        HostUnfitError, match=r"contended: \d windows in a row were disturbed; the last one: window shared"
    ):
        window(tmp_path, foreign=1)


@pytest.mark.case("D6")
def test_an_answer_shorter_than_asked_is_invalid_and_named(tmp_path: Path) -> None:
    """D6: ignore_eos was not passed on."""
    with pytest.raises(InvalidError, match=r"early stop: prompt p0 gave 33 tokens of 40 asked .*\(2 of 2 requests\)"):
        window(tmp_path, early=7)


@pytest.mark.parametrize("clock", [1.5, 0.5], ids=["engine says more", "engine says less"])
def test_clocks_that_disagree_void_the_window(tmp_path: Path, clock: float) -> None:
    with pytest.raises(HostUnfitError, match="clocks disagree: client and engine differ by"):
        window(tmp_path, clock=clock)


def test_counters_that_contradict_the_tokens_are_invalid(tmp_path: Path) -> None:
    with pytest.raises(InvalidError, match="counters contradict the tokens"):
        window(tmp_path, miscounted=30, **STEADY)


def test_without_speculation_a_step_is_an_engine_iteration(tmp_path: Path) -> None:
    """house.md: engine iterations instead of drafts when not speculating; the prefill is no decode step."""
    measured = window(tmp_path, workload(max_tokens=16), k=0, drafting=False, **STEADY)
    assert (measured.counts, "acceptance_length" in measured.metrics) == (None, False)
    assert measured.metrics["step_per_s"] == pytest.approx(2 * 15 / measured.delta.total("decode_s"))


@pytest.mark.case("B9", "B11")
def test_an_engine_that_was_to_draft_and_did_not_has_no_step_rate(tmp_path: Path) -> None:
    """B9, B11: iterations instead would compare two things under one name."""
    measured = window(tmp_path, workload(max_tokens=16), k=0, **STEADY)
    assert "step_per_s" not in measured.metrics


def bursts() -> Iterator[bytes | float]:
    """D4: seven deltas for 384 tokens, all at the end of 0.4 s of decoding."""
    yield 0.4
    for i in range(7):
        yield chunk("x", range(54 + (i < 6)))
        yield 0.002
    yield usage(384)


def in_bursts(folder: Path) -> Measured:
    """A window of one answer in bursts, on an engine that drafts 5 tokens a step and counts as it should."""
    done: list[object] = []

    def metrics() -> str:
        positions = "".join(
            f'vllm:spec_decode_num_accepted_tokens_per_pos_total{{engine="0",position="{p}"}} {n * len(done)}\n'
            for p, n in enumerate((90, 70, 50, 40, 33))
        )
        return positions + (
            f'vllm:spec_decode_num_drafts_total{{engine="0"}} {100 * len(done)}\n'
            f'vllm:request_success_total{{engine="0"}} {len(done)}\n'
            f'vllm:request_decode_time_seconds_sum{{engine="0"}} {0.4 * len(done)}\n'
        )

    def answer(body: dict[str, object]) -> Iterator[bytes | float]:
        yield from bursts()
        done.append(body)
        yield DONE

    with serving(answer, {"/metrics": metrics}) as server:
        return measure(Client(server.url, "m"), PROMPTS[:1], workload(max_tokens=384), TIMEOUT_S, folder)


@pytest.mark.case("D4")
def test_a_stream_in_bursts_is_not_timed_by_its_chunks_but_by_the_engines_own_seconds(tmp_path: Path) -> None:
    found = in_bursts(tmp_path)
    assert found.metrics == {
        "step_per_s": pytest.approx(250), "tok_per_s": pytest.approx(957.5), "tpot_s": pytest.approx(0.4 / 383),
        "acceptance_length": pytest.approx(3.83),
    }  # fmt: skip
    assert "7 chunks for 384 tokens, at least 64 steps with K=5; its times are INVALID" in found.facts["stream_timing"]


@pytest.mark.case("D2")
def test_several_tokens_a_chunk_give_steps_from_drafts_and_tokens_from_tokens(tmp_path: Path) -> None:
    """D2: chunks of 1, 4, 1, 4 tokens: 3 steps and 9 tokens after the first."""
    measured = window(tmp_path, workload(max_tokens=10), accepts=(3, 0, 3), **STEADY)
    ratio = measured.metrics["tok_per_s"] / measured.metrics["step_per_s"]
    assert (measured.samples[0].chunk_tokens, ratio) == ((1, 4, 1, 4), pytest.approx(3.0))


def test_an_engine_that_dies_in_the_window_is_an_engine_failure(tmp_path: Path) -> None:
    drafting = Drafting()

    def dies(_: dict[str, object]) -> Iterator[bytes | float]:
        yield chunk("가", [1])

    with serving(dies, {"/metrics": drafting.metrics}) as server, pytest.raises(EngineFailedError, match="p0"):
        measure(Client(server.url, "m"), PROMPTS, workload(), TIMEOUT_S, tmp_path)


def test_the_median_of_two_first_tokens_lies_between_them(tmp_path: Path) -> None:
    measured = window(tmp_path, workload(max_tokens=16), **STEADY)
    low, high = sorted(s.ttft_s for s in measured.samples)
    assert measured.metrics["ttft_median_s"] == pytest.approx((low + high) / 2)


def test_samples_can_be_written_as_json(steady: tuple[Measured, Path]) -> None:
    measured, _ = steady
    assert json.loads(json.dumps(vars(measured.samples[0])))["prompt_id"] == "p0"


# natural answers


def test_acceptance_is_counted_for_each_prompt_alone() -> None:
    with engine(natural=(1, 8)) as (client, _):
        by_prompt, _ = natural(client, {"quality": QUALITY}, TIMEOUT_S)
    assert by_prompt["quality/q0"].drafts == 0  # its one token came with the prefill
    assert by_prompt["quality/q1"] == DraftCounts(2, (2, 1, 1, 1, 1))  # 1 + 6 + 1 of 3 tokens: pos2 is thrown away


def test_every_answer_is_checked_and_kept() -> None:
    good, bad = (
        Prompt(f"q{i}", "quality", None, "몇?", 8, Check("contains", value)) for i, value in enumerate(("나", "없음"))
    )
    with engine() as (client, _):
        _, answers = natural(client, {"quality": (good, bad)}, TIMEOUT_S)
    assert [(a.prompt_id, a.ok) for a in answers] == [("q0", True), ("q1", False)]
    assert "없음" in answers[1].why


def test_a_prompt_without_a_checker_is_neither_right_nor_wrong() -> None:
    with engine() as (client, _):
        _, answers = natural(client, {"quality": QUALITY[:1]}, TIMEOUT_S)
    assert answers[0].ok is None


def test_an_engine_that_does_not_draft_gives_answers_and_no_acceptance() -> None:
    with engine(k=0) as (client, _):
        by_prompt, answers = natural(client, {"quality": QUALITY}, TIMEOUT_S)
    assert (by_prompt, len(answers)) == ({}, 2)


def test_an_answer_whose_steps_came_merged_is_asked_again() -> None:
    """Under load the server puts two steps in one chunk; which tokens the last step showed is then not known."""
    with engine(natural=(8,), merged=1) as (client, drafting):
        by_prompt, _ = natural(client, {"quality": QUALITY[:1]}, TIMEOUT_S)
    assert drafting.counted["finished"] == 2
    assert by_prompt["quality/q0"] == DraftCounts(3, (2, 2, 1, 0, 0))  # 1 + 1 + 4 + 2 of 6 tokens


# draft tokens behind the end of an answer


@dataclass(frozen=True)
class Truth:
    """One natural answer: what the client saw, what the engine counted, and what it should have counted."""

    sample: Sample
    counted: DraftCounts
    visible: DraftCounts


@st.composite
def answers(draw: st.DrawFn) -> Truth:
    """Whole steps, then a last one of which only the tokens up to the end token are shown."""
    k = draw(st.integers(1, 8))
    steps = draw(st.lists(st.integers(0, k), max_size=8))
    last = draw(st.integers(0, k))
    shown = draw(st.integers(1, last + 1))
    chunks = (1, *(a + 1 for a in steps), shown)
    counted = tuple(sum(p <= a for a in [*steps, last]) for p in range(1, k + 1))
    visible = tuple(sum(p <= a for a in [*steps, min(last, shown)]) for p in range(1, k + 1))
    drafts = len(steps) + 1
    return Truth(sample(chunk_tokens=chunks), DraftCounts(drafts, counted), DraftCounts(drafts, visible))


@given(answers())
def test_draft_tokens_behind_the_end_of_an_answer_are_not_counted(truth: Truth) -> None:
    """house.md: acceptance is measured on natural-length answers, tokens after an end token are not counted."""
    assert until_the_end(truth.counted, truth.sample) == truth.visible


def test_an_answer_that_ended_with_the_prefill_lost_nothing() -> None:
    still = DraftCounts(0, (0, 0))
    assert until_the_end(still, sample(chunk_tokens=(1,))) == still


@pytest.mark.parametrize("chunks", [(3,), (1, 9)], ids=["prefill and step in one", "two steps in one"])
def test_merged_chunks_do_not_take_accepted_tokens_from_the_wrong_position(chunks: tuple[int, ...]) -> None:
    """Which positions were thrown away is not known; the first ones, which were seen, are never the ones."""
    drafts = 1 if chunks == (3,) else 2
    counted = DraftCounts(drafts, (drafts,) * 5)
    assert until_the_end(counted, sample(chunk_tokens=chunks)).accepted[:2] == (drafts, drafts)


# pooling


def test_prompts_are_pooled_by_totals_and_not_by_a_mean_of_rates() -> None:
    both = pooled([DraftCounts(1, (1, 1)), DraftCounts(9, (0, 0))])
    assert both is not None
    assert both.rates_pp() == pytest.approx((10.0, 10.0))


def test_pooling_fills_positions_that_a_prompt_did_not_reach_with_zero() -> None:
    assert pooled([DraftCounts(2, (2,)), DraftCounts(3, (1, 1, 1))]) == DraftCounts(5, (3, 1, 1))


def test_nothing_counted_is_none_and_not_zero() -> None:
    assert pooled([]) is None


@given(st.lists(answers(), min_size=1, max_size=5))
def test_pooling_does_not_depend_on_the_order_of_the_prompts(truths: list[Truth]) -> None:
    named = {str(i): t.visible for i, t in enumerate(truths)}
    assert pooled(named.values()) == pooled(reversed(named.values()))


@pytest.mark.parametrize(
    ("counts", "metrics"),
    [
        (DraftCounts(10, (7, 5)), {"acceptance_pos1_pp": 70.0, "acceptance_pos2_pp": 50.0, "acceptance_all_pp": 60.0}),
        (DraftCounts(0, (0, 0)), {}),
        (None, {}),
    ],
    ids=["two positions", "no drafts", "no speculation"],
)
def test_acceptance_goes_by_position_in_points_and_is_left_out_when_nothing_was_drafted(counts, metrics) -> None:
    """B9."""
    assert acceptance_metrics(counts) == metrics


# answers that count


def asked(text: str, *ids: int) -> Sample:
    return Sample("q0", text, ids, "stop", 12, 0, tuple(range(len(ids))), (1,) * len(ids))


def test_a_second_try_does_not_repair_a_wrong_answer() -> None:
    right = Prompt("q0", "quality", None, "2 + 3", 8, Check("exact", "5"))
    answer = worst_of(right, (asked("4", 4), asked("5", 5)))
    assert (answer.ok, answer.text) == (False, "4")


def test_good_answers_that_differ_in_one_boot_make_nothing_comparable() -> None:
    right = Prompt("q0", "quality", None, "2 + 3", 8, Check("contains", "5"))
    with pytest.raises(InvalidError, match="two ways"):
        worst_of(right, (asked("5", 5), asked("It is 5", 6, 5)))


# an engine that gives no token

SILENT = Reply.of(30.0)  # seconds of nothing


def gauges(running: int, waiting: int, tokens: Iterator[int], steps: Iterator[int] | None = None) -> Callable[[], str]:
    """A /metrics text whose generated tokens (and iterations) are the next number each time."""
    name = '{engine="0",model_name="m"}'
    return lambda: (
        f"vllm:num_requests_running{name} {running}\nvllm:num_requests_waiting{name} {waiting}\n"
        f"vllm:generation_tokens_total{name} {next(tokens)}\n"
        f"vllm:iteration_tokens_total_count{name} {next(steps) if steps else 9}\n"
    )


STALLS: dict[str, Any] = {
    "tokens are flat": (
        gauges(0, 3, repeat(1234)),
        EngineFailedError,
        "engine stalled: no token came for prompt p0 in 0.6 s; /metrics shows 0 running, 3 waiting, "
        "generation tokens flat at 1234, and no other counter moved",
    ),
    "tokens go to somebody else": (
        gauges(2, 1, count(5, 7)),
        HostUnfitError,
        "contended: no token came for prompt p0 in 0.6 s, while 7 tokens went to other requests; /metrics shows 2",
    ),
    "tokens are counted and do not arrive": (
        gauges(1, 0, count(5, 7)),
        EngineFailedError,
        "engine stalled for us: no token came for prompt p0 in 1.2 s, although 7 tokens were counted",
    ),
    "it runs the request and nothing else is to be seen": (
        gauges(1, 0, repeat(1234)),
        EngineFailedError,
        "engine stalled: no token came for prompt p0 in 1.2 s; /metrics shows 1 running, 0 waiting, generation tokens "
        "flat at 1234, and no other counter moved",
    ),
    "it steps and gives nobody a token": (
        gauges(0, 1, repeat(1234), steps=count(5, 7)),
        EngineFailedError,
        "engine stalled: no token came for prompt p0 in 1.2 s; /metrics shows 0 running, 1 waiting, generation tokens "
        "flat at 1234, although iterations moved",
    ),
}
SHORT = Ask(8, ignore_eos=True, timeout_s=0.6)
LONGEST_S = 1.2


@pytest.mark.case("A5")
@pytest.mark.parametrize(("metrics", "error", "words"), STALLS.values(), ids=STALLS)
def test_a_request_without_a_token_is_told_by_what_the_metrics_show(
    metrics: Callable[[], str], error: type[Exception], words: str
) -> None:
    with serving(SILENT, {"/metrics": metrics}) as server:
        asked = Client(server.url, "m", on_silence=StallWatch(LONGEST_S))
        with pytest.raises(error) as raised:
            asked.stream(PROMPTS[0], SHORT)
    told, wanted = (re.sub(r" in [\d.]+ s", " in N s", text) for text in (str(raised.value), words))
    assert told.startswith(wanted)  # a busy machine looks a look later


ALIVE = {
    "it runs the request": gauges(1, 0, repeat(1234)),
    "it steps": gauges(0, 1, repeat(1234), steps=count(5, 7)),
    "it gives tokens": gauges(1, 0, count(5, 7)),
}


@pytest.mark.case("A5")
@pytest.mark.parametrize("metrics", ALIVE.values(), ids=ALIVE)
def test_an_engine_that_is_slow_and_lives_is_waited_for(metrics: Callable[[], str]) -> None:
    """A prefill that takes longer than stall_timeout_s, then its answer; request_timeout_s is what it has."""
    slow = Reply.of(role(), 1.5, chunk("가", [1]), chunk("나", [2]), usage(2), DONE)
    with serving(slow, {"/metrics": metrics}) as server:
        found = Client(server.url, "m", on_silence=StallWatch(60.0)).stream(PROMPTS[0], SHORT)
    assert found.token_ids == (1, 2)
    assert found.ttft_s >= 1.5


@pytest.mark.case("A5")
def test_what_moved_between_two_requests_does_not_excuse_the_second_one() -> None:
    """A first silence that ended leaves nothing behind for the next."""
    replies = iter([Reply.of(0.4, chunk("가", [1]), usage(1), DONE), SILENT])
    tokens = iter([5, 50, 50, 50, 50, 50, 50])
    with serving(lambda _: next(replies), {"/metrics": gauges(0, 1, tokens)}) as server:
        asked = Client(server.url, "m", on_silence=StallWatch(60.0))
        asked.stream(PROMPTS[0], SHORT)
        with pytest.raises(EngineFailedError, match="no other counter moved"):
            asked.stream(PROMPTS[0], SHORT)


@pytest.mark.case("A5")
def test_a_server_that_shows_no_metrics_either_hangs() -> None:
    with (
        serving(SILENT) as server,
        pytest.raises(EngineFailedError, match=r"engine hangs: .* in 0\.6 s, .*GET /metrics answered 404"),
    ):
        Client(server.url, "m", on_silence=StallWatch(60.0)).stream(PROMPTS[0], SHORT)


# counters that fall, and drafts that nobody counts


def scripted(values: Iterator[int]) -> Callable[[], str]:
    """An engine's /metrics whose tokens are these, scrape by scrape."""
    return lambda: f'vllm:generation_tokens_total{{engine="0"}} {next(values)}\n'


@pytest.mark.case("B8")
@pytest.mark.parametrize(
    ("values", "words"),
    [
        ((1000, 240, 1015, 251, 1030, 262), "several processes answer /metrics in turn"),
        ((1100, 30, 90, 120, 130, 140), "between scrape 1 and 2: counters of engine 0 fell"),
    ],
    ids=["registries that answer in turn", "a restart"],
)
def test_counters_that_fell_are_looked_at_again_to_tell_what_it_was(values: tuple[int, ...], words: str) -> None:
    with serving(Reply.of(), {"/metrics": scripted(iter(values))}) as server:
        client = Client(server.url, "m")
        before, after = scrape(client, TIMEOUT_S), scrape(client, TIMEOUT_S)
        with pytest.raises(InvalidError, match=words):
            elapsed(client, before, after, TIMEOUT_S)


def test_counters_that_rose_make_a_window_without_another_look() -> None:
    with serving(Reply.of(), {"/metrics": scripted(iter((100, 160)))}) as server:
        client = Client(server.url, "m")
        before, after = scrape(client, TIMEOUT_S), scrape(client, TIMEOUT_S)
        assert elapsed(client, before, after, TIMEOUT_S).total("generation_tokens") == 60
