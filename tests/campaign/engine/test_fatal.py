"""Lines and exit codes in words."""

import pytest

from campaign.engine import fatal
from campaign.errors import EngineFailedError, HostUnfitError, InvalidError

MEMORY = (
    "Free memory on device cuda:0 (36.75/121.63 GiB) on startup is less than desired GPU memory utilization "
    "(0.85, 103.38 GiB)."
)
CO_TENANT = "Error in memory profiling. Initial free memory 60.0 GiB, current free memory 68.0 GiB."
FAILED_CORE = "RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): "


@pytest.mark.parametrize(
    ("line", "error", "words"),
    [
        (MEMORY, EngineFailedError, "36.75 of the device's 121.63 GiB are free, the engine wants 103.38"),
        (CO_TENANT, HostUnfitError, "co-tenant activity"),
        ("TimeoutError: Timed out waiting for engine core processes to start.", EngineFailedError, "own limit"),
        (FAILED_CORE + "{}", EngineFailedError, "VLLM_ENGINE_READY_TIMEOUT_S=600"),
        (FAILED_CORE + "{'EngineCore_0': 1}", EngineFailedError, "the engine core did not start"),
        ("[Errno 98] error while attempting to bind: address already in use", InvalidError, "port in use"),
    ],
)
def test_a_fatal_line_says_whose_fault_it_is(line: str, error: type[Exception], words: str) -> None:
    found = fatal.find(f"some line\nERROR {line}\nanother", {})
    assert found is not None
    assert found.error is error
    assert words in found.sentence


def test_the_cause_is_told_before_its_consequence() -> None:
    found = fatal.find(f"{FAILED_CORE}{{}}\n{MEMORY}", {})
    assert found is not None
    assert "GiB" in found.sentence


def test_an_ordinary_log_holds_nothing_fatal() -> None:
    assert fatal.find("INFO:     Application startup complete.\nWARNING nothing", {}) is None


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (0, "exited with 0"),
        (3, "exited with 3"),
        (-9, "was killed by SIGKILL, sender unknown"),
        (137, "was killed by SIGKILL, sender unknown"),
        (-15, "was killed by SIGTERM"),
        (250, "exited with 250"),
    ],
)
def test_exit_codes_have_words(code: int, words: str) -> None:
    assert fatal.exit_words(code) == words


def test_a_kill_of_our_own_says_so() -> None:
    assert fatal.exit_words(-9, by_us=True) == "was killed by SIGKILL, sent by this runner"


def test_nothing_claims_the_oom_killer() -> None:
    assert "OOM" not in fatal.exit_words(137).upper().replace("ROOM", "")


def test_a_worker_that_died_of_sigill_is_named_with_the_cure() -> None:
    log = "ERROR Worker proc VllmWorker-0 died unexpectedly (exit code: -4), shutting down executor."
    words = fatal.exit_words(1, log)
    assert words.startswith("exited with 1; a worker was killed by SIGILL")
    assert "send a long one first" in words
