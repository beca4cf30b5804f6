"""The page's trap table: every trap, and every test and mutant that it names is there."""

import ast
import re
from pathlib import Path

import pytest

from kernels.prep_fused.proof.contract import ROWS
from kernels.prep_fused.proof.mutants import MUTANTS, PACKAGE

PAGE = (PACKAGE / "README.md").read_text(encoding="utf-8")
TESTS = {
    node.name
    for path in Path(__file__).parent.glob("test_*.py")
    for node in ast.parse(path.read_text(encoding="utf-8")).body
    if isinstance(node, ast.FunctionDef)
}
TRAPS = dict(re.findall(r"^\| ([a-z]) \| .*? \| (.*) \|$", PAGE, re.MULTILINE))


def test_the_table_has_every_trap_of_the_study():
    assert "".join(TRAPS) == "abcdefghijklmnopq"


@pytest.mark.parametrize("trap", TRAPS)
def test_the_tests_and_mutants_that_a_trap_names_are_there(trap):
    named = re.findall(r"`(test_\w+)`", TRAPS[trap])
    assert named
    assert [name for name in named if name not in TESTS] == []
    for mutant in re.findall(r'mutants? "([^"]+)"', TRAPS[trap]):
        assert any(known.wrong.startswith(mutant) for known in MUTANTS), mutant


def test_the_page_counts_the_mutants_and_the_contracts_rows():
    assert f"{len(MUTANTS)} planted mistakes" in PAGE
    assert f"{len(ROWS)} rows of the\n  contract" in PAGE
