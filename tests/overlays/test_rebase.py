"""An overlay carried to another engine: what is left for review, and that the overlay itself is not touched."""

import tomllib
from hashlib import sha256
from pathlib import Path

import pytest

from overlays.__main__ import main
from overlays.base import BaseTree
from overlays.compose import compose
from overlays.errors import OverlayError
from overlays.manifest import parse
from overlays.merge import Fate
from overlays.rebase import Rebased, rebase
from overlays.review import FRAGMENT, PAGE, leave
from tests.overlays.conftest import CPU, TEXT, Workshop, digest

FIRST = TEXT.replace("async_scheduling = False", "async_scheduling = admitted_by_the_overlay()")
LANDED = '[[landed]]\nwhat = "the switch"\npath = "{path}"\ntext = "{text}"\n'


@pytest.fixture
def new_engine(tmp_path: Path) -> Path:
    """The folder of a later engine: the small engine's files with two lines more."""
    site = tmp_path / "later"
    (site / "vllm" / "platforms").mkdir(parents=True)
    (site / "vllm" / "__init__.py").write_text("")
    (site / CPU).write_text("import os\nimport sys\n" + TEXT)
    return site


def later(site: Path) -> BaseTree:
    return BaseTree(site / "vllm", "0.31.0", "cpu")


def carried(workshop: Workshop, old: BaseTree, site: Path, name: str = "first") -> Rebased:
    return rebase(parse(workshop.folder / name), (), old, later(site))


def test_a_patch_that_moved_is_left_as_a_patch_that_fits_once_it_is_reviewed(
    workshop, small_engine, new_engine, tmp_path
):
    folder = workshop.patching("first", FIRST)
    before = {file.name: file.read_bytes() for file in folder.iterdir()}
    made = carried(workshop, small_engine, new_engine)
    assert [(hunk.fate, hunk.change.start + 1, hunk.to + 1) for hunk in made.files[0].hunks] == [(Fate.clean, 2, 4)]
    leave(made, tmp_path / "out")
    assert {file.name: file.read_bytes() for file in folder.iterdir()} == before
    adopt(folder, tmp_path / "out")
    with pytest.raises(OverlayError, match=r"made by rebase and nobody has reviewed it; .*`reviewed = false`"):
        compose(later(new_engine), [parse(folder)])
    manifest = folder / "manifest.toml"
    manifest.write_text("\n".join(line for line in manifest.read_text().splitlines() if "reviewed" not in line))
    after = compose(later(new_engine), [parse(folder)]).files[CPU].decode()
    assert after == "import os\nimport sys\n" + FIRST


def adopt(folder: Path, out: Path) -> None:
    """What REVIEW.md tells a person to do, before the review."""
    for file in (out / "0.31.0").rglob("*.patch"):
        (folder / "0.31.0").mkdir(exist_ok=True)
        (folder / "0.31.0" / file.name).write_bytes(file.read_bytes())
    with (folder / "manifest.toml").open("a") as manifest:
        manifest.write((out / FRAGMENT).read_text())


def test_a_conflict_shows_both_texts_and_leaves_no_row(workshop, small_engine, new_engine, tmp_path):
    workshop.patching("first", FIRST)
    (new_engine / CPU).write_text(TEXT.replace("async_scheduling = False", "async_scheduling = None"))
    made = carried(workshop, small_engine, new_engine)
    leave(made, tmp_path / "out")
    page, fragment = ((tmp_path / "out" / name).read_text() for name in (PAGE, FRAGMENT))
    assert not made.settled
    assert "admitted_by_the_overlay" in page
    assert "async_scheduling = None" in page
    assert "hunk 1, line 2: conflict" in page
    assert "file" not in tomllib.loads(fragment)["target"][0]
    assert "# Incomplete: 1 files are not settled" in fragment


