"""Overlays that do not fit, by the public door: what run and boot say before anything is booted, and what they keep."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.fakes.line import ROOT, Line
from tests.fakes.overlay import CORE, CPU, FORCED_OFF, Change, write_overlay

FAKES = ROOT / "tests" / "fakes" / "overlays"
FACTOR = "STEP_FACTOR = 1.0\n"
ABSTRACT = "vllm/v1/executor/abstract.py"
both_verbs = pytest.mark.parametrize("verb", ["run", "boot"])


def told(line: Line, verb: str, folder: Path, *names: str, base: str = "") -> tuple[int, str]:
    """The exit code and all that a run, or a probe, says whose candidate has these overlays; nothing may be booted."""
    words = line.overrides("fake8", f"host.overlay_path=[{FAKES},{folder}]", f"engine.overlays=[{base}]")
    words += [f"arms.candidate.overlays=[{','.join(('fake_async', *names))}]"]
    verbs = [] if verb == "run" else ["boot", "arm=candidate"]
    done = subprocess.run(
        line.command(*verbs[:1], *words, *verbs[1:]), cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert list(line.folder.glob("*/boots/*/engine.log")) == []
    return done.returncode, done.stdout + done.stderr


@pytest.mark.case("E1")
@both_verbs
def test_an_overlay_whose_import_this_engine_lacks_is_six_before_any_boot(line, tmp_path, verb):
    write_overlay(tmp_path, "moved", Change(CORE, FACTOR, FACTOR + "import vllm.moved_elsewhere\n"))
    code, text = told(line, verb, tmp_path, "moved")
    assert code == 6, text
    for part in ("checking that the overlays", "moved: its hashes fit", CORE, "imports vllm.moved_elsewhere", "0.0.0"):
        assert part in text


@pytest.mark.case("E1")
def test_a_name_that_an_overlay_takes_from_a_file_nobody_overlays_is_six_before_any_boot(line, tmp_path):
    """Its own module imports; the engine's core, which every boot needs, no longer does."""
    write_overlay(tmp_path, "breaks", Change(ABSTRACT, "def max_concurrent_batches(", "def renamed_batches("))
    code, text = told(line, "run", tmp_path, "breaks")
    assert code == 6, text
    assert f"breaks: its hashes fit, but its imports do not: {ABSTRACT}, which fails at {CORE}" in text


@pytest.mark.case("E1")
def test_an_overlay_that_is_missing_is_another_error(line, tmp_path):
    code, text = told(line, "run", tmp_path, "fake_asink")
    assert code == 2, text
    assert "no overlay is called 'fake_asink'; did you mean" in text


@pytest.mark.case("E2")
def test_a_misspelt_destination_is_six_and_the_right_one_is_named(line, tmp_path):
    home = write_overlay(tmp_path, "typo", Change(CORE, FACTOR, "STEP_FACTOR = 2.0\n"))
    for file in home.iterdir():
        file.write_text(file.read_text().replace(CORE, "vllm/v1/engine/coer.py"))
    code, text = told(line, "run", tmp_path, "typo")
    assert code == 6, text
    assert "typo patches vllm/v1/engine/coer.py" in text
    assert f"did you mean {CORE}?" in text


@pytest.mark.case("E2")
def test_a_destination_that_is_only_a_comment_is_two(line, tmp_path):
    home = write_overlay(tmp_path, "said", Change(CORE, FACTOR, "STEP_FACTOR = 2.0\n"))
    head, row = (home / "manifest.toml").read_text().split("[[target.file]]\n")
    commented = "".join(f"# {part}\n" for part in row.splitlines())
    (home / "manifest.toml").write_text(f"{head}file = []\n{commented}")
    code, text = told(line, "run", tmp_path, "said")
    assert code == 2, text
    assert "vllm-v1-engine-core.py.patch lies in the overlay, but no [[target.file]] names it" in text


@pytest.mark.case("E3")
def test_two_overlays_on_one_file_are_two_and_both_are_named(line, tmp_path):
    other = write_overlay(tmp_path, "other", Change(CPU, FORCED_OFF, "    config.async_scheduling = True\n"))
    code, text = told(line, "run", tmp_path, "other")
    assert code == 2, text
    for part in ("fake_async and other both touch", CPU, str(FAKES / "fake_async"), str(other)):
        assert part in text


