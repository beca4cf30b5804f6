"""The meaning of the kernel in plain torch, one request after another. For tests: slow, and read in one sitting."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

INT32 = 2**32


@dataclass(frozen=True)
class Step:
    """One step's words, as the host knows them."""

    requests: Sequence[int]  # batch row -> request slot
    query_start_loc: Sequence[int]  # R + 1
    cu_num_logits: Sequence[int]  # R + 1
    num_reqs_padded: int
    num_tokens_padded: int

    @property
    def num_tokens(self) -> int:
        """Tokens that are real."""
        return self.query_start_loc[-1]

    def query(self, row: int) -> range:
        """The tokens of one row."""
        return range(self.query_start_loc[row], self.query_start_loc[row + 1])

    def logits(self, row: int) -> range:
        """The logits rows of one row."""
        return range(self.cu_num_logits[row], self.cu_num_logits[row + 1])


def prep_reference(states: Any, tables: Any, sinks: Any, step: Step, constants: Any) -> dict[str, torch.Tensor]:
    """Write a step into `sinks` and return its fresh tensors. The arguments are those of `plan.Plan`."""
    _tails(sinks, step, constants.mark_padding)
    for row in range(len(step.requests)):
        _positions(states, sinks, step, row)
        _tokens(states, sinks, step, row, constants.new_sampled)
    for group in range(len(tables.block_tables)):
        _gather(tables, sinks, step, group)
        _slots(states, tables, sinks, step, group, constants.pad_slot_id)
    return _fresh(step)


def _tails(sinks: Any, step: Step, mark_padding: bool) -> None:
    num_reqs = len(step.requests)
    sinks.query_start_loc[: num_reqs + 1] = torch.tensor(step.query_start_loc)
    sinks.query_start_loc[num_reqs + 1 :] = step.num_tokens
    sinks.seq_lens[num_reqs:] = 0
    if mark_padding:
        sinks.is_padding[: step.num_tokens] = False
        sinks.is_padding[step.num_tokens : step.num_tokens_padded] = True


def _positions(states: Any, sinks: Any, step: Step, row: int) -> None:
    query = step.query(row)
    computed = int(states.num_computed_tokens.gpu[step.requests[row]])
    sinks.seq_lens[row] = computed + len(query)
    sinks.positions[query.start : query.stop] = torch.arange(computed, computed + len(query))


def _tokens(states: Any, sinks: Any, step: Step, row: int, new_sampled: int) -> None:
    request, logits, query = step.requests[row], len(step.logits(row)), step.query(row)
    seq_len, prefill_len = int(sinks.seq_lens[row]), int(states.prefill_len.gpu[request])
    if seq_len <= prefill_len:
        return
    if new_sampled and seq_len - logits >= prefill_len:
        sinks.input_ids[query.stop - logits] = int(states.last_sampled_tokens[request, 0])
    drafts = logits - new_sampled
    sinks.input_ids[query.stop - drafts : query.stop] = states.draft_tokens[request, :drafts].to(torch.int32)


def _gather(tables: Any, sinks: Any, step: Step, group: int) -> None:
    source, target = tables.block_tables[group].gpu, sinks.input_block_tables[group]
    for row, request in enumerate(step.requests):
        columns = int(tables.num_blocks.gpu[group, request])
        target[row, :columns] = source[request, :columns]
    target[len(step.requests) : step.num_reqs_padded] = 0


def _slots(states: Any, tables: Any, sinks: Any, step: Step, group: int, pad: int) -> None:
    sinks.slot_mappings[group, step.num_tokens :] = pad
    for row, request in enumerate(step.requests):
        computed = int(states.num_computed_tokens.gpu[request])
        for at, token in enumerate(step.query(row)):
            sinks.slot_mappings[group, token] = _slot(tables, group, request, computed + at, pad)


def _slot(tables: Any, group: int, request: int, position: int, pad: int) -> int:
    """The engine multiplies block and size in 32 bits and adds the offset in 64."""
    if not bool(tables.slot_mapping_enabled[group]):
        return pad
    size = int(tables.kernel_block_sizes_tensor[group])
    block = int(tables.block_tables[group].gpu[request, position // size])
    product = (block * size + INT32 // 2) % INT32 - INT32 // 2
    return product + position % size


def _fresh(step: Step) -> dict[str, torch.Tensor]:
    rows = range(len(step.requests))
    per_logit = [(step.requests[row], at) for row in rows for at in range(len(step.logits(row)))]
    last = [step.query(row).stop - len(step.logits(row)) + at for row in rows for at in range(len(step.logits(row)))]
    return {
        "idx_mapping": torch.tensor(step.requests, dtype=torch.int64),
        "cu_num_logits": torch.tensor(step.cu_num_logits, dtype=torch.int32),
        "expanded_idx_mapping": torch.tensor([request for request, _ in per_logit], dtype=torch.int64),
        "expanded_local_pos": torch.tensor([at for _, at in per_logit], dtype=torch.int32),
        "logits_indices": torch.tensor(last, dtype=torch.int64),
    }
