"""Copies for a shadow step: fused writes here, stock into the live buffers, and whole buffers are compared.

Written over the same live buffers, a stray write of ours would stand in both sides and be seen by nobody (trap o). The
copies are never handed downstream: a consumer may keep the address of what it was given first.
"""

from typing import Any

import torch

INPUTS = ("input_ids", "positions", "is_padding", "query_start_loc", "seq_lens")


class Copies:
    """Copies of what a step writes, under the names that the live buffers have."""

    def __init__(self, buffers: Any, tables: Any) -> None:
        self._buffers, self._tables = buffers, tables
        for name in INPUTS:
            setattr(self, name, getattr(buffers, name).clone())
        self.slot_mappings = tables.slot_mappings.clone()
        self.input_block_tables = [table.clone() for table in tables.input_block_tables]
        # filled after construction from a list: uint64 covers every address
        addresses = [table.data_ptr() for table in self.input_block_tables]
        self.input_block_table_ptrs = torch.tensor(addresses, dtype=torch.uint64, device=self.slot_mappings.device)

    def refresh(self) -> None:
        """Take over the live buffers, in place: what no side writes is then equal."""
        for ours, live in self._pairs().values():
            ours.copy_(live)

    def _pairs(self) -> dict[str, tuple[torch.Tensor, torch.Tensor]]:
        pairs = {name: (getattr(self, name), getattr(self._buffers, name)) for name in INPUTS}
        pairs["slot_mappings"] = (self.slot_mappings, self._tables.slot_mappings)
        for group, (ours, live) in enumerate(
            zip(self.input_block_tables, self._tables.input_block_tables, strict=True)
        ):
            pairs[f"input_block_tables[{group}]"] = (ours, live)
        return pairs

    def differences(self) -> list[str]:
        """The whole buffers that are not equal, each with its first differing element."""
        return [f"{name}: {first}" for name, pair in self._pairs().items() if (first := first_difference(*pair))]


def first_difference(ours: torch.Tensor, stock: torch.Tensor) -> str:
    """Empty when dtype, shape and every bit are equal."""
    if (ours.dtype, ours.shape) != (stock.dtype, stock.shape):
        return f"{ours.dtype} {tuple(ours.shape)}, stock has {stock.dtype} {tuple(stock.shape)}"
    unlike = (ours != stock).nonzero()
    if not len(unlike):
        return ""
    at = tuple(unlike[0].tolist())
    return f"{len(unlike)} differ, first at {at}: {ours[at].item()}, stock has {stock[at].item()}"
