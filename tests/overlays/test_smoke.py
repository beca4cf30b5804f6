"""Imports in the engine's interpreter: what is missing is told before a boot, once for each stage."""

from pathlib import Path

import pytest

from overlays import smoke
from overlays.base import BaseTree
from overlays.errors import DriftError, ImportsError, OverlayError
from overlays.manifest import parse
from overlays.stage import Stage, stage
from tests.overlays.conftest import CPU, TEXT, Workshop


@pytest.fixture
def staged(workshop: Workshop, small_engine: BaseTree, tmp_path: Path):
    """Stages an overlay that puts `more` at the end of the engine's cpu.py."""

    def make(more: str, name: str = "first") -> Stage:
        workshop.patching(name, TEXT + more)
        return stage(small_engine, [parse(workshop.folder / name)], tmp_path / "cache")

    return make


@pytest.mark.case("E1")
def test_a_module_that_this_engine_lacks_is_named_with_overlay_file_and_engine(staged, small_engine):
    made = staged("import vllm.moved_elsewhere\n")
    with pytest.raises(ImportsError) as caught:
        smoke.expect_imports(small_engine, made)
    told = str(caught.value)
    for part in ("first: its hashes fit", CPU, "imports vllm.moved_elsewhere", "vLLM 0.29.0 (cpu)", "leave first out"):
        assert part in told
    assert isinstance(caught.value, DriftError)  # exit 6: it does not fit this engine


BROKEN = {
    "a name": ("from vllm import no_such_name\n", "ImportError: cannot import name 'no_such_name'"),
    "an error of its own": ("raise RuntimeError('not here')\n", "RuntimeError: not here"),
    "an exit": ("raise SystemExit(3)\n", "SystemExit: 3"),
}


@pytest.mark.parametrize(("line", "told"), BROKEN.values(), ids=BROKEN.keys())
def test_whatever_else_stops_an_import_is_told_too(staged, small_engine, line, told):
    with pytest.raises(ImportsError, match=f"which fails .*{told}"):
        smoke.expect_imports(small_engine, staged(line))


def test_a_module_that_ends_the_interpreter_is_told(staged, small_engine):
    with pytest.raises(ImportsError, match=r"ended with 9 while importing vllm\.platforms\.cpu"):
        smoke.expect_imports(small_engine, staged("import os\nos._exit(9)\n"))


def test_every_module_that_fails_is_named(workshop, small_engine, tmp_path):
    workshop.patching("first", TEXT + "import missing_one\n")
    tuned = (small_engine.package / "tuned" / "__init__.py").read_text()
    workshop.patching("third", "\nimport missing_three\n", before=tuned, path="vllm/tuned/__init__.py")
    overlays = [parse(workshop.folder / name) for name in ("first", "third")]
    with pytest.raises(ImportsError) as caught:
        smoke.expect_imports(small_engine, stage(small_engine, overlays, tmp_path / "cache"))
    assert [name in str(caught.value) for name in ("missing_one", "missing_three")] == [True, True]


def test_a_module_that_fails_only_because_it_imports_another_is_not_blamed(workshop, small_engine, tmp_path):
    workshop.patching("first", TEXT + "import missing_one\n")
    workshop.patching("second", "import vllm.platforms.cpu\n", before="", path="vllm/platforms/__init__.py")
    overlays = [parse(workshop.folder / name) for name in ("first", "second")]
    with pytest.raises(ImportsError) as caught:
        smoke.expect_imports(small_engine, stage(small_engine, overlays, tmp_path / "cache"))
    assert str(caught.value).startswith("first: its hashes fit")
    assert "second" not in str(caught.value)


