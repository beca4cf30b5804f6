"""The whole line once on the real engine: one screen, judged, in MLflow. Minutes; everything else has a faster twin."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from mlflow import MlflowClient

from campaign.engine import processes
from campaign.engine.port import listener
from campaign.journal import RunFolder
from tests.fakes.ports import free_port

ROOT = Path(__file__).resolve().parents[2]
WORDS = ("PASS", "FAIL", "INCONCLUSIVE")

pytestmark = [pytest.mark.engine, pytest.mark.timeout(2400)]


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> tuple[subprocess.CompletedProcess[str], Path, int]:
    """`exp=exp8` with three boots; the stages are shared with every other run of this checkout."""
    runs, port = tmp_path_factory.mktemp("runs"), free_port()
    words = ["exp=exp8", "bracket.schedule=ABA", "workload.repeats=1", f"host.runs_dir={runs}", f"host.port={port}"]
    words += ["host.foreign_cpu_cores=64"]  # other tests run beside it, and no speed is judged
    command = [sys.executable, "-m", "campaign", *words]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    (run,) = runs.glob("exp8-*")
    return done, run, port


def test_the_patched_engine_is_proven_on_measured_and_judged(
    finished: tuple[subprocess.CompletedProcess[str], Path, int],
) -> None:
    done, run, _ = finished
    told = done.stdout + done.stderr
    assert done.returncode == 3, told  # three boots are a screen: never a verdict, whatever it shows
    assert done.stdout.rstrip().endswith("verdict INCONCLUSIVE (3)"), told
    words = {gate: word for word, gate in re.findall(r"^([A-Z]+)\s+(KV|quality|Korean|outputs)", done.stdout, re.M)}
    assert words == dict.fromkeys(("KV", "quality", "Korean", "outputs"), "PASS"), told
    assert "9/9 correct" in done.stdout
    assert "0/16 corrupt" in done.stdout
    assert json.loads((run / "result.json").read_text())["verdict"] == "INCONCLUSIVE"


def test_the_candidate_had_two_batches_in_flight_and_the_base_one(
    finished: tuple[subprocess.CompletedProcess[str], Path, int],
) -> None:
    _, run, _ = finished
    seen = {
        boot.arm: [row.found for row in boot.witness if row.what == "batches_in_flight_max"]
        for boot in RunFolder(run).records()
    }
    assert [value.split()[0] for value in seen["candidate"]] == ["2"]
    assert [value.split()[0] for value in seen["base"]] == ["1"]


def test_the_run_lies_in_mlflow_with_its_verdict(
    finished: tuple[subprocess.CompletedProcess[str], Path, int],
) -> None:
    _, run, _ = finished
    client = MlflowClient(f"sqlite:///{run.parent}/mlflow.db")
    experiment = client.get_experiment_by_name("exp8")
    assert experiment is not None
    tags = [found.data.tags for found in client.search_runs([experiment.experiment_id])]
    assert sorted(tag["level"] for tag in tags) == ["boot"] * 3 + ["campaign", "experiment"]
    assert {tag["verdict"] for tag in tags if tag["level"] == "campaign"} == {"INCONCLUSIVE"}


def test_nothing_of_the_engine_is_left(finished: tuple[subprocess.CompletedProcess[str], Path, int]) -> None:
    _, run, port = finished
    assert [pid for pid in processes.table() if processes.carries(pid, "CAMPAIGN_RUN_ID", run.name)] == []
    assert listener(port) is None
