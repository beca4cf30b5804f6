"""Compiled for the fleet's GPUs without one: the limits, and that a check which cannot be made fails."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import triton
import triton.language as tl

from kernels.prep_fused import aot

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """A compile cache of its own."""
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "cache"))


def test_every_target_is_within_the_limits_and_the_table_says_that_nothing_ran(capsys):
    code = aot.main([])
    said = capsys.readouterr().out
    assert code == 0, said
    assert said.startswith("compiled without a GPU, nothing ran")
    assert all(target in said for target in ("sm_90a", "sm_100a", "sm_120a", "sm_121a"))
    assert "within the limits: 64 registers" in said


@pytest.mark.case("J1")
@pytest.mark.parametrize("changed", [{"BLOCK_Q": 1}, {"BLOCK_Q": 2}, {"BLOCK_Q": 16}, {"BLOCK_Q": 128},
                                     {"NEW_SAMPLED": 0}, {"MARK_PADDING": False}], ids=str)  # fmt: skip
def test_every_shape_that_a_plan_may_ask_for_is_within_the_limits(changed, tmp_path):
    compiled = aot.compiled_for(90, aot.CONSTANTS | changed)
    assert aot.inspect(90, compiled, tmp_path).faults() == []


@triton.jit
def barred(first, second, BLOCK: tl.constexpr):  # noqa: N803 - a constant
    """A sum over the block needs shared memory and barriers."""
    at = tl.arange(0, BLOCK)
    tl.store(second, tl.sum(tl.load(first + at), axis=0))


def test_a_kernel_with_a_barrier_is_found_out(tmp_path, monkeypatch):
    monkeypatch.setattr(aot, "POINTERS", {"first": "*i32", "second": "*i32"})
    faults = aot.inspect(90, aot.compiled_for(90, {"BLOCK": 1024}, barred), tmp_path).faults()
    assert [fault.split(" is ")[0] for fault in faults] == ["sm_90a: shared", "sm_90a: barriers"]


@pytest.mark.parametrize(
    ("found", "faults"),
    [
        (aot.Compiled("sm_90a", 64, 64, 0, 0, 0, 0), []),
        (aot.Compiled("sm_90a", 65, 64, 0, 0, 0, 0), ["sm_90a: registers is 65, wanted at most 64"]),
        (aot.Compiled("sm_90a", 64, 64, 8, 0, 0, 0), ["sm_90a: spilled is 8, wanted at most 0"]),
        (aot.Compiled("sm_90a", 64, 64, 0, 16, 0, 0), ["sm_90a: stack is 16, wanted at most 0"]),
    ],
    ids=["at the limit", "registers", "spilled", "stack"],
)
def test_what_is_over_a_limit_is_named(found, faults):
    assert found.faults() == faults


@pytest.mark.parametrize("tool", ["ptxas", "cuobjdump"])
def test_a_tool_that_is_missing_is_a_failure(tool, tmp_path):
    tools = aot._tools(90) | {tool: str(tmp_path / tool)}
    with pytest.raises(aot.AotError, match=f"{tool} is not there: the check needs it"):
        aot.inspect(90, aot.compiled_for(90), tmp_path, tools)


def test_a_tool_that_says_something_else_is_a_failure(tmp_path):
    with pytest.raises(aot.AotError, match=r"cuobjdump does not say 'REG"):
        aot.inspect(90, aot.compiled_for(90), tmp_path, aot._tools(90) | {"cuobjdump": "/bin/true"})


@pytest.mark.case("J7")
def test_in_the_interpreter_the_check_is_not_made_and_fails():
    command = [sys.executable, "-m", "kernels.prep_fused.aot"]
    surroundings = os.environ | {"TRITON_INTERPRET": "1"}
    done = subprocess.run(command, cwd=ROOT, env=surroundings, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "the check was not made: TRITON_INTERPRET is set" in done.stderr
    assert "within the limits" not in done.stdout


def test_a_pointer_that_the_kernel_lost_is_told(monkeypatch):
    monkeypatch.setattr(aot, "POINTERS", aot.POINTERS | {"gone": "*i32"})
    with pytest.raises(aot.AotError, match=r"names \['gone'\], which the kernel does not have"):
        aot.compiled_for(90)