CHANGED = {
    "the very file": (FIRST, Fate.already),
    "the same line among others": (FIRST.replace("name", "import os\nname"), Fate.conflict),
    "the line is gone": (TEXT.replace("async_scheduling = False\n", ""), Fate.gone),
}


@pytest.mark.parametrize(("text", "fate"), CHANGED.values(), ids=CHANGED.keys())
def test_a_hunk_that_has_landed_is_told_from_one_whose_lines_are_gone(workshop, small_engine, new_engine, text, fate):
    workshop.patching("first", FIRST)
    (new_engine / CPU).write_text(text)
    assert carried(workshop, small_engine, new_engine).files[0].fate is fate


def test_a_declared_part_is_already_in_the_engine_though_its_lines_are_others(workshop, small_engine, new_engine):
    declare(workshop, LANDED.format(path=CPU, text="async_scheduling = decide_it_here()"))
    (new_engine / CPU).write_text(TEXT.replace("async_scheduling = False", "async_scheduling = decide_it_here()"))
    (hunk,) = carried(workshop, small_engine, new_engine).files[0].hunks
    assert (hunk.fate, hunk.why) == (Fate.already, "the switch")


def test_a_declared_part_speaks_only_for_the_hunks_that_it_names(workshop, small_engine, new_engine):
    declare(workshop, LANDED.format(path=CPU, text="import sys") + 'instead_of = "another_call"\n')
    (hunk,) = carried(workshop, small_engine, new_engine).files[0].hunks
    assert hunk.fate is Fate.clean


def test_a_declared_text_that_the_older_engine_holds_too_is_refused(workshop, small_engine, new_engine):
    declare(workshop, LANDED.format(path=CPU, text="fast path"))
    with pytest.raises(OverlayError, match=r"\[\[landed\]\] text of 'the switch' stands in vllm/platforms/cpu\.py"):
        carried(workshop, small_engine, new_engine)


def declare(workshop: Workshop, landed: str) -> None:
    """The overlay `first` with a [[landed]] entry."""
    folder = workshop.patching("first", FIRST)
    (folder / "manifest.toml").write_text((folder / "manifest.toml").read_text() + landed)


def test_a_file_that_is_gone_is_named(workshop, small_engine, new_engine):
    workshop.patching("first", FIRST)
    (new_engine / CPU).unlink()
    made = carried(workshop, small_engine, new_engine)
    assert (made.files[0].fate, made.files[0].note) == (Fate.gone, "vLLM 0.31.0 has no such file")


def test_a_merged_file_that_is_no_python_is_a_conflict(workshop, small_engine, new_engine):
    """The hunk is clean by its lines, and yet breaks the file: the engine closed the block above it."""
    old = TEXT + "if True:\n    pass\n"
    (small_engine.root / CPU).write_text(old)
    workshop.patching("first", old + "    indented = True\n", before=old)
    (new_engine / CPU).write_text("import os\n" + TEXT + "unless = True\n")
    (file,) = carried(workshop, small_engine, new_engine).files
    assert (file.hunks[0].fate, file.fate) == (Fate.look, Fate.conflict)
    assert "merged, it is no Python" in file.note


OLD = """def g():
    a()
    b()


def f(x):
    if x.cond:
        c()
        d()
    return x


class A:
    def run(self):
        x = 1
        return x
"""
LANDS_ELSEWHERE = {
    "its function was deleted": (
        OLD.replace("        d()\n", "        d()\n        extra()\n"),
        OLD.replace("def f(x):\n    if x.cond:\n        c()\n        d()\n    return x\n", ""),
    ),
    "its branch was replaced": (
        OLD.replace("        d()\n", "        d()\n        extra()\n"),
        OLD.replace("x.cond:\n        c()\n        d()", "x.other:\n        fresh()"),
    ),
    "another function has the same lines": (
        OLD.replace("x = 1", "x = 2"),
        OLD.replace("run(self):\n        x = 1\n        return x", "old(self):\n        x = 1\n        return x\n\n    "
                    "def run(self, y):\n        x = 1\n        return x + y"),
    ),
    "a function begins above it, not beside it": (
        OLD.replace("    b()\n", "    b2()\n"),
        OLD.replace("def g():\n    a()\n", "def g():\n    z()\n\n\ndef new():\n    a()\n"),
    ),
    "a line is taken away in another function": (
        OLD.replace("    b()\n", ""),
        OLD.replace("def g():\n    a()\n", "def g():\n    z()\n\n\ndef new():\n    a()\n"),
    ),
    "its condition changed further up": (
        OLD.replace("        d()\n", "        d()\n        extra()\n"), OLD.replace("x.cond:", "x.other:"),
    ),
}  # fmt: skip


