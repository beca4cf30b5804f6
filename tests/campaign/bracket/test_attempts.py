"""Starts and stops by the public door: what may pass is tried again once, all else is told at once, nothing is left."""

import json
import os
import shlex
import signal
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from campaign.engine import processes
from tests.campaign.engine.conftest import holders
from tests.fakes.line import WAIT_S, Line, finished_boots, marked, until
from tests.fakes.neighbour import foreign_server

GIB = 1024
FAIL, VOID, INVALID, INTERRUPTED, SCREEN = 1, 4, 5, 130, 3


def faulty(line: Line, fault: str, *more: str, **env: str) -> tuple[int, str, dict[str, Any]]:
    """A screen on an engine with this fault: exit code, what was told, and the last boot's record."""
    words = [f"+engine.env.{name}={value}" for name, value in env.items()]
    done = line.run("fake8", "bracket.schedule=ABA", "bracket.mirror=false", planted(fault), *words, *more)
    return done.returncode, done.stdout + done.stderr, line.boots()[-1]


def planted(fault: str) -> str:
    """The override that plants a fault."""
    return f"+engine.env.FAKE_FAULT='{fault}'"


ENDINGS = {
    "A3: the engine's own limit fires and it blocks for ever": (
        "engine_timeout",
        FAIL,
        "arm base, boot 01-A: attempt 2: engine-ready timeout: the engine's own limit fired",
    ),
    "A6: it wants a key": ("unauthorized", FAIL, "arm base, boot 01-A: auth required: /v1/models answers 401"),
    "A6: only its health is good": ("health_only", FAIL, "health only: the first generation answered 500"),
    "A6: it serves another model": ("wrong_model_name", INVALID, "wrong model: our own engine on port"),
    "A7: it dies on its first prompt": ("die_on_first_request", FAIL, "exited with 1 on its first request"),
    "A11: the device has too little memory": (
        "no_memory",
        FAIL,
        "36.75 of the device's 121.63 GiB are free, the engine wants 103.38",
    ),
    "A13: exit 137 is a kill by nobody knows whom": ("die_at_boot:137", FAIL, "killed by SIGKILL, sender unknown"),
    "A13: the kernel's own line is a proof": ("kernel_line", FAIL, "killed by SIGKILL, by the kernel, out of memory"),
    "A5: nothing answers any more": ("hang:6", FAIL, "engine hangs: no token came for prompt"),
}


@pytest.mark.case("A3", "A5", "A6", "A7", "A11", "A13")
@pytest.mark.parametrize(("fault", "code", "words"), ENDINGS.values(), ids=ENDINGS)
def test_an_engine_that_is_not_well_has_a_sentence_and_a_code_of_its_own(
    line: Line, fault: str, code: int, words: str
) -> None:
    found, told, boot = faulty(line, fault, "engine.stall_timeout_s=2")
    assert (found, words in told) == (code, True), told
    assert boot["metrics"] == {}
    assert ("transient" in boot["facts"]) is (fault == "engine_timeout")


@pytest.mark.case("A5")
def test_a_stall_is_told_by_what_the_metrics_showed_and_never_as_slow_data(line: Line) -> None:
    code, told, boot = faulty(line, "stalls:6", "engine.stall_timeout_s=2")
    assert (code, boot["metrics"], "transient" in boot["facts"]) == (FAIL, {}, False)
    assert "arm base, boot 01-A: engine stalled: no token came for prompt" in told
    assert "in 2 s; /metrics shows 0 running, 1 waiting, generation tokens flat at" in boot["reason"]
    assert "step/s" not in told.split("boot 1/3")[1]


@pytest.mark.case("A4", "E9")
def test_a_cold_start_that_outlasts_the_engines_limit_is_made_once_more_and_tagged(line: Line, tmp_path: Path) -> None:
    code, told, _ = faulty(line, "cold_timeout", f"host.cache_dir={tmp_path / 'own'}")
    assert code == SCREEN, told
    first, second, third = (boot["facts"] for boot in line.boots())
    assert (first["attempts"], first["retried"], first["compile_cache"]) == ("2", "cold-cache", "warm")
    assert "own limit fired (VLLM_ENGINE_READY_TIMEOUT_S=60), not ours" in first["attempt_1"]
    assert (second["attempts"], second["retried"]) == ("2", "cold-cache")
    assert ("attempts" in third, third["compile_cache"]) == (False, "warm")
    assert "boot 01-A attempt 1 failed before it was ready, once more (cold cache)" in told
    run = line.only_run()
    kept = run / "boots/01-A/attempt-1/engine.log"
    assert "Engine core initialization failed" in kept.read_text(encoding="utf-8")
    assert str(kept) in first["attempt_1"]
    assert "Application startup complete" in (run / "boots/01-A/engine.log").read_text(encoding="utf-8")
    assert "cold-cache" in (run / "report.md").read_text(encoding="utf-8")


