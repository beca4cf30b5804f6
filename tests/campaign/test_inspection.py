"""`inspect FILE`: an engine's log or a /metrics text, real ones and the reported ones, read by the public door."""

import json
from pathlib import Path

import pytest

from campaign.door import run_reference
from campaign.errors import ConfigError
from campaign.inspection import look_into

SAMPLES = Path(__file__).resolve().parents[1] / "samples"
PREFIX = "(APIServer pid=7) WARNING 11-30 12:41:44 [envs.py:2248]"
UNKNOWN = "Unknown vLLM environment variable detected:"
SERVICES = [f"{PREFIX} {UNKNOWN} VLLM_SVC{i}_SERVICE_PORT_HTTP" for i in range(40)]
STARTED = "(APIServer pid=7) INFO:     Application startup complete."
LINE = (
    "(APIServer pid=7) INFO 11-30 12:41:58 [metrics.py:120] SpecDecoding metrics: Mean acceptance length: {length}, "
    "Accepted throughput: 1.00 tokens/s, Drafted throughput: 1.00 tokens/s, Accepted: {accepted} tokens, "
    "Drafted: {drafted} tokens, Per-position acceptance rate: {rates}, Avg Draft acceptance rate: {average}%"
)
REPORTED = LINE.format(
    length=2.91, accepted=44, drafted=161, rates="0.739, 0.478, 0.261, 0.174, 0.130, 0.087, 0.043", average=27.3
)
COLLAPSED = LINE.format(length=2.03, accepted=1030, drafted=3000, rates="0.780, 0.200, 0.050", average=34.3)
USELESS = LINE.format(length=1.02, accepted=20, drafted=3000, rates="0.012, 0.005, 0.003", average=0.7)


@pytest.fixture
def inspect(asked, tmp_path):
    """inspect(*lines, given=..., argv=...): the verb on a log of these lines beside env.json and argv.json."""

    def run(*lines, given=None, argv=None):
        log = tmp_path / "engine.log"
        log.write_text("\n".join(lines) + "\n", encoding="utf-8")
        for name, content in (("env.json", given), ("argv.json", argv)):
            if content is not None:
                (tmp_path / name).write_text(json.dumps(content))
        return asked("inspect", str(log))

    return run


def test_a_real_log_is_read_and_what_it_says_after_its_stop_is_no_failure(asked):
    done = asked("inspect", str(SAMPLES / "engine_base.log"))
    assert done.returncode == 0, done.stderr
    for words in (
        "method dflash, K=5",
        "using the V1 model runner instead",
        "174,720 tokens, 85.31 requests of 2,048",
        "stopped     as it was told to",
        "2.37 tokens a step, 1039/3780 accepted (27.5 %)",
        "5 intervals that the log printed, not a run's total",
    ):
        assert words in done.stdout
    assert "contradicts" not in done.stdout


@pytest.mark.parametrize("name", ["metrics_base.txt", "metrics_async.txt"])
def test_a_real_scrape_is_read_under_our_names(asked, name):
    done = asked("inspect", str(SAMPLES / name))
    assert done.returncode == 0, done.stderr
    assert "engines 0" in done.stdout
    assert "decode_s" in done.stdout
    assert "vllm:spec_decode_num_drafts_total" in done.stdout
    assert "pos1 36.1 %" in done.stdout
    assert "contradicts" not in done.stdout


@pytest.mark.case("C13")
def test_the_line_of_an_interval_is_checked_against_itself(inspect):
    done = inspect(STARTED, REPORTED, REPORTED.replace("2.91", "3.88"))
    assert done.returncode == 0
    assert "each given the one before: 0.65, 0.55, 0.67, 0.75, 0.67, 0.49: no collapse" in done.stdout
    assert "contradicts itself: 1 + the sum of its rates is 2.912, but it says a length of 3.88" in done.stdout
    assert "not a run's total" in done.stdout


@pytest.mark.parametrize(
    ("line", "words"),
    [(COLLAPSED, "chain collapse after pos1: 78 % there, 26 % of those go on"), (USELESS, "drafter ineffective")],
    ids=["fine at the first position", "a method that was inferred wrongly"],
)
@pytest.mark.case("C13", "C5")
def test_a_broken_chain_and_a_useless_drafter_have_names_of_their_own(inspect, line, words):
    assert words in inspect(STARTED, line).stdout


@pytest.mark.case("C13")
def test_an_interval_of_ten_seconds_is_no_run_and_no_chain_of_it_is_judged(inspect):
    """A healthy base, of which one interval looks as if it collapsed."""
    unlucky = LINE.format(length=1.78, accepted=78, drafted=300, rates="0.600, 0.150, 0.030", average=26.0)
    usual = LINE.format(length=2.35, accepted=405, drafted=900, rates="0.600, 0.450, 0.300", average=45.0)
    done = inspect(STARTED, unlucky, usual)
    assert "chain collapse" not in done.stdout
    assert ": no collapse (2 intervals that the log printed, not a run's total)" in done.stdout
    assert "chain collapse after pos1" in inspect(STARTED, unlucky, unlucky).stdout


