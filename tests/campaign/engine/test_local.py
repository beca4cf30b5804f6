"""Boots a small real process over HTTP, and looks at what is left of it afterwards."""

import contextlib
import dataclasses
import http.client
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from campaign.engine import local, processes, stop
from campaign.engine.local import RunningEngine, serve
from campaign.engine.spec import EngineSpec
from campaign.errors import EngineFailedError, InvalidError
from tests.fakes.ports import free_port

Make = Callable[..., EngineSpec]
Orphans = Callable[[], list[int]]
SOON_S = 120.0  # ends a test that would hang; a busy machine is slow


def complete(spec: EngineSpec, prompt: str = "hello", **more: Any) -> dict[str, Any]:
    """One completion of the engine that is not streamed."""
    connection = http.client.HTTPConnection("127.0.0.1", spec.port, timeout=10)
    body = json.dumps({"model": spec.nonce, "prompt": prompt, "max_tokens": 8} | more)
    connection.request("POST", "/v1/completions", body, {"Content-Type": "application/json"})
    answer: dict[str, Any] = json.loads(connection.getresponse().read())
    connection.close()
    return answer


def test_a_good_boot_is_ready_and_then_gone(make: Make) -> None:
    spec = make()
    with serve(spec) as engine:
        assert complete(spec)["model"] == spec.nonce
        assert engine.kv is not None
        assert engine.kv.capacity_tokens == 174_720
        assert 0 < engine.first_request_s < engine.boot_s
        engine.check()
        engine.check_listeners()
    assert engine.stopped is not None
    assert (engine.stopped.killed, engine.stopped.exit_code, engine.stopped.leftovers) == (False, 0, ())
    assert not spec.tmp_dir.exists()


def test_an_engine_that_ignores_sigterm_is_killed_after_its_deadline(make: Make) -> None:
    with serve(make("ignore_sigterm", stop_timeout_s=0.5)) as engine:
        pass
    assert engine.stopped is not None
    assert (engine.stopped.killed, engine.stopped.exit_code) == (True, -signal.SIGKILL)


@pytest.mark.case("A1")
@pytest.mark.parametrize("leader_killed_first", [False, True], ids=["it stops by itself", "its leader was SIGKILLed"])
def test_an_orphan_in_its_own_session_without_marker_is_found_and_killed(
    make: Make, orphans: Orphans, leader_killed_first: bool
) -> None:
    with serve(make("orphan_child")) as engine:
        (orphan,) = orphans()
        assert orphan in engine.pids()
        if leader_killed_first:
            os.kill(engine.pid, signal.SIGKILL)
    assert engine.stopped is not None
    assert engine.stopped.killed
    assert processes.read(orphan) is None


@pytest.mark.case("A1")
def test_an_orphan_that_nobody_saw_before_its_parent_died_is_adopted_and_killed(make: Make, orphans: Orphans) -> None:
    spec = make("late_orphan:0")
    with serve(spec) as engine:
        complete(spec)
        (orphan,) = orphans()
        os.kill(engine.pid, signal.SIGKILL)
    assert processes.read(orphan) is None


def test_shared_memory_of_a_dead_engine_is_removed_and_named(make: Make, port: int) -> None:
    with serve(make("leak_shm")) as engine:
        pass
    assert engine.stopped is not None
    assert engine.stopped.swept == (f"/dev/shm/psm_fake_run-{port}_{engine.pid}",)


def test_shared_memory_that_was_there_before_is_not_ours_to_remove(make: Make) -> None:
    foreign = Path(f"/dev/shm/psm_foreign_{os.getpid()}")
    foreign.write_bytes(b"somebody's")
    try:
        with serve(make()):
            pass
        assert foreign.exists()
    finally:
        foreign.unlink()


def end_and_check(engine: RunningEngine, *, by: Callable[[RunningEngine], object]) -> None:
    """Let the engine die, then ask what the bracket asks between two prompts."""
    by(engine)
    engine.boot.process.wait()
    engine.check()