@pytest.mark.case("A4")
def test_no_retry_is_made_where_none_is_allowed(line: Line, tmp_path: Path) -> None:
    code, _, boot = faulty(line, "cold_timeout", "engine.boot_retries=0", f"host.cache_dir={tmp_path / 'own'}")
    assert (code, boot["facts"]["compile_cache"]) == (FAIL, "cold")
    assert "attempts" not in boot["facts"]


@pytest.mark.case("A4")
def test_a_limit_that_fires_on_a_warm_cache_is_no_passing_matter(line: Line, tmp_path: Path) -> None:
    words = ["engine.boot_retries=3", f"host.cache_dir={tmp_path / 'own'}"]
    code, _, boot = faulty(line, "cold_timeout:always", *words)
    assert (code, boot["facts"]["attempts"], boot["facts"]["compile_cache"]) == (FAIL, "2", "warm")


@pytest.mark.case("A12")
@pytest.mark.parametrize(("boots", "code", "attempts"), [(1, SCREEN, "2"), (2, VOID, "2")], ids=["once", "again"])
def test_a_neighbour_who_let_go_of_memory_is_not_blamed_on_the_experiment(
    line: Line, tmp_path: Path, boots: int, code: int, attempts: str
) -> None:
    found, told, _ = faulty(line, f"co_tenant:{boots}", "bracket.reruns=0", f"host.cache_dir={tmp_path / 'own'}")
    assert found == code, told
    first = line.boots()[0]["facts"]
    assert (first["attempts"], first["retried"]) == (attempts, "co-tenant")
    assert "co-tenant activity" in first["attempt_1"]


@pytest.mark.case("E8")
def test_drafts_of_another_length_never_meet_a_compile_cache_that_was_not_made_for_them(
    line: Line, tmp_path: Path
) -> None:
    """One cache root for all; that each boot came so far as to die in its first answer shows that it started."""
    for k in (7, 9):
        each = Line(tmp_path / f"runs-{k}", line.cache, line.port)
        _, told, boot = faulty(each, "die_in_window:0", f"model.num_speculative_tokens={k}")
        assert "while it was measured" in boot["reason"], told
        assert each.left_behind() == []


@pytest.mark.case("E8")
def test_a_stale_compile_cache_is_classed_and_the_boot_made_once_more_on_a_clean_one(
    line: Line, tmp_path: Path
) -> None:
    own = f"host.cache_dir={tmp_path / 'own'}"
    first = Line(tmp_path / "before", line.cache, line.port)
    faulty(first, "die_in_window:0", own)
    (shape,) = (tmp_path / "own").glob("compile/*/*/vllm/compiled-shape")
    shape.write_text("9")
    _, told, boot = faulty(line, "die_in_window:0", own, "bracket.burn_in=auto")
    assert "stale compile cache: a kernel that was built for size 9 met size 7" in boot["facts"]["attempt_1"], told
    assert (boot["facts"]["retried"], boot["facts"]["compile_cache"]) == ("stale-compile-cache", "warm")
    assert told.index("once more (stale compile cache)") < told.index("burn-in       arm base, not measured")
    assert "while it was measured" in boot["reason"]
    assert shape.read_text() == "7"
    assert first.left_behind() == []


@pytest.mark.case("A7")
def test_slow_first_turns_never_enter_a_measurement(line: Line) -> None:
    code, told, boot = faulty(line, "slow_turns:3")  # the cold one and both of the warm-up
    assert code == SCREEN, told
    assert float(boot["facts"]["cold_request_s"]) >= 1.5
    samples = (line.only_run() / "boots/01-A/samples.jsonl").read_text(encoding="utf-8").splitlines()
    firsts = [(s["chunk_ns"][0] - s["sent_ns"]) / 1e9 for s in map(json.loads, samples)]
    assert max(firsts) < 1.5


@pytest.mark.case("A5")
def test_a_prefill_that_takes_longer_than_the_stall_limit_is_slow_and_not_stalled(line: Line) -> None:
    code, told, boot = faulty(line, "slow_prefill:1", "engine.stall_timeout_s=1")
    assert code == SCREEN, told
    assert float(boot["facts"]["cold_request_s"]) >= 2.5