@pytest.mark.case("C13")
def test_intervals_with_other_lengths_of_drafts_have_no_total(inspect):
    done = inspect(STARTED, REPORTED, COLLAPSED)
    assert "together    the intervals draft different lengths: no total of them is judged" in done.stdout
    assert "collapse" not in done.stdout


@pytest.mark.case("C1")
def test_a_removed_variable_that_the_boot_was_given_names_both_backends(inspect):
    log = (f"{PREFIX} {UNKNOWN} VLLM_ATTENTION_BACKEND", "Using AttentionBackendEnum.FLASH_ATTN backend.", STARTED)
    done = inspect(*log, given={"VLLM_ATTENTION_BACKEND": "TRITON_ATTN"})
    assert done.returncode == 5
    words = (
        "VLLM_ATTENTION_BACKEND=TRITON_ATTN was given and is unknown to the engine: it does nothing; it uses FLASH_ATTN"
    )
    assert words in done.stdout


@pytest.mark.case("C2")
def test_of_forty_one_unknown_variables_the_one_that_was_given_is_told(inspect):
    ours = f"{PREFIX} {UNKNOWN} VLLM_FLASHINFER_MOE_BACKEND"
    done = inspect(*SERVICES, ours, STARTED, given={"VLLM_FLASHINFER_MOE_BACKEND": "latency"})
    assert done.returncode == 5
    assert "VLLM_FLASHINFER_MOE_BACKEND=latency was given" in done.stdout
    assert "40 unknown, of others" in done.stdout
    assert inspect(*SERVICES, STARTED, given={"VLLM_FLASHINFER_MOE_BACKEND": "latency"}).returncode == 0


@pytest.mark.case("C2")
def test_a_variable_that_an_overlay_reads_is_expected(inspect):
    line = f"{PREFIX} {UNKNOWN} VLLM_GLM53_ASYNC_DFLASH"
    done = inspect(line, STARTED, given={"VLLM_GLM53_ASYNC_DFLASH": "1"})
    assert done.returncode == 0
    assert "1 unknown to the engine and read by overlays: expected" in done.stdout


@pytest.mark.case("C3")
def test_the_decision_about_async_scheduling_is_what_the_log_says(inspect):
    warning = "Async scheduling not supported with dflash-based speculative decoding and will be disabled."
    assert f"decided     {warning}" in inspect(f"{PREFIX} {warning}", STARTED).stdout
    assert "Async scheduling" not in inspect(STARTED).stdout


@pytest.mark.case("C10")
def test_the_runners_fallback_is_shown_and_its_refusal_is_a_failed_start(inspect):
    fallback = "Model Runner V2 requires Triton; using the V1 model runner instead."
    done = inspect(*(f"({who} pid=1) WARNING 11-30 12:41:44 [vllm.py:663] {fallback}" for who in "ab"), STARTED)
    assert (done.returncode, done.stdout.count(fallback)) == (0, 1)
    refused = "ValueError: VLLM_USE_V2_MODEL_RUNNER=1, but Model Runner V2 requires Triton"
    done = inspect(f"{PREFIX} x", "Traceback (most recent call last):", refused)
    assert done.returncode == 1
    assert refused in done.stdout


@pytest.mark.case("C9")
def test_a_death_for_want_of_memory_says_that_offloading_was_not_confirmed(inspect):
    lines = (
        f"{PREFIX} x",
        "torch.OutOfMemoryError: CUDA out of memory.",
        "Engine core initialization failed. See above.",
    )
    argv = ["python", "--cpu-offload-gb", "12", "--max-num-seqs", "4"]
    done = inspect(*lines, argv=argv)
    assert done.returncode == 1
    assert "not confirmed: --cpu-offload-gb 12 was asked for" in done.stdout
    assert "not confirmed" not in inspect("INFO Offloader set to UVAOffloader", *lines, argv=argv).stdout


