"""Which test holds which case of the bug bank. `make cases` prints it: case, what goes wrong, and the tests."""

import ast
import contextlib
import io
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FILE = Path(__file__).with_name("cases.toml")


@dataclass(frozen=True)
class Case:
    """One case; `due` is what it still waits for, empty when a test must hold it."""

    id: str
    title: str
    due: str = ""


class Held:
    """A pytest plugin: after collection `tests` maps each case to the tests that are marked with it."""

    def __init__(self) -> None:
        self.tests: dict[str, list[str]] = {}

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Read the markers of everything collected; parameters of one test count once."""
        for item in items:
            for mark in item.iter_markers("case"):
                for case in mark.args:
                    held = self.tests.setdefault(case, [])
                    name = item.nodeid.split("[")[0]
                    held += [name] if name not in held else []


def cases() -> dict[str, Case]:
    """Every case of cases.toml, in its order."""
    found = tomllib.loads(FILE.read_text(encoding="utf-8"))
    return {name: _case(name, value, found["due"]) for name, value in found["case"].items()}


def _case(name: str, value: str | dict[str, str], due: dict[str, str]) -> Case:
    return Case(name, value) if isinstance(value, str) else Case(name, value["title"], due[value["due"]])


def held(folder: Path = ROOT) -> dict[str, list[str]]:
    """Case -> node ids of the tests below `folder` that are marked with it. Collects, runs nothing."""
    plugin = Held()
    where = ["--rootdir", str(folder), "-c", str(folder / "pyproject.toml"), str(folder / "tests")]
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        code = pytest.main(["--collect-only", "-qq", "-p", "no:cacheprovider", *where], [plugin])
    if code is not pytest.ExitCode.OK:
        raise RuntimeError(f"the tests cannot be collected (pytest ends with {code}): {said.getvalue()[-2000:]}")
    return plugin.tests


def written(folder: Path = ROOT) -> dict[str, list[str]]:
    """The same for tests/kernels, read in the sources: only the engine's environment can collect these."""
    found: dict[str, list[str]] = {}
    for path in sorted((folder / "tests" / "kernels").rglob("test_*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            for mark in node.decorator_list if isinstance(node, ast.FunctionDef) else ():
                if isinstance(mark, ast.Call) and ast.unparse(mark.func) == "pytest.mark.case":
                    for case in mark.args:
                        found.setdefault(ast.literal_eval(case), []).append(f"{path.relative_to(folder)}::{node.name}")
    return found


def no_family(asked: list[str], known: set[str]) -> str:
    """That one of the families asked for is none, in words; empty where all are."""
    strange = next((family for family in asked if family not in known), None)
    wanted = f"wanted some of {' '.join(sorted(known))}, or nothing for all"
    return "" if strange is None else f"no family {strange!r} in tests/cases; {wanted}"


def main(families: list[str]) -> int:
    """Print the list; 1 when a case that is not due later has no test, 2 for a family that there is not."""
    known = cases()
    if strange_family := no_family(families, {case.id[0] for case in known.values()}):
        print(strange_family)
        return 2
    tests = held() | written()
    if strange := sorted(set(tests) - set(known)):
        raise RuntimeError(
            f"{tests[strange[0]][0]} is marked with case {strange[0]!r}, which {FILE.name} does not know"
        )
    open_cases = 0
    for case in known.values():
        if families and case.id[0] not in families:
            continue
        found = tests.get(case.id, [])
        open_cases += not found and not case.due
        print(f"{case.id:4} {case.title}{f'  [due with {case.due}]' if case.due else ''}")
        for name in found or ([] if case.due else ["NO TEST HOLDS IT"]):
            print(f"       {name}")
    print(f"{sum(bool(tests.get(c)) for c in known)} of {len(known)} cases are held by a test, {open_cases} are open")
    return 1 if open_cases else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