@pytest.mark.case("A8")
def test_an_engine_that_gets_over_an_address_in_use_is_measured(line: Line) -> None:
    code, told, _ = faulty(line, "another_port")
    assert code == SCREEN, told
    assert "[Errno 98]" in (line.only_run() / "boots/01-A/engine.log").read_text(encoding="utf-8")


@pytest.mark.case("A10")
def test_what_a_boot_that_failed_had_held_stands_in_its_record(line: Line) -> None:
    _, told, boot = faulty(line, "die_in_window:9")
    assert int(boot["facts"]["memory_held_mib"]) > 0, told
    assert boot["facts"]["stop"] == "exited with 1"


@pytest.mark.case("A13")
def test_a_kill_by_our_own_watchdog_says_so(line: Line) -> None:
    code, told, boot = faulty(line, "ignore_sigterm", "engine.stop_timeout_s=1")
    assert code == SCREEN, told
    assert boot["facts"]["stop"] == "was killed by SIGKILL, sent by this runner"


# what an engine leaves behind


@pytest.mark.case("A1")
def test_orphans_and_shared_memory_of_each_boot_are_gone_before_the_next(line: Line, tmp_path: Path) -> None:
    held = tmp_path / "device-memory"
    code, told, _ = faulty(line, "orphan_child,leak_shm", FAKE_MARKER_FILE=str(held))
    assert code == SCREEN, told
    assert holders(held) == []


def engine_leader(run_id: str) -> int | None:
    """The first process of a run's engine, once it is there."""
    leads = [pid for pid in marked(run_id) if (proc := processes.read(pid)) and proc.session == pid]
    return leads[0] if leads else None


@pytest.mark.case("A1")
def test_an_orphan_that_wiped_its_environment_does_not_outlive_runner_and_engine_once_resumed(
    line: Line, tmp_path: Path
) -> None:
    held = tmp_path / "device-memory"
    words = ["bracket.schedule=ABA", planted("orphan_child"), f"+engine.env.FAKE_MARKER_FILE={held}"]
    runner = line.start("fake8", *words)
    until(lambda: bool(list(line.folder.glob("*/journal.jsonl"))) and finished_boots(line.only_run()) >= 1)
    run = line.only_run()
    until(lambda: remembers(run, holders(held)))
    leader = engine_leader(run.name)
    runner.kill()
    assert leader is not None
    os.kill(leader, signal.SIGKILL)
    runner.communicate(timeout=WAIT_S)
    (orphan,) = holders(held)
    until(lambda: marked(run.name) == [])
    done = line.resume(run)
    assert done.returncode == SCREEN, done.stdout + done.stderr
    assert f"ended what the killed run had left: pid {orphan} " in done.stdout
    assert holders(held) == []


def remembers(run: Path, pids: list[int]) -> bool:
    """Whether the runner has written down that these live."""
    told = [json.loads(file.read_text(encoding="utf-8")) for file in run.glob("boots/*/processes.json")]
    return bool(pids) and set(pids) <= {pid for each in told for pid, _ in each["processes"]}


@pytest.mark.case("A3")
def test_a_runner_that_is_told_to_end_in_the_warm_up_leaves_nothing(line: Line, tmp_path: Path) -> None:
    held = tmp_path / "device-memory"
    words = ["bracket.schedule=ABA", planted("stalls:0,late_orphan:0"), f"+engine.env.FAKE_MARKER_FILE={held}"]
    runner = line.start("fake8", *words)
    until(lambda: one_waits(line.port))
    runner.terminate()
    told, _ = runner.communicate(timeout=WAIT_S)
    assert runner.returncode == INTERRUPTED, told
    assert "the engine is stopped; `python -m campaign resume" in told
    assert holders(held) == []


