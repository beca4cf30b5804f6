"""The fresh tensors of a step: one allocation, carved at multiples of 16 bytes.

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


def _rounded(size: int) -> int:
    return -(-size // ALIGNMENT) * ALIGNMENT


def allocate(num_reqs: int, num_logits: int, device: torch.device) -> Fresh:
    """Five tensors in one allocation. Their values are what the memory held."""
    shape = (
        (num_reqs, torch.int64),
        (num_reqs + 1, torch.int32),
        (num_logits, torch.int64),
        (num_logits, torch.int32),
        (num_logits, torch.int64),
    )
    arena = torch.empty(sum(_rounded(n * kind.itemsize) for n, kind in shape), dtype=torch.uint8, device=device)
    carved, offset = [], 0
    for n, kind in shape:
        size = n * kind.itemsize
        carved.append(arena[offset : offset + size].view(kind))
        offset += _rounded(size)
    return Fresh(*carved)
