"""Asked, resolved, behaved, attested: every way in which a knob is not on is a row that is not ok."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest

from campaign.engine import attested, behaved, witness
from campaign.engine.reports import EVERY_ROLE, Place, Report
from campaign.engine.spec import EngineSpec
from campaign.engine.witness import KnobAsked

Make = Callable[..., EngineSpec]
VARIABLE = "VLLM_GLM53_ASYNC_DFLASH"
ON = KnobAsked(
    "async_dflash",
    "1",
    VARIABLE,
    resolved={"async_scheduling": True, "max_concurrent_batches": 2},
    behaved={"batches_in_flight_max": {"min": 2}},
)
SHA = "a" * 64


@dataclass(frozen=True)
class Staged:
    """A staged file."""

    path: str = "vllm/platforms/cpu.py"
    module: str = "vllm.platforms.cpu"
    sha256: str = SHA
    overlay: str = "cpu_async"


def core(*, flights: dict[str, int] | None = None, pid: int = 7, rank: int = 0, **resolved: Any) -> Report:
    """An EngineCore's answer; it is on unless told otherwise."""
    behaved = {"steps": 9, "batches_in_flight": flights or {"1": 1}, "tokens_in_flight_max": 12}
    known = {"async_scheduling": True, "max_concurrent_batches": 2} | resolved
    return Report("EngineCore", rank, pid, {"environment": {VARIABLE: "1"}, "resolved": known, "behaved": behaved})


BEFORE, AFTER = core(), core(flights={"1": 3, "2": 40})


@pytest.fixture
def spec(make: Make) -> EngineSpec:
    """A boot that was given the knob."""
    made = make()
    return replace(made, env=made.env | {VARIABLE: "1"}, declared=frozenset({VARIABLE}))


def broken(
    spec: EngineSpec,
    knob: KnobAsked = ON,
    before: tuple[Report, ...] = (BEFORE,),
    after: tuple[Report, ...] | None = (AFTER,),
    log: str = "",
) -> list[str]:
    """The sentences of the rows that are not ok."""
    found = witness.rows([knob], before, after, spec=spec, log=log)
    return [witness.sentence(row) for row in witness.not_ok(found)]


def test_a_knob_that_is_on_in_every_layer_has_no_broken_row(spec: EngineSpec) -> None:
    assert broken(spec) == []
    assert {row.layer for row in witness.rows([ON], [BEFORE], [AFTER], spec=spec, log="")} >= {
        "asked",
        "resolved",
        "behaved",
    }


def test_before_the_window_nothing_is_said_about_behaviour(spec: EngineSpec) -> None:
    assert broken(spec, after=None) == []


def test_a_flag_that_is_set_while_one_batch_stays_in_flight_is_told(spec: EngineSpec) -> None:
    (sentence,) = broken(spec, after=(core(flights={"1": 40}),))
    assert sentence == "async_dflash: behaved batches_in_flight_max is 1, wanted at least 2 (EngineCore 0 (pid 7))"


def test_batches_of_the_warm_up_do_not_speak_for_the_window(spec: EngineSpec) -> None:
    warm = core(flights={"1": 1, "2": 40})
    assert "is 1, wanted at least 2" in broken(spec, before=(warm,), after=(core(flights={"1": 9, "2": 40}),))[0]


def test_a_window_without_a_step_proves_nothing(spec: EngineSpec) -> None:
    assert "no step ran in the window" in broken(spec, after=(BEFORE,))[0]


def test_counters_that_fell_are_a_restart(spec: EngineSpec) -> None:
    assert "started anew" in broken(spec, before=(core(flights={"1": 90, "2": 90}),))[0]


def test_a_knob_that_was_disarmed_within_the_window_is_told(spec: EngineSpec) -> None:
    sentences = broken(spec, after=(core(flights={"2": 9, "1": 9}, async_scheduling=False),))
    assert sentences == ["async_dflash: resolved async_scheduling is False, wanted True (EngineCore 0 (pid 7))"]


