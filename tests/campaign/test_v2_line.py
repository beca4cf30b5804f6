"""EXP-8 on the V2 runner under Triton's interpreter: the same experiment, and no verdict from its speed.

The whole bracket on the real engine takes minutes and is a command (overlays/cpu_v2_interpreter/README.md); here one
probe of the candidate proves the arm on, and the fake engine goes through the line with `engine.logic_only`.
"""

import json
import re
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from mlflow import MlflowClient

from campaign.engine.port import listener
from tests.fakes.ports import free_port

ROOT = Path(__file__).resolve().parents[2]
LABEL = "logic only (a slow twin)"
PROMPT = "Walk notes of Suri: the path to the old mill. The morning was grey"
WAIT_S = 600.0


def campaign(*words: str) -> list[str]:
    """The runner's command line."""
    return [sys.executable, "-m", "campaign", *words]


# the dry run


def test_the_dry_run_shows_the_overlay_in_both_arms_and_that_no_speed_counts() -> None:
    words = campaign("exp=exp8", "engine=vllm_cpu_v2", "dry_run=true")
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(re.findall(r"knob cpu_v2_interpreter=1 \(TRITON_INTERPRET", done.stdout)) == 2
    assert "no speed: logic only (Triton's interpreter)" in done.stdout
    assert "80 % power" not in done.stdout


# the line on the fake engine


@dataclass(frozen=True)
class Finished:
    """A finished run: its words, its code, its folder, its tracker."""

    told: str
    code: int
    run: Path
    tracker: str


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Finished:
    """A bracket whose candidate really is faster, on an engine that says that its speed means nothing."""
    folder = tmp_path_factory.mktemp("v2")
    tracker = f"sqlite:///{folder}/mlflow.db"
    places = [f"host.runs_dir={folder}", f"host.cache_dir={folder}/cache", f"host.port={free_port()}"]
    more = ['engine.logic_only="a slow twin"', f"tracking.uri={tracker}"]
    words = campaign("--config-dir", str(ROOT / "tests/conf"), "exp=fake8", *places, *more)
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    (run,) = [path.parent for path in folder.glob("*/plan.json")]
    return Finished(done.stdout + done.stderr, done.returncode, run, tracker)


def test_a_real_gain_gives_no_pass_on_a_logic_only_engine_while_all_else_is_judged(finished: Finished) -> None:
    assert finished.code == 3, finished.told
    rows = re.findall(r"^([A-Z]+)\s+(KV|quality|Korean|outputs|accept pos1|step/s)", finished.told, re.M)
    gates = {gate: word for word, gate in rows}
    passed = dict.fromkeys(("KV", "quality", "Korean", "outputs", "accept pos1"), "PASS")
    assert gates == {**passed, "step/s": "INCONCLUSIVE"}, finished.told


def test_no_speed_is_printed_without_the_label(finished: Finished) -> None:
    a_speed = re.compile(r"\d step/s|\d tok/s|^\w+ +step/s|ln tok/s")
    speeds = [line for line in finished.told.splitlines() if a_speed.search(line)]
    assert len(speeds) >= len("ABBABAAB") + 1
    assert [line for line in speeds if LABEL not in line] == []


def test_the_result_and_both_reports_carry_the_label(finished: Finished) -> None:
    result = json.loads((finished.run / "result.json").read_text())
    (step_rate,) = [gate for gate in result["gates"] if gate["gate"] == "step_rate"]
    assert result["logic_only"] == "a slow twin"
    assert LABEL in step_rate["line"]
    assert all(name.startswith("logic_only.") for name in step_rate["numbers"])
    for page in ("report.md", "report.html"):
        assert f"step/s, {LABEL}" in (finished.run / page).read_text()


def test_in_mlflow_such_a_speed_has_a_name_of_its_own(finished: Finished) -> None:
    client = MlflowClient(finished.tracker)
    experiment = client.get_experiment_by_name("fake8")
    assert experiment is not None
    names = {name for run in client.search_runs([experiment.experiment_id]) for name in run.data.metrics}
    speeds = {name for name in names if re.search(r"step_per_s|tok_per_s|tpot_s|ttft|step_rate", name)}
    assert {"logic_only.step_per_s", "boots.logic_only.step_per_s", "step_rate.logic_only.effect_pct"} <= speeds
    assert [name for name in speeds if "logic_only." not in name] == []
    assert "acceptance_pos1_pp" in names


# the real engine


@pytest.fixture
def probe(tmp_path: Path) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """The candidate's probe, told to stop afterwards; nothing of it may be left."""
    port = free_port()
    words = campaign("boot", "exp=exp8", "engine=vllm_cpu_v2", "arm=candidate", f"host.port={port}")
    places = [f"host.runs_dir={tmp_path}", "tracking=none"]
    with subprocess.Popen(
        [*words, *places], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as it:
        try:
            yield it, port
        finally:
            it.send_signal(signal.SIGTERM)
            it.communicate(timeout=WAIT_S)
    assert listener(port) is None


def told_until_up(process: subprocess.Popen[str]) -> tuple[str, str]:
    """All that the probe printed until its engine was up, and the model's name there."""
    assert process.stdout is not None
    lines: list[str] = []
    deadline = time.monotonic() + WAIT_S
    while not (up := re.search(r"is up at .*, model (\S+);", lines[-1] if lines else "")):
        lines.append(process.stdout.readline())
        assert lines[-1], "".join(lines)
        assert time.monotonic() < deadline, "".join(lines)
    return "".join(lines), up.group(1)


def generated(port: int, model: str) -> str:
    """A short greedy completion."""
    asked = {"model": model, "prompt": PROMPT, "max_tokens": 12, "temperature": 0}
    body = json.dumps(asked).encode()
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}/v1/completions", body, {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=WAIT_S) as answer:
        return str(json.load(answer)["choices"][0]["text"])


@pytest.mark.engine
@pytest.mark.timeout(900)
def test_on_v2_the_candidate_is_proven_on_and_generates(probe: tuple[subprocess.Popen[str], int]) -> None:
    process, port = probe
    table, model = told_until_up(process)
    assert "NOT OK" not in table
    rows = {
        "runner": "V2",
        r"overlays\.cpu_v2_interpreter\.interpreter": "True",
        "async_scheduling": "True",
        "max_concurrent_batches": "2",
    }
    missing = [what for what, value in rows.items() if not re.search(rf"{what} +{value} +{value} +ok", table)]
    assert missing == [], table
    assert generated(port, model).strip()
