"""The kernel alone: addresses past 31 bits."""

import importlib
import mmap

import numpy as np
import pytest
import torch
from triton.runtime.errors import InterpreterError

from kernels.prep_fused.kernel import prep_fused
from kernels.prep_fused.plan import BLOCK
from kernels.prep_fused.proof.mutants import Mutant, forget, mutated
from kernels.prep_fused.stand import Stand

COLUMNS, REQUEST = 2**30, 2  # request x columns is 2**31, which 32 bits turn into -2**31
RESERVED = 17 * 2**30  # bytes of addresses, so that the wrong row is in them too; only touched pages become memory
NORESERVE = 0x4000  # Linux's MAP_NORESERVE


@pytest.fixture
def table():
    """The middle of many int32 that nobody pays for: COLUMNS x REQUEST of them on both sides."""
    reserved = mmap.mmap(-1, RESERVED, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | NORESERVE)
    words = np.frombuffer(reserved, dtype=np.int32)[COLUMNS * REQUEST :]
    words[COLUMNS * REQUEST : COLUMNS * REQUEST + 4] = [11, 12, 13, 14]
    return words


def prepared_from(table, kernel):
    """The first columns gathered and the first slots, of request REQUEST of that table."""
    stand = Stand(computed=16, drafts=1, max_reqs=4, max_tokens=16, max_len=64)
    plan = stand.plan(torch.device("cpu"))
    plan.launch.kernel = kernel
    plan.tables.block_table_ptrs[0] = int(table.ctypes.data)
    plan.tables.block_table_strides[0] = COLUMNS
    output, batch, descriptor = stand.step()
    batch.idx_mapping_np = np.array([REQUEST])
    plan.prepare(output, batch, descriptor)
    return plan.outputs.input_block_tables[0][0, :2].tolist(), plan.outputs.slot_mappings[0, :2].tolist()


@pytest.mark.case("J2")
def test_a_row_behind_two_to_the_31_elements_is_the_row_that_was_meant(table):
    assert prepared_from(table, prep_fused) == ([11, 12], [12 * 16, 12 * 16 + 1])


@pytest.mark.case("J2")
def test_with_offsets_of_32_bits_it_would_be_another_row(table, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(tmp_path))
    narrow = "columns = tl.load(table_strides + group)"
    name = mutated(Mutant("32-bit offsets", "kernel.py", narrow, f"{narrow}.to(tl.int32)"), tmp_path)
    kernel = importlib.import_module(f"{name}.kernel").prep_fused
    assert prepared_from(table, kernel) == ([0, 0], [0, 1])
    forget(name)


@pytest.mark.case("J1")
def test_the_interpreter_refuses_a_block_that_is_no_power_of_two_as_the_compiler_does():
    plan = Stand(drafts=5, max_reqs=4, max_tokens=16, max_len=8192).plan(torch.device("cpu"))
    plan.launch.constants["BLOCK_Q"] = 6
    with pytest.raises(InterpreterError, match="power of 2"):
        plan.prepare(*Stand(drafts=5).step())


def test_a_block_divides_into_halves_for_bytes():
    assert BLOCK % 2 == 0
    assert BLOCK & (BLOCK - 1) == 0
    assert prep_fused.arg_names[-5:] == ["BLOCK_Q", "BLOCK", "NEW_SAMPLED", "PAD_ID", "MARK_PADDING"]
