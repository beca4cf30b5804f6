"""Interruptions by the public door: what had been found out is kept, and only that is said which is so."""

import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from campaign.engine import processes
from tests.fakes.line import ROOT, WAIT_S, Line, marked, until
from tests.fakes.overlay import Change, write_overlay

PASS_OR_SCREEN, FAIL, INTERRUPTED = (0, 3), 1, 130
FAKES = ROOT / "tests" / "fakes" / "overlays"
TOTAL = 124549
SMI = """#!/bin/sh
case "$*" in *loop-ms*) exit 0;; esac  # the watch over a boot; here only memory is told
n=$(($(cat {state}/n) + 1))
case "$*" in *compute-apps*) ;; *)
  echo $n > {state}/n; line=$(sed -n "${{n}}p" {state}/used)
  [ -n "$line" ] || line=$(tail -n 1 {state}/used)
  printf '0, GPU-a, %s, {total}\\n1, GPU-b, %s, {total}\\n' $line;;
esac
"""


@pytest.fixture
def smi(line: Line, tmp_path: Path) -> Callable[..., Path]:
    """smi("used of device 0, of device 1", ...): what nvidia-smi says, reading by reading, the last one for ever."""

    def made(*readings: str) -> Path:
        state = tmp_path / "smi"
        state.mkdir()
        (state / "n").write_text("0")
        (state / "used").write_text("".join(f"{reading}\n" for reading in readings))
        (state / "nvidia-smi").write_text(SMI.format(state=shlex.quote(str(state)), total=TOTAL))
        (state / "nvidia-smi").chmod(0o755)
        line.env = os.environ | {"PATH": f"{state}:{os.environ['PATH']}"}
        return state

    return made


def readings(state: Path) -> int:
    """How often nvidia-smi was asked."""
    return int((state / "n").read_text() or "0")


def interrupt(runner: subprocess.Popen[str], number: signal.Signals = signal.SIGTERM) -> str:
    """Tell it to end; what it said."""
    runner.send_signal(number)
    told, _ = runner.communicate(timeout=WAIT_S)
    assert runner.returncode == (-number if number is signal.SIGKILL else INTERRUPTED), told
    return told


WAITS = {
    "a failure, by SIGTERM": ("die_in_window:9", signal.SIGTERM, "failed", (FAIL,)),
    "a failure, by SIGKILL": ("die_in_window:9", signal.SIGKILL, "failed", (FAIL,)),
    "a measurement, by SIGTERM": ("", signal.SIGTERM, "ok", PASS_OR_SCREEN),
    "a measurement, by SIGKILL": ("", signal.SIGKILL, "ok", PASS_OR_SCREEN),
}


@pytest.mark.case("A10")
@pytest.mark.parametrize(("fault", "number", "status", "codes"), WAITS.values(), ids=WAITS)
def test_what_a_boot_gave_outlives_an_interruption_of_the_wait_for_its_memory(
    line: Line, smi: Callable[..., Path], fault: str, number: signal.Signals, status: str, codes: tuple[int, ...]
) -> None:
    """The first boot's memory does not come back before the runner is ended; then it does."""
    state = smi("4000 0", "90000 0")
    words = ["bracket.schedule=ABA", "bracket.mirror=false", "host.memory_timeout_s=100"]
    runner = line.start("fake8", *words, *([f"+engine.env.FAKE_FAULT='{fault}'"] if fault else []))
    until(lambda: readings(state) >= 2)
    interrupt(runner, number)
    (first,) = line.boots()
    assert (first["status"], first["index"]) == (status, 1)
    (state / "used").write_text("4000 0\n")
    (line.only_run() / "boots/01-A/engine.log").write_text("of the boot that was kept")
    done = line.resume(line.only_run())
    assert done.returncode in codes, done.stdout + done.stderr
    assert line.boots()[0] == first
    assert (line.only_run() / "boots/01-A/engine.log").read_text() == "of the boot that was kept"


def reaped(run: Path) -> Callable[[], bool]:
    """Whether the runner has noticed that its engine is gone."""
    (leader,) = [pid for pid in marked(run.name) if (proc := processes.read(pid)) and proc.session == pid]
    return lambda: processes.read(leader) is None


@pytest.mark.case("A5")
def test_an_engine_that_died_is_a_fail_although_the_runner_is_interrupted_while_it_clears_up(
    line: Line, tmp_path: Path
) -> None:
    """A deaf orphan makes the stop last three seconds."""
    fault = "+engine.env.FAKE_FAULT='die_in_window:9,orphan_child'"
    words = ["bracket.schedule=ABA", "bracket.mirror=false", fault]
    runner = line.start("fake8", *words, f"+engine.env.FAKE_MARKER_FILE={tmp_path / 'device-memory'}")
    until(lambda: bool(list(line.folder.glob("*/boots/01-A/engine.log"))) and bool(marked(line.only_run().name)))
    until(reaped(line.only_run()))
    told = interrupt(runner)
    assert "the engine is stopped" in told
    assert [boot["status"] for boot in line.boots()] == ["failed"]
    done = line.resume(line.only_run())
    assert done.returncode == FAIL, done.stdout + done.stderr


