"""The whole line on the fake engine: real processes, sockets, stages, journal and SQLite; only the model is made up."""

import http.server
import json
import os
import signal
import socket
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from mlflow import MlflowClient

from campaign.inspection import look_into
from tests.fakes.line import ROOT, WAIT_S, Line, finished_boots, gates, marked, until
from tests.fakes.ports import free_port

Done = subprocess.CompletedProcess[str]
SIX = ["KV", "quality", "Korean", "outputs", "accept pos1", "step/s"]


def rejudged_alike(run: Path, told: str) -> list[str]:
    """The claims of a run's records; each is judged again to the line that the run told, and that the file keeps."""
    records = sorted((run / "records").glob("*.json"))
    for file in records:
        found = look_into(file)
        line = found.rows[0][1]
        assert line in told
        assert ("", "  as the run told it") in found.rows, found.lines
    return [file.stem for file in records]


@pytest.mark.alone
def test_a_real_gain_passes_all_six_gates_and_lies_in_mlflow(line: Line) -> None:
    done = line.run("fake8", f"tracking.uri=sqlite:///{line.folder}/mlflow.db")
    assert done.returncode == 0, done.stdout + done.stderr
    assert gates(done.stdout) == dict.fromkeys(SIX, "PASS")
    assert done.stdout.rstrip().endswith("verdict PASS (0)")
    client = MlflowClient(f"sqlite:///{line.folder}/mlflow.db")
    experiment = client.get_experiment_by_name("fake8")
    assert experiment is not None
    levels = [run.data.tags["level"] for run in client.search_runs([experiment.experiment_id])]
    assert sorted(levels) == ["boot"] * 8 + ["campaign", "experiment"]
    assert rejudged_alike(line.only_run(), done.stdout) == ["acceptance", "step_rate"]


@pytest.fixture(scope="module")
def screen(tmp_path_factory: pytest.TempPathFactory, stage_cache: Path) -> Iterator[tuple[Line, Done]]:
    """A finished screen; the tests that take it only look at it."""
    line = Line(tmp_path_factory.mktemp("screen"), stage_cache, free_port())
    yield line, line.run("fake8", "bracket.schedule=ABA")
    assert line.left_behind() == []


def test_a_run_leaves_the_folder_that_the_house_describes(screen: tuple[Line, Done]) -> None:
    run = screen[0].only_run()
    names = {p.name for p in run.iterdir()} - {".lock"}
    files = {"plan.json", "journal.jsonl", "result.json", "report.md", "report.html", "overlays.json"}
    assert names == files | {"boots", "records"}
    boot = {p.name for p in sorted((run / "boots").iterdir())[0].iterdir()}
    wanted = {"argv.json", "env.json", "engine.log", "metrics-before.txt", "metrics-after.txt"}
    assert wanted | {"samples.jsonl", "texts.jsonl", "verdicts.json", "reports"} <= boot


def test_a_screen_is_never_a_verdict(screen: tuple[Line, Done]) -> None:
    _, done = screen
    assert done.returncode == 3
    assert "no error bar yet" in done.stdout
    assert done.stdout.rstrip().endswith("verdict INCONCLUSIVE (3)")


@pytest.mark.alone
def test_equal_arms_pass_no_difference(line: Line) -> None:
    done = line.run("fake_aa")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "no difference shown" in done.stdout


@pytest.mark.alone
def test_a_slower_step_fails_its_gate_by_name_and_no_other(line: Line) -> None:
    done = line.run("fake8", "arms.candidate.overlays=[fake_async,fake_slow]", "claims.step_rate.gate_pct=-5")
    assert done.returncode == 1, done.stdout + done.stderr
    assert gates(done.stdout) == dict.fromkeys(SIX, "PASS") | {"step/s": "FAIL"}


def test_a_patch_that_does_nothing_is_invalid_and_shows_no_number(line: Line) -> None:
    done = line.run("fake8", "arms.candidate.overlays=[fake_noop]", "bracket.mirror=false")
    assert done.returncode == 5
    assert "resolved async_scheduling is False, wanted True" in done.stdout
    assert gates(done.stdout) == {}


