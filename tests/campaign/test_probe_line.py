"""The probe and the ends of a run, on the fake engine: what is said to a person who stops, resumes or looks."""

import json
import re
import signal
import subprocess
from pathlib import Path

import pytest

from tests.fakes.line import ROOT, WAIT_S, Line, finished_boots, until

FAULT = "+engine.env.FAKE_FAULT="
INTERRUPTED, CONFIG, INCONCLUSIVE = 130, 2, 3


def verb(line: Line, *words: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(line.command(*words), cwd=ROOT, capture_output=True, text=True, check=False)


def boot(line: Line, *more: str) -> "subprocess.Popen[str]":
    words = line.command("boot", *line.overrides("fake8", "arm=candidate", *more))
    return subprocess.Popen(words, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def said_until(process: "subprocess.Popen[str]", words: str) -> str:
    """What it prints up to the line that holds these words."""
    assert process.stdout is not None
    lines = []
    for text in process.stdout:
        lines.append(text)
        if words in text:
            break
    return "".join(lines)


def test_a_probe_shows_its_arm_and_is_never_resumed_or_imported(line: Line) -> None:
    process = boot(line)
    said = said_until(process, "is up at")
    assert "knob fake_async=1 (VLLM_FAKE_ASYNC; experiment fake8)" in said
    assert "arm         base" not in said
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=WAIT_S)
    assert process.returncode == 0
    folder = line.only_run()
    assert json.loads((folder / "plan.json").read_text())["kind"] == "probe"
    refused_as_a_probe(line, folder)
    plan = json.loads((folder / "plan.json").read_text())
    del plan["kind"]  # as older versions wrote it
    (folder / "plan.json").write_text(json.dumps(plan))
    refused_as_a_probe(line, folder)
    assert not (folder / "journal.jsonl").exists()


def refused_as_a_probe(line: Line, folder: Path) -> None:
    for word in ("resume", "import"):
        done = verb(line, word, str(folder))
        assert (done.returncode, done.stdout) == (CONFIG, "")
        assert f"is a probe, which measures nothing to {word}; run `boot` again" in done.stderr
    shown = verb(line, "inspect", str(folder))
    assert shown.returncode == INCONCLUSIVE, shown.stderr
    assert "a probe; nothing to resume" in shown.stdout
    assert f"inspect {folder}/boots/01-B/engine.log" in shown.stdout


def test_a_probe_that_is_interrupted_while_it_boots_offers_no_resume(line: Line) -> None:
    process = boot(line, f"{FAULT}hang_at_boot")
    until(lambda: bool(list(line.folder.glob("*/boots/01-B/engine.log"))))
    process.send_signal(signal.SIGINT)
    said, _ = process.communicate(timeout=WAIT_S)
    assert process.returncode == INTERRUPTED
    assert "run `boot` for a new one" in said
    assert "resume" not in said


def test_a_probe_whose_engine_dies_shows_the_end_of_its_log_as_a_run_does(line: Line) -> None:
    process = boot(line, f"{FAULT}die_at_boot")
    said, _ = process.communicate(timeout=WAIT_S)
    assert process.returncode == 1
    assert re.search(r"^ +\| .*ValueError: No available memory", said, re.M)


def test_an_interrupted_run_says_how_it_goes_on_as_it_can_be_typed(line: Line) -> None:
    runner = line.start("fake8", "bracket.schedule=ABA")
    until(lambda: bool(list(line.folder.glob("*/boots/*/engine.log"))))
    runner.send_signal(signal.SIGINT)
    said, _ = runner.communicate(timeout=WAIT_S)
    assert runner.returncode == INTERRUPTED
    (typed,) = re.findall(r"`python -m campaign (resume [^`]+)` continues", said)
    shown = verb(line, "inspect", *typed.split()[1:])
    assert f"`python -m campaign {typed}` goes on" in shown.stdout
    done = verb(line, *typed.split())
    assert done.returncode == INCONCLUSIVE, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("more", "word"),
    [
        (("bracket.mirror=false", f"{FAULT}die_at_boot"), "FAIL at 01-A"),
        (("bracket.mirror=false", "arms.candidate.overlays=[fake_noop]"), "INVALID at 02-B"),
        (("bracket.schedule=ABA",), "INCONCLUSIVE"),
    ],
    ids=["failed", "invalid", "finished"],
)
def test_a_run_that_has_its_verdict_is_not_resumed_and_says_so(line: Line, more: tuple[str, ...], word: str) -> None:
    first = line.run("fake8", *more)
    run = line.only_run()
    before, report = finished_boots(run), (run / "report.md").stat().st_mtime_ns
    again = line.resume(run)
    assert again.returncode == first.returncode
    assert f"ended with {word}; it is not run again: start a new run" in again.stdout
    assert "resuming" not in again.stdout
    assert again.stdout.splitlines()[-1] == first.stdout.splitlines()[-1]
    assert (finished_boots(run), (run / "report.md").stat().st_mtime_ns) == (before, report)
