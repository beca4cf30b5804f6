"""An overlay carried to another engine: what is left for review, and that the overlay itself is not touched."""

import tomllib
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
    "the same line among others": (FIRST.replace("name", "import os\nname"), Fate.already),
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
    assert (file.hunks[0].fate, file.fate) == (Fate.beside, Fate.conflict)
    assert "the merged file is no Python" in file.note


WATCHED = f'[[target.file]]\npath = "{CPU}"\npreimage_sha256 = "{digest(TEXT)}"\npostimage_sha256 = "{digest(TEXT)}"\n'
ADDED = f'[[target.file]]\npath = "vllm/new.py"\nadded = "new.py"\npostimage_sha256 = "{digest("x = 1" + chr(10))}"\n'
HEAD = '[[target]]\nversion = "0.29.0"\nbuilds = ["cpu"]\n'


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
    def test_all_of_it_can_be_carried(self, capsys, tmp_path, version):
        code, _, row = self.run(capsys, version, tmp_path / "out")
        assert code == 0
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
