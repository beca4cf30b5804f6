"""Stand-ins for the engine's objects, of torch alone, for a bench without vllm. Same names, same types."""

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch

from .host import staged_words
from .plan import PAD_SLOT_ID, Constants, Plan


class PinnedPool:
    """A round-robin pool of host buffers that a GPU reads in place, as the engine's `UvaBufferPool` is one."""

    def __init__(self, size: int, depth: int, device: torch.device) -> None:
        self.size, self.max_concurrency, self.dtype = size, depth, torch.int32
        pinned = device.type == "cuda"
        self._buffers = [torch.zeros(size, dtype=torch.int32, pin_memory=pinned) for _ in range(depth)]
        self._current = 0

    def copy_to_uva(self, words: Any) -> torch.Tensor:
        """The next buffer, with these words at its start."""
        self._current = (self._current + 1) % self.max_concurrency
        buffer = self._buffers[self._current]
        buffer.numpy()[: len(words)] = words
        return buffer[: len(words)]


@dataclass(frozen=True)
class Stand:
    """One decode shape: `requests` of the same query length, `columns` blocks a row."""

    requests: int = 1
    groups: int = 1
    drafts: int = 7
    computed: int = 4096  # tokens that each request has behind it
    max_reqs: int = 64
    max_tokens: int = 8192
    max_len: int = 32768
    block: int = 16

    @property
    def constants(self) -> Constants:
        """What the engine has at two batches in flight."""
        return Constants(PAD_SLOT_ID, 1, True, 2, self.drafts + 1)

    def plan(self, device: torch.device) -> Plan:
        """A plan over buffers of this shape."""
        pool = PinnedPool(staged_words(self.max_reqs), self.constants.batches_in_flight, device)
        return Plan(self._states(device), self._tables(device), self._buffers(device), pool, self.constants)

    def _states(self, device: torch.device) -> Any:
        def full(value: int) -> Any:
            return SimpleNamespace(gpu=torch.full((self.max_reqs,), value, dtype=torch.int32, device=device))

        return SimpleNamespace(
            num_computed_tokens=full(self.computed), prefill_len=full(self.computed // 2),
            last_sampled_tokens=torch.ones(self.max_reqs, 1, dtype=torch.int64, device=device),
            draft_tokens=torch.ones(self.max_reqs, self.drafts, dtype=torch.int64, device=device),
            num_computed_tokens_np=np.full(self.max_reqs, self.computed, dtype=np.int32),
        )  # fmt: skip

    def _tables(self, device: torch.device) -> Any:
        columns = self.max_len // self.block
        sources = [_table(self.max_reqs, columns, device) for _ in range(self.groups)]
        targets = [_table(self.max_reqs, columns, device) for _ in range(self.groups)]
        filled = -(-(self.computed + self.drafts + 1) // self.block)
        num_blocks = torch.full((self.groups, self.max_reqs), filled, dtype=torch.int32, device=device)
        slots = torch.zeros(self.groups, self.max_tokens, dtype=torch.int64, device=device)
        return SimpleNamespace(
            block_tables=[SimpleNamespace(gpu=table) for table in sources],
            block_table_ptrs=_addresses(sources, device), num_blocks=SimpleNamespace(gpu=num_blocks),
            block_table_strides=torch.full((self.groups,), columns, dtype=torch.int64, device=device),
            kernel_block_sizes_tensor=torch.full((self.groups,), self.block, dtype=torch.int32, device=device),
            slot_mapping_enabled=torch.ones(self.groups, dtype=torch.bool, device=device),
            input_block_tables=targets, input_block_table_ptrs=_addresses(targets, device), slot_mappings=slots,
        )  # fmt: skip

    def _buffers(self, device: torch.device) -> Any:
        def zeros(size: int, kind: torch.dtype) -> torch.Tensor:
            return torch.zeros(size, dtype=kind, device=device)

        return SimpleNamespace(
            max_num_reqs=self.max_reqs, max_num_tokens=self.max_tokens,
            input_ids=zeros(self.max_tokens, torch.int32), positions=zeros(self.max_tokens, torch.int64),
            is_padding=zeros(self.max_tokens, torch.bool), seq_lens=zeros(self.max_reqs, torch.int32),
            query_start_loc=zeros(self.max_reqs + 1, torch.int32),
        )  # fmt: skip

    def step(self) -> tuple[Any, Any, Any]:
        """(scheduler output, batch state, descriptor) of one decode step without padding."""
        names, query = [f"r{row}" for row in range(self.requests)], self.drafts + 1
        slots = np.arange(self.requests, dtype=np.intp)
        known = np.full(self.requests, self.computed // 2, dtype=np.int32)
        output = SimpleNamespace(
            scheduled_spec_decode_tokens={name: [-1] * self.drafts for name in names},
            has_structured_output_requests=False,
        )
        batch = SimpleNamespace(
            req_ids=names, num_tokens=query * self.requests, idx_mapping_np=slots, prefill_len_np=known,
            num_scheduled_tokens=np.full(self.requests, query, dtype=np.int32),
            num_computed_prefill_tokens_np=known, is_prefilling_np=known < 0, has_prefill=False,
        )  # fmt: skip
        return output, batch, SimpleNamespace(num_tokens=batch.num_tokens, num_reqs=self.requests)


def _table(rows: int, columns: int, device: torch.device) -> torch.Tensor:
    return torch.arange(rows * columns, dtype=torch.int32, device=device).reshape(rows, columns)


def _addresses(tensors: list[torch.Tensor], device: torch.device) -> torch.Tensor:
    return torch.tensor([tensor.data_ptr() for tensor in tensors], dtype=torch.uint64, device=device)
