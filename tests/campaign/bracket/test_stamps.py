"""What an engine reads beside its staged package must not change between two boots of a bracket."""

import json
import os
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from campaign.bracket import stamps
from campaign.config import Arm, Campaign
from campaign.planning.plan import Plan, make
from tests.fakes.line import Line

SECRET = "hunter2-hunter2"
Surroundings = dict[str, str]


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A site-packages folder with two distributions."""
    for name in ("torch-2.9.0", "triton-3.5.0"):
        (tmp_path / "site" / f"{name}.dist-info").mkdir(parents=True)
        (tmp_path / "site" / f"{name}.dist-info" / "RECORD").write_text(name)
    return tmp_path / "site"


@pytest.fixture
def plan(exp8: Campaign, tmp_path: Path) -> Plan:
    """A plan whose arguments name files, one of them with a name before it, and which passes variables on."""
    for name in ("chat.jinja", "lora/adapter.bin", "config/config.json", "model/config.json", "down/part"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("first")
    exp8.model.target = str(tmp_path / "model")
    exp8.engine.pass_env = ["MY_PRELOAD", "DB_TOKEN"]
    exp8.engine.serve |= {
        "chat_template": str(tmp_path / "chat.jinja"),
        "hf_config_path": str(tmp_path / "config"),
        "download_dir": str(tmp_path / "down"),
        "lora_modules": [f"mine={tmp_path / 'lora' / 'adapter.bin'}"],
    }
    exp8.arms = {"base": Arm(), "candidate": Arm(serve={"max_num_seqs": 8})}
    return make(exp8, "run-1")


def taken(plan: Plan, site: Path | None, **shell: str) -> stamps.Stamps:
    """The stamps of base."""
    return stamps.take(plan, "base", site, {"MY_PRELOAD": "one.so", "DB_TOKEN": SECRET} | shell)


def written(folder: Path, name: str) -> None:
    """Another text of the same length."""
    (folder / name).write_text("other")


CHANGES: dict[str, tuple[Callable[[Path], None], str]] = {
    "a chat template": (lambda at: written(at, "chat.jinja"), "files that serve arguments name changed: .*chat.jinja;"),
    "a file of a folder": (lambda at: written(at, "config/config.json"), "arguments name changed: .*/config;"),
    "NAME=FILE": (lambda at: written(at, "lora/adapter.bin"), "arguments name changed: .*adapter.bin;"),
    "a file that is gone": (lambda at: (at / "chat.jinja").unlink(), "arguments name changed: .*chat.jinja;"),
    "the model": (lambda at: (at / "model/config.json").write_text("second"), "files of the model changed"),
    "an upgraded library": (
        lambda at: (at / "site/torch-2.9.0.dist-info").rename(at / "site/torch-2.9.1.dist-info"),
        r"packages beside the engine changed .*torch-2\.9\.1",
    ),
    "a library installed once more": (
        lambda at: (at / "site/triton-3.5.0.dist-info/RECORD").write_text("other files"),
        "packages beside the engine changed",
    ),
    "a .pth file": (
        lambda at: (at / "site/other.pth").write_text("/elsewhere\n"),
        "packages beside the engine changed",
    ),
}


@pytest.mark.parametrize(("change", "words"), CHANGES.values(), ids=CHANGES)
def test_what_changes_between_two_boots_is_told_by_name(
    plan: Plan, site: Path, tmp_path: Path, change: Callable[[Path], None], words: str
) -> None:
    before = taken(plan, site)
    assert stamps.changed(plan, before, taken(plan, site), site) == ""
    change(tmp_path)
    assert re.search(words, stamps.changed(plan, before, taken(plan, site), site))


def test_a_folder_that_the_engine_fills_may_change(plan: Plan, site: Path, tmp_path: Path) -> None:
    before = taken(plan, site)
    written(tmp_path, "down/part")
    assert stamps.changed(plan, before, taken(plan, site), site) == ""


@pytest.mark.parametrize("name", ["MY_PRELOAD", "DB_TOKEN"])
@pytest.mark.parametrize("value", ["two.so", ""], ids=["another", "empty"])
def test_another_value_of_a_passed_variable_is_told_by_its_name_and_never_by_its_value(
    plan: Plan, name: str, value: str
) -> None:
    before, after = taken(plan, None), taken(plan, None, **{name: value})
    assert stamps.changed(plan, before, after, None).startswith(f"engine.pass_env: {name} has another value")
    assert not any(word in text for text in (*before.values(), *after.values()) for word in (SECRET, "one.so"))


def test_a_passed_variable_that_is_gone_is_another_value(plan: Plan) -> None:
    gone = stamps.take(plan, "base", None, {"MY_PRELOAD": "one.so"})
    assert "DB_TOKEN has another value" in stamps.changed(plan, taken(plan, None), gone, None)


def test_the_digest_of_a_secret_is_of_this_run_alone_and_too_short_to_guess_it_by(plan: Plan) -> None:
    of = [json.loads(taken(one, None)["passed"])["DB_TOKEN"] for one in (plan, replace(plan, run_id="run-2"))]
    assert (len(set(of)), {len(digits) for digits in of}) == (2, {4})


def test_what_a_record_does_not_hold_is_not_compared(plan: Plan, site: Path) -> None:
    assert stamps.changed(plan, {}, taken(plan, site), site) == ""


# by the public door


def shortened(line: Line) -> Path:
    """The only run, as a kill after its first boot would have left it."""
    run = line.only_run()
    (run / "result.json").unlink()
    journal = run / "journal.jsonl"
    journal.write_bytes(journal.read_bytes().splitlines(keepends=True)[0])
    return run


def test_a_run_is_not_continued_in_other_surroundings(line: Line, tmp_path: Path) -> None:
    template, before = tmp_path / "chat.jinja", dict(os.environ)
    template.write_text("first")
    line.env = before | {"MY_LIBRARY": SECRET}
    words = ["bracket.schedule=ABA", f"engine.serve.chat_template={template}", "engine.pass_env=[MY_LIBRARY]"]
    line.run("fake8", *words)
    run = shortened(line)
    line.env = before | {"MY_LIBRARY": "another"}
    done = line.resume(run)
    assert done.returncode == 6, done.stdout + done.stderr
    assert "engine.pass_env: MY_LIBRARY has another value" in done.stderr
    line.env = before | {"MY_LIBRARY": SECRET}
    template.write_text("second")
    done = line.resume(run)
    assert done.returncode == 6, done.stdout + done.stderr
    assert f"files that serve arguments name changed: {template}" in done.stderr
    assert SECRET not in (run / "journal.jsonl").read_text()
    template.write_text("first")
    done = line.resume(run)
    assert done.returncode == 3, done.stdout + done.stderr


def test_the_manifest_that_a_run_began_with_is_kept(line: Line) -> None:
    line.run("fake8", "bracket.schedule=ABA")
    run = shortened(line)
    manifest = run / "overlays.json"
    rows = json.loads(manifest.read_text())
    rows["candidate"][0]["postimage_sha256"] = "0" * 64
    manifest.write_text(json.dumps(rows))
    done = line.resume(run)
    assert done.returncode == 6, done.stdout + done.stderr
    assert "overlays.json: the overlays" in done.stderr
    assert json.loads(manifest.read_text()) == rows