@pytest.mark.case("A13")
def test_an_engine_killed_while_it_is_measured_is_told_by_check(make: Make) -> None:
    words = r"killed by SIGKILL, sender unknown while it was measured.*engine\.log"
    with pytest.raises(EngineFailedError, match=words), serve(make()) as engine:
        end_and_check(engine, by=lambda live: os.kill(live.pid, signal.SIGKILL))
    assert engine.stopped is not None
    assert engine.stopped.exit_code == -signal.SIGKILL


@pytest.mark.case("A10")
@pytest.mark.parametrize("fault", ["die_on_first_request", "health_only", ""], ids=["dead", "unwell", "good"])
def test_what_an_engine_held_of_the_host_is_known_however_it_ended(make: Make, fault: str) -> None:
    ended: dict[str, str] = {}
    with contextlib.suppress(EngineFailedError), serve(make(fault), ended=ended):
        pass
    assert int(ended["memory_held_mib"]) > 0
    assert ended["stop"] == ("exited with 1" if fault.startswith("die") else "exited with 0")


def complete_until_it_breaks(engine: RunningEngine) -> None:
    """Completions, until one is cut off by the engine's death."""
    with contextlib.suppress(http.client.HTTPException, OSError):
        while True:
            complete(engine.spec)


def test_an_engine_that_dies_in_mid_stream_leaves_its_reason_in_the_log(make: Make) -> None:
    with (
        pytest.raises(EngineFailedError, match=r"exited with 1 .*EngineDeadError"),
        serve(make("die_in_window:1")) as it,
    ):
        end_and_check(it, by=complete_until_it_breaks)


@pytest.mark.case("A5")
def test_an_engine_core_that_died_below_a_living_server_is_told_by_check(make: Make) -> None:
    line = "vllm.v1.engine.exceptions.EngineDeadError: EngineCore encountered an issue.\n"
    with serve(make()) as engine:
        with engine.spec.log_file.open("a") as log:
            log.write(line)
        with pytest.raises(EngineFailedError, match="the API server lives, but the engine core died"):
            engine.check()


def test_an_error_of_the_caller_stops_the_engine_and_keeps_its_class(make: Make) -> None:
    with pytest.raises(ZeroDivisionError), serve(make()) as engine:
        _ = 1 / 0
    assert engine.stopped is not None


@pytest.mark.case("A9")
def test_a_listener_on_the_port_is_named_with_its_model_and_nothing_is_started(make: Make) -> None:
    spec = make()
    with serve(spec) as other:
        words = rf"foreign server.*pid {other.pid}.*serving {spec.nonce}"
        with pytest.raises(InvalidError, match=words), serve(spec):
            pass
        other.check()


def test_an_interpreter_that_does_not_exist_is_an_engine_that_failed(make: Make) -> None:
    with pytest.raises(EngineFailedError, match="cannot start /no/such/python"), serve(make(python="/no/such/python")):
        pass


def test_a_package_root_outside_the_stage_is_refused_with_both_paths(make: Make, tmp_path: Path) -> None:
    spec = make()
    stale = tmp_path / "stale" / "vllm"
    stale.mkdir(parents=True)
    (stale / "__init__.py").touch()
    spec.env["PYTHONPATH"] = str(stale.parent)
    with (
        pytest.raises(InvalidError, match=rf"from {stale}/__init__.py, wanted the stage {spec.stage_path}"),
        serve(spec),
    ):
        pass


def test_a_folder_named_like_the_package_in_the_working_directory_is_not_imported(make: Make) -> None:
    spec = make()
    (spec.cwd / "vllm").mkdir(parents=True)
    (spec.cwd / "vllm" / "__init__.py").write_text("raise SystemExit('the wrong package')")
    with serve(spec):
        assert complete(spec)["usage"]["completion_tokens"] == 8


def test_the_arguments_arrive_byte_for_byte(make: Make) -> None:
    odd = {"json": {"method": "mtp", "n": 4}, "text": "a b '\"$HOME 한국어", "dash": "-x"}
    spec = make(serve=odd)
    with serve(spec) as engine:
        found = processes.cmdline(engine.pid)
    assert found[-len(spec.argv) + 1 :] == spec.argv[1:]
    assert '{"method": "mtp", "n": 4}' in found
    assert "a b '\"$HOME 한국어" in found
    assert "--dash=-x" in found