@pytest.mark.parametrize(("ours", "text"), LANDS_ELSEWHERE.values(), ids=LANDS_ELSEWHERE.keys())
def test_a_hunk_that_would_land_in_another_block_is_not_settled(
    workshop, small_engine, new_engine, tmp_path, ours, text
):
    """It is carried, so that one can read it in its place, and both texts are shown."""
    (small_engine.root / CPU).write_text(OLD)
    workshop.patching("first", ours, before=OLD)
    (new_engine / CPU).write_text(text)
    made = carried(workshop, small_engine, new_engine)
    assert not made.settled
    assert made.files[0].fate in (Fate.look, Fate.conflict, Fate.gone)
    leave(made, tmp_path / "out")
    page = (tmp_path / "out" / PAGE).read_text()
    assert "## Both texts" in page
    assert "Not settled: 1 of 1 files." in page


def test_what_is_to_look_at_is_left_ready_but_for_the_look(workshop, small_engine, new_engine, tmp_path):
    """Patch and row are there, the target is not reviewed, and the page says which hunk and why."""
    (small_engine.root / CPU).write_text(OLD)
    workshop.patching("first", OLD.replace("x = 1", "x = 2"), before=OLD)
    (new_engine / CPU).write_text(OLD.replace("class A:", "class B:"))
    made = carried(workshop, small_engine, new_engine)
    leave(made, tmp_path / "out")
    page, fragment = ((tmp_path / "out" / name).read_text() for name in (PAGE, FRAGMENT))
    assert "to look at (written for class A, def run, and now in class B, def run), now line 15" in page
    (target,) = tomllib.loads(fragment)["target"]
    assert (target["reviewed"], [file["patch"] for file in target["file"]]) == (False, ["0.31.0/one.patch"])
    assert (tmp_path / "out" / "0.31.0" / "one.patch").is_file()


def test_a_hunk_in_the_same_function_is_clean_though_its_parameters_changed(workshop, small_engine, new_engine):
    (small_engine.root / CPU).write_text(OLD)
    workshop.patching(
        "first", OLD.replace("        x = 1\n        return x", "        x = 1\n        return x + 1"), before=OLD
    )
    (new_engine / CPU).write_text("import os\n" + OLD.replace("def run(self)", "def run(self, y)"))
    assert carried(workshop, small_engine, new_engine).settled


TABLE = "vllm/tuned/table.json"


def test_a_merged_table_that_says_a_thing_twice_is_a_conflict(workshop, small_engine, new_engine):
    """Each hunk is clean by its lines; a reader would keep one of the two values."""
    old = '{\n "b": 2,\n "a": 1\n}\n'
    (small_engine.root / TABLE).write_text(old)
    workshop.patching("first", old.replace(' "b"', ' "k": 7,\n "b"'), before=old, path=TABLE)
    (new_engine / TABLE).parent.mkdir()
    (new_engine / TABLE).write_text(old.replace('"a": 1', '"a": 1,\n "k": 9'))
    (file,) = carried(workshop, small_engine, new_engine).files
    assert file.fate is Fate.conflict
    assert "the key 'k' is there twice" in file.note


