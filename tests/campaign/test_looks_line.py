"""Planned looks and void boots by the public door: what goes on, what ends, and what a resume knows."""

import json
import shutil
import signal
from pathlib import Path

import pytest

from tests.fakes.line import WAIT_S, Line, finished_boots, gates, until

INCONCLUSIVE, VOID = 3, 4
# So noisy that eight boots cannot tell +7 % from a gate of -20 %, and twelve can.
NOISY = "engine.env.FAKE_STEP_MS='4,3,4,4,4,4,3,4,4,3.2,3.2,4'"
SHORT = ["bracket.mirror=false", "gates.korean=null"]
SPEED_ALONE = ["gates.quality=null", "gates.acceptance=null", "~claims.acceptance"]
EXTENDING = [*SHORT, *SPEED_ALONE, NOISY, "claims.step_rate.gate_pct=-20"]
SCREEN = [*SHORT, "bracket.schedule=ABA"]


def told(run: Path, name: str) -> list[tuple[str, int]]:
    """A gate's verdict at each look of result.json, with the look that it is from."""
    looks = json.loads((run / "result.json").read_text())["looks"]
    return [(c["verdict"], c["look"]) for look in looks for c in look["claims"] if c["gate"] == name]


@pytest.mark.alone
def test_a_bracket_that_a_look_leaves_open_goes_on_is_resumed_within_and_ends_at_the_next(line: Line) -> None:
    runner = line.start("fake8", *EXTENDING)
    for boots in (1, 5, 9):  # each with a deadline of its own
        until(lambda n=boots: bool(list(line.folder.glob("*/journal.jsonl"))) and finished_boots(line.only_run()) >= n)
    runner.send_signal(signal.SIGTERM)
    begun, _ = runner.communicate(timeout=WAIT_S)
    run = line.only_run()
    there = finished_boots(run)
    assert "look 1 of 3   8 boots: step_rate INCONCLUSIVE" in begun
    assert "goes on to 12 boots" in begun
    assert f"boot {there}/12" in begun
    done = line.resume(run)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{there} of 12 (or more, up to 16) boots are there" in done.stdout
    assert "look 1 of 3" not in done.stdout.split("look 2 of 3   12 boots")[0]  # it was told before
    assert gates(done.stdout)["step/s"] == "PASS"
    assert [boot["index"] for boot in line.boots()] == list(range(1, 13))
    assert told(run, "step_rate") == [("INCONCLUSIVE", 1), ("PASS", 2)]
    result = json.loads((run / "result.json").read_text())
    levels = [claim["level"] for look in result["looks"] for claim in look["claims"]]
    assert set(levels) == {1 - 0.022}
    assert result["ends"] == "nothing is left that more boots could decide"
    again = line.resume(run)
    assert (again.returncode, "is not run again" in again.stdout) == (0, True)
    assert "look 2 of 3" in (run / "report.md").read_text(encoding="utf-8")


def test_a_boot_that_the_environment_spoiled_is_run_again_in_its_place_and_stays_in_the_record(
    line: Line, tmp_path: Path
) -> None:
    """A neighbour makes the first two attempts of each arm fail, which voids a boot; then it is gone."""
    fault = "+engine.env.FAKE_FAULT='co_tenant:2'"
    done = line.run("fake8", *SCREEN, "bracket.reruns_per_block=2", fault, f"host.cache_dir={tmp_path / 'own'}")
    assert done.returncode == INCONCLUSIVE, done.stdout + done.stderr
    run = line.only_run()
    assert "void          01-A: " in done.stdout
    assert [boot["status"] for boot in line.boots()] == ["ok"] * 3
    assert [event["indexes"] for event in line.events() if event["event"] == "voided"] == [[1], [2]]
    result = json.loads((run / "result.json").read_text())
    assert [text.split(":")[0] for text in result["voided"]] == ["01-A", "02-B"]
    assert result["boots"] == ["01-A void", "01-A ok", "02-B void", "02-B ok", "03-A ok"]
    assert (run / "boots/01-A/void-1/engine.log").is_file()
    assert (run / "boots/01-A/engine.log").is_file()


def test_a_host_that_spoils_boot_after_boot_is_unfit_and_the_run_is_void(line: Line, tmp_path: Path) -> None:
    done = line.run("fake8", *SCREEN, f"host.cache_dir={tmp_path / 'own'}", "+engine.env.FAKE_FAULT='co_tenant:9'")
    assert done.returncode == VOID, done.stdout + done.stderr
    assert "VOID          engine      HOST-UNFIT, 1 of 1 re-run of block 1 is used" in done.stdout
    assert done.stdout.rstrip().endswith("verdict VOID (4)")
    again = line.resume(line.only_run())
    assert (again.returncode, "ended with VOID at 01-A; it is not run again" in again.stdout) == (VOID, True)


def test_a_cold_cache_is_warmed_by_boots_that_no_verdict_sees(line: Line, tmp_path: Path) -> None:
    runner = line.start("fake8", *SCREEN, "bracket.burn_in=auto", f"host.cache_dir={tmp_path / 'own'}")
    until(lambda: bool(list(line.folder.glob("*/journal.jsonl"))) and finished_boots(line.only_run()) >= 1)
    runner.send_signal(signal.SIGTERM)
    begun, _ = runner.communicate(timeout=WAIT_S)
    assert "burn-in       arm base, not measured (its compile cache is cold)" in begun
    shutil.rmtree(tmp_path / "own/compile")  # a clean-up between two sittings
    done = line.resume(line.only_run())
    assert done.returncode == INCONCLUSIVE, done.stdout + done.stderr
    assert [e["arm"] for e in line.events() if e["event"] == "burn_in"] == ["base", "candidate"] * 2
    assert [boot["facts"]["compile_cache"] for boot in line.boots()] == ["warm"] * 3
    assert (line.only_run() / "boots/burn-in-01-B/engine.log").is_file()