def test_one_disarmed_rank_is_a_disarmed_arm(spec: EngineSpec) -> None:
    two = (BEFORE, core(rank=1, pid=8, async_scheduling=False))
    assert broken(spec, before=two, after=None)[0].endswith("is False, wanted True (EngineCore 1 (pid 8))")


def test_a_rank_that_does_not_show_what_its_peers_show_is_told(spec: EngineSpec) -> None:
    silent = Report("EngineCore", 1, 8, {"environment": {VARIABLE: "1"}, "resolved": {}})
    assert "is (absent), wanted True (EngineCore 1 (pid 8))" in broken(spec, before=(BEFORE, silent), after=None)[0]


def test_a_key_that_nobody_shows_is_told(spec: EngineSpec) -> None:
    knob = replace(ON, resolved={"runner": "V2"}, behaved={"pinned_copies": {"min": 1}})
    assert broken(spec, knob) == [
        "async_dflash: resolved runner is (absent), wanted V2",
        "async_dflash: behaved pinned_copies is (absent), wanted at least 1",
    ]


def test_a_one_is_not_true(spec: EngineSpec) -> None:
    assert "async_scheduling is 1, wanted True" in broken(spec, before=(core(async_scheduling=1),), after=None)[0]


def test_nobody_answering_is_told(spec: EngineSpec) -> None:
    assert broken(spec, before=(), after=None)[0] == (
        "engine: attested processes answering is nobody, wanted at least one (engine_report)"
    )


def test_a_process_that_stopped_answering_is_told(spec: EngineSpec) -> None:
    worker = Report("Worker", 0, 9, {"environment": {VARIABLE: "1"}})
    assert broken(spec, before=(BEFORE, worker)) == [
        "engine: attested Worker 0 after the window is no answer, wanted pid 9 (engine_report)"
    ]


def test_another_process_in_the_same_place_is_told(spec: EngineSpec) -> None:
    sentences = broken(spec, after=(core(flights={"1": 3, "2": 40}, pid=8),))
    assert "engine: attested EngineCore 0 after the window is pid 8, wanted pid 7 (engine_report)" in sentences


def test_a_variable_that_a_process_does_not_see_is_told(spec: EngineSpec) -> None:
    blind = replace(BEFORE, raw=BEFORE.raw | {"environment": {}})
    assert broken(spec, before=(blind,), after=None) == [
        f"async_dflash: asked {VARIABLE} seen is (unset), wanted 1 (EngineCore 0 (pid 7))"
    ]


@pytest.mark.case("C9")
def test_a_knob_without_a_witness_is_not_confirmed(make: Make) -> None:
    offload = KnobAsked("cpu_offload_gb", "12", None, "cpu_offload_gb")
    (sentence,) = broken(make(serve={"cpu_offload_gb": 12}), offload, after=None)
    assert "not confirmed" in sentence


@pytest.mark.case("C10")
@pytest.mark.parametrize(
    ("value", "given", "ok"),
    [(None, None, True), (None, "0", False), ("0", "0", True), ("0", None, False), ("1", "1", True)],
)
def test_unset_zero_and_one_are_three_states(make: Make, value: str | None, given: str | None, ok: bool) -> None:
    variable = "VLLM_USE_V2_MODEL_RUNNER"
    seen = {} if given is None else {variable: given}
    spec = make(env=seen)
    worker = Report("Worker", 0, 9, {"environment": seen, "resolved": {"runner": "V1"}})
    knob = KnobAsked("runner", value, variable, resolved={"runner": "V1"})
    assert (broken(spec, knob, before=(worker,), after=None) == []) is ok


def test_a_serve_argument_is_looked_for_in_the_arguments(make: Make) -> None:
    spec = make(serve={"async_scheduling": False, "max_num_seqs": 4})
    off = KnobAsked("async", "false", None, "async_scheduling", {"async_scheduling": True})
    assert broken(spec, off, after=None) == []
    assert broken(spec, replace(off, value="true"), after=None) == [
        "async: asked async_scheduling is (absent), wanted --async-scheduling (arguments)"
    ]


