"""Imports in the engine's interpreter: what is missing is told before a boot, once for each stage."""

import time
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
    workshop.plugin("hook", {"wrap.py": "import missing_one\n"})
    with pytest.raises(ImportsError, match=r"hook_pkg/wrap\.py, which imports missing_one"):
        smoke.expect_imports(small_engine, stage(small_engine, [parse(workshop.folder / "hook")], tmp_path / "cache"))


def left_running(mark: Path) -> bool:
    """Whether the process whose number stands in `mark` still lives."""
    try:
        return Path(f"/proc/{mark.read_text()}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


DETACHED = "start_new_session=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL"


@pytest.mark.parametrize("how", ["", DETACHED], ids=["with our output", "detached"])
def test_what_an_import_started_is_ended_and_not_waited_for(staged, small_engine, tmp_path, how):
    mark = tmp_path / "started"
    smoke.expect_imports(
        small_engine,
        staged(
            f"import subprocess\nstarted = subprocess.Popen(['sleep', '900'], {how})\n"
            f"open({str(mark)!r}, 'w').write(str(started.pid))\n"
        ),
    )
    deadline = time.monotonic() + 60
    while left_running(mark):
        assert time.monotonic() < deadline, "it was not ended"
        time.sleep(0.02)


def test_a_thread_that_an_import_leaves_is_not_waited_for(staged, small_engine):
    smoke.expect_imports(
        small_engine, staged("import threading, time\nthreading.Thread(target=time.sleep, args=(900,)).start()\n")
    )


def test_an_import_that_does_not_end_is_told_in_a_short_sentence(staged, small_engine, monkeypatch):
    monkeypatch.setattr(smoke, "TIMEOUT_S", 3)
    with pytest.raises(
        ImportsError, match=r"^vllm\.platforms\.cpu of .* is not imported after 3 s: waiting$"
    ) as caught:
        smoke.expect_imports(small_engine, staged("import time\nprint('waiting', flush=True)\ntime.sleep(900)\n"))
    assert "importlib" not in str(caught.value)


CORE, ABSTRACT = "vllm/v1/engine/core.py", "vllm/platforms/abstract.py"
CORE_TEXT, ABSTRACT_TEXT = "from vllm.platforms.abstract import batches\n", "def batches():\n    return 1\n"


@pytest.fixture
def larger_engine(small_engine: BaseTree) -> BaseTree:
    """The small engine with an entry that imports a name of another file."""
    for path, text in {CORE: CORE_TEXT, ABSTRACT: ABSTRACT_TEXT, "vllm/v1/__init__.py": ""}.items():
        (small_engine.root / path).parent.mkdir(parents=True, exist_ok=True)
        (small_engine.root / path).write_text(text)
    (small_engine.root / "vllm/v1/engine/__init__.py").write_text("")
    return small_engine


def blamed(base: BaseTree, workshop: Workshop, cache: Path, *names: str) -> str:
    with pytest.raises(ImportsError) as caught:
        smoke.expect_imports(base, stage(base, [parse(workshop.folder / name) for name in names], cache))
    return str(caught.value)


def test_who_took_a_name_away_is_blamed_and_not_who_is_overlaid_where_it_is_imported(workshop, larger_engine, tmp_path):
    workshop.patching("breaks", ABSTRACT_TEXT.replace("batches", "renamed"), before=ABSTRACT_TEXT, path=ABSTRACT)
    workshop.patching("innocent", CORE_TEXT + "x = 1\n", before=CORE_TEXT, path=CORE)
    told = blamed(larger_engine, workshop, tmp_path / "cache", "breaks", "innocent")
    assert told.startswith(
        f"breaks: its hashes fit, but its imports do not: {ABSTRACT}, which fails at {CORE} (ImportErr"
    )
    assert "innocent" not in told


def test_who_imports_a_name_that_the_stock_file_lacks_too_is_blamed(workshop, larger_engine, tmp_path):
    workshop.patching("innocent", ABSTRACT_TEXT + "x = 1\n", before=ABSTRACT_TEXT, path=ABSTRACT)
    workshop.patching("breaks", CORE_TEXT.replace("batches", "never_there"), before=CORE_TEXT, path=CORE)
    told = blamed(larger_engine, workshop, tmp_path / "cache", "breaks", "innocent")
    assert (told.startswith("breaks: "), "innocent" in told) == (True, False)


@pytest.mark.parametrize(
    "stock",
    [CORE_TEXT, "import vllm.platforms.abstract as abstract\nx = abstract.batches\n"],
    ids=["name", "attribute"],
)
def test_a_stock_entry_of_the_engine_that_no_longer_imports_is_noticed(workshop, larger_engine, tmp_path, stock):
    """Nobody overlays it, and every boot imports it."""
    (larger_engine.root / CORE).write_text(stock)
    workshop.patching("breaks", ABSTRACT_TEXT.replace("batches", "renamed"), before=ABSTRACT_TEXT, path=ABSTRACT)
    assert blamed(larger_engine, workshop, tmp_path / "cache", "breaks").startswith("breaks: ")


def test_an_entry_that_the_stock_engine_cannot_import_either_says_nothing_of_the_overlay(
    workshop, larger_engine, tmp_path
):
    (larger_engine.root / CORE).write_text("raise RuntimeError(f'no device at {id(object()):x}, {__file__}')\n")
    workshop.patching("first", TEXT + "x = 1\n")
    smoke.expect_imports(larger_engine, stage(larger_engine, [parse(workshop.folder / "first")], tmp_path / "cache"))


def test_a_library_that_was_installed_since_has_the_imports_tried_again(staged, small_engine):
    made = staged("x = 1\n")
    smoke.expect_imports(small_engine, made)
    assert smoke.is_known(small_engine, made)
    (small_engine.root / "torch-2.12.0.dist-info").mkdir()
    assert not smoke.is_known(small_engine, made)


def test_a_stage_without_modules_costs_no_process(small_engine, tmp_path):
    made = stage(small_engine, [], tmp_path / "cache")
    assert smoke.is_known(small_engine, made)
