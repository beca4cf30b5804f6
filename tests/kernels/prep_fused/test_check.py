"""The proof: equal to the engine's own methods, every row exercised, every planted mistake noticed, told as it is."""

import random

import pytest

from kernels.prep_fused import check
from kernels.prep_fused.proof.contract import ENOUGH, ROWS
from kernels.prep_fused.proof.mutants import MUTANTS, Mutant, mutated, noticed
from kernels.prep_fused.proof.world import SHAPES, Shape

SEED = 20261201


@pytest.mark.case("J7")
@pytest.mark.usefixtures("cpu")
def test_random_batches_are_bit_exact_and_the_output_calls_itself_logic_only(capsys):
    code = check.main(["--batches", "150", "--seed", str(SEED)])
    said = capsys.readouterr().out
    assert code == 0, said
    assert f"bit-exact; 0 of {len(ROWS)} rows exercised fewer than {ENOUGH} times" in said
    assert said.rstrip().endswith("in Triton's interpreter: logic only, nothing is shown of a device")
    assert f"seed {SEED}: 30 batches, 0 differences" in said


@pytest.mark.usefixtures("cpu")
def test_batches_that_nobody_has_seen_before_are_bit_exact(capsys):
    """Too few to exercise every row twenty times, which is a failure of the command, and never a difference."""
    seed = random.SystemRandom().randrange(10**9)
    assert check.main(["--batches", "20", "--seed", str(seed)]) == 1
    said = capsys.readouterr().out
    assert "20 batches in" in said
    assert "bit-exact; " in said, said


def test_no_batches_are_a_wrong_command_line(capsys):
    with pytest.raises(SystemExit, match="2"):
        check.main(["--batches", "0"])
    assert "--batches is 0, wanted at least 1" in capsys.readouterr().err


@pytest.mark.case("J1")
@pytest.mark.parametrize("drafts", [1, 2, 3, 5, 7, 8])
def test_any_number_of_drafts_is_bit_exact(drafts, cpu):
    shape = Shape(f"{drafts} drafts", ((16, 16, 20, True),), drafts=drafts)
    _, _, wrong = check.try_world(shape, drafts, 8, cpu)
    assert wrong == []


def test_the_worlds_are_those_of_the_issue():
    assert {len(shape.groups) for shape in SHAPES} == {1, 3, 4, 6}
    assert any(not group[3] for shape in SHAPES for group in shape.groups)
    assert any(block != kernel for shape in SHAPES for block, kernel, _, _ in shape.groups)


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.wrong)
def test_a_planted_mistake_is_noticed(mutant, tmp_path, monkeypatch, cpu):
    monkeypatch.syspath_prepend(str(tmp_path))
    _, how = noticed(mutated(mutant, tmp_path), seed=7, batches=60, device=cpu)
    assert how, mutant.wrong


@pytest.mark.parametrize(
    ("does", "how"),
    [("os.abort()", "its process died of signal 6"), ("raise InterpreterError('no')", "InterpreterError('no')")],
    ids=["dies", "raises of the interpreter"],
)
def test_a_copy_that_dies_or_that_the_interpreter_refuses_is_noticed(does, how, tmp_path, monkeypatch, cpu):
    assert broken(does, tmp_path, monkeypatch, cpu)[1] == how


def test_a_copy_that_fails_in_another_way_is_an_error_and_not_a_find(tmp_path, monkeypatch, cpu):
    with pytest.raises(RuntimeError, match="ended with 1 and said nothing"):
        broken("raise OSError", tmp_path, monkeypatch, cpu)


def broken(does, tmp_path, monkeypatch, cpu):
    """What is said of a copy whose launch does that."""
    monkeypatch.syspath_prepend(str(tmp_path))
    imports = "import os\nfrom triton.runtime.errors import InterpreterError\n\nimport numpy as np"
    name = mutated(Mutant("broken", "plan.py", "import numpy as np", imports), tmp_path)
    path = tmp_path / name / "plan.py"
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace("        if self.capturing():", f"        {does}\n        if self.capturing():"))
    return noticed(name, seed=7, batches=2, device=cpu)


def test_a_copy_without_a_mistake_is_not_noticed(tmp_path, monkeypatch, cpu):
    """Else every mutant could have been found out for being a copy."""
    monkeypatch.syspath_prepend(str(tmp_path))
    same = Mutant("nothing", "kernel.py", '"""The kernel:', '"""The same kernel:')
    name = mutated(same, tmp_path)
    assert noticed(name, seed=7, batches=20, device=cpu) == (20, "")


def test_a_mutant_that_fits_no_more_is_an_error(tmp_path):
    with pytest.raises(ValueError, match=r"stands 0 times in kernel\.py, wanted once"):
        mutated(Mutant("gone", "kernel.py", "no such text", ""), tmp_path)
