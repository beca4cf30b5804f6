"""The stage: what the engine will import, that it is what was pinned, and that damage is seen."""

import json
import os
import py_compile
import shutil
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor
from hashlib import sha256
from multiprocessing import get_context
from pathlib import Path

import pytest

from overlays.base import BaseTree
from overlays.errors import DriftError, OverlayError
from overlays.manifest import load, parse
from overlays.stage import check, stage, verify

FIRST = "# fast path\nasync_scheduling = True\nname = 'cpu'\n"
CPU = "vllm/platforms/cpu.py"


def staged(base: BaseTree, workshop, cache: Path, *names: str):
    return stage(base, [parse(workshop.folder / name) for name in names], cache)


def imported(stage_path: Path, code: str, cwd: Path) -> str:
    """What `code` prints in a process started as the engine is."""
    environment = {"PYTHONPATH": str(stage_path), "PYTHONSAFEPATH": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=cwd, env=environment
    )
    return done.stdout.strip()


@pytest.fixture
def cache(tmp_path):
    return tmp_path / "cache"


def test_the_stage_holds_the_patched_file_and_leaves_the_installed_one(workshop, small_engine, cache):
    workshop.patching("first", FIRST)
    before = (small_engine.root / CPU).read_text()
    made = staged(small_engine, workshop, cache, "first")
    assert (made.path / CPU).read_text() == FIRST
    assert (small_engine.root / CPU).read_text() == before
    assert [(file.path, file.module) for file in made.files] == [(CPU, "vllm.platforms.cpu")]


def test_an_engine_without_overlays_is_staged_too(small_engine, cache):
    made = stage(small_engine, [], cache)
    assert (made.path / CPU).read_bytes() == (small_engine.root / CPU).read_bytes()
    assert (made.files, made.overlays, made.variables) == ((), (), frozenset())


def test_compiled_modules_are_links_and_old_bytecode_is_left_behind(small_engine, cache):
    made = stage(small_engine, [], cache)
    assert (made.path / "vllm/_C.abi3.so").readlink() == small_engine.package / "_C.abi3.so"
    assert not list(made.path.rglob("stale.pyc"))


def test_the_stage_is_read_only(small_engine, cache):
    made = stage(small_engine, [], cache)
    modes = {path.stat().st_mode & 0o222 for path in [made.path, *made.path.rglob("*")] if not path.is_symlink()}
    assert modes == {0}


def test_the_same_engine_and_overlays_are_the_same_stage(workshop, small_engine, cache):
    workshop.patching("first", FIRST)
    one, two = (staged(small_engine, workshop, cache, "first") for _ in range(2))
    assert one == two
    assert one.digest != stage(small_engine, [], cache).digest


def test_nothing_is_left_aside(workshop, small_engine, cache):
    workshop.patching("first", FIRST)
    made = staged(small_engine, workshop, cache, "first")
    assert {path.name for path in cache.iterdir()} == {made.digest, stage(small_engine, [], cache).digest}


def test_a_stage_that_does_not_compile_is_refused_and_removed(workshop, small_engine, cache):
    workshop.patching("first", "def (:\n")
    with pytest.raises(OverlayError, match="the stage does not compile"):
        staged(small_engine, workshop, cache, "first")
    assert len(list(cache.iterdir())) == 1  # the plain engine


def stage_one(base: BaseTree, folder: Path, cache: Path) -> str:
    """For another process."""
    return stage(base, [parse(folder)], cache).digest


def test_two_processes_that_stage_at_once_both_get_it(workshop, small_engine, cache):
    folder = workshop.patching("first", FIRST)
    with ProcessPoolExecutor(4, mp_context=get_context("fork")) as pool:
        digests = {job.result() for job in [pool.submit(stage_one, small_engine, folder, cache) for _ in range(4)]}
    assert len(digests) == 1
    assert not list(cache.glob(".making-*"))


