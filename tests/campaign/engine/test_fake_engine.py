"""The fake engine is a fair stand-in: patched, asked, measured and witnessed through the doors of the real one."""

import dataclasses
import http.client
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from campaign.engine import kv, witness
from campaign.engine.local import RunningEngine, serve
from campaign.engine.reports import EVERY_ROLE, ask
from campaign.engine.spec import EngineSpec
from campaign.engine.witness import KnobAsked
from campaign.prompting.checks import Prompt
from campaign.traffic import metrics
from campaign.traffic.client import Ask, Client
from campaign.traffic.sample import Sample
from overlays.base import base_tree
from overlays.manifest import load
from overlays.stage import Stage, stage
from tests.fakes import overlay

Make = Callable[..., EngineSpec]
WINDOW = Ask(max_tokens=96, ignore_eos=True, timeout_s=20.0)
NATURAL = Ask(max_tokens=400, ignore_eos=False, timeout_s=20.0)


def prompt(text: str, *, chat: bool = False) -> Prompt:
    """A prompt without a checker."""
    fields = {field.name: None for field in dataclasses.fields(Prompt)}
    fields |= {"id": text, "prompt_set": "decode", "max_tokens": 96, "prompt": "" if chat else text}
    return Prompt(**(fields | {"messages": ({"role": "user", "content": text},) if chat else ()}))  # type: ignore[arg-type]


def scrape(spec: EngineSpec) -> metrics.Counters:
    """The counters now."""
    return metrics.parse(Client(spec.url, spec.nonce).get_text("/metrics", 10.0))


def measured(
    spec: EngineSpec, ask_for: Ask = WINDOW, *, chat: bool = False
) -> tuple[metrics.Counters, tuple[Sample, ...]]:
    """Three prompts and the difference of the counters over them."""
    client = Client(spec.url, spec.nonce)
    before = scrape(spec)
    samples = tuple(client.stream(prompt(f"measure {i}", chat=chat), ask_for) for i in range(3))
    return scrape(spec).since(before), samples


@pytest.mark.parametrize("chat", [False, True], ids=["completions", "chat"])
def test_tokens_drafts_and_accepted_tokens_explain_each_other(make: Make, chat: bool) -> None:
    spec = make()
    with serve(spec):
        delta, samples = measured(spec, chat=chat)
    counts = metrics.draft_counts(delta)
    assert counts is not None
    assert metrics.identity_gap(counts, samples) == 0
    assert [len(sample.token_ids) for sample in samples] == [96, 96, 96]
    assert delta.total("generation_tokens") == 3 * 96
    assert delta.total("finished") == 3


def test_acceptance_falls_over_the_positions_from_about_four_in_five(make: Make) -> None:
    spec = make(env={"FAKE_STEP_MS": "0.2"})
    with serve(spec):
        delta, _ = measured(spec, Ask(max_tokens=300, ignore_eos=True, timeout_s=20.0))
    counts = metrics.draft_counts(delta)
    assert counts is not None
    rates = counts.rates_pp()
    assert 70 < rates[0] < 90
    assert list(rates) == sorted(rates, reverse=True)
    assert len(set(rates)) == 5


def test_two_boots_give_the_same_tokens_drafts_and_acceptance(make: Make) -> None:
    spec, seen = make(), []
    for _ in range(2):
        with serve(spec):
            delta, samples = measured(spec)
        seen.append((metrics.draft_counts(delta), [sample.token_ids for sample in samples]))
    assert seen[0] == seen[1]


def test_the_boots_of_a_bracket_differ_in_speed_by_their_nonce_alone(make: Make) -> None:
    spec = make(env={"FAKE_BOOT_NOISE": "0.5", "FAKE_STEP_MS": "4"})
    other = dataclasses.replace(
        spec, argv=tuple("t-other" if w == spec.nonce else w for w in spec.argv), nonce="t-other"
    )
    paces = []
    for one in (spec, other, other):
        with serve(one):
            delta, _ = measured(one)
        paces.append(delta.total("decode_s") / delta.total("drafts"))
    assert abs(paces[1] - paces[2]) < abs(paces[0] - paces[1])


