"""The kernel alone: addresses past 31 bits."""

import mmap

import numpy as np
import pytest
import torch
from triton.runtime.errors import InterpreterError

from kernels.prep_fused.kernel import prep_fused
from kernels.prep_fused.plan import BLOCK
from kernels.prep_fused.stand import Stand

RESERVED = 9 * 2**30  # bytes of addresses; only the touched pages become memory
NORESERVE = 0x4000  # Linux's MAP_NORESERVE


@pytest.fixture
def sparse():
    """A table of 2**31 + 2**28 int32 that nobody pays for."""
    reserved = mmap.mmap(-1, RESERVED, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | NORESERVE)
    words = np.frombuffer(reserved, dtype=np.int32)
    yield words
    del words
    reserved.close()


@pytest.mark.case("J2")
def test_a_row_behind_two_to_the_31_elements_is_the_row_that_was_meant(sparse):
    """Row 2 of rows of 2**30 columns: request x stride is 2**31, which 32 bits turn into -2**31."""
    columns, request = 2**30, 2
    sparse[request * columns : request * columns + 4] = [11, 12, 13, 14]
    stand = Stand(computed=16, drafts=1, max_reqs=4, max_tokens=16, max_len=64)
    plan = stand.plan(torch.device("cpu"))
    plan.tables.block_table_ptrs[0] = int(sparse.ctypes.data)
    plan.tables.block_table_strides[0] = columns
    output, batch, descriptor = stand.step()
    batch.idx_mapping_np = np.array([request])
    descriptor.num_reqs = 1
    plan.prepare(output, batch, descriptor)
    assert plan.outputs.input_block_tables[0][0, :2].tolist() == [11, 12]
    assert plan.outputs.slot_mappings[0, :2].tolist() == [12 * 16, 12 * 16 + 1]


@pytest.mark.case("J2")
def test_an_offset_of_32_bits_wraps_as_the_case_says():
    """The arithmetic of the case, and that the interpreter would show it."""
    wrapped = np.int64(319) * 7_864_320 % 2**32
    assert int(wrapped) - 2**32 == -1_786_249_216


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
