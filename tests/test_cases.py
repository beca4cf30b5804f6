"""The list of cases stays true: a case that is not due later has a test, and every mutant still fits its file."""

import re
import sys
import tomllib
from pathlib import Path

import pytest

HERE = Path(__file__).parent / "cases"
sys.path.insert(0, str(HERE))

from bank import ROOT, cases  # noqa: E402
from mutants import mutants  # noqa: E402

HELD_FAMILIES = ("A", "C", "E", "F", "J")
OWN_MUTANTS = {"J"}  # kernels/prep_fused/proof/mutants.py: its own tests plant them


def test_every_case_of_the_built_families_is_held_by_a_test(python):
    listed = python(str(HERE / "bank.py"), *HELD_FAMILIES)
    assert listed.returncode == 0, listed.stdout + listed.stderr


def test_every_family_that_must_be_held_has_a_mutant():
    assert {mutant.family for mutant in mutants()} >= set(HELD_FAMILIES) - OWN_MUTANTS


@pytest.mark.parametrize("mutant", mutants(), ids=lambda mutant: f"{mutant.family}-{Path(mutant.file).stem}")
def test_a_mutant_fits_the_file_that_it_breaks(mutant):
    assert (ROOT / mutant.file).read_text(encoding="utf-8").count(mutant.find) == 1


def test_the_list_has_all_the_cases_of_the_bank():
    numbers = {"A": 13, "B": 13, "C": 13, "D": 14, "E": 11, "F": 14, "G": 12, "H": 14, "I": 9, "J": 8}
    assert list(cases()) == [f"{family}{n}" for family, last in numbers.items() for n in range(1, last + 1)]


@pytest.mark.parametrize("script", ["bank.py", "mutants.py"])
def test_a_family_that_there_is_not_is_told_with_those_that_there_are(python, script):
    done = python(str(HERE / script), "A", "Z")
    assert done.returncode == 2
    assert done.stdout.startswith("no family 'Z' in tests/cases; wanted some of A ")


def test_a_case_that_is_due_says_with_which_issue_and_for_what():
    due = {case.due for case in cases().values() if case.due}
    assert due
    assert all(re.match(r"issue \d+: \w", told) for told in due)


def test_what_no_case_waits_for_is_not_in_the_list():
    listed = tomllib.loads((HERE / "cases.toml").read_text(encoding="utf-8"))["due"]
    assert set(listed.values()) == {case.due for case in cases().values() if case.due}
