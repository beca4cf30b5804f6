"""The witness by the public door: the whole line on a fake engine that does not do what was asked."""

import re
import subprocess
import sys
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import pytest

from campaign.evidence import BootRecord
from campaign.journal import RunFolder
from tests.fakes.overlay import Change, write_overlay
from tests.fakes.ports import free_port

ROOT = Path(__file__).resolve().parents[2]
Done = subprocess.CompletedProcess[str]
Run = Callable[..., Done]
NO_ACCEPTANCE = Change(
    "vllm/v1/engine/core.py", "self.metrics.drafted(drafted, taken)", "taken = 0; self.metrics.drafted(drafted, taken)"
)
ONE_KNOB = """
[[knob]]
name = "draft_nothing"
variable = "VLLM_DRAFT_NOTHING"
values = ["0", "1"]
default = "0"

[knob.witness.0]
resolved = { runner = "V1" }

[knob.witness.1]
resolved = { runner = "V1" }
"""


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Stages are content-addressed, so all tests share them."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture
def run(tmp_path: Path, cache: Path) -> Run:
    """run("fake8", "key=value", ..., env=...): the runner on the fake engine; its folder is tmp_path/runs."""
    port = free_port()

    def ran(exp: str, *more: str) -> Done:
        places = [f"host.runs_dir={tmp_path / 'runs'}", f"host.cache_dir={cache}", f"host.port={port}"]
        words = ["-m", "campaign", "--config-dir", str(ROOT / "tests/conf"), f"exp={exp}", *places, *more]
        return subprocess.run([sys.executable, *words], cwd=ROOT, capture_output=True, text=True, check=False)

    return ran


def records(tmp_path: Path) -> tuple[BootRecord, ...]:
    """The boots in the journal of the one run that was made."""
    (journal,) = (tmp_path / "runs").glob("*/journal.jsonl")
    return RunFolder(journal.parent).records()


def invalid(done: Done) -> str:
    """The sentence of a run that ended INVALID."""
    assert done.returncode == 5, done.stdout + done.stderr
    (line,) = re.findall(r"^INVALID +engine +(.*)$", done.stdout, re.MULTILINE)
    return str(line)


NO_KNOB = "~arms.candidate.knobs.fake_async"
PLAIN = ("arms.candidate.overlays=[]", NO_KNOB)


@pytest.mark.parametrize(
    ("method", "folder", "fault", "words"),
    [
        ("draft_model", "eagle-notes", "", "model.method: resolved spec_method is eagle, wanted draft_model"),
        ("medusa", "heads", "resolves_method:mtp", "model.method: resolved spec_method is mtp, wanted medusa"),
    ],
    ids=["by its folder's name", "by its model's type"],
)
@pytest.mark.case("C4")
def test_a_method_that_the_engine_decided_otherwise_is_invalid_with_both_named(
    run: Run, tmp_path: Path, method: str, folder: str, fault: str, words: str
) -> None:
    drafter = tmp_path / folder
    drafter.mkdir()
    (drafter / "config.json").write_text("{}")
    more = [f"model.method={method}", f"model.drafter={drafter}", f"+engine.env.FAKE_FAULT='{fault}'"]
    assert words in invalid(run("fake8", *more))


@pytest.mark.case("C3")
def test_arms_that_both_resolve_to_off_are_identical(run: Run) -> None:
    assert "arms identical" in invalid(run("fake8", *PLAIN, "bracket=screen"))


@pytest.mark.case("C3")
def test_async_scheduling_that_was_asked_for_and_vetoed_late_is_invalid(run: Run) -> None:
    sentence = invalid(run("fake8", *PLAIN, "arms.candidate.serve.async_scheduling=true"))
    assert "serve.async_scheduling: resolved async_scheduling is False, wanted True" in sentence
    assert "(asked: --async-scheduling)" in sentence


@pytest.mark.case("C12")
def test_prefix_caching_that_the_engine_switched_off_is_invalid_and_both_witnesses_are_cited(run: Run) -> None:
    sentence = invalid(run("fake8", "arms.candidate.knobs.prefix_cache=1", "+engine.env.FAKE_FAULT=no_prefix_cache"))
    assert "wanted True" in sentence
    assert "the log says: Disabling prefix caching" in sentence
    assert "--enable-prefix-caching" in sentence


@pytest.mark.case("C9")
def test_an_argument_that_only_a_live_object_can_confirm_is_invalid_without_it(run: Run) -> None:
    sentence = invalid(run("fake8", "arms.candidate.serve.cpu_offload_gb=12"))
    assert "serve.cpu_offload_gb: resolved offloader is (absent), wanted UVAOffloader" in sentence


@pytest.mark.case("C9")
def test_an_engine_that_runs_out_of_memory_says_that_offloading_was_not_confirmed(run: Run) -> None:
    done = run("fake8", "arms.candidate.serve.cpu_offload_gb=12", "arms.base.serve.cpu_offload_gb=12",
               "+engine.env.FAKE_FAULT=die_at_boot")  # fmt: skip
    assert done.returncode == 1, done.stdout + done.stderr
    assert "not confirmed: --cpu-offload-gb 12 was asked for" in done.stdout


