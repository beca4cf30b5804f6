"""Hunks carried to a later text, against git's own three-way merge."""

import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from overlays.errors import DriftError
from overlays.merge import Fate, applied, carry, changes_between, diff
from overlays.patch import apply

BASE = "".join(f"line {number} of the engine\n" for number in range(1, 13))
TEXT = st.lists(st.sampled_from("abcdef"), max_size=9).map(lambda items: "".join(item + "\n" for item in items))


def edited(*edits: tuple[str, str]) -> str:
    """BASE with some lines replaced by other texts."""
    text = BASE
    for old, new in edits:
        assert old in text
        text = text.replace(old, new)
    return text


def fates(ours: str, later: str) -> list[Fate]:
    return [hunk.fate for hunk in carry(changes_between(BASE, ours), BASE, later)]


LINE_6 = "line 6 of the engine\n"
LINE_7 = "line 7 of the engine\n"
OURS = "line 6 of the overlay, which is ours\n"


@pytest.mark.parametrize(
    ("ours", "later", "fate"),
    [
        pytest.param(edited((LINE_6, OURS)), BASE, Fate.clean, id="the same engine"),
        pytest.param(edited((LINE_6, OURS)), "new\nnew\n" + BASE, Fate.clean, id="moved down"),
        pytest.param(edited((LINE_6, OURS)), edited(("line 7 of", "line 7 in")), Fate.look, id="its neighbour changed"),
        pytest.param(
            edited((LINE_6, LINE_6 + OURS)),
            edited(("line 7 of", "line 7 in")),
            Fate.look,
            id="inserted beside a change",
        ),
        pytest.param(edited((LINE_6, OURS)), edited((LINE_7, "")), Fate.look, id="its neighbour is gone"),
        pytest.param(edited((LINE_6, OURS)), edited((LINE_7, "new\n" + LINE_7)), Fate.beside, id="a new neighbour"),
        pytest.param(edited((LINE_6, OURS)), edited((LINE_6, OURS)), Fate.already, id="the same change"),
        pytest.param(edited((LINE_6, "")), edited((LINE_6, "")), Fate.already, id="the same line removed"),
        pytest.param(
            edited((LINE_6, OURS)),
            edited((LINE_6, "before\n" + OURS + "behind\n")),
            Fate.conflict,
            id="ours among more",
        ),
        pytest.param(
            edited((LINE_6, LINE_6 + OURS)),
            edited((LINE_6, "rewritten\n"), (LINE_7, "all of it\n"), ("line 8 of the engine\n", OURS)),
            Fate.conflict,
            id="ours by chance in a rewritten part",
        ),
        pytest.param(BASE + OURS, BASE.removesuffix("\n"), Fate.conflict, id="no newline before what is inserted"),
        pytest.param(edited((LINE_6, OURS)), edited((LINE_6, "theirs\n")), Fate.conflict, id="both changed it"),
        pytest.param(
            edited((LINE_6, LINE_6 + OURS)), edited((LINE_6, LINE_6 + "theirs\n")), Fate.conflict, id="both inserted"
        ),
        pytest.param(
            edited((LINE_6, LINE_6 + "x\n")),
            edited((LINE_6, LINE_6 + "y\nx\n")),
            Fate.conflict,
            id="a line of it",
        ),
        pytest.param(edited((LINE_6, OURS)), edited((LINE_6, "")), Fate.gone, id="its line is gone"),
    ],
)
def test_each_hunk_has_one_fate(ours: str, later: str, fate: Fate) -> None:
    assert fates(ours, later) == [fate]


def test_a_clean_hunk_is_made_where_its_lines_are_now_and_the_others_are_left_out() -> None:
    ours = edited((LINE_6, OURS), ("line 9 of the engine", "line 9 of the overlay"))
    later = "new\n" + edited((LINE_6, "theirs\n"))
    hunks = carry(changes_between(BASE, ours), BASE, later)
    assert [(hunk.fate, hunk.change.start + 1, hunk.to + 1) for hunk in hunks] == [
        (Fate.conflict, 6, 7),
        (Fate.clean, 9, 10),
    ]
    assert applied(hunks, later) == later.replace("line 9 of the engine", "line 9 of the overlay")


def test_a_conflict_shows_both_texts() -> None:
    (hunk,) = carry(changes_between(BASE, edited((LINE_6, OURS))), BASE, edited((LINE_6, "theirs\n")))
    assert (hunk.ours, hunk.theirs) == ((OURS,), ("theirs\n",))


@pytest.mark.parametrize("later", [edited((LINE_7, "")), edited((LINE_7, "new\n" + LINE_7))], ids=["look", "beside"])
def test_what_lies_beside_a_change_shows_both_texts(later: str) -> None:
    (hunk,) = carry(changes_between(BASE, edited((LINE_6, OURS))), BASE, later)
    assert OURS in hunk.ours
    assert (LINE_7 in hunk.ours, set(hunk.theirs) <= set(later.splitlines(keepends=True))) == (True, True)


@settings(max_examples=120, deadline=None)
@given(base=TEXT, ours=TEXT, later=TEXT)
def test_what_git_merges_cleanly_is_merged_the_same_way(tmp_path_factory, base, ours, later):
    """And what we call a conflict, git does too: our extra cases are only changes that lie side by side."""
    hunks = carry(changes_between(base, ours), base, later)
    merged, conflicts = by_git(tmp_path_factory.mktemp("merge"), base, ours, later)
    if not conflicts:
        assert all(hunk.fate.carried or hunk.fate is Fate.already for hunk in hunks)
        assert applied(hunks, later) == merged


@settings(max_examples=60, deadline=None)
@given(before=TEXT, after=TEXT, cut=st.booleans())
def test_a_diff_that_we_write_is_one_that_we_apply(before, after, cut):
    after = after.removesuffix("\n") if cut else after
    if before == after:
        assert diff(before, after, "vllm/a.py") == ""
    else:
        assert apply(diff(before, after, "vllm/a.py"), before, "vllm/a.py") == after


def test_a_diff_that_we_write_holds_no_line_that_it_does_not_change() -> None:
    """git writes the function that a hunk stands in behind the second @@; that line is the engine's."""
    text = "def of_the_engine():\n    one = 1\n    two = 2\n    three = 3\n"
    made = diff(text, text.replace("three = 3", "three = 4"), "vllm/a.py")
    assert "of_the_engine" not in made
    with pytest.raises(DriftError):
        apply(made, text.replace("three = 3", "three = 5"), "vllm/a.py")


def by_git(folder, base: str, ours: str, later: str) -> tuple[str, bool]:
    """What `git merge-file` makes of it, and whether there are conflicts."""
    for name, text in (("ours", later), ("base", base), ("theirs", ours)):
        (folder / name).write_text(text)
    done = subprocess.run(
        ["git", "merge-file", "-p", "ours", "base", "theirs"], cwd=folder, capture_output=True, text=True, check=False
    )
    return done.stdout, done.returncode != 0
