"""One boot of the real engine: its own processes answer, and none of them outlives a killed API server."""

import os
import signal
from pathlib import Path
from typing import Any

import pytest

from campaign.config import ROOT, Arm, Campaign, Engine, Host, Model
from campaign.engine import kv, processes, spec, witness
from campaign.engine.local import serve
from campaign.engine.reports import EVERY_ROLE, ask
from overlays.base import base_tree
from overlays.manifest import load
from overlays.stage import stage

PYTHON = ROOT / ".venv-engine" / "bin" / "python"
SERVE: dict[str, Any] = {
    "dtype": "float32",
    "max_model_len": 2048,
    "max_num_seqs": 4,
    "enforce_eager": True,
    "kv_cache_memory_bytes": 268435456,
    "enable_prefix_caching": False,
}


@pytest.mark.engine
def test_the_real_engines_processes_answer_and_die_although_their_server_was_killed(tmp_path: Path, port: int) -> None:
    weights = ROOT / "testbed" / "weights"
    made = stage(base_tree(PYTHON), [load("engine_report")], ROOT / "build" / "test-stages")
    campaign = Campaign(
        name="t",
        arms={"base": Arm()},
        engine=Engine(python=str(PYTHON), module="vllm.entrypoints.openai.api_server"),
        model=Model(
            target=str(weights / "target"), drafter=str(weights / "draft"), method="dflash", num_speculative_tokens=5
        ),
        host=Host(port=port, cache_dir=str(tmp_path / "cache")),
    )
    boot = spec.build(
        campaign,
        serve=SERVE,
        variables={},
        passed=(),
        stage_path=made.path,
        stage_modules=[file.asked for file in made.files],
        declared=made.variables,
        boot_dir=tmp_path / "boot",
        nonce=f"real-{port}",
        run_marker=f"run-{port}",
    )
    with serve(boot) as engine:
        reports = ask(boot.report_dir, "before", EVERY_ROLE, 15.0)
        rows = witness.rows([], reports, None, spec=boot, log=engine.log(), staged=made.files)
        assert [witness.sentence(row) for row in witness.not_ok(rows)] == []
        facts = kv.facts(reports, engine.kv, 5)
        assert kv.contradictions(facts, engine.kv) == ()
        members = engine.pids()
        assert {report.pid for report in reports} <= members
        os.kill(engine.pid, signal.SIGKILL)
    assert engine.stopped is not None
    assert engine.stopped.exit_code == -signal.SIGKILL
    assert [pid for pid in members if (found := processes.read(pid)) and found.alive] == []
