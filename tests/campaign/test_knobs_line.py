"""Knobs without an overlay and a team's profile, on the fake engine: given, resolved, and told when they are not."""

import json
from pathlib import Path

import pytest

from tests.fakes.line import Line

PROFILE = "MAX_NUM_SEQS=2\nPREFIX_CACHE=1\nexport VLLM_USE_V2_MODEL_RUNNER=0  # V1\nNCCL_DEBUG='INFO'\n"


@pytest.mark.case("C10", "C12")
def test_a_profile_reaches_the_engine_and_the_engine_shows_it(line: Line, tmp_path: Path) -> None:
    (tmp_path / "team.env").write_text(PROFILE)
    done = line.run("fake8", "bracket.schedule=ABA", f"engine.profile={tmp_path}/team.env")
    assert done.returncode == 3, done.stdout + done.stderr
    assert "serve --max-num-seqs 2 (profile team.env:1; over engine fake 4)" in done.stdout
    for boot in (line.only_run() / "boots").iterdir():
        argv, env = json.loads((boot / "argv.json").read_text()), json.loads((boot / "env.json").read_text())
        assert argv[argv.index("--max-num-seqs") + 1] == "2"
        assert "--enable-prefix-caching" in argv
        assert (env["NCCL_DEBUG"], env["VLLM_USE_V2_MODEL_RUNNER"]) == ("INFO", "0")
    for record in line.boots():
        shown = {(row["knob"], row["layer"], row["what"]): row["found"] for row in record["witness"] if row["ok"]}
        assert shown["prefix_cache", "resolved", "prefix_caching"] == "True"
        assert shown["model_runner", "resolved", "runner"] == "V1"
        assert shown["model_runner", "asked", "VLLM_USE_V2_MODEL_RUNNER seen"] == "0"


@pytest.mark.case("C10")
def test_a_runner_that_the_engine_does_not_have_fails_by_name_and_gives_no_number(line: Line) -> None:
    done = line.run("fake8", "engine.knobs.model_runner=1")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "knob model_runner=1 (VLLM_USE_V2_MODEL_RUNNER; command line)" in done.stdout
    assert "VLLM_USE_V2_MODEL_RUNNER=1, but Model Runner V2 requires Triton" in done.stdout
    assert "step/s" not in done.stdout.partition("boot 1/8")[2]


@pytest.mark.case("E11")
def test_the_same_run_with_another_environment_is_not_continued(line: Line) -> None:
    line.run("fake8", "bracket.schedule=ABA")
    file = line.only_run() / "plan.json"
    plan = json.loads(file.read_text())
    plan["config"]["engine"]["env"]["OMP_NUM_THREADS"] = "7"
    file.write_text(json.dumps(plan))
    done = line.resume(line.only_run())
    assert done.returncode == 6, done.stdout + done.stderr
    assert "arm base is no longer what" in done.stderr