def test_a_stock_file_that_fails_on_an_overlaid_one_is_told_with_the_overlay(workshop, small_engine, tmp_path):
    (small_engine.package / "platforms" / "__init__.py").write_text("from vllm.platforms.cpu import name\n")
    base = BaseTree(small_engine.package, "0.29.0", "cpu", small_engine.python)
    workshop.patching("first", TEXT.replace("name = ", "renamed = "))
    with pytest.raises(
        ImportsError, match=r"first: .*cpu\.py, which fails at vllm/platforms/__init__\.py \(ImportError"
    ):
        smoke.expect_imports(base, stage(base, [parse(workshop.folder / "first")], tmp_path / "cache"))


def test_what_is_printed_while_importing_is_not_taken_for_the_answer(staged, small_engine):
    smoke.expect_imports(small_engine, staged("print('noise', flush=True)\nprint('{}')\n"))


def test_a_good_answer_is_kept_for_the_stage_and_the_interpreter(staged, small_engine, tmp_path):
    mark = tmp_path / "imported"
    made = staged(f"open({str(mark)!r}, 'a').write('x')\n")
    assert not smoke.is_known(small_engine, made)
    for _ in range(2):
        smoke.expect_imports(small_engine, made)
    assert mark.read_text() == "x"
    other = BaseTree(small_engine.package, "0.29.0", "cpu", Path("another/python"), small_engine.record)
    assert (smoke.is_known(small_engine, made), smoke.is_known(other, made)) == (True, False)


def test_a_bad_answer_is_not_kept(staged, small_engine):
    made = staged("import missing_one\n")
    for _ in range(2):
        with pytest.raises(ImportsError):
            smoke.expect_imports(small_engine, made)


def test_a_module_that_the_stock_engine_cannot_import_either_is_not_the_overlays_fault(
    workshop, small_engine, tmp_path
):
    old = TEXT + "import no_such_device_library\n"
    (small_engine.root / CPU).write_text(old)
    base = BaseTree(small_engine.package, "0.29.0", "cpu", small_engine.python)
    workshop.patching("first", "x = 1\n" + old, before=old)
    smoke.expect_imports(base, stage(base, [parse(workshop.folder / "first")], tmp_path / "cache"))


def test_an_engine_that_does_not_import_by_itself_is_a_configuration_error(workshop, small_engine, tmp_path):
    (small_engine.package / "__init__.py").write_text("import no_such_library\n")
    base = BaseTree(small_engine.package, "0.29.0", "cpu", small_engine.python)
    workshop.patching("first", "x = 1\n" + TEXT)
    with pytest.raises(OverlayError, match=r"cannot import vLLM .* even without overlays") as caught:
        smoke.expect_imports(base, stage(base, [parse(workshop.folder / "first")], tmp_path / "cache"))
    assert not isinstance(caught.value, DriftError)


def test_the_callers_environment_does_not_reach_the_imports(staged, small_engine, monkeypatch):
    monkeypatch.setenv("VLLM_SOMETHING_OF_THE_CALLER", "1")
    monkeypatch.setenv("PYTHONPATH", "/nowhere")
    smoke.expect_imports(small_engine, staged("import os\nassert 'VLLM_SOMETHING_OF_THE_CALLER' not in os.environ\n"))


def test_a_plugins_modules_are_imported_too(workshop, small_engine, tmp_path):
    workshop.write("hook", "pay/wrap.py", "import missing_one\n")
    workshop.overlay(
        "hook",
        '[plugin]\nentry_point = "hook"\nobject = "hook_pkg.wrap:register"\npayload = "pay"\nwraps = []\n'
        '[[target]]\nversion = "0.29.0"\nbuilds = ["cpu"]\nfile = []\n',
    )
    with pytest.raises(ImportsError, match=r"hook_pkg/wrap\.py, which imports missing_one"):
        smoke.expect_imports(small_engine, stage(small_engine, [parse(workshop.folder / "hook")], tmp_path / "cache"))


def test_a_stage_without_modules_costs_no_process(small_engine, tmp_path):
    made = stage(small_engine, [], tmp_path / "cache")
    assert smoke.is_known(small_engine, made)