RUNNER = """
import sys, time
from pathlib import Path
from campaign.engine.local import RunningEngine, serve
from campaign.engine.spec import EngineSpec
fields = eval(Path(sys.argv[1]).read_text(), {"PosixPath": Path, "frozenset": frozenset})
with serve(EngineSpec(**fields)):
    print("ready", flush=True)
    time.sleep(600)
"""


def runner_of(spec: EngineSpec, tmp_path: Path) -> subprocess.Popen[str]:
    """A runner of its own: another process that boots the engine and holds it."""
    fields = tmp_path / "spec.txt"
    fields.write_text(repr(vars(spec)))
    root = Path(local.__file__).parents[2]
    pipe = subprocess.PIPE
    return subprocess.Popen([sys.executable, "-c", RUNNER, fields], stdout=pipe, stderr=pipe, text=True, cwd=root)


def engine_of(spec: EngineSpec) -> int:
    """Wait until the runner's engine exists; its first process."""
    deadline = time.monotonic() + SOON_S
    while time.monotonic() < deadline:
        for pid, proc in processes.table().items():
            if proc.alive and proc.session == pid and processes.carries(pid, "CAMPAIGN_BOOT_ID", spec.nonce):
                return pid
        time.sleep(0.02)
    raise AssertionError("the runner started no engine")


@pytest.mark.case("A3")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP], ids=lambda n: n.name)
def test_a_runner_that_is_told_to_end_while_booting_stops_its_engine(
    make: Make, tmp_path: Path, number: signal.Signals
) -> None:
    spec = make("slow_boot")
    runner = runner_of(spec, tmp_path)
    engine = engine_of(spec)
    runner.send_signal(number)
    _, errors = runner.communicate(timeout=SOON_S)
    assert "KeyboardInterrupt" in errors
    assert processes.read(engine) is None


@pytest.mark.case("A1")
def test_what_a_killed_runner_left_is_swept_by_its_marker(make: Make, tmp_path: Path, port: int) -> None:
    spec = make()
    runner = runner_of(spec, tmp_path)
    assert runner.stdout is not None
    assert runner.stdout.readline() == "ready\n"
    engine = engine_of(spec)
    runner.kill()
    runner.communicate(timeout=SOON_S)
    assert processes.read(engine) is not None
    assert any(f"pid {engine} " in name for name in stop.sweep(f"run-{port}", 5.0))
    assert not spec.tmp_dir.exists()


DEAF = """
import os, signal, time
signal.signal(signal.SIGTERM, lambda *_: os.kill(os.getppid(), signal.SIGINT))
print(flush=True)
while True:
    time.sleep(1)
"""


@pytest.mark.case("A3")
def test_a_sweep_that_is_interrupted_runs_to_its_end(port: int) -> None:
    left = subprocess.Popen(
        [sys.executable, "-S", "-E", "-c", DEAF],
        env={"CAMPAIGN_RUN_ID": f"run-{port}"}, stdout=subprocess.PIPE, start_new_session=True,
    )  # fmt: skip
    assert left.stdout is not None
    left.stdout.readline()
    try:
        with pytest.raises(KeyboardInterrupt):
            stop.sweep(f"run-{port}", 1.0)
        assert left.poll() == -signal.SIGKILL
    finally:
        left.kill()
        left.communicate()


def test_two_live_engines_are_told_apart_when_one_stops(make: Make, tmp_path: Path) -> None:
    first, second = make(), make()
    other_port = free_port()
    argv = tuple(str(other_port) if word == str(second.port) else word for word in second.argv)
    env = second.env | {"CAMPAIGN_BOOT_ID": f"t-{other_port}"}
    second = dataclasses.replace(second, argv=argv, env=env, port=other_port, log_file=tmp_path / "other.log")
    with serve(first) as one:
        with serve(second) as two:
            assert not one.pids() & two.pids()
        one.check()
        assert complete(first)["model"] == first.nonce


def test_serve_works_outside_the_main_thread(make: Make) -> None:
    spec, seen = make(), []

    def boot() -> None:
        with serve(spec):
            seen.append(complete(spec)["model"])

    thread = threading.Thread(target=boot)
    thread.start()
    thread.join()
    assert seen == [spec.nonce]
