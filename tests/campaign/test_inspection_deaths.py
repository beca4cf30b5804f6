"""`inspect LOG`: an engine that died is told whoever wrote its last words; words of a request are nobody's death."""

import json
from pathlib import Path
from typing import Any

import pytest

from campaign.errors import ConfigError, ExitCode
from campaign.inspection import Finding, look_into

STARTED = "(APIServer pid=7) INFO:     Application startup complete."
CORE = "(EngineCore pid=9) ERROR 11-30 12:41:44 [core.py:1376]"
SAID = "(APIServer pid=7) INFO 11-30 12:41:44 [request_logger.py:64]"


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Where a boot's log would lie in a run."""
    file = tmp_path / "run" / "boots" / "01-A" / "engine.log"
    file.parent.mkdir(parents=True)
    return file


def read(log: Path, *lines: str) -> Finding:
    """What is found in a log of these lines."""
    log.write_text("".join(f"{line}\n" for line in (STARTED, *lines)))
    return look_into(log)


DEATHS = [
    "!!!!!!! Segfault encountered !!!!!!!",
    "Fatal Python error: Segmentation fault",
    "Fatal Python error: Aborted",
    "Illegal instruction (core dumped)",
    "bash: line 1: 4711 Segmentation fault      (core dumped) python -m vllm",
    "Segmentation fault",
    "Killed",
    "*** SIGSEGV received at time=1764500000 on cpu 3 ***",
    "CUDA error: an illegal memory access",
    f"{CORE} CUDA error: device-side assert triggered",
    "torch.AcceleratorError: CUDA error: an illegal memory access was encountered",
    f"{CORE} EngineCore encountered a fatal error.",
    f"{CORE} EngineCore failed to start.",
    "vllm.v1.engine.exceptions.EngineDeadError: EngineCore encountered an issue.",
    "Worker proc VllmWorker-0 died unexpectedly (exit code: -11), shutting down executor.",
    "terminate called after throwing an instance of 'c10::Error'",
    "double free or corruption (!prev)",
    "free(): invalid pointer",
    "Out of memory: Killed process 4711 (python)",
]


@pytest.mark.case("A13")
@pytest.mark.parametrize("line", DEATHS)
def test_the_last_words_of_an_engine_that_died_end_with_one(log: Path, line: str) -> None:
    found = read(log, line, "nothing more")
    assert found.code is ExitCode.FAIL
    assert any(row.startswith("  failed ") for row in found.lines)


QUOTED = [
    f"""{SAID} Received request cmpl-1: prompt: '{{}}', params: SamplingParams(n=1), lora_request: None.""",
    f"""{SAID} Generated response cmpl-1: output: '{{}}', finish_reason: stop""",
    f"""{SAID} Generated response cmpl-1 (streaming delta): output: '{{}}', finish_reason: None""",
    """(APIServer pid=7) DEBUG 11-30 12:41:44 [request_logger.py:54] Request cmpl-1 details: prompt: '{}', x""",
    """2026-11-30 12:41:44,1 INFO Received request cmpl-1: prompt: '{}', params: SamplingParams(n=1).""",
]
QUOTES = [
    *DEATHS[:10],
    "Address [Errno 98] address already in use",
    "KV cache size: 1 tokens",
    "Async scheduling will be disabled",
]


@pytest.mark.parametrize("line", QUOTED, ids=["request", "response", "part", "details", "another prefix"])
def test_the_words_of_a_request_are_nothing_that_happened(log: Path, line: str) -> None:
    plain = read(log)
    for words in QUOTES:
        found = read(log, line.format(words))
        assert (found.code, found.lines[1:]) == (ExitCode.PASS, plain.lines[1:]), words


@pytest.mark.parametrize("line", QUOTED, ids=["request", "response", "part", "details", "another prefix"])
def test_a_prompt_that_looks_like_a_stop_hides_no_death(log: Path, line: str) -> None:
    assert read(log, line.format("[shutdown] hi"), f"{CORE} EngineDeadError").code is ExitCode.FAIL


def test_a_word_in_the_middle_of_a_line_is_no_stop(log: Path) -> None:
    line = "(APIServer pid=7) INFO 11-30 12:41:44 [x.py:1] model named [shutdown] loaded"
    assert read(log, line, f"{CORE} EngineDeadError").code is ExitCode.FAIL


@pytest.mark.parametrize(
    "prefix", ["(APIServer pid=7) INFO 11-30 12:42:41 [launcher.py:124] ", "INFO 11-30 12:42:41 [x.py:1] ", ""]
)
def test_what_is_said_after_a_stop_is_no_death(log: Path, prefix: str) -> None:
    found = read(log, f"{prefix}[shutdown] API server: shutdown triggered", f"{CORE} EngineDeadError")
    assert found.code is ExitCode.PASS
    assert any("as it was told to" in row for row in found.lines)


PLANS: dict[str, tuple[Any, str]] = {
    "no map": ([], "holds list, wanted dict"),
    "config a list": ({"config": []}, "what holds host is list, wanted a map"),
    "config null": ({"config": None}, "what holds host is NoneType, wanted a map"),
    "host null": ({"config": {"host": None}}, "what holds overlay_path is NoneType, wanted a map"),
    "no path": ({"config": {"host": {"overlay_path": None}}}, "overlay_path is None, wanted a list of folders"),
    "a number": ({"config": {"host": {"overlay_path": [1]}}}, r"overlay_path is \[1\], wanted a list of folders"),
    "a text": ({"config": {"host": {"overlay_path": "/x"}}}, "overlay_path is '/x', wanted a list of folders"),
}


@pytest.mark.parametrize(("plan", "words"), PLANS.values(), ids=PLANS)
@pytest.mark.parametrize("below", ["", "attempt-1"], ids=["a boot", "an attempt"])
def test_a_plan_beside_the_log_that_is_broken_is_told(log: Path, plan: Any, words: str, below: str) -> None:
    (log.parents[2] / "plan.json").write_text(json.dumps(plan))
    with pytest.raises(ConfigError, match=f"plan.json.*{words}"):
        read(log.parent / "engine.log" if not below else _attempt(log, below))


def _attempt(log: Path, below: str) -> Path:
    (log.parent / below).mkdir()
    return log.parent / below / "engine.log"


@pytest.mark.parametrize(
    "plan", [{}, {"config": {}}, {"config": {"host": {}}}, {"config": {"host": {"overlay_path": ["/no", "\0"]}}}]
)
def test_a_plan_that_says_nothing_of_overlays_is_no_fault(log: Path, plan: Any) -> None:
    (log.parents[2] / "plan.json").write_text(json.dumps(plan))
    assert read(log).code is ExitCode.PASS


def test_a_plan_of_somebody_else_is_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "a" / "b" / "engine.log"
    file.parent.mkdir(parents=True)
    (tmp_path / "plan.json").write_text("[]")
    assert read(file).code is ExitCode.PASS
