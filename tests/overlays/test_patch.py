"""The strict applier: right on everything a diff can say, and nowhere forgiving."""

import subprocess
from pathlib import Path

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from overlays.errors import DriftError, OverlayError
from overlays.patch import apply, lines

PATH = "vllm/envs.py"
ALPHABET = st.sampled_from(["a", "b", "\x0c", "\u2028", "다", " ", "\\", "-", "+", "@"])
LINE = st.text(ALPHABET, max_size=3)
TEXT = st.lists(LINE, max_size=12).map(lambda items: "".join(item + "\n" for item in items))


def gnu_diff(folder: Path, before: str, after: str) -> str:
    """What `diff -U0` writes."""
    (folder / "a").write_bytes(before.encode())
    (folder / "b").write_bytes(after.encode())
    command = [
        "diff",
        "-a",
        "-U0",
        "--label",
        f"a/{PATH}",
        "--label",
        f"b/{PATH}",
        str(folder / "a"),
        str(folder / "b"),
    ]
    return subprocess.run(command, capture_output=True, check=False).stdout.decode()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("diff")


@settings(max_examples=150, deadline=None)
@given(before=TEXT, after=TEXT, cut_before=st.booleans(), cut_after=st.booleans())
def test_applying_a_diff_gives_the_other_text(folder, before, after, cut_before, cut_after):
    before = before.removesuffix("\n") if cut_before else before
    after = after.removesuffix("\n") if cut_after else after
    assume(before != after)
    assert apply(gnu_diff(folder, before, after), before, PATH) == after


@settings(max_examples=150, deadline=None)
@given(before=TEXT, after=TEXT, data=st.data())
def test_any_changed_line_that_the_patch_removes_is_refused(folder, before, after, data):
    made = gnu_diff(folder, before, after)
    removed = [line for line in made.split("\n")[2:] if line.startswith("-")]
    assume(removed)
    found = lines(before)
    positions = [number for number, line in enumerate(found) if "-" + line.rstrip("\n") in removed]
    gone = data.draw(st.sampled_from(positions))
    changed = [*found[:gone], "changed" + found[gone], *found[gone + 1 :]]
    try:
        result = apply(made, "".join(changed), PATH)
    except DriftError:
        return
    # A line of the same text elsewhere was the removed one: then the changed line is still there, whole.
    assert changed[gone] in lines(result)


def test_a_patch_that_fits_three_lines_further_down_is_refused():
    patch = f"--- a/{PATH}\n+++ b/{PATH}\n@@ -2 +2 @@\n-two\n+zwei\n"
    with pytest.raises(DriftError, match="line 2 is 'x\\\\n', but the patch removes 'two\\\\n'"):
        apply(patch, "x\nx\nx\none\ntwo\n", PATH)


def test_a_patch_applied_already_is_refused():
    patch = f"--- a/{PATH}\n+++ b/{PATH}\n@@ -1 +1 @@\n-one\n+eins\n"
    with pytest.raises(DriftError, match="the patch removes 'one"):
        apply(patch, apply(patch, "one\n", PATH), PATH)


def test_a_patch_beyond_the_end_is_refused():
    patch = f"--- a/{PATH}\n+++ b/{PATH}\n@@ -9,0 +10 @@\n+late\n"
    with pytest.raises(DriftError, match="has 1 lines, but the patch inserts after line 9"):
        apply(patch, "one\n", PATH)


HEAD = f"--- a/{PATH}\n+++ b/{PATH}\n"


@pytest.mark.parametrize(
    ("patch", "sentence"),
    [
        (HEAD + "@@ -1,2 +1,2 @@\n one\n-two\n+zwei\n", "zero lines of context"),
        (HEAD.replace("envs", "other") + "@@ -1 +1 @@\n-one\n+eins\n", "must change vllm/envs.py and nothing else"),
        ("", "must change vllm/envs.py and nothing else"),
        (
            HEAD + "@@ -1 +1 @@\n-one\n+eins\n" + HEAD.replace("envs", "b") + "@@ -1 +1 @@\n-one\n+eins\n",
            "nothing else",
        ),
        (HEAD + "@@ -1 +1,3 @@\n-one\n+eins\n", "not a unified diff"),
        (HEAD + "@@ -2 +2 @@\n-two\n+b\n@@ -1 +1 @@\n-one\n+a\n", "goes backwards"),
    ],
    ids=["context", "another file", "empty", "two files", "cut hunk", "backwards"],
)
def test_a_bad_patch_is_a_configuration_error(patch, sentence):
    with pytest.raises(OverlayError, match=sentence) as refused:
        apply(patch, "one\ntwo\n", PATH)
    assert not isinstance(refused.value, DriftError)


def test_only_a_newline_ends_a_line():
    assert lines("a\x0cb\u2028c\nd") == ["a\x0cb\u2028c\n", "d"]
