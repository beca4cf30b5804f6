"""Duets on the fake engine: two real processes at once, from their first pair to the report."""

import json
import signal
import subprocess
from pathlib import Path

import pytest

from campaign.engine.port import listener
from campaign.journal import RunFolder
from tests.fakes.line import ROOT, WAIT_S, Line, finished_boots, gates, marked, until
from verdict.claims import Claim, ClaimKind, Direction
from verdict.claims import judge as judge_readings
from verdict.fit import Scale
from verdict.words import Verdict

DUET = (
    "bracket=duet",
    "bracket.mirror=false",
    "bracket.reruns_per_block=16",
    "bracket.reruns=100",
)  # a busy machine is void, not wrong
QUICK = ("gates.quality=null", "gates.korean=null", "workload.max_tokens=64", "bracket.aa_pairs=0")
GAIN = Claim("step_rate", "step_per_s", ClaimKind.superiority, 0.0, Scale.LOG, Direction.HIGHER)


@pytest.mark.alone
def test_a_gain_is_seen_on_a_machine_that_swings_where_the_same_boots_alone_show_nothing(line: Line) -> None:
    swing = ("+engine.env.FAKE_HOST_SWING='0.15'", "bracket.aa_pairs=1", "bracket.schedule=AB BA BA AB")
    done = line.run("fake8", *DUET, *swing)
    assert done.returncode == 0, done.stdout + done.stderr
    assert gates(done.stdout)["step/s"] == "PASS"
    assert "4 pairs live at once AB BA BA AB" in done.stdout
    assert "pair 4/4  07-AB" in done.stdout
    assert "base beside base: second port against first, step/s" in done.stdout
    boots = line.boots()
    assert [(boot["letter"], boot["pair"]) for boot in boots] == [
        *zip("ABBABAAB", (1, 1, 2, 2, 3, 3, 4, 4), strict=True)
    ]
    alone = judge_readings(GAIN, [boot["metrics"]["step_per_s"] for boot in boots], "ABBABAAB")
    assert alone.verdict is Verdict.INCONCLUSIVE
    run = line.only_run()
    assert [_port(run, boot) for boot in ("01-A", "02-B", "03-B", "04-A")] == [line.port, line.port + 1] * 2
    assert [record.letter for record in RunFolder(run).records("aa-")] == ["A", "A"]
    assert "Pairs" in (run / "report.md").read_text()
    told = subprocess.run(line.command("inspect", str(run)), cwd=ROOT, capture_output=True, text=True, check=False)
    assert told.returncode == 0, told.stdout + told.stderr
    assert "pair 4/4  07-AB" in told.stdout


def ended(runner: subprocess.Popen[str]) -> bool:
    """Whether it is gone, so that nobody waits for it in vain."""
    return runner.poll() is not None


def _port(run: Path, boot: str) -> int:
    words = json.loads((run / "boots" / boot / "argv.json").read_text())
    return int(words[words.index("--port") + 1])


@pytest.mark.case("A5")
def test_an_engine_that_dies_beside_another_is_a_fail_of_its_arm_and_the_pair_is_no_datum(line: Line) -> None:
    first_of_the_window = ("workload.max_warm_up_requests=2", "+engine.env.FAKE_FAULT=die_in_window:3")
    done = line.run("fake8", *DUET, *QUICK, *first_of_the_window, "bracket.schedule=BA AB")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "FAIL          engine      arm candidate, boot 01-B" in done.stdout
    assert gates(done.stdout) == {}
    died, beside = line.boots()
    assert (died["status"], beside["status"], beside["metrics"]) == ("failed", "void", {})
    assert "pair 1 has no data: its other boot, 01-B (candidate), failed" in beside["reason"]
    assert beside["facts"]["beside_another"] == "01-B (candidate)"
    assert (line.only_run() / "boots/02-A/metrics-before.txt").exists()  # both were in the common window
    assert listener(line.port + 1) is None


@pytest.mark.alone
@pytest.mark.case("A10")
def test_an_interruption_in_the_window_leaves_nothing_of_both_and_a_kill_keeps_the_whole_pairs(
    line: Line,
) -> None:
    runner = line.start("fake8", *DUET, *QUICK, "bracket.schedule=AB BA", "workload.repeats=6")
    until(lambda: len(list(line.folder.glob("*/boots/0[12]-*/metrics-before.txt"))) == 2 or ended(runner))
    run = line.only_run()
    runner.send_signal(signal.SIGTERM)
    told, _ = runner.communicate(timeout=WAIT_S)
    assert runner.returncode == 130, told
    assert "resume" in told
    assert (line.left_behind(), listener(line.port + 1), line.boots()) == ([], None, [])

    plan = json.loads((run / "plan.json").read_text())
    assert plan["schedule"] == "AB BA"
    runner = subprocess.Popen(line.command("resume", str(run)), cwd=ROOT, stdout=subprocess.DEVNULL, text=True)
    until(lambda: (finished_boots(run) == 2 and len(marked(run.name)) > 0) or ended(runner))
    runner.kill()
    runner.wait(WAIT_S)
    kept = line.boots()[:2]
    done = line.resume(run)
    assert done.returncode == 3, done.stdout + done.stderr  # two pairs are a screen
    assert line.boots()[:2] == kept
    assert [boot["pair"] for boot in line.boots()] == [1, 1, 2, 2]
    assert listener(line.port + 1) is None
