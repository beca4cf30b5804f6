"""The house rules that no linter knows: sizes, names, no mocks, no machine's path, no promises in comments."""

import ast
import re
import statistics
import subprocess
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
ROOMS = ("campaign", "verdict", "overlays", "testbed", "conf", "analysis", "kernels")
LONGEST_FILE, LONGEST_FUNCTION, MEDIAN_FUNCTION = 300, 60, 10  # lines
JUNK_DRAWERS = {"utils", "util", "helpers", "helper", "misc", "common", "_common", "tools", "stuff"}
SOURCES = [
    path
    for room in ROOMS
    for path in sorted((ROOT / room).rglob("*.py"))
    if "__pycache__" not in path.parts and not path.is_relative_to(ROOT / "testbed" / ".build")
]
TESTS = [path for path in sorted((ROOT / "tests").rglob("*.py")) if "__pycache__" not in path.parts]
TEXTS = {
    ".py",
    ".md",
    ".yaml",
    ".yml",
    ".toml",
    ".txt",
    ".json",
    ".jsonl",
    ".cfg",
    ".ini",
    ".in",
    ".patch",
    ".html",
    ".svg",
    "",
}
MACHINE_PATH = re.compile("/" + r"(?:work|root|home/\w+|Users/\w+|tmp/pytest)" + "/")
PROMISE = re.compile(r"\b(?:TO" + r"DO|FIX" + r"ME|XX" + r"X|HA" + r"CK)\b")


def named(path: Path) -> str:
    """Where a file lies, for a test's id."""
    return str(path.relative_to(ROOT))


@cache
def tree(path: Path) -> ast.Module:
    """A source, parsed."""
    return ast.parse(path.read_text(encoding="utf-8"))


def functions(path: Path) -> dict[str, int]:
    """Function -> its length in lines, decorators not counted."""
    found = [n for n in ast.walk(tree(path)) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)]
    return {
        f"{named(path)}:{node.lineno} {node.name}": (node.end_lineno or node.lineno) - node.lineno + 1 for node in found
    }


@cache
def committed() -> list[Path]:
    """Every text file that is in git or would be (untracked and not ignored)."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    paths = [ROOT / name for name in listed.stdout.split("\0") if name]
    return [path for path in paths if path.is_file() and path.suffix in TEXTS and path.stat().st_size < 1_000_000]


def text(path: Path) -> str:
    """A file's text; a file that is none is empty here."""
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return ""


@pytest.mark.parametrize("path", SOURCES, ids=named)
def test_a_source_file_is_short(path: Path) -> None:
    assert len(path.read_text(encoding="utf-8").splitlines()) <= LONGEST_FILE


@pytest.mark.parametrize("path", SOURCES, ids=named)
def test_a_module_says_what_it_is(path: Path) -> None:
    assert ast.get_docstring(tree(path))


def test_no_function_is_long() -> None:
    sizes = {name: lines for path in SOURCES for name, lines in functions(path).items()}
    assert {name: lines for name, lines in sizes.items() if lines > LONGEST_FUNCTION} == {}


def test_the_median_function_fits_a_glance() -> None:
    sizes = [lines for path in SOURCES for lines in functions(path).values()]
    assert statistics.median(sizes) <= MEDIAN_FUNCTION


def test_there_is_no_junk_drawer() -> None:
    assert [named(path) for path in [*SOURCES, *TESTS] if {path.stem, *path.parent.parts[-2:]} & JUNK_DRAWERS] == []


def test_nothing_is_mocked() -> None:
    """A small real thing instead (style.md, rule 18)."""
    imports = re.compile(r"^\s*(?:from|import)\s+(?:unittest(?:\.mock)?|mock|pytest_mock)\b", re.MULTILINE)
    assert [named(path) for path in [*SOURCES, *TESTS] if imports.search(path.read_text(encoding="utf-8"))] == []


def test_no_committed_text_names_a_machines_path() -> None:
    found = [f"{named(path)}: {match.group()}" for path in committed() if (match := MACHINE_PATH.search(text(path)))]
    assert found == []


def test_no_committed_text_promises_work_for_later() -> None:
    assert [named(path) for path in committed() if path.suffix != ".jsonl" and PROMISE.search(text(path))] == []


def test_no_two_tests_of_a_file_share_a_name() -> None:
    """The second one would hide the first."""
    twice = [
        f"{named(path)}: {name}"
        for path in TESTS
        for name in {n.name for n in tree(path).body if isinstance(n, ast.FunctionDef)}
        if sum(isinstance(n, ast.FunctionDef) and n.name == name for n in tree(path).body) > 1
    ]
    assert twice == []


def test_a_tests_name_is_a_sentence() -> None:
    """At least three words (style.md, rule 17)."""
    short = [
        f"{named(path)}: {node.name}"
        for path in TESTS
        for node in ast.walk(tree(path))
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_") and node.name.count("_") < 3
    ]
    assert short == []


def test_test_files_are_named_like_what_they_test() -> None:
    mirrored = {path.relative_to(ROOT) for path in SOURCES}
    rooms = [p for p in TESTS if p.name.startswith("test_") and p.parent != ROOT / "tests"]
    strange = [p for p in rooms if not (ROOT / p.relative_to(ROOT / "tests").parent).is_dir()]
    assert mirrored
    assert [named(p) for p in strange] == []