@pytest.mark.case("E6")
def test_stale_bytecode_does_not_hide_new_source(small_engine, cache):
    """Same size, same time, other text. The stage's bytecode is checked by hash, so the source wins."""
    made = stage(small_engine, [], cache)
    copy = cache / "edited"
    shutil.copytree(made.path, copy, symlinks=True)
    source = copy / CPU
    times = source.stat()
    source.chmod(0o644)
    source.write_text(source.read_text().replace("False", "True "))
    os.utime(source, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert imported(copy, "import vllm.platforms.cpu as m; print(m.async_scheduling)", cache) == "True"


@pytest.mark.case("E6")
def test_bytecode_that_says_it_needs_no_check_is_not_taken_from_the_engine(workshop, small_engine, cache):
    """An unchecked .pyc beside the installed source would win over any text; the stage compiles its own."""
    source = small_engine.package / "platforms" / "cpu.py"
    unchecked = small_engine.package / "platforms" / "__pycache__" / f"cpu.{sys.implementation.cache_tag}.pyc"
    other = cache.parent / "other.py"
    other.write_text("async_scheduling = 'from stale bytecode'\n")
    py_compile.compile(
        str(other), str(unchecked), str(source), invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH
    )
    workshop.patching("first", FIRST)
    made = staged(small_engine, workshop, cache, "first")
    assert imported(made.path, "import vllm.platforms.cpu as m; print(m.async_scheduling)", cache) == "True"


@pytest.mark.case("E7")
def test_a_stage_needs_no_writing_to_be_imported_fast(workshop, small_engine, cache):
    """Its bytecode is there and matches, also of the patched file; so a read-only place costs nothing."""
    workshop.patching("first", FIRST)
    made = staged(small_engine, workshop, cache, "first")
    environment = {"PYTHONPATH": str(made.path), "PYTHONSAFEPATH": "1"}  # it may write
    done = subprocess.run(
        [sys.executable, "-v", "-c", "import vllm.platforms.cpu, vllm.tuned"],
        capture_output=True, text=True, check=True, cwd=cache, env=environment,
    )  # fmt: skip
    ours = [line for line in done.stderr.splitlines() if str(made.path) in line and "code object from" in line]
    assert len(ours) == 4  # vllm, vllm.platforms, vllm.platforms.cpu, vllm.tuned
    assert [line for line in ours if ".pyc" not in line] == []
    verify(made)


def test_a_data_file_is_seen_by_code_that_looks_beside_its_real_path(workshop, small_engine, cache):
    path = "vllm/tuned/table.json"
    workshop.patching("tuned", '{"tuned": 2}\n', before='{"stock": 1}\n', path=path)
    made = staged(small_engine, workshop, cache, "tuned")
    assert imported(made.path, "import vllm.tuned as m; print(m.table)", cache) == '{"tuned": 2}'


def test_a_data_file_is_no_module_and_is_asked_for_by_its_path(workshop, small_engine, cache):
    workshop.patching("tuned", '{"tuned": 2}\n', before='{"stock": 1}\n', path="vllm/tuned/table.json")
    workshop.patching("first", FIRST)
    made = staged(small_engine, workshop, cache, "first", "tuned")
    assert [(file.overlay, file.module, file.asked) for file in made.files] == [
        ("first", "vllm.platforms.cpu", "vllm.platforms.cpu"),
        ("tuned", "", {"file": "vllm/tuned/table.json"}),
    ]


def test_a_data_file_may_be_added_and_lie_beside_a_plugins_modules(workshop, small_engine, cache):
    table, path = '{"added": 3}', "vllm/tuned/E=8,N=512,block_shape=[128,128].json"
    workshop.write("adds", "new.json", table)
    workshop.overlay(
        "adds",
        '[[target]]\nversion = "0.29.0"\nbuilds = ["cpu"]\n[[target.file]]\n'
        f'path = "{path}"\nadded = "new.json"\npostimage_sha256 = "{sha256(table.encode()).hexdigest()}"\n',
    )
    workshop.plugin("hook", {"table.json": "{}"})
    made = staged(small_engine, workshop, cache, "adds", "hook")
    assert [file.asked for file in made.files] == [
        "hook_pkg",
        {"file": "hook_pkg/table.json"},
        {"file": path},
    ]
    assert (made.path / path).read_text() == table


@pytest.mark.case("E5")
def test_an_overlay_that_is_replaced_by_renaming_does_not_reach_a_stage_that_is_there(workshop, small_engine, cache):
    """The stage is a copy: what an editor or a checkout puts in the patch's place is refused, or makes another."""
    folder = workshop.patching("first", FIRST)
    made = staged(small_engine, workshop, cache, "first")
    before = (made.path / CPU).read_bytes()
    aside = folder / "aside"
    aside.write_text((folder / "one.patch").read_text().replace("True", "None"))
    aside.rename(folder / "one.patch")
    verify(made)
    assert (made.path / CPU).read_bytes() == before
    with pytest.raises(DriftError, match="review it"):
        staged(small_engine, workshop, cache, "first")


@pytest.mark.case("E10")
def test_a_folder_called_vllm_in_the_working_directory_is_not_imported(small_engine, cache, tmp_path):
    made = stage(small_engine, [], cache)
    trap = tmp_path / "work" / "vllm"
    trap.mkdir(parents=True)
    (trap / "__init__.py").write_text("raise SystemExit('the trap')")
    found = imported(made.path, "import vllm; print(vllm.__file__)", trap.parent)
    assert found == str(made.path / "vllm/__init__.py")


def damage_text(path: Path) -> None:
    (path / CPU).chmod(0o644)
    (path / CPU).write_text(FIRST.replace("cpu", "gpu"))


def damage_missing(path: Path) -> None:
    (path / "vllm/tuned").chmod(0o755)
    (path / "vllm/tuned/table.json").unlink()


def damage_extra(path: Path) -> None:
    (path / "vllm").chmod(0o755)
    (path / "vllm/sitecustomize.py").write_text("")


def damage_link(path: Path) -> None:
    (path / "vllm").chmod(0o755)
    (path / "vllm/_C.abi3.so").unlink()
    (path / "vllm/_C.abi3.so").symlink_to("/dev/null")


def damage_bytecode(path: Path) -> None:
    compiled = next((path / "vllm/platforms/__pycache__").glob("cpu.*.pyc"))
    compiled.chmod(0o644)
    compiled.write_bytes(compiled.read_bytes() + b"x")


def damage_listing(path: Path) -> None:
    path.chmod(0o755)
    (path / "stage.json").unlink()


def damage_linked_folder(path: Path) -> None:
    """First on PYTHONPATH it would be imported in the place of the library."""
    (path.parent.parent / "evil").mkdir()
    (path.parent.parent / "evil" / "__init__.py").write_text("")
    path.chmod(0o755)
    (path / "torch").symlink_to(path.parent.parent / "evil")


def damage_pipe(path: Path) -> None:
    (path / "vllm").chmod(0o755)
    os.mkfifo(path / "vllm/late.py")


DAMAGES = [
    *(damage_text, damage_missing, damage_extra, damage_link, damage_bytecode, damage_listing),
    *(damage_linked_folder, damage_pipe),
]


@pytest.mark.case("E5")
@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
def test_a_damaged_stage_is_drift_on_verify_and_on_the_next_use(workshop, small_engine, cache, damage):
    """What was replaced after staging is seen, whatever it was."""
    workshop.patching("first", FIRST)
    made = staged(small_engine, workshop, cache, "first")
    damage(made.path)
    with pytest.raises(DriftError, match=r"remove .* to have it made again"):
        verify(made)
    with pytest.raises(DriftError):
        staged(small_engine, workshop, cache, "first")


def test_a_stage_whose_listing_was_rewritten_too_still_misses_its_overlays_hash(workshop, small_engine, cache):
    workshop.patching("first", FIRST)
    made = staged(small_engine, workshop, cache, "first")
    damage_text(made.path)
    (made.path / "stage.json").chmod(0o644)
    listing = json.loads((made.path / "stage.json").read_text())
    from overlays.base import hash_file

    listing["files"][CPU] = hash_file(made.path / CPU)
    (made.path / "stage.json").write_text(json.dumps(listing))
    with pytest.raises(DriftError, match="but its overlay pins"):
        verify(made)


def test_a_compiled_module_that_was_replaced_is_seen(small_engine, cache):
    made = stage(small_engine, [], cache)
    (small_engine.package / "_C.abi3.so").write_text("compiled again")
    with pytest.raises(DriftError, match=r"_C\.abi3\.so"):
        verify(made)


def test_an_engine_that_was_installed_again_is_staged_anew(workshop, small_engine, cache):
    """What an earlier run staged from the same place links to compiled modules of another time."""
    workshop.patching("first", FIRST)
    before = staged(small_engine, workshop, cache, "first")
    module = small_engine.package / "_C.abi3.so"
    os.utime(module, ns=(0, 0))
    after = staged(small_engine, workshop, cache, "first")
    assert after.digest != before.digest
    verify(after)


def test_an_engine_edited_in_place_is_refused(small_engine, cache):
    """Also where no overlay touches the file: two arms staged at two times would differ by more than the patch."""
    (small_engine.package / "tuned/table.json").write_text('{"edited": 1}\n')
    with pytest.raises(DriftError, match="the installed engine was edited in place"):
        stage(small_engine, [], cache)


def test_a_file_dropped_into_the_engine_makes_another_stage(small_engine, cache):
    clean = stage(small_engine, [], cache)
    (small_engine.package / "dropped.py").write_text("x = 1\n")
    assert stage(small_engine, [], cache).digest != clean.digest


def test_a_linked_folder_in_the_engine_is_refused_since_no_stage_would_hold_it(small_engine, cache):
    (small_engine.package / "tuned").rename(cache.parent / "elsewhere")
    (small_engine.package / "tuned").symlink_to(cache.parent / "elsewhere")
    with pytest.raises(OverlayError, match=r"vllm/tuned is a link to the folder .*elsewhere"):
        stage(small_engine, [], cache)


def test_without_a_record_every_file_counts(small_engine, cache):
    plain = BaseTree(small_engine.package, "0.29.0", "cpu")
    clean = stage(plain, [], cache)
    (small_engine.package / "tuned/table.json").write_text('{"edited": 1}\n')
    assert stage(plain, [], cache).digest != clean.digest


def test_check_reads_hashes_and_writes_nothing(workshop, small_engine, cache):
    workshop.patching("first", FIRST)
    check(small_engine, [parse(workshop.folder / "first")])
    assert not cache.exists()


def test_a_plugin_is_found_by_the_engine_and_its_payload_is_a_package_of_its_own(workshop, small_engine, cache):
    workshop.plugin("hook", {"wrap.py": "def register():\n    return 'registered'\n"}, variables='["VLLM_HOOK"]')
    made = staged(small_engine, workshop, cache, "hook")
    code = (
        "from importlib.metadata import entry_points; "
        "print([point.load()() for point in entry_points(group='vllm.general_plugins') if point.name == 'hook'])"
    )
    assert imported(made.path, code, cache) == "['registered']"
    assert (made.variables, [file.module for file in made.files]) == (
        frozenset({"VLLM_HOOK"}),
        ["hook_pkg", "hook_pkg.wrap"],
    )


def test_a_plugin_may_not_hide_another_package(workshop, small_engine):
    workshop.plugin("hook", {"wrap.py": ""}, package="vllm")
    with pytest.raises(OverlayError, match="hook's plugin would hide vllm"):
        check(small_engine, [parse(workshop.folder / "hook")])


def test_the_stage_knows_every_variable_that_its_overlays_read(faulty):
    variables = set(load("async_dflash", [faulty]).variables) | set(load("engine_report", [faulty]).variables)
    assert variables == {"VLLM_GLM53_ASYNC_DFLASH", "VLLM_CAMPAIGN_REPORT_DIR", "VLLM_CAMPAIGN_OVERLAID_MODULES"}