def test_a_known_prompt_gets_its_answer_and_ends_there(make: Make, tmp_path: Path) -> None:
    answers = tmp_path / "answers.jsonl"
    answers.write_text(
        json.dumps({"prompt": "수도는?", "text": "서울입니다."}, ensure_ascii=False) + "\n", encoding="utf-8"
    )
    spec = make(env={"FAKE_ANSWERS": str(answers)})
    with serve(spec):
        sample = Client(spec.url, spec.nonce).stream(prompt("수도는?"), NATURAL)
    assert (sample.text, sample.finish_reason) == ("서울입니다.", "stop")
    assert len(sample.token_ids) == len("서울입니다.") + 1  # the end token has an id and no text


def test_corrupted_korean_holds_replacement_characters(make: Make) -> None:
    spec = make("korean_corruption")
    with serve(spec):
        _, samples = measured(spec, NATURAL)
    assert any("\ufffd" in sample.text for sample in samples)


def test_a_warm_prefix_is_counted(make: Make) -> None:
    spec = make(serve={"block_size": 16})
    with serve(spec):
        client = Client(spec.url, spec.nonce)
        client.stream(prompt("a prefix that is long enough for a block"), NATURAL)
        before = scrape(spec)
        client.stream(prompt("a prefix that is long enough for a block"), NATURAL)
        delta = scrape(spec).since(before)
    assert (delta.total("prefix_queries"), delta.total("prefix_hits")) == (40, 32)


def answer(spec: EngineSpec, **body: Any) -> tuple[int, str]:
    """A completion that is not streamed: status and text."""
    connection = http.client.HTTPConnection("127.0.0.1", spec.port, timeout=10)
    connection.request(
        "POST", "/v1/completions", json.dumps({"model": spec.nonce, "prompt": "x", "max_tokens": 9} | body)
    )
    response = connection.getresponse()
    found = response.status, response.read().decode()
    connection.close()
    return found


@pytest.mark.parametrize(
    ("body", "status"),
    [({}, 200), ({"model": "other"}, 404), ({"prompt": "x" * 3000}, 400), ({"prompt": 5}, 400)],
    ids=str,
)
def test_what_the_engine_would_refuse_is_refused(make: Make, body: dict[str, Any], status: int) -> None:
    spec = make()
    with serve(spec):
        assert answer(spec, **body)[0] == status


def test_errors_begin_when_they_are_due(make: Make) -> None:
    spec = make("http_500:2")
    with serve(spec):
        assert [answer(spec)[0] for _ in range(4)] == [200, 200, 500, 500]


def test_a_stalled_engine_is_healthy_and_has_a_request_that_waits(make: Make) -> None:
    spec = make("stalls:0")
    with serve(spec):
        client = Client(spec.url, spec.nonce)
        with pytest.raises(Exception, match="timed out"):
            client.stream(prompt("x"), Ask(max_tokens=8, ignore_eos=True, timeout_s=0.5))
        assert client.get_text("/health", 5.0) == ""
        text = client.get_text("/metrics", 5.0)
    assert f'vllm:num_requests_waiting{{engine="0",model_name="{spec.nonce}"}} 1.0' in text


def test_restarted_counters_are_seen_in_the_metrics_and_in_the_reports(make: Make) -> None:
    spec = make("restart_counters:1")
    with serve(spec):
        before, reports = scrape(spec), ask(spec.report_dir, spec.nonce, EVERY_ROLE)
        answer(spec)
        answer(spec)
        after = ask(spec.report_dir, spec.nonce, EVERY_ROLE)
        with pytest.raises(metrics.InvalidError, match="fell within the window"):
            scrape(spec).since(before)
    assert [row.ok for row in witness.processes(reports, after)] == [True, True, False, True]


def staged(tmp_path: Path, *names: str) -> Stage:
    """The fake with overlays that lie in tmp_path/overlays."""
    shelf = [tmp_path / "overlays"]
    return stage(base_tree(overlay.PYTHON), [load(name, shelf) for name in names], tmp_path / "stages")


def on_stage(spec: EngineSpec, made: Stage, **env: str) -> EngineSpec:
    """The same boot from a stage."""
    ours = {"PYTHONPATH": str(made.path), "VLLM_CAMPAIGN_OVERLAID_MODULES": json.dumps([f.module for f in made.files])}
    return dataclasses.replace(spec, env=spec.env | ours | env, stage_path=made.path, declared=made.variables)


