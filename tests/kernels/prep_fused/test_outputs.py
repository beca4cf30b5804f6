"""The fresh tensors: aligned, apart from one another, of the engine's types."""

import pytest
import torch

from kernels.prep_fused.outputs import ALIGNMENT, allocate

CPU = torch.device("cpu")
TYPES = {
    "idx_mapping": torch.int64,
    "cu_num_logits": torch.int32,
    "expanded_idx_mapping": torch.int64,
    "expanded_local_pos": torch.int32,
    "logits_indices": torch.int64,
}


@pytest.mark.parametrize("requests", range(1, 9))
def test_j_every_pointer_is_aligned_for_any_number_of_logits(requests):
    crooked = {
        (logits, name): tensor.data_ptr() % ALIGNMENT
        for logits in range(1, 65)
        for name, tensor in vars(allocate(requests, logits, CPU)).items()
        if tensor.data_ptr() % ALIGNMENT
    }
    assert crooked == {}


def test_j_carved_without_room_between_they_would_not_be():
    arena = torch.empty(64, dtype=torch.int64)
    assert any(piece.data_ptr() % ALIGNMENT for piece in arena.split([3, 5, 7, 49]))


@pytest.mark.parametrize(("requests", "logits"), [(1, 1), (3, 7), (8, 64)])
def test_no_tensor_reaches_into_another(requests, logits):
    fresh = vars(allocate(requests, logits, CPU))
    for number, tensor in enumerate(fresh.values()):
        tensor.fill_(number)
    assert [set(tensor.tolist()) for tensor in fresh.values()] == [{0}, {1}, {2}, {3}, {4}]
    assert {name: tensor.dtype for name, tensor in fresh.items()} == TYPES
    assert [len(tensor) for tensor in fresh.values()] == [requests, requests + 1, logits, logits, logits]


def test_a_step_gets_memory_that_the_last_one_does_not_hold():
    first, second = allocate(2, 4, CPU), allocate(2, 4, CPU)
    assert first.idx_mapping.data_ptr() != second.idx_mapping.data_ptr()