@pytest.mark.case("B13")
def test_a_changed_memory_profile_is_shown_beside_the_capacity(inspect):
    note = (
        "CUDA graph memory profiling is enabled (default since v0.21.0). The --gpu-memory-utilization=0.6200 is "
        "equivalent to --gpu-memory-utilization=0.5413 without it. Increase --gpu-memory-utilization to 0.6987."
    )
    done = inspect(f"{PREFIX} {note}", "GPU KV cache size: 174,720 tokens", STARTED)
    assert "0.6987" in done.stdout
    assert "capacities of versions that profile differently are not comparable" in done.stdout


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (
            "TimeoutError: Timed out waiting for engines to send initial message on input socket.",
            "engine-ready timeout",
        ),
        (
            "ValueError: Free memory on device cuda:0 (36.75/121.63 GiB) on startup is less than desired GPU memory "
            "utilization (0.85, 103.38 GiB).",
            "36.75 of the device's 121.63 GiB are free, the engine wants 103.38",
        ),
        (
            "[Errno 98] error while attempting to bind on address ('0.0.0.0', 8000): address already in use",
            "port in use",
        ),
        ("ERROR Worker proc died unexpectedly (exit code: -9)", "was killed by SIGKILL, sender unknown"),
    ],
    ids=["the engine's own limit", "too little memory", "the port", "a worker that was killed"],
)
def test_a_log_of_a_dead_engine_says_why_and_ends_with_one(inspect, line, words):
    done = inspect(f"{PREFIX} x", line)
    assert done.returncode == 1
    assert words in done.stdout


OLD_AND_NEW = """# TYPE vllm:prefix_cache_queries_total counter
vllm:prefix_cache_queries_total{engine="0"} 1000000
vllm:gpu_prefix_cache_queries_total{engine="0"} 999
vllm:prefix_cache_hits_total{engine="0"} 322000
vllm:num_preemptions_total{engine="0"} 180
vllm:spec_decode_num_drafts_total{engine="0"} 10
vllm:spec_decode_num_drafts_total{engine="1"} 30
vllm:spec_decode_num_accepted_tokens_total{engine="0"} 99
vllm:spec_decode_num_accepted_tokens_per_pos_total{engine="0",position="0"} 8
vllm:spec_decode_num_accepted_tokens_per_pos_total{engine="1",position="0"} 20
"""


def test_renamed_metrics_several_engines_and_counters_that_disagree_are_told(tmp_path):
    file = tmp_path / "metrics.txt"
    file.write_text(OLD_AND_NEW)
    text = "\n".join(look_into(file).lines)
    assert "1e+06  (vllm:prefix_cache_queries_total; left out vllm:gpu_prefix_cache_queries_total)" in text
    assert "by engine 0: 10, 1: 30" in text
    assert "positions add up to 28, accepted tokens are 99" in text
    assert "32.2 % of the tokens asked for, beside 180 preemptions" in text
    assert "metric missing: none of vllm:generation_tokens_total (missing is never 0)" in text


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"name,value\n1,2\n", "is neither an engine's log nor a /metrics text"),
        (b" \n", "is empty: the engine wrote nothing"),
        (b"\x7fELF\0\0", "is no text"),
        (b"# TYPE a counter\na{ 1\n", "is not Prometheus text"),
    ],
    ids=["a table", "nothing", "a binary", "a broken scrape"],
)
def test_a_file_that_is_neither_is_a_configuration_error(asked, tmp_path, content, words):
    file = tmp_path / "file.txt"
    file.write_bytes(content)
    done = asked("inspect", str(file))
    assert done.returncode == 2
    assert words in done.stderr
    assert "Traceback" not in done.stderr


QUOTED = f"{PREFIX} x\nEngineDeadError: EngineCore encountered an issue.\n{STARTED}\n"
QUOTING = {  # a file that quotes a log -> its text
    "report.md": f"# FAIL: exp8 (exp8-20261130-120000-5f3c)\n\n```text\n  | {QUOTED}```\n",
    "page.txt": f"# FAIL: exp8 (exp8-20261130-120000-5f3c)\n\n```text\n  | {QUOTED}```\n",
    "report.html": f"<!doctype html>\n<pre>{QUOTED}</pre>",
    "saved": f"<!DOCTYPE html>\n<pre>{QUOTED}</pre>",
    "journal.jsonl": json.dumps({"event": "boot", "log_tail": QUOTED.splitlines()}),
    "result": json.dumps({"gates": QUOTED.splitlines()}, indent=1),
    "argv": json.dumps(QUOTED.splitlines()),
    "notes.md": QUOTED,
    "probe.py": f'"""{QUOTED}"""',
}


@pytest.mark.parametrize("name", QUOTING)
def test_a_page_that_quotes_a_log_is_no_log(tmp_path, name):
    (tmp_path / name).write_text(QUOTING[name])
    with pytest.raises(ConfigError, match="is neither an engine's log nor a /metrics text, though it may quote one"):
        look_into(tmp_path / name)


def test_a_log_that_a_container_engine_wrapped_is_read(tmp_path):
    lines = [json.dumps({"log": line, "stream": "stderr"}) for line in (f"{PREFIX} x\n", f"{STARTED}\n")]
    (tmp_path / "engine.log").write_text("\n".join(lines))
    assert look_into(tmp_path / "engine.log").code == 0