@pytest.mark.case("E3")
def test_a_patch_whose_anchor_is_not_there_is_six(line, tmp_path):
    home = write_overlay(tmp_path, "lost", Change(CORE, FACTOR, "STEP_FACTOR = 2.0\n"))
    (patch,) = home.glob("*.patch")
    patch.write_text(patch.read_text().replace(f"-{FACTOR}", "-STEP_FACTOR = 1.5\n"))
    code, text = told(line, "run", tmp_path, "lost")
    assert code == 6, text
    assert "but the patch removes 'STEP_FACTOR = 1.5" in text


@pytest.mark.case("E4")
def test_a_source_that_is_missing_is_two_and_leaves_no_folder_behind(line, tmp_path):
    home = write_overlay(tmp_path / "mine", "lost", Change(CORE, FACTOR, "STEP_FACTOR = 2.0\n"))
    (patch,) = home.glob("*.patch")
    patch.rename(home / "core.diff")
    code, text = told(line, "run", tmp_path / "mine", "lost")
    assert code == 2, text
    assert "is not there as a regular file" in text
    assert {path.name for path in home.iterdir()} == {"core.diff", "manifest.toml"}


@both_verbs
def test_every_file_of_both_arms_that_does_not_fit_is_named(line, tmp_path, verb):
    """One in the base set, one in the candidate: a person mends both before the next try."""
    for name, path, old in (("of_base", CORE, FACTOR), ("of_arm", "vllm/envs.py", "import os\n")):
        home = write_overlay(tmp_path, name, Change(path, old, old + "# more\n"))
        manifest = (home / "manifest.toml").read_text()
        pinned = manifest.split('preimage_sha256 = "')[1][:64]
        (home / "manifest.toml").write_text(manifest.replace(pinned, "0" * 64))
    code, text = told(line, verb, tmp_path, "of_arm", base="of_base")
    assert code == 6, text
    for part in ("2 of", f"of_base: {CORE} is", "of_arm: vllm/envs.py is", "rebase of_arm --from"):
        assert part in text


def test_a_run_keeps_the_composed_manifest_of_each_arm_and_tries_its_imports_once(line, tmp_path):
    write_overlay(tmp_path, "of_base", Change(CORE, FACTOR, FACTOR + "# more\n"))
    words = [f"host.overlay_path=[{FAKES},{tmp_path}]", "engine.overlays=[of_base]", "bracket.schedule=ABA"]
    first = line.run("fake8", *words, f"host.cache_dir={tmp_path / 'cache'}")
    assert "checking that the overlays of arm candidate import" in first.stdout, first.stderr
    kept = json.loads((line.only_run() / "overlays.json").read_text())
    shown = {
        arm: [(row["overlay"], row["path"], row["kind"], row["fits"]) for row in rows] for arm, rows in kept.items()
    }
    of_base = ("of_base", CORE, "patched", True)
    assert shown == {"base": [of_base], "candidate": [("fake_async", CPU, "patched", True), of_base]}
    row = kept["base"][0]
    assert row["preimage_sha256"] == row["found_sha256"] != row["postimage_sha256"]
    journal = line.only_run() / "journal.jsonl"
    lines = journal.read_text().splitlines(keepends=True)
    journal.write_text("".join(kept for kept in lines if json.loads(kept)["boot"]["index"] <= 2))
    again = line.resume(line.only_run())  # stages once more, and boots what is missing
    assert (again.returncode, "checking that" in again.stdout) == (first.returncode, False), again.stderr
    assert "2 of 3 boots are there" in again.stdout


@pytest.mark.case("E10")
def test_an_interpreter_that_finds_an_old_tree_first_is_two_with_both_paths(line, tmp_path):
    """What a .pth file or an editable install does: the engine that would run is not the one that is installed."""
    shutil.copytree(ROOT / "tests/fakes/site/vllm", tmp_path / "old" / "vllm")
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nexport PYTHONPATH="{tmp_path}/old"\nexec {ROOT}/tests/fakes/python "$@"\n')
    python.chmod(0o755)
    done = line.run("fake8", f"engine.python={python}")
    assert done.returncode == 2, done.stdout + done.stderr
    for part in (f"imports vllm from {tmp_path}/old/vllm", f"was installed to {ROOT}/tests/fakes", "remove one"):
        assert part in done.stderr