def metrics(port: int) -> bytes:
    """The engine's /metrics; empty while nobody answers."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=5) as door:
            door.sendall(b"GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            return b"".join(iter(lambda: door.recv(65536), b""))
    except OSError:
        return b""


def one_waits(port: int) -> bool:
    """Whether /metrics says that one request waits."""
    return any(line.startswith(b"vllm:num_requests_waiting{") for line in metrics(port).splitlines() if b" 1.0" in line)


# who answers


@pytest.mark.case("A9")
def test_yesterdays_server_on_the_port_is_invalid_and_named_and_nothing_is_started(line: Line) -> None:
    with foreign_server(line.port):
        done = line.run("fake8")
    assert done.returncode == INVALID
    assert "foreign server" in done.stderr
    assert f"pid {os.getpid()}" in done.stderr
    assert "serving yesterday" in done.stderr
    assert list(line.folder.glob("*/boots")) == []


@pytest.mark.case("A8")
def test_startup_complete_and_then_a_port_that_is_taken_is_invalid_with_its_holder(line: Line) -> None:
    words = ["bracket.schedule=ABA", "bracket.mirror=false", planted("bind_late"), "+engine.env.FAKE_BOOT_S='2'"]
    runner = line.start("fake8", *words)
    log = booting(line)
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", line.port))
        told, _ = runner.communicate(timeout=WAIT_S)
    assert runner.returncode == INVALID, told
    assert f"port in use: the engine could not bind it; port {line.port} is held by" in told
    assert "Application startup complete." in log.read_text(encoding="utf-8")


def booting(line: Line) -> Path:
    """The log of the first boot, as soon as its engine has begun."""

    def begun() -> bool:
        return any("non-default args" in log.read_text(encoding="utf-8") for log in logs())

    def logs() -> list[Path]:
        return list(line.folder.glob("*/boots/01-A/engine.log"))

    until(begun)
    return logs()[0]


# device memory, by a small real nvidia-smi that prints recorded lines

SMI = """#!/bin/sh
case "$*" in *loop-ms*) exit 0;; esac  # the watch over a boot; here only memory is told
state={state}
case "$*" in
  *compute-apps*) cat "$state/holders" ;;
  *) n=$(($(cat "$state/n") + 1)); echo $n > "$state/n"
     line=$(sed -n "${{n}}p" "$state/used"); [ -n "$line" ] || line=$(tail -n 1 "$state/used")
     echo "0, GPU-a, $line, 124549" ;;
esac
"""


@pytest.fixture
def device(line: Line, tmp_path: Path) -> Callable[..., Path]:
    """device(used MiB, ...; holders=...): what nvidia-smi will say, reading after reading (the last one for ever)."""

    def made(*used: object, holders: str = "") -> Path:
        state = tmp_path / "smi"
        state.mkdir()
        (state / "n").write_text("0")
        (state / "used").write_text("".join(f"{mib}\n" for mib in used))
        (state / "holders").write_text(holders)
        script = state / "nvidia-smi"
        script.write_text(SMI.format(state=shlex.quote(str(state))))
        script.chmod(0o755)
        line.env = os.environ | {"PATH": f"{state}:{os.environ['PATH']}"}
        return state

    return made


TOTAL = 124549  # 121.63 GiB


def free(gib: float) -> int:
    """MiB in use when so many GiB are free."""
    return int(TOTAL - gib * GIB)


@pytest.mark.case("A10")
def test_the_next_boot_waits_until_the_memory_is_measured_to_be_back(line: Line, device: Callable[..., Path]) -> None:
    state = device(free(117), *map(free, (12, 12, 12, 40, 117)))
    done = line.run("fake8", "bracket.schedule=ABA", "bracket.mirror=false")
    assert done.returncode == SCREEN, done.stdout + done.stderr
    first, second, third = line.boots()
    assert first["seconds"]["memory_back"] > second["seconds"]["memory_back"]
    assert int((state / "n").read_text()) == 1 + 5 + 1 + 1  # before the run, five after the first boot, one each then
    assert third["status"] == "ok"


@pytest.mark.case("A2", "A10", "A1")
def test_memory_that_does_not_come_back_voids_and_names_who_holds_it(line: Line, device: Callable[..., Path]) -> None:
    device(free(117), free(95), holders=f"GPU-a, {os.getpid()}, 11000\nGPU-a, 999999, [N/A]\n")
    done = line.run("fake8", "bracket.schedule=ABA", "bracket.mirror=false", "host.memory_timeout_s=2")
    assert done.returncode == VOID, done.stdout + done.stderr
    (boot,) = line.boots()
    assert (boot["status"], boot["index"]) == ("void", 1)
    assert "memory is not back 2 s after the stop" in boot["reason"]
    assert "device 0: 27269 MiB of 124549 used, 4741 before the first boot" in boot["reason"]


def test_a_process_that_was_on_the_device_before_the_run_is_not_ours_to_wait_for(
    line: Line, device: Callable[..., Path]
) -> None:
    device(free(100), holders="GPU-a, 999999, 20000\n")
    done = line.run("fake8", "bracket.schedule=ABA")
    assert done.returncode == SCREEN, done.stdout + done.stderr