@pytest.mark.case("C9")
def test_arms_that_differ_by_an_argument_that_nothing_shows_cannot_pass(run: Run, tmp_path: Path) -> None:
    done = run("fake_aa", "arms.candidate.serve.stream_interval=2", "bracket=screen")
    assert done.returncode == 3, done.stdout + done.stderr
    assert "serve argument stream_interval: the arms differ by it, and no process of the engine shows" in done.stdout
    rows = [row for record in records(tmp_path) for row in record.witness if row.what == "stream_interval in force"]
    assert {row.found for row in rows} == {"asked only: no process shows what became of it"}


@pytest.mark.case("C10")
def test_the_runner_that_really_ran_is_stored_with_what_was_asked_of_it(run: Run, tmp_path: Path) -> None:
    run("fake_aa", "bracket=screen")
    facts = [record.facts for record in records(tmp_path)]
    assert {(f["runner"], f["runner_asked"]) for f in facts} == {("V1", "(unset)")}
    assert all("using the V1 model runner instead" in f["warnings"] for f in facts)


@pytest.mark.case("C8", "C5")
def test_a_candidate_whose_drafts_are_never_accepted_fails_although_its_texts_are_right(
    run: Run, tmp_path: Path
) -> None:
    write_overlay(tmp_path / "overlays", "draft_nothing", NO_ACCEPTANCE)
    done = run("fake8", "arms.candidate.overlays=[draft_nothing]", NO_KNOB,
               "arms.candidate.serve.async_scheduling=false", f"host.overlay_path=[{tmp_path / 'overlays'}]",
               "bracket=screen")  # fmt: skip
    assert done.returncode == 1, done.stdout + done.stderr
    assert re.search(
        r"^FAIL +acceptance +drafter ineffective: candidate gets 1.00 tokens a step of 5", done.stdout, re.M
    )
    assert re.search(r"^PASS +outputs", done.stdout, re.M)


def test_an_engine_that_is_asynchronous_by_itself_is_refused_an_overlay_that_is_not_async_safe(
    run: Run, tmp_path: Path
) -> None:
    """The configuration asks for nothing; only the booted engine shows it."""
    always = Change(
        "vllm/platforms/cpu.py", "    config.async_scheduling = False\n", "    config.async_scheduling = True\n"
    )
    home = write_overlay(tmp_path / "overlays", "always_async", always)
    manifest = home / "manifest.toml"
    manifest.write_text(manifest.read_text().replace("async_safe = true", "async_safe = false"))
    done = run("fake8", "arms.base.overlays=[always_async]", "~arms.base.serve.async_scheduling", "bracket=screen",
               f"host.overlay_path=[{home.parent},{ROOT / 'tests/fakes/overlays'}]")  # fmt: skip
    assert "overlay always_async (async_safe = false): resolved async_scheduling is True, wanted False" in invalid(done)


def test_what_an_overlay_decided_is_no_win_where_the_engine_does_it_by_itself(run: Run, tmp_path: Path) -> None:
    """The witness asks for the overlay's own word; the stock engine's decision looks the same in every other layer."""
    published = Change(
        "vllm/platforms/cpu.py",
        "    config.async_scheduling = False\n",
        "    from vllm import engine_report\n    config.async_scheduling = True\n"
        "    engine_report.OVERLAYS['by_itself'] = {'decided': False}\n",
    )
    knob = ONE_KNOB.replace("draft_nothing", "by_itself").replace("DRAFT_NOTHING", "BY_ITSELF")
    wanted = '{ async_scheduling = true, "overlays.by_itself.decided" = true }'
    knob = knob.replace('witness.1]\nresolved = { runner = "V1" }', f"witness.1]\nresolved = {wanted}")
    write_overlay(tmp_path / "overlays", "by_itself", published, knob=knob)
    done = run("fake8", "arms.candidate.overlays=[by_itself]", NO_KNOB, "arms.candidate.knobs.by_itself=1",
               f"host.overlay_path=[{tmp_path / 'overlays'}]")  # fmt: skip
    assert "decided is False (already on in the stock engine: the overlay changed nothing), wanted True" in invalid(
        done
    )


def test_an_overlaid_data_file_is_attested_by_its_place_and_hash(run: Run, tmp_path: Path) -> None:
    home = tmp_path / "overlays" / "table"
    home.mkdir(parents=True)
    (home / "table.json").write_text('{"rows": 3}\n')
    write_overlay(tmp_path / "made", "table", Change("vllm/v1/engine/core.py", "SPIN_S = 0.0003", "SPIN_S = 0.00030"))
    manifest = (tmp_path / "made" / "table" / "manifest.toml").read_text()
    digest = sha256(b'{"rows": 3}\n').hexdigest()
    added = f'\n[[target.file]]\npath = "vllm/table.json"\nadded = "table.json"\npostimage_sha256 = "{digest}"\n'
    (home / "manifest.toml").write_text(manifest + added)
    for patch in (tmp_path / "made" / "table").glob("*.patch"):
        (home / patch.name).write_text(patch.read_text())
    run(
        "fake_aa",
        "arms.candidate.overlays=[table]",
        "arms.base.overlays=[table]",
        f"host.overlay_path=[{tmp_path / 'overlays'}]",
        "bracket=screen",
    )
    rows = [row for record in records(tmp_path) for row in record.witness if row.what == "vllm/table.json"]
    assert len(rows) == 3
    assert all(row.ok and digest[:12] in row.found for row in rows)
