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


@pytest.mark.case("A4", "A11", "A12", "E8")
@pytest.mark.parametrize(
    ("line", "transient"),
    [
        (FAILED_CORE + "{}", "cold cache"),
        ("TimeoutError: Timed out waiting for engines to send initial message on input socket.", "cold cache"),
        (CO_TENANT, "co-tenant"),
        ("AssertionError: expected size 7==9, stride 5120==5120 at dim=0", "stale compile cache"),
        (MEMORY, ""),
        (FAILED_CORE + "{'EngineCore_0': 1}", ""),
        ("[Errno 98] error while attempting to bind: address already in use", ""),
    ],
    ids=["limit", "limit while it waits", "neighbour", "stale cache", "too little memory", "core died", "port"],
)
def test_only_what_may_pass_is_worth_a_second_boot(line: str, transient: str) -> None:
    found = fatal.find(f"{line}\n", {})
    assert found is not None
    assert found.transient == transient


@pytest.mark.case("E8")
def test_a_stale_compile_cache_is_told_with_both_sizes_and_its_place() -> None:
    line = "AssertionError: expected size 7==9, stride 5120==5120 at dim=0"
    found = fatal.find(f"{FAILED_CORE}{{'EngineCore_0': 1}}\n{line}", {"VLLM_CACHE_ROOT": "/cache/vllm"})
    assert found is not None
    assert found.sentence == ("stale compile cache: a kernel that was built for size 9 met size 7 (cache /cache/vllm)")


def test_the_cause_is_told_before_its_consequence() -> None:
    found = fatal.find(f"{FAILED_CORE}{{}}\n{MEMORY}", {})
    assert found is not None
    assert "GiB" in found.sentence


def test_a_core_that_died_of_an_error_is_not_told_as_a_limit_that_fired() -> None:
    """Seen on the V2 runner: an exception in the worker, and the front end names no core that failed."""
    log = f"ERROR EngineCore failed to start.\nRuntimeError: Worker failed with error 'x'\n{FAILED_CORE}{{}}"
    found = fatal.find(log, {})
    assert found is not None
    assert "did not start" in found.sentence
    assert found.transient == ""


def test_a_line_that_an_engine_got_over_does_not_hide_the_one_behind_it() -> None:
    log = f"OSError: [Errno 98] Address already in use, trying 8001\n{MEMORY}"
    first, behind = fatal.find(log, {}), fatal.find(log, {}, survived=True)
    assert first is not None
    assert behind is not None
    assert ("port in use" in first.sentence, "GiB" in behind.sentence) == (True, True)
    assert (first.survivable, behind.survivable) == (True, False)


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


@pytest.mark.case("A13")
def test_a_kill_of_our_own_says_so() -> None:
    assert fatal.exit_words(-9, by_us=True) == "was killed by SIGKILL, sent by this runner"


@pytest.mark.case("A13")
@pytest.mark.parametrize(
    ("text", "proof", "words"),
    [
        ("", "oom_kill of our cgroup rose from 0 to 1", "by the kernel, out of memory (oom_kill of our cgroup rose"),
        ("Out of memory: Killed process 7 (python)", "", "(the kernel's line 'Out of memory: Killed process 7')"),
        ("MemoryError: out of memory", "", "sender unknown"),
        ("torch.OutOfMemoryError: CUDA out of memory", "", "sender unknown"),
    ],
    ids=["the cgroup's count", "the kernel's line", "a Python error", "a device's error"],
)
def test_the_oom_killer_is_named_only_with_a_proof(text: str, proof: str, words: str) -> None:
    assert words in fatal.exit_words(137, text, proof=proof).removeprefix("was killed by SIGKILL, ")
    assert "out of memory" not in fatal.exit_words(-15, text, proof=proof)


@pytest.mark.case("A13")
def test_nothing_claims_the_oom_killer() -> None:
    assert "OOM" not in fatal.exit_words(137).upper().replace("ROOM", "")


def test_a_worker_that_died_of_sigill_is_named_with_the_cure() -> None:
    log = "ERROR Worker proc VllmWorker-0 died unexpectedly (exit code: -4), shutting down executor."
    words = fatal.exit_words(1, log)
    assert words.startswith("exited with 1; a worker was killed by SIGILL")
    assert "send a long one first" in words