def noise(*names: str) -> str:
    """The engine's warnings, forty of them about somebody's service discovery."""
    others = [f"VLLM_SVC{i}_SERVICE_PORT_HTTP" for i in range(40)]
    return "\n".join(f"WARNING Unknown vLLM environment variable detected: {name}" for name in [*others, *names])


@pytest.mark.case("C2")
def test_unknown_variables_of_others_are_counted_and_ours_is_told(make: Make) -> None:
    spec = make(env={"VLLM_FLASHINFER_MOE_BACKEND": "x"})
    rows = witness.variables(spec, noise("VLLM_FLASHINFER_MOE_BACKEND"))
    assert [row.found for row in rows] == ["1 of ours, 40 of others", "unknown to the engine"]
    assert not any(row.ok for row in rows)
    assert [row.ok for row in witness.variables(spec, noise())] == [True]


@pytest.mark.case("C1")
def test_a_removed_variable_names_what_was_asked_and_what_is_used(make: Make) -> None:
    spec = make(env={"VLLM_ATTENTION_BACKEND": "TRITON_ATTN"})
    log = noise("VLLM_ATTENTION_BACKEND") + "\nINFO Using AttentionBackendEnum.FLASH_ATTN backend."
    sentence = witness.sentence(witness.variables(spec, log)[1])
    assert "it uses the attention backend FLASH_ATTN, wanted TRITON_ATTN" in sentence


@pytest.mark.case("C2")
def test_a_name_that_a_staged_overlay_declares_is_expected(spec: EngineSpec) -> None:
    assert [row.ok for row in witness.variables(spec, noise(VARIABLE, "VLLM_CAMPAIGN_REPORT_DIR"))] == [True]


@pytest.mark.parametrize(
    ("change", "found"),
    [
        ({}, None),
        ({"sha256": "b" * 64}, "bbbbbbbbbbbb from"),
        ({"file": "/elsewhere/vllm/platforms/cpu.py"}, "from /elsewhere"),
        ({"code": "differs: check (line 3) was loaded from other code"}, "but differs: check"),
        ({"origin": "/elsewhere/cpu.py"}, "from"),
        ({"module": "vllm.other"}, "loaded by no process"),
        ({"replaced": [{"function": "check", "file": "/elsewhere/a.py"}]}, "but check is replaced by /elsewhere/a.py"),
    ],
    ids=["as staged", "other bytes", "other place", "other code", "other origin", "not loaded", "monkeypatched"],
)
def test_overlaid_code_is_attested_as_it_was_loaded(
    spec: EngineSpec, change: dict[str, Any], found: str | None
) -> None:
    entry = {"module": "vllm.platforms.cpu", "file": f"{spec.stage_path}/vllm/platforms/cpu.py", "sha256": SHA} | change
    report = replace(BEFORE, raw=BEFORE.raw | {"modules": [entry]})
    rows = [row for row in witness.rows([], [report], None, spec=spec, log="", staged=[Staged()]) if not row.ok]
    assert [row.layer for row in rows] == ([] if found is None else ["attested"])
    assert found is None or found in rows[0].found


@pytest.mark.parametrize(
    ("wraps", "ok"),
    [({}, False), ({"report": ("vllm/platforms/cpu.py",)}, True), ({"report": ("vllm/other.py",)}, False)],
    ids=["nobody declares it", "declared for this file", "declared for another"],
)
def test_a_staged_plugin_may_replace_only_what_it_declares_to_wrap(
    spec: EngineSpec, wraps: dict[str, tuple[str, ...]], ok: bool
) -> None:
    plugin = Staged("report/plugin.py", "report.plugin", "c" * 64, "report")
    entries = [
        {"module": "vllm.platforms.cpu", "file": f"{spec.stage_path}/vllm/platforms/cpu.py", "sha256": SHA,
         "replaced": [{"function": "check", "file": f"{spec.stage_path}/report/plugin.py"}]},
        {"module": "report.plugin", "file": f"{spec.stage_path}/report/plugin.py", "sha256": "c" * 64},
    ]  # fmt: skip
    report = replace(BEFORE, raw=BEFORE.raw | {"modules": entries})
    found = witness.rows([], [report], None, spec=spec, log="", staged=[Staged(), plugin], wraps=wraps)
    assert [row.ok for row in found if row.what == "vllm.platforms.cpu"] == [ok]


