"""Twin of campaign.mechanism and campaign.told.profiled: boots under the fake engine's profiler, by the public door."""

import json
import signal
from pathlib import Path

from campaign.told import profiled
from campaign.trace import profile, read
from tests.fakes.line import WAIT_S, Line, until

BY_HAND = Path(__file__).parent / "traces" / "made-by-hand-gpu.json"
WORDS = ("fake8", "bracket.schedule=ABA", "bracket.burn_in=never", "bracket.mechanism=true")


def test_a_look_into_the_mechanism_is_shown_and_is_no_datum_and_one_that_fails_costs_nothing(line: Line) -> None:
    done = line.run(*WORDS, "+engine.env.FAKE_FAULT='die_in_profile:B'")
    assert done.returncode == 3, done.stdout + done.stderr
    run = line.only_run()
    arms = json.loads((run / "result.json").read_text())["mechanism"]["arms"]
    assert {name: time["share_pct"] for name, time in arms["base"]["phases"].items() if time["share_pct"]} == {
        "prepare": 25.0, "submit": 50.0, "output": 5.0, "other": 20.0,
    }  # fmt: skip
    assert arms["candidate"]["status"] == "failed"
    assert "exited with 1" in arms["candidate"]["reason"]
    assert [boot["status"] for boot in line.boots()] == ["ok"] * 3
    assert "Mechanism: where a step's time goes" in (run / "report.md").read_text()
    assert "mechanism  candidate: nothing is shown" in done.stdout
    assert "verdict INCONCLUSIVE (3)" in done.stdout.splitlines()[-1]


def test_an_interrupted_look_leaves_nothing_behind_and_the_verdict_stands(line: Line) -> None:
    runner = line.start(*WORDS)
    until(lambda: bool(list(line.folder.glob("*/mechanism/boots/01-A/engine.log"))))
    runner.send_signal(signal.SIGTERM)
    told, _ = runner.communicate(timeout=WAIT_S)
    assert runner.returncode == 130, told
    assert "the verdict is on disk" in told
    assert json.loads((line.only_run() / "result.json").read_text())["verdict"] == "INCONCLUSIVE"
    assert not (line.only_run() / "mechanism.json").exists()
    assert line.resume(line.only_run()).returncode == 3


def test_every_duration_names_its_clock_and_device_time_has_another_one() -> None:
    shown = profiled.shown(profile(read(BY_HAND), "0.29.0"), "traces/x", 2.5)
    table = profiled.table({"arms": {"base": shown, "candidate": profiled.failed("it died")}})
    clocks = {row[1]: row[-1] for row in table.rows}
    assert clocks["wait"] == "host, the profiler's clock"
    assert clocks["device 0 idle"] == "device, by Kineto"
    assert shown["clocks"]["wall_s"].startswith("wall")
    assert table.rows[-1][1] == "nothing is shown: it died"
    assert "no part of any verdict" in table.note


def test_a_file_that_is_none_of_ours_is_left_out_of_the_report(tmp_path: Path) -> None:
    assert profiled.read(tmp_path) is None
    for text in ("[]", "{", '{"arms": {"base": {}}}', '{"arms": 3}'):
        (tmp_path / profiled.FILE).write_text(text)
        assert profiled.read(tmp_path) is None
