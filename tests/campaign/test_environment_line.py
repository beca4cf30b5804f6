"""The machine's part in a run: a neighbour that burns a CPU, the noise registry, bases that part, another host."""

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fakes.line import Line

ONE_BLOCK = (
    "bracket.schedule=ABBA",
    "bracket.looks=[]",
    "bracket.mirror=false",
    "bracket.burn_in=never",
    "gates.quality=null",
    "gates.korean=null",
)


@pytest.fixture
def burner() -> Iterator[int]:
    """The pid of a process that takes what it gets of one CPU."""
    process = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    yield process.pid
    process.kill()
    process.wait()


@pytest.mark.alone
def test_a_neighbour_that_burns_a_cpu_voids_the_boot_and_is_named(line: Line, burner: int) -> None:
    done = line.run("fake8", *ONE_BLOCK, "host.foreign_cpu_cores=0.05", "bracket.reruns=0")
    assert done.returncode == 4, done.stdout + done.stderr
    assert done.stdout.rstrip().endswith("verdict VOID (4)")
    (boot,) = line.boots()
    assert boot["status"] == "void"
    assert f"pid {burner} " in boot["reason"]
    assert boot["metrics"]["step_per_s"] > 0, "what was measured is kept beside the reason"
    assert boot["environment"]["foreign_cpu_cores"] > 0.05
    assert boot["environment"]["watch_cpu_cores"] < 0.05
    assert "step/s   " not in done.stdout.rpartition("VOID  ")[2], "no speed is judged that nobody could have measured"
    rows = (line.only_run() / "boots" / "01-A" / "environment.jsonl").read_text().splitlines()
    assert len(rows) >= 2
    assert all(json.loads(row)["foreign_cpu_cores"] >= 0 for row in rows)


@pytest.mark.case("D10", "D13")
def test_a_bracket_feeds_the_registry_once_and_is_judged_by_what_its_host_allows(line: Line) -> None:
    registry = line.folder / "registry.jsonl"
    done = line.run("fake8", *ONE_BLOCK, f"host.registry={registry}")
    assert done.returncode == 3, done.stdout + done.stderr
    run = line.only_run()
    rows = [json.loads(row) for row in registry.read_text().splitlines()]
    speed = next(row for row in rows if row["metric"] == "step_per_s")
    assert {row["run_id"] for row in rows} == {run.name}
    assert (speed["schedule"], speed["df"], speed["kind"], speed["gpu"]) == ("ABBA", 1, "boots", "none")
    assert speed["rss"] > 0
    assert speed["sigma_w"] > 0
    line.resume(run)
    assert registry.read_text().count("\n") == len(rows), "a run that is resumed is not counted twice"

    apart = _with_readings(run, (100.0, 121.0, 121.0, 120.0))
    seen = line.inspect(apart)
    told = next(row for row in seen.stdout.splitlines() if row.startswith("INCONCLUSIVE  step/s"))
    assert seen.returncode == 3
    assert "does not close: its outer bases read 100 and 120" in told
    assert "+" not in told

    elsewhere = _on_another_machine(run)
    refused = line.resume(elsewhere)
    assert refused.returncode == 6, refused.stdout + refused.stderr
    assert "another machine" in refused.stderr


def _with_readings(run: Path, readings: tuple[float, ...]) -> Path:
    """A copy of a run whose boots gave these step/s."""
    copy = run.with_name(f"{run.name}-apart")
    shutil.copytree(run, copy)
    journal = copy / "journal.jsonl"
    events = [json.loads(row) for row in journal.read_text().splitlines()]
    for event in events:
        if event["event"] == "boot":
            event["boot"]["metrics"]["step_per_s"] = readings[event["boot"]["index"] - 1]
    journal.write_text("".join(json.dumps(event) + "\n" for event in events))
    return copy


def _on_another_machine(run: Path) -> Path:
    """A copy of a run whose first boot alone is there, of another host."""
    copy = run.with_name(f"{run.name}-moved")
    shutil.copytree(run, copy)
    (copy / "result.json").unlink()
    journal = copy / "journal.jsonl"
    events = [json.loads(row) for row in journal.read_text().splitlines()]
    first = next(event for event in events if event["event"] == "boot")
    first["boot"]["facts"]["machine"] = "h100-11111111, Intel Xeon x96, NVIDIA H100 x8, driver 570.1"
    journal.write_text(json.dumps(first) + "\n")
    return copy