@pytest.mark.parametrize(
    ("change", "ok", "words"),
    [
        ({}, True, "aaaaaaaaaaaa from"),
        ({"sha256": "b" * 64}, False, "bbbbbbbbbbbb from"),
        ({"sha256": ""}, False, "no such file"),
        ({"origin": "/elsewhere/t.json"}, False, "(really /elsewhere/t.json)"),
        ({"file_path": "vllm/other.json"}, False, "not told"),
    ],
    ids=["as staged", "other bytes", "gone", "a link that leads away", "not told"],
)
def test_a_data_file_is_attested_by_its_place_and_hash_in_every_process(
    spec: EngineSpec, change: dict[str, str], ok: bool, words: str
) -> None:
    entry = {"file_path": "vllm/t.json", "file": f"{spec.stage_path}/vllm/t.json", "sha256": SHA} | change
    report = replace(BEFORE, raw=BEFORE.raw | {"modules": [entry]})
    (row,) = attested.rows([Staged("vllm/t.json", "")], [report], str(spec.stage_path))
    assert (row.ok, words in row.found) == (ok, True)


def test_a_state_that_an_overlay_published_can_be_a_witness(spec: EngineSpec) -> None:
    report = replace(BEFORE, raw=BEFORE.raw | {"overlays": {"async_dflash": {"admitted": True}}})
    knob = replace(ON, resolved={"overlays.async_dflash.admitted": True}, behaved={})
    assert broken(spec, knob, before=(report,), after=None) == []
    assert "is (absent)" in broken(spec, knob, after=None)[0]


@pytest.mark.parametrize(
    ("decided", "also", "words"),
    [
        (True, True, None),
        (False, True, "decided is False (already on in the stock engine: the overlay changed nothing), wanted True"),
        (False, False, "async_scheduling is False, wanted True"),
    ],
    ids=["by the overlay", "by the stock engine", "by nobody"],
)
def test_what_the_stock_engine_does_by_itself_is_no_knob_that_is_on(
    spec: EngineSpec, decided: bool, also: bool, words: str | None
) -> None:
    raw = core(async_scheduling=also).raw | {"overlays": {"async_dflash": {"decided": decided}}}
    knob = replace(ON, resolved={"async_scheduling": True, "overlays.async_dflash.decided": True}, behaved={})
    sentences = broken(spec, knob, before=(replace(BEFORE, raw=raw),), after=None)
    assert (words is None and not sentences) or (words is not None and words in sentences[0])


@pytest.mark.case("C3", "C10", "C12")
@pytest.mark.parametrize(
    ("key", "wanted", "line"),
    [
        ("async_scheduling", True, "Async scheduling not supported with dflash-based speculative decoding"),
        ("runner", "V2", "Model Runner V2 requires Triton; using the V1 model runner instead."),
        ("prefix_caching", True, "Disabling prefix caching: the model has recurrent layers."),
    ],
    ids=["async scheduling", "the runner", "prefix caching"],
)
def test_the_line_of_the_log_that_explains_a_refusal_is_told_with_it(
    spec: EngineSpec, key: str, wanted: object, line: str
) -> None:
    report = core(**{key: "V1" if key == "runner" else False})
    log = f"(APIServer pid=3) WARNING 11-30 12:41:44 [vllm.py:663] {line}\n"
    knob = replace(ON, resolved={key: wanted}, behaved={})
    assert f"; the log says: {line}" in broken(spec, knob, before=(report,), after=None, log=log)[0]


def test_what_the_models_drafting_is_made_of_is_looked_for_in_the_arguments_and_in_every_process(make: Make) -> None:
    method = KnobAsked("model.method", "dflash", resolved={"spec_method": "dflash"}, speculative_key="method")
    assert broken(make(), method, before=(core(spec_method="dflash"),), after=None) == []
    assert broken(make(), method, before=(core(spec_method="eagle"),), after=None) == [
        "model.method: resolved spec_method is eagle, wanted dflash (EngineCore 0 (pid 7))"
    ]
    other = replace(method, value="eagle")
    assert "asked --speculative-config method is dflash, wanted eagle" in broken(make(), other, after=None)[0]