def test_a_later_file_that_is_no_text_is_a_conflict(workshop, small_engine, new_engine, tmp_path):
    workshop.patching("first", FIRST)
    (new_engine / CPU).write_bytes(b"# -*- coding: latin-1 -*-\n# \xe9\n" + TEXT.encode())
    made = carried(workshop, small_engine, new_engine)
    leave(made, tmp_path / "out")
    assert (made.files[0].fate, "no text in UTF-8" in made.files[0].note) == (Fate.conflict, True)
    assert "is no text in UTF-8" in (tmp_path / "out" / "watched" / "vllm-platforms-cpu.py.diff").read_text()


def test_a_merged_file_with_a_null_character_is_a_conflict(workshop, small_engine, new_engine):
    workshop.patching("first", FIRST)
    (new_engine / CPU).write_text(TEXT + "\0")
    assert carried(workshop, small_engine, new_engine).files[0].fate is Fate.conflict


def test_a_file_whose_lines_end_as_on_windows_is_carried(workshop, small_engine, new_engine):
    before, after = (text.replace("\n", "\r\n") for text in (TEXT, FIRST))
    (small_engine.root / CPU).write_bytes(before.encode())
    workshop.patching("first", after, before=before)
    (new_engine / CPU).write_bytes(b"import os\r\n" + before.encode())
    made = carried(workshop, small_engine, new_engine)
    assert (made.settled, made.files[0].after) == (True, b"import os\r\n" + after.encode())


WATCHED = f'[[target.file]]\npath = "{CPU}"\npreimage_sha256 = "{digest(TEXT)}"\npostimage_sha256 = "{digest(TEXT)}"\n'
ADDED = f'[[target.file]]\npath = "vllm/new.py"\nadded = "new.py"\npostimage_sha256 = "{digest("x = 1" + chr(10))}"\n'
HEAD = '[[target]]\nversion = "0.29.0"\nbuilds = ["cpu"]\n'


def test_a_watched_file_that_is_no_text_is_told_by_its_hashes(workshop, small_engine, new_engine, tmp_path):
    (small_engine.root / CPU).write_bytes(b"\xff1")
    workshop.overlay("first", HEAD + WATCHED.replace(digest(TEXT), sha256(b"\xff1").hexdigest()))
    (new_engine / CPU).write_bytes(b"\xff2")
    leave(carried(workshop, small_engine, new_engine), tmp_path / "out")
    told = (tmp_path / "out" / "watched" / "vllm-platforms-cpu.py.diff").read_text()
    assert [sha256(content).hexdigest() in told for content in (b"\xff1", b"\xff2")] == [True, True]


def test_a_watched_file_that_a_required_overlay_adds_is_left_as_a_diff_too(
    workshop, small_engine, new_engine, tmp_path
):
    """The older engine itself has no such file."""
    path = "vllm/new.py"
    workshop.write("zfirst", "new.py", "x = 1\n")
    workshop.write("zfirst", "newer.py", "x = 2\n")
    newer = HEAD.replace("0.29.0", "0.31.0") + ADDED.replace("new.py", "newer.py", 2).replace("vllm/newer", "vllm/new")
    workshop.overlay("zfirst", HEAD + ADDED + newer.replace(digest("x = 1\n"), digest("x = 2\n")))
    watched = WATCHED.replace(CPU, path).replace(digest(TEXT), digest("x = 1\n"))
    workshop.overlay("second", HEAD + watched, requires='["zfirst"]')
    required = (parse(workshop.folder / "zfirst"),)
    made = rebase(parse(workshop.folder / "second"), required, small_engine, later(new_engine))
    leave(made, tmp_path / "out")
    assert "-x = 1\n+x = 2\n" in (tmp_path / "out" / "watched" / "vllm-new.py.diff").read_text()


