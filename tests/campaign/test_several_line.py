"""Several candidates of one base by the public door, on the fake engine: real processes, one bracket, one page."""

import json
import signal
from collections import Counter
from pathlib import Path

import pytest
from mlflow import MlflowClient

from tests.fakes.line import WAIT_S, Line, finished_boots, until

ORDER = "ABDCBCADCDBADACB"
THREE = ["bracket.together=null", "~arms.both", "bracket.schedule='ABC BCA CAB'"]
SHORT = ["bracket.mirror=false", "gates.korean=null", "gates.quality=null"]


def planted(**step_ms: float) -> str:
    """How long a step of each arm's boots takes, by its letter; two batches in flight then save 5 % of it."""
    return f"engine.env.FAKE_STEP_MS='{','.join(str(step_ms.get(letter, 4)) for letter in ORDER)}'"


@pytest.mark.alone
def test_four_arms_are_measured_in_rows_judged_in_one_fit_and_lie_in_mlflow_by_their_names(line: Line) -> None:
    """The changes save 5 and 25 %, and together 62 %: what they add to their sum is found, and decides nothing.

    All of it so large that a machine which is not alone finds it too.
    """
    uri = f"sqlite:///{line.folder}/mlflow.db"
    gate = "claims.step_rate.gate_pct=-20"
    done = line.run("fake7x8", "bracket.mirror=false", planted(C=3, D=1.6), gate, f"tracking.uri={uri}")
    told = done.stdout
    assert done.returncode == 0, told + done.stderr
    assert told.rstrip().endswith("verdict PASS (0)")
    for arm in ("ahead", "fewer", "both"):
        for label in ("KV", "quality", "Korean", "outputs", "accept pos1", "step/s"):
            assert f"PASS          {arm:<5}  {label} " in told
    assert "INTERACTION   step/s      +" in told
    assert "both beyond ahead and fewer: more than the sum of its parts" in told
    assert "boot 3/16  03-B both" in told
    arms = [boot["arm"] for boot in line.boots()]
    assert "".join({"base": "A", "ahead": "B", "fewer": "C", "both": "D"}[arm] for arm in arms) == ORDER
    run = line.only_run()
    assert {path.name for path in (run / "records").iterdir()} == {
        f"{arm}.acceptance.json" for arm in ("ahead", "fewer", "both")
    }
    assert "Contrasts with base" in (run / "report.html").read_text(encoding="utf-8")
    client = MlflowClient(uri)
    experiment = client.get_experiment_by_name("fake7x8")
    assert experiment is not None
    tags = [found.data.tags for found in client.search_runs([experiment.experiment_id])]
    assert Counter(t["level"] for t in tags) == {"boot": 16, "campaign": 1, "experiment": 1}
    assert Counter(t.get("arm") for t in tags if t["level"] == "boot") == dict.fromkeys(
        ("base", "ahead", "fewer", "both"), 4
    )
    again = line.inspect(run)
    assert (again.returncode, "INTERACTION   step/s" in again.stdout) == (0, True)


def test_a_run_of_three_arms_that_was_killed_is_gone_on_with(line: Line) -> None:
    runner = line.start("fake7x8", *THREE, *SHORT, "bracket.burn_in=always")
    until(lambda: bool(list(line.folder.glob("*/journal.jsonl"))) and finished_boots(line.only_run()) >= 2)
    runner.send_signal(signal.SIGKILL)
    runner.communicate(timeout=WAIT_S)
    run = line.only_run()
    assert not (run / "result.json").exists()
    done = line.resume(run)
    assert done.returncode in (0, 3), done.stdout + done.stderr  # how fast a busy machine is says nothing here
    assert "of 9 boots are there" in done.stdout
    assert [boot["index"] for boot in line.boots()] == list(range(1, 10))
    assert Counter(boot["arm"] for boot in line.boots()) == {"base": 3, "ahead": 3, "fewer": 3}
    assert {boot["status"] for boot in line.boots()} == {"ok"}
    assert [event["arm"] for event in line.events() if event["event"] == "burn_in"] == ["base", "ahead", "fewer"]
    folders = {path.name for path in (run / "boots").glob("burn-in-*")}
    assert folders == {"burn-in-base-01-A", "burn-in-ahead-01-B", "burn-in-fewer-01-B"}
    gates = [gate["gate"] for gate in json.loads((run / "result.json").read_text())["gates"]]
    assert gates == [
        f"{arm} {gate}" for arm in ("ahead", "fewer") for gate in ("kv", "outputs", "acceptance", "step_rate")
    ]


def test_a_boot_of_one_arm_that_the_environment_spoiled_is_run_again(line: Line, tmp_path: Path) -> None:
    """A neighbour makes the first two attempts of each arm fail, which voids a boot of each; then it is gone."""
    fault = "+engine.env.FAKE_FAULT='co_tenant:2'"
    budget = ["bracket.reruns_per_block=3", "bracket.reruns=3", f"host.cache_dir={tmp_path / 'own'}"]
    done = line.run("fake7x8", *THREE, *SHORT, *budget, fault)
    assert done.returncode in (0, 3), done.stdout + done.stderr
    assert [event["indexes"] for event in line.events() if event["event"] == "voided"] == [[1], [2], [3]]
    result = json.loads((line.only_run() / "result.json").read_text())
    assert [text.partition(":")[0] for text in result["voided"]] == ["01-A base", "02-B ahead", "03-B fewer"]
    assert Counter(boot["arm"] for boot in line.boots()) == {"base": 3, "ahead": 3, "fewer": 3}
    assert (line.only_run() / "boots/03-B/void-1/engine.log").is_file()


def test_a_candidate_whose_knob_is_off_is_invalid_by_its_name(line: Line) -> None:
    done = line.run("fake7x8", *THREE, *SHORT, "arms.ahead.overlays=[fake_noop]")
    assert done.returncode == 5, done.stdout + done.stderr
    assert "arm ahead, boot 02-B: " in done.stdout
    assert "resolved async_scheduling is False, wanted True" in done.stdout
    assert "step/s " not in done.stdout.partition("INVALID ")[2]