@pytest.mark.parametrize(
    ("bounds", "ok"), [({"max": 1}, False), ({"min": 2, "max": 2}, True), ({"min": 3}, False)], ids=str
)
def test_bounds_are_closed_intervals(spec: EngineSpec, bounds: dict[str, float], ok: bool) -> None:
    assert (broken(spec, replace(ON, behaved={"batches_in_flight_max": bounds})) == []) is ok


def test_a_plain_counter_counts_its_growth(spec: EngineSpec) -> None:
    grown = replace(AFTER, raw=AFTER.raw | {"behaved": AFTER.raw["behaved"] | {"steps": 19}})
    assert broken(spec, replace(ON, behaved={"steps": {"min": 10, "max": 10}}), after=(grown,)) == []
    assert broken(spec, replace(ON, behaved={"tokens_in_flight_max": {"min": 12}}), after=(grown,)) == []


@pytest.mark.parametrize(
    ("silent", "expected", "world_size"),
    [
        pytest.param("Worker", EVERY_ROLE, 1, id="a worker that does not answer"),
        pytest.param("EngineCore", EVERY_ROLE, 1, id="a core that does not answer"),
        pytest.param("nobody", EVERY_ROLE, 2, id="a second rank that the engine counts and that is silent"),
        pytest.param("nobody", (*EVERY_ROLE, ("Worker", 3)), 1, id="a rank that the arguments make and that is silent"),
    ],
)
def test_a_process_that_is_silent_is_a_doubt(silent: str, expected: tuple[Place, ...], world_size: int) -> None:
    answering = [answer_of(role, rank, world_size) for role, rank in EVERY_ROLE if role != silent]
    row = witness.processes(answering, None, expected)[0]
    assert not row.ok


def test_every_process_answering_is_no_doubt() -> None:
    answering = [answer_of(role, rank, 1) for role, rank in EVERY_ROLE]
    assert witness.processes(answering, None, EVERY_ROLE)[0].ok


def test_a_report_that_holds_only_an_error_is_a_doubt() -> None:
    raw = {"resolved": {"error": "AttributeError: no such thing"}, "modules": [{"error": "no list"}]}
    rows = witness.faulty_reports([Report("Worker", 0, 7, raw)])
    assert [(row.what, row.ok) for row in rows] == [("resolved report", False), ("modules report", False)]


def answer_of(role: str, rank: int, world_size: int) -> Report:
    return Report(role, rank, 7 + rank, {"resolved": {"world_size": world_size}})


@pytest.mark.parametrize(
    ("one", "two", "ok"),
    [
        pytest.param(8, 121, True, id="nearly always two in flight"),
        pytest.param(60, 60, True, id="half of the steps"),
        pytest.param(121, 20, False, id="two in flight for a few steps only"),
    ],
)
def test_a_behaviour_must_hold_for_half_of_the_window(one: int, two: int, ok: bool) -> None:
    before = Report("EngineCore", 0, 7, {"behaved": {"batches_in_flight": {"1": 1, "2": 400}}})
    after = Report("EngineCore", 0, 7, {"behaved": {"batches_in_flight": {"1": 1 + one, "2": 400 + two}}})
    (row,) = behaved.rows("async_dflash", {"batches_in_flight_max": {"min": 2}}, [before], [after])
    assert row.ok is ok


def test_one_step_over_the_limit_is_enough_to_break_it() -> None:
    before = Report("EngineCore", 0, 7, {"behaved": {"batches_in_flight": {"1": 1}}})
    after = Report("EngineCore", 0, 7, {"behaved": {"batches_in_flight": {"1": 900, "2": 1}}})
    (row,) = behaved.rows("serve.async_scheduling", {"batches_in_flight_max": {"max": 1}}, [before], [after])
    assert not row.ok