@pytest.mark.parametrize(
    "line",
    ["api_server.py: error: argument --max-num-seqs: invalid int value: 'x'",
     "vllm serve: error: unrecognized arguments: --nosuch 1"],
)  # fmt: skip
def test_an_engine_that_died_on_its_arguments_is_a_failed_one_with_that_line(inspect, line):
    done = inspect("usage: api_server.py [-h] [--headless] [--port PORT]", "                     [--host HOST]", line)
    assert done.returncode == 1, done.stderr
    assert (
        f"the engine refused its arguments: {line.partition('error: ')[2]} (EngineFailedError, exit 1)" in done.stdout
    )


def test_a_validation_error_is_told_with_its_reason(inspect):
    reason = "Value error, User-specified max_model_len (4096) is greater than the derived max_model_len (2048)."
    done = inspect(
        f"{PREFIX} x",
        "Traceback (most recent call last):",
        "pydantic_core._pydantic_core.ValidationError: 1 validation error for ModelConfig",
        f"  {reason} [type=value_error, input_value=ArgsKwargs((), {{}}), input_type=ArgsKwargs]",
        "    For further information visit https://errors.pydantic.dev/2.12/v/value_error",
    )
    assert done.returncode == 1
    assert f"ValidationError: 1 validation error for ModelConfig: {reason}" in done.stdout


def test_what_lies_beside_a_log_is_read_strictly(tmp_path):
    (tmp_path / "engine.log").write_text(STARTED)
    (tmp_path / "env.json").write_text("[1]")
    with pytest.raises(ConfigError, match="holds list, wanted dict"):
        look_into(tmp_path / "engine.log")


def test_neither_tracker_nor_plotter_is_imported_for_a_file(python):
    code = (
        "import sys; from campaign.__main__ import main; "
        f"main(['inspect', {str(SAMPLES / 'engine_base.log')!r}]); "
        "print({'mlflow', 'matplotlib', 'scipy.stats'} & set(sys.modules))"
    )
    assert python("-c", code).stdout.splitlines()[-1] == "set()"


def test_with_json_there_is_one_document_on_stdout_and_nothing_else(command):
    files = [str(SAMPLES / name) for name in ("engine_base.log", "metrics_base.txt")]
    done = command("inspect", *files, "--json")
    assert (done.returncode, done.stderr) == (0, "")
    told = json.loads(done.stdout)
    assert [finding["kind"] for finding in told["findings"]] == ["log", "metrics", "together"]
    assert told["findings"][1]["numbers"]["acceptance_pos1_pp"] == pytest.approx(36.1, abs=0.1)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--jason", "engine_base.log"], "inspect has no option --jason; there is --json"),
        (["engine_base.log", "nosuch.log"], "no such file or run"),
        ([], "inspect takes one run id"),
    ],
    ids=["an option", "a file that is not there", "nothing"],
)
def test_a_wrong_word_after_inspect_is_told(words, told):
    with pytest.raises(ConfigError, match=told):
        run_reference("inspect", [str(SAMPLES / word) if word.endswith(".log") else word for word in words])


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        ("near.json", {"claim": {}, "letters": "ABBA"}, "as a record it lacks readings"),
        ("texts.jsonl", {"text": "x", "finish_reason": 1}, "texts.jsonl:1: text, prompt and finish_reason are texts"),
        ("stream.json", {"chunks": [[1, 0]]}, "wanted a chunk or more, each with its time and one token"),
        ("stream.json", {"chunks": [[2, 1], [1, 1]]}, "is before that of the chunk before it"),
        ("result.json", {"run_id": "x", "verdict": "WON", "gates": []}, "verdict is 'WON', wanted PASS, FAIL"),
    ],
    ids=["nearly a record", "an answer", "a chunk without tokens", "time goes back", "a word"],
)
def test_json_of_a_known_kind_is_read_strictly(tmp_path, name, content, told):
    (tmp_path / name).write_text(json.dumps(content))
    with pytest.raises(ConfigError, match=told):
        look_into(tmp_path / name)


def test_answers_that_are_no_utf8_are_not_mended_into_corruption(tmp_path):
    (tmp_path / "texts.jsonl").write_bytes(b'{"text": "\xec\x8a", "finish_reason": "stop"}')
    with pytest.raises(ConfigError, match="is no UTF-8"):
        look_into(tmp_path / "texts.jsonl")


def test_a_benchmark_in_which_all_answered_is_still_one_run_of_one_arm(tmp_path):
    (tmp_path / "bench.json").write_text(json.dumps({"completed": 100, "num_prompts": 100, "output_throughput": 44.0}))
    found = look_into(tmp_path / "bench.json")
    assert found.code == 3
    assert "no interval" in found.lines[-1]