def test_a_watched_file_that_changed_is_left_as_a_diff_to_read(workshop, small_engine, new_engine, tmp_path):
    workshop.overlay("first", HEAD + WATCHED)
    made = carried(workshop, small_engine, new_engine)
    leave(made, tmp_path / "out")
    assert not made.settled
    assert "+import os" in (tmp_path / "out" / "watched" / "vllm-platforms-cpu.py.diff").read_text()


@pytest.mark.parametrize(
    ("there", "fate"),
    [(None, Fate.clean), ("x = 1\n", Fate.already), ("x = 2\n", Fate.conflict)],
    ids=["free", "the same", "another"],
)
def test_an_added_file_looks_whether_its_place_is_free(workshop, small_engine, new_engine, there, fate):
    workshop.write("first", "new.py", "x = 1\n")
    workshop.overlay("first", HEAD + ADDED)
    if there:
        (new_engine / "vllm" / "new.py").write_text(there)
    assert carried(workshop, small_engine, new_engine).files[0].fate is fate


def test_what_it_requires_must_be_carried_first(workshop, small_engine, new_engine):
    workshop.patching("zfirst", FIRST)
    workshop.patching("second", FIRST.replace("cpu", "cpu2"), before=FIRST, requires='["zfirst"]')
    required = (parse(workshop.folder / "zfirst"),)
    with pytest.raises(OverlayError, match=r"second stands on zfirst; rebase that first: zfirst has no target"):
        rebase(parse(workshop.folder / "second"), required, small_engine, later(new_engine))


def test_a_folder_that_is_there_already_is_not_overwritten(workshop, small_engine, new_engine, tmp_path):
    workshop.patching("first", FIRST)
    (tmp_path / "out").mkdir()
    with pytest.raises(OverlayError, match="perhaps with your edits; remove it or name another with --out"):
        leave(carried(workshop, small_engine, new_engine), tmp_path / "out")


class TestAsyncDflash:
    """EXP-8's overlay on the engines that came after; `make engine-sources` fetches them, without them this fails."""

    def run(self, capsys: pytest.CaptureFixture[str], version: str, out: Path) -> tuple[int, str, dict[str, object]]:
        """The command's code, its page and its piece of manifest."""
        code = main(["rebase", "async_dflash", "--from", "0.29.0", "--to", version, "--out", str(out)])
        assert (out / PAGE).is_file(), capsys.readouterr()
        return code, (out / PAGE).read_text(), tomllib.loads((out / FRAGMENT).read_text())["target"][0]

    @pytest.mark.parametrize("version", ["0.30.0", "0.31.0"])
    def test_all_of_it_can_be_carried_and_one_import_is_to_look_at(self, capsys, tmp_path, version):
        code, page, row = self.run(capsys, version, tmp_path / "out")
        assert code == 6
        assert [line for line in page.splitlines() if line.startswith("  - ") and "to look at" in line] == [
            "  - hunk 1, line 30: to look at (the engine replaced or removed the lines beside it), now line 30"
        ]
        assert (row["version"], row["reviewed"]) == (version, False)
        assert {file["path"] for file in row["file"]} == {
            "vllm/config/async_dflash.py",
            "vllm/config/vllm.py",
            "vllm/platforms/cpu.py",
        }

    def test_its_allow_list_is_already_in_0_31_0_and_nothing_else_of_it(self, capsys, tmp_path):
        _, page, _ = self.run(capsys, "0.31.0", tmp_path / "out")
        already = [line for line in page.splitlines() if line.startswith("  - ") and "already in this engine" in line]
        assert len(already) == 2
        assert all(line.endswith("already in this engine (the allow-list)") for line in already)
        patch = (tmp_path / "out" / "0.31.0" / "vllm.patch").read_text()
        assert "not async_dflash.admits(self)" not in patch
        assert "async_dflash.mark(self" in patch

    def test_nothing_of_it_is_in_0_30_0(self, capsys, tmp_path):
        _, page, _ = self.run(capsys, "0.30.0", tmp_path / "out")
        assert "already in this engine" not in page.replace("0 already in this engine", "")
