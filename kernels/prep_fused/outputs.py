"""The fresh tensors of a step: two allocations, carved at multiples of 16 bytes.

Triton compiles another kernel for a pointer that is not aligned to 16 bytes, and a kernel launched directly would
access vectors across the boundary (trap j).
"""

from dataclasses import dataclass

import torch

ALIGNMENT = 16  # bytes, what Triton calls divisible


@dataclass(frozen=True)
class Fresh:
    """What a step allocates anew, as the engine does: a consumer may still hold the last step's."""

    idx_mapping: torch.Tensor  # int64 [R]
    cu_num_logits: torch.Tensor  # int32 [R + 1]
    expanded_idx_mapping: torch.Tensor  # int64 [L]
    expanded_local_pos: torch.Tensor  # int32 [L]
    logits_indices: torch.Tensor  # int64 [L]


def _rooms(lengths: tuple[int, ...], kind: torch.dtype, device: torch.device) -> tuple[torch.Tensor, ...]:
    """Tensors of these lengths, one allocation, each at a multiple of ALIGNMENT. Splitting once is one torch call."""
    per_step = ALIGNMENT // kind.itemsize
    pieces = [piece for length in lengths for piece in (length, -length % per_step)]
    arena = torch.empty(sum(pieces), dtype=kind, device=device)
    return tuple(arena.split_with_sizes(pieces)[::2])


def allocate(num_reqs: int, num_logits: int, device: torch.device) -> Fresh:
    """The tensors of a step. Their values are what the memory held."""
    idx, expanded, indices = _rooms((num_reqs, num_logits, num_logits), torch.int64, device)
    cu, local = _rooms((num_reqs + 1, num_logits), torch.int32, device)
    return Fresh(idx, cu, expanded, local, indices)