def test_arms_that_resolve_alike_are_invalid(line: Line) -> None:
    done = line.run("fake8", "arms.candidate.knobs.fake_async=0")
    assert done.returncode == 5
    assert "arms identical" in done.stdout
    assert gates(done.stdout) == {}


def test_engines_that_show_no_difference_at_all_are_invalid_even_without_a_knob(line: Line) -> None:
    done = line.run("fake8", "arms.candidate.overlays=[]", "~arms.candidate.knobs.fake_async")
    assert done.returncode == 5, done.stdout + done.stderr
    assert "arms identical: both engines run the same files" in done.stdout
    second = line.boots()[-1]
    assert (second["status"], second["metrics"], second["answers"]) == ("invalid", {}, [])
    assert second["witness"]
    assert second["seconds"]["total"] > 0


def test_a_drifted_preimage_is_six_and_nothing_is_booted(line: Line) -> None:
    done = line.run("fake8", "arms.candidate.overlays=[fake_drifted]")
    assert done.returncode == 6
    assert "drift (6)" in done.stderr
    assert list(line.folder.glob("*/boots")) == []


def test_a_foreign_listener_is_invalid_before_any_boot_and_is_left_alone(line: Line) -> None:
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", line.port))
        holder.listen()
        done = line.run("fake8")
        assert done.returncode == 5
        assert f"pid {os.getpid()}" in done.stderr
        assert list(line.folder.glob("*/boots")) == []
        with socket.create_connection(("127.0.0.1", line.port)):
            pass


def test_an_engine_that_dies_in_the_window_is_a_fail_that_names_the_arm_and_shows_its_log(line: Line) -> None:
    fault = "engine.env.FAKE_FAULT=die_in_window:9"
    done = line.run("fake8", f"+{fault}", "bracket.mirror=false")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "FAIL          engine      arm base, boot 01-A" in done.stdout
    assert "EngineDeadError" in done.stdout
    assert gates(done.stdout) == {}


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL], ids=lambda s: s.name)
def test_a_killed_runner_is_resumed_and_keeps_its_finished_boots(line: Line, number: signal.Signals) -> None:
    runner = line.start("fake8", "bracket.schedule=ABBA")
    until(lambda: bool(list(line.folder.glob("*/journal.jsonl"))) and finished_boots(line.only_run()) >= 1)
    run = line.only_run()
    until(lambda: bool(marked(run.name)))
    runner.send_signal(number)
    runner.communicate(timeout=WAIT_S)
    kept = line.boots()[0]
    done = line.resume(run)
    assert done.returncode == 3, done.stdout + done.stderr
    assert line.boots()[0] == kept
    assert [boot["index"] for boot in line.boots()] == [1, 2, 3, 4]


def test_a_run_that_still_runs_is_not_resumed(line: Line) -> None:
    runner = line.start("fake8", "bracket.schedule=ABBA")
    until(lambda: bool(list(line.folder.glob("*/journal.jsonl"))))
    done = line.resume(line.only_run())
    assert done.returncode == 7
    assert "still being run" in done.stderr
    out, _ = runner.communicate(timeout=WAIT_S)
    assert "verdict INCONCLUSIVE (3)" in out