def witnessed(engine: RunningEngine, made: Stage, value: str) -> list[str]:
    """Boot's witness of the knob async_dflash over three prompts: what does not hold."""
    wanted = {"0": False, "1": True}[value]
    bounds = {"min": 2.0} if wanted else {"max": 1.0}
    knob = KnobAsked(
        "async_dflash",
        value,
        overlay.VARIABLE,
        resolved={"async_scheduling": wanted},
        behaved={"batches_in_flight_max": bounds},
    )
    spec = engine.spec
    before = ask(spec.report_dir, "before", EVERY_ROLE)
    measured(spec)
    after = ask(spec.report_dir, "after", EVERY_ROLE)
    assert kv.facts(before, engine.kv, 5).needed_blocks <= 1365
    rows = witness.rows([knob], before, after, spec=spec, log=engine.log(), staged=made.files)
    return [witness.sentence(row) for row in witness.not_ok(rows)]


@pytest.mark.parametrize("value", ["0", "1"])
def test_an_overlay_on_the_fake_is_staged_attested_and_witnessed(make: Make, tmp_path: Path, value: str) -> None:
    overlay.async_dflash(tmp_path / "overlays")
    made = staged(tmp_path, "fake_async")
    with serve(on_stage(make(), made, VLLM_GLM53_ASYNC_DFLASH=value)) as engine:
        assert witnessed(engine, made, value) == []


def test_a_flag_without_a_second_batch_is_not_on(make: Make, tmp_path: Path) -> None:
    overlay.async_flag_only(tmp_path / "overlays")
    made = staged(tmp_path, "fake_async_flag_only")
    with serve(on_stage(make(), made, VLLM_GLM53_ASYNC_DFLASH="1")) as engine:
        (sentence,) = witnessed(engine, made, "1")
    assert "batches_in_flight_max is 1, wanted at least 2" in sentence


@pytest.mark.parametrize(("fault", "words"), [("disarm:1", "False"), ("lose_worker:1", "no answer")])
def test_what_stops_being_on_within_the_window_is_told(make: Make, tmp_path: Path, fault: str, words: str) -> None:
    overlay.async_dflash(tmp_path / "overlays")
    made = staged(tmp_path, "fake_async")
    with serve(on_stage(make(fault), made, VLLM_GLM53_ASYNC_DFLASH="1")) as engine:
        before = ask(engine.spec.report_dir, "before", EVERY_ROLE)
        measured(engine.spec)
        after = ask(engine.spec.report_dir, "after", EVERY_ROLE, deadline_s=1.0)
        knob = KnobAsked("async_dflash", "1", overlay.VARIABLE, resolved={"async_scheduling": True})
        rows = witness.rows([knob], before, after, spec=engine.spec, log=engine.log(), staged=made.files)
    assert words in " ".join(row.found for row in witness.not_ok(rows))


@pytest.mark.alone
def test_a_slower_step_is_measured_as_slow_as_it_is(make: Make, tmp_path: Path) -> None:
    overlay.slow_step(tmp_path / "overlays", 3.0)
    spec = make()
    paces = []
    for one in (spec, on_stage(spec, staged(tmp_path, "fake_slow_step"))):
        with serve(one):
            delta, _ = measured(one)
        paces.append(delta.total("decode_s") / delta.total("drafts"))
    assert 2 < paces[1] / paces[0] < 4


@pytest.mark.parametrize(
    ("asked", "ok"),
    [(None, "using the V1 model runner instead"), ("0", ""), ("1", "ValueError: VLLM_USE_V2_MODEL_RUNNER=1")],
)
def test_the_runner_flag_has_three_states(make: Make, asked: str | None, ok: str) -> None:
    spec = make(env={} if asked is None else {"VLLM_USE_V2_MODEL_RUNNER": asked})
    try:
        with serve(spec) as engine:
            text = engine.log()
            workers = [r for r in ask(spec.report_dir, "runner", EVERY_ROLE) if r.role == "Worker"]
            assert workers[0].section("resolved")["runner"] == "V1"
    except Exception as error:  # noqa: BLE001  (what it says is asserted)
        text = str(error)
    assert ok in text
    assert (asked == "0") is ("runner" not in text.lower())