@pytest.mark.case("A4", "A12")
def test_an_attempt_that_failed_is_counted_although_the_runner_is_interrupted_before_the_next(
    line: Line, smi: Callable[..., Path], tmp_path: Path
) -> None:
    """The neighbour who made it fail is still restless; the machine is waited for, and then the run is resumed."""
    state = smi(*["4000 0"] * 2, *["60000 0", "30000 0"] * 3, "4000 0")
    fault = "+engine.env.FAKE_FAULT='co_tenant:1'"
    words = ["bracket.schedule=ABA", "bracket.mirror=false", fault, f"host.cache_dir={tmp_path / 'own'}"]
    runner = line.start("fake8", *words)
    until(lambda: readings(state) >= 4)
    interrupt(runner)
    run = line.only_run()
    assert (run / "boots/01-A/attempt-1/engine.log").is_file()
    assert [event["event"] for event in line.events()] == ["attempt"]
    done = line.resume(run)
    assert done.returncode in PASS_OR_SCREEN, done.stdout + done.stderr
    first = line.boots()[0]["facts"]
    assert (first["attempts"], first["retried"]) == ("2", "co-tenant")
    assert str(run / "boots/01-A/attempt-1/engine.log") in first["attempt_1"]


def test_devices_of_others_do_not_keep_a_run_from_being_resumed(line: Line, smi: Callable[..., Path]) -> None:
    state = smi(*[f"4000 {mib}" for mib in (10000, 90000) * 50])
    words = ["bracket.schedule=ABA", "+engine.env.CUDA_VISIBLE_DEVICES='0'", "host.memory_timeout_s=6"]
    runner = line.start("fake8", *words)
    until(lambda: bool(list(line.folder.glob("*/boots/*/engine.log"))) and bool(marked(line.only_run().name)))
    interrupt(runner, signal.SIGKILL)
    done = line.resume(line.only_run())
    assert done.returncode in PASS_OR_SCREEN, done.stdout + done.stderr
    assert "ended what the killed run had left" in done.stdout
    assert readings(state) > 3


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT], ids=lambda n: n.name)
def test_a_runner_that_is_ended_while_it_stages_leaves_no_child_and_claims_no_engine(
    line: Line, tmp_path: Path, number: signal.Signals
) -> None:
    """The overlay's import takes for ever, so that the import smoke does."""
    begun = tmp_path / "begun"
    slow = f"import os\nimport time\nopen({str(begun)!r}, 'a').write(str(os.getpid()))\ntime.sleep(600)\n"
    write_overlay(tmp_path / "mine", "slow_import", Change("vllm/envs.py", "import os\n", slow))
    runner = line.start(
        "fake8",
        f"host.overlay_path=[{FAKES},{tmp_path / 'mine'}]",
        "arms.candidate.overlays=[fake_async,slow_import]",
        f"host.cache_dir={tmp_path / 'own'}",
    )
    until(lambda: begun.exists() and begun.read_text().isdigit())
    told = interrupt(runner, number)
    assert "interrupted (130)" in told
    assert "engine is stopped" not in told
    assert gone(int(begun.read_text()))


def gone(pid: int) -> bool:
    """Whether it is dead, or dies while it is waited for."""
    until(lambda: (proc := processes.read(pid)) is None or not proc.alive)
    return True


NOHUP = ["sh", "-c", 'trap "" HUP INT; exec "$@"', "sh"]


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGINT], ids=lambda n: n.name)
def test_a_run_that_was_started_deaf_to_a_signal_stays_deaf_to_it(line: Line, number: signal.Signals) -> None:
    """As below nohup, or in the background of a script."""
    words = [*NOHUP, *line.command(*line.overrides("fake8", "bracket.schedule=ABA"))]
    runner = subprocess.Popen(
        words, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
    )
    until(lambda: deaf(runner.pid))
    while runner.poll() is None:
        runner.send_signal(number)
        time.sleep(0.02)
    told, _ = runner.communicate(timeout=WAIT_S)
    assert runner.returncode in PASS_OR_SCREEN, told


def deaf(pid: int) -> bool:
    """Whether the shell has become the runner, with the signals ignored."""
    return b"campaign" in b" ".join(map(os.fsencode, processes.cmdline(pid)[2:3]))


@pytest.mark.case("A3")
def test_a_resume_that_is_interrupted_while_it_ends_what_was_left_ends_it_all_the_same(
    line: Line, tmp_path: Path
) -> None:
    """What was left is deaf to SIGTERM, and says when it was told."""
    runner = line.start("fake8", "bracket.schedule=ABA", "engine.stop_timeout_s=4")
    until(lambda: bool(list(line.folder.glob("*/boots/*/engine.log"))) and bool(marked(line.only_run().name)))
    interrupt(runner, signal.SIGKILL)
    told_file = tmp_path / "told"
    left = deaf_orphan(line.only_run().name, told_file)
    resumed = subprocess.Popen(
        line.command("resume", str(line.only_run())),
        cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    until(told_file.exists)
    try:
        told = interrupt(resumed)
        assert left.poll() == -signal.SIGKILL
    finally:
        left.kill()
        left.communicate()
    assert "the engine is stopped" not in told


DEAF = """
import pathlib, signal, sys, time
signal.signal(signal.SIGTERM, lambda *_: pathlib.Path(sys.argv[1]).touch())
print(flush=True)
while True:
    time.sleep(1)
"""


def deaf_orphan(run_id: str, told: Path) -> subprocess.Popen[bytes]:
    """A process with the run's marker that touches a file at SIGTERM, and lives on."""
    child = subprocess.Popen(
        [sys.executable, "-S", "-E", "-c", DEAF, str(told)],
        env={"CAMPAIGN_RUN_ID": run_id}, stdout=subprocess.PIPE, start_new_session=True,
    )  # fmt: skip
    assert child.stdout is not None
    child.stdout.readline()
    return child