@pytest.mark.case("G7", "G10", "G2")
def test_a_tracker_that_refuses_us_loses_nothing_and_the_results_are_imported_later(line: Line) -> None:
    with http.server.HTTPServer(("127.0.0.1", 0), RefusingTracker) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        done = line.run("fake8", "bracket.schedule=ABA", f"tracking.uri=http://127.0.0.1:{server.server_port}")
        server.shutdown()
    assert done.returncode == 3, done.stdout + done.stderr
    assert "nothing is lost" in done.stdout
    assert "--allowed-hosts" in done.stdout
    uri = f"sqlite:///{line.folder}/mlflow.db"
    refused = brought_in(line, "--supersedes", "nowhere", f"tracking.uri={uri}")
    assert refused.returncode == 2, refused.stdout + refused.stderr
    assert "there is no run nowhere in the tracker" in refused.stderr
    imported = brought_in(line, str(line.only_run()), f"tracking.uri={uri}")  # the same twice: both are tried
    assert imported.returncode == 0, imported.stdout + imported.stderr
    assert imported.stdout.count("mlflow  experiment fake8") == 2
    assert MlflowClient(uri).get_experiment_by_name("fake8") is not None


def brought_in(line: Line, *more: str) -> "subprocess.CompletedProcess[str]":
    words = line.command("import", str(line.only_run()), *more)
    return subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)


class RefusingTracker(http.server.BaseHTTPRequestHandler):
    """A tracker behind a host check that does not know our address."""

    def refuse(self) -> None:
        """Read nothing; 403."""
        self.send_response(403)
        self.end_headers()
        self.wfile.write(b"Invalid Host header - possible DNS rebinding attack detected")

    do_GET = do_POST = refuse  # noqa: N815  named by http.server

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.mark.case("G9")
def test_a_file_store_is_refused_before_the_first_boot(line: Line, tmp_path: Path) -> None:
    done = line.run("fake8", f"tracking.uri={(tmp_path / 'mlruns').as_uri()}")
    assert done.returncode == 2, done.stdout + done.stderr
    assert "set tracking.uri=sqlite:////absolute/path/mlflow.db" in done.stderr
    assert not list(line.folder.glob("*/boots"))


def test_an_unexpected_error_is_seventy_and_never_looks_like_a_fail(line: Line) -> None:
    cache = line.folder.parent / "file"
    cache.write_text("a file where a folder is needed")
    done = line.run("fake8", f"host.cache_dir={cache}")
    assert done.returncode == 70
    assert "a fault of ours" in done.stderr


def test_inspect_shows_what_a_run_found(screen: tuple[Line, Done]) -> None:
    line, _ = screen
    words = line.command("inspect", str(line.only_run()))
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 3
    assert "boot 3/3" in done.stdout
    done = subprocess.run([*words, "--json"], cwd=ROOT, capture_output=True, text=True, check=False)
    kinds = [found["kind"] for found in json.loads(done.stdout)["findings"]]
    assert (done.returncode, kinds) == (3, ["result", "record", "record"])


def test_a_patch_without_a_knob_never_passes_because_nothing_shows_that_it_works(line: Line) -> None:
    done = line.run("fake8", "arms.candidate.overlays=[fake_async,fake_comment]")
    assert done.returncode == 3, done.stdout + done.stderr
    assert "overlay fake_comment: no knob with a witness" in done.stdout


@pytest.mark.case("E5")
def test_a_stage_that_is_edited_between_two_boots_is_drift_and_gives_no_verdict(line: Line, tmp_path: Path) -> None:
    runner = line.start("fake8", "bracket.schedule=ABBA", f"host.cache_dir={tmp_path / 'own'}")
    until(lambda: bool(list(line.folder.glob("*/journal.jsonl"))) and finished_boots(line.only_run()) >= 1)
    for core in (tmp_path / "own" / "stages").glob("*/vllm/v1/engine/core.py"):
        text = core.read_text()
        core.parent.chmod(0o755)
        core.chmod(0o644)
        core.write_text(text.replace("STEP_FACTOR = 1.0", "STEP_FACTOR = 1.3"))
    told, _ = runner.communicate(timeout=WAIT_S)
    assert runner.returncode == 6, told
    assert "drift (6)" in told
    assert "verdict" not in told.splitlines()[-1]


def test_a_run_without_a_tracker_is_imported_beside_the_runs(screen: tuple[Line, Done]) -> None:
    line, _ = screen
    words = line.command("import", str(line.only_run()))
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert (line.folder / "mlflow.db").is_file()
