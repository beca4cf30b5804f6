"""The plan: the engine's objects, one staging pool, one launch a step.

It keeps the *owners* of the engine's tensors and asks them anew in every step: `num_blocks.gpu` and `prefill_len.gpu`
go round a pool, and an address that was kept is right every second step (trap a).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from .guard import Limits, PlanError, Refusal, block_for
from .host import HostStep, host_step, seq_lens_upper_bound, staged_words
from .kernel import prep_fused
from .launch import Launcher
from .outputs import Fresh, allocate

PAD_SLOT_ID = -1  # what the kernel was proven with
BLOCK = 1024  # elements that a filling or copying program moves at a time


@dataclass(frozen=True)
class Constants:
    """The engine's constants, given by the caller from the engine's own modules."""

    pad_slot_id: int  # PAD_SLOT_ID
    new_sampled: int  # ModelState.num_new_sampled_tokens_per_step
    mark_padding: bool  # VLLM_MOE_SKIP_PADDING
    batches_in_flight: int  # VllmConfig.max_concurrent_batches
    max_query: int  # decode_query_len

    def __post_init__(self) -> None:
        if self.pad_slot_id != PAD_SLOT_ID:
            raise PlanError(
                f"the engine's PAD_SLOT_ID is {self.pad_slot_id}, wanted {PAD_SLOT_ID}, with which the kernel was "
                "proven: run the stock chain and prove the kernel anew"
            )
        if self.new_sampled not in (0, 1):
            raise PlanError(f"{self.new_sampled} sampled tokens a step, wanted 0 or 1: run the stock chain")


@dataclass(frozen=True)
class Prepared:
    """One prepared step: the fields of the engine's `InputBatch`, and what its `prepare_attn` returns."""

    fields: dict[str, Any]
    block_tables: tuple[torch.Tensor, ...]
    slot_mappings: torch.Tensor


def _capturing(device: torch.device) -> Callable[[], bool]:
    """What says whether a graph is being captured; on a CPU there are none."""
    return torch.cuda.is_current_stream_capturing if device.type == "cuda" else lambda: False


class Plan:
    """Prepares decode steps of one runner. Raises PlanError when it cannot be built.

    `staging` is one of the engine's `UvaBufferPool`s, for this plan alone. `sinks` are what is written: the live
    buffers (None), or copies that nobody downstream sees (`shadow.Copies`).
    """

    def __init__(
        self, states: Any, tables: Any, buffers: Any, staging: Any, constants: Constants, sinks: Any = None,
        kernel: Any = prep_fused, capturing: Callable[[], bool] | None = None,
    ) -> None:  # fmt: skip
        self.states, self.tables, self.staging, self.constants = states, tables, staging, constants
        self.inputs, self.outputs = (buffers, tables) if sinks is None else (sinks, sinks)
        self.limits = Limits(buffers.max_num_reqs, buffers.max_num_tokens, constants.max_query)
        self.capturing = capturing or _capturing(buffers.input_ids.device)
        self._words = np.empty(staged_words(self.limits.max_reqs), dtype=np.int32)
        self._check_pool()
        constexprs = {
            "BLOCK_Q": block_for(max(constants.max_query, states.draft_tokens.shape[-1] + constants.new_sampled)),
            "BLOCK": BLOCK,
            "NEW_SAMPLED": constants.new_sampled,
            "PAD_ID": constants.pad_slot_id,
            "MARK_PADDING": constants.mark_padding,
        }
        self.launch = Launcher(kernel, constexprs)

    def _check_pool(self) -> None:
        wanted, depth = self.constants.batches_in_flight, self.staging.max_concurrency
        if depth < wanted:
            raise PlanError(
                f"the staging pool has {depth} buffers, wanted {wanted}, one a batch in flight: the host would write "
                "words that a launch still reads; build it with the engine's own depth"
            )
        if self.staging.size < len(self._words) or self.staging.dtype != torch.int32:
            raise PlanError(
                f"the staging pool holds {self.staging.size} x {self.staging.dtype}, wanted {len(self._words)} x "
                "int32: build it with host.staged_words(max_reqs)"
            )

    def refusal(self, scheduler_output: Any, batch: Any, descriptor: Any) -> Refusal | None:
        """Why the stock chain must prepare this step; None: `prepare` may."""
        return self.limits.refusal(scheduler_output.scheduled_spec_decode_tokens, batch, descriptor)

    def prepare(self, scheduler_output: Any, batch: Any, descriptor: Any) -> Prepared:
        """Prepare a step that `refusal` lets pass. Raises PlanError inside of a graph capture."""
        if self.capturing():
            raise PlanError(
                "a CUDA graph is being captured: it would keep the addresses of this step's pool buffers for ever; "
                "prepare inputs outside of the graph"
            )
        drafts = scheduler_output.scheduled_spec_decode_tokens
        step = host_step(drafts, batch, descriptor, self.limits.max_reqs, self.constants.new_sampled)
        fresh = allocate(step.num_reqs, step.num_logits, self.inputs.input_ids.device)
        groups = len(self.outputs.input_block_tables)
        grid = (1 + groups, step.num_reqs_padded + 1)
        self.launch(grid, self.tensors(step, fresh), self.integers(step))
        rows, columns = step.num_reqs_padded, step.num_tokens_padded
        return Prepared(
            fields=self._fields(step, fresh, batch, scheduler_output),
            block_tables=tuple(table[:rows] for table in self.outputs.input_block_tables),
            slot_mappings=self.outputs.slot_mappings[:, :columns],
        )

    def tensors(self, step: HostStep, fresh: Fresh) -> list[torch.Tensor]:
        """The kernel's tensors in its order. Stages the step's words: one pool buffer a call (trap c)."""
        states, tables, inputs, outputs = self.states, self.tables, self.inputs, self.outputs
        return [
            self.staging.copy_to_uva(step.stage(self._words)),
            states.num_computed_tokens.gpu,
            states.prefill_len.gpu,
            states.last_sampled_tokens,
            states.draft_tokens,
            tables.block_table_ptrs,
            outputs.input_block_table_ptrs,
            tables.block_table_strides,
            tables.kernel_block_sizes_tensor,
            tables.slot_mapping_enabled,
            tables.num_blocks.gpu,
            inputs.input_ids,
            inputs.positions,
            inputs.is_padding,
            inputs.query_start_loc,
            inputs.seq_lens,
            outputs.slot_mappings,
            fresh.idx_mapping,
            fresh.cu_num_logits,
            fresh.expanded_idx_mapping,
            fresh.expanded_local_pos,
            fresh.logits_indices,
        ]

    def integers(self, step: HostStep) -> list[int]:
        """The kernel's integers in its order."""
        return [
            self.states.draft_tokens.stride(0),
            self.tables.num_blocks.gpu.stride(0),
            self.outputs.slot_mappings.stride(0),
            step.num_reqs,
            step.num_reqs_padded,
            step.num_tokens,
            step.num_tokens_padded,
            self.limits.max_reqs,
            self.limits.max_tokens,
        ]

    def _fields(self, step: HostStep, fresh: Fresh, batch: Any, scheduler_output: Any) -> dict[str, Any]:
        """The fields of the engine's `InputBatch` for this step, host words included."""
        computed, bound = seq_lens_upper_bound(step, batch.num_scheduled_tokens, self.states.num_computed_tokens_np)
        rows, columns, inputs = step.num_reqs_padded, step.num_tokens_padded, self.inputs
        return {
            **vars(fresh),
            "req_ids": batch.req_ids,
            "num_reqs": step.num_reqs,
            "num_reqs_after_padding": rows,
            "idx_mapping_np": batch.idx_mapping_np,
            "num_scheduled_tokens": batch.num_scheduled_tokens,
            "num_tokens": step.num_tokens,
            "num_tokens_after_padding": columns,
            "num_draft_tokens": int(step.drafts_per_req.sum()),
            "num_draft_tokens_per_req": step.drafts_per_req,
            "query_start_loc": inputs.query_start_loc[: rows + 1],
            "query_start_loc_np": step.query_start_loc,
            "seq_lens": inputs.seq_lens[:rows],
            "seq_lens_cpu_upper_bound": torch.from_numpy(bound),
            "dcp_local_seq_lens": None,
            "num_computed_tokens_np": computed,
            "prefill_len_np": batch.prefill_len_np,
            "num_computed_prefill_tokens_np": batch.num_computed_prefill_tokens_np,
            "is_prefilling_np": batch.is_prefilling_np,
            "has_prefill": batch.has_prefill,
            "max_seq_len_np": None,
            "input_ids": inputs.input_ids[:columns],
            "positions": inputs.positions[:columns],
            "is_padding": inputs.is_padding[:columns],
            "cu_num_logits_np": step.cu_num_logits,
            "has_structured_output_reqs": scheduler_output.has_structured_output_requests,
            "prompt_lens": None,
            "max_query_len": None,
        }
