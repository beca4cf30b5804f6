"""What a runner's steps are prepared with: plans made of the engine's own objects, and made anew when those change.

A plan keeps owners and asks them for their tensors in every step. Only the copies of a check have sizes of their own,
so an engine that was put to sleep and woken gets new ones.
"""

import importlib
from dataclasses import dataclass
from typing import Any

import torch
from campaign_prep_fused.prep_fused.guard import PlanError, refusal_of_runner
from campaign_prep_fused.prep_fused.host import staged_words
from campaign_prep_fused.prep_fused.plan import Constants, Plan
from campaign_prep_fused.prep_fused.reuse import Kind, kind_of_group
from campaign_prep_fused.prep_fused.shadow import Copies

ORDINARY_STATE = "DefaultModelState"  # its preprocess_state does nothing, so its builders may be asked before it


@dataclass(frozen=True)
class Station:
    """Two plans of one runner, each with a staging pool of its own: one writes into copies, one into live buffers."""

    runner: Any
    aside: Plan
    live: Plan
    copies: Copies
    signature: tuple[int, ...]

    @property
    def is_current(self) -> bool:
        """Whether the engine still has the buffers that this was made of."""
        return self.signature == signature(self.runner)

    def expect_slots(self) -> None:
        """Raises PlanError where a group is a ring buffer, which has no slots of its own."""
        expect_slots(self.runner.block_tables)


def build(runner: Any) -> Station:
    """Raises PlanError, with the reason, where no step of this runner may be fused."""
    if refusal := refusal_of_runner(runner):
        raise PlanError(f"{refusal.name}: {refusal.why}")
    kind = type(runner.model_state).__name__
    if kind != ORDINARY_STATE:
        raise PlanError(f"model_state: {kind} may move state before the metadata is built, wanted {ORDINARY_STATE}")
    tables, buffers = runner.block_tables, runner.input_buffers
    expect_slots(tables)
    constants, copies = _constants(runner), Copies(buffers, tables)
    aside, live = (
        Plan(runner.req_states, tables, buffers, _pool(buffers.max_num_reqs), constants, sinks)
        for sinks in (copies, None)
    )
    return Station(runner, aside, live, copies, signature(runner))


def expect_slots(tables: Any) -> None:
    """Raises PlanError unless every KV group maps its slots (a ring buffer does not)."""
    enabled = list(tables._slot_mapping_enabled)
    if not all(enabled):
        without = ", ".join(str(group) for group, on in enumerate(enabled) if not on)
        raise PlanError(f"ring_buffer: KV group {without} maps no slots; the stock chain knows how it is written")


def signature(runner: Any) -> tuple[int, ...]:
    """Owners and addresses of what a step reads and writes for as long as the engine does not allocate anew."""
    states, tables, buffers = runner.req_states, runner.block_tables, runner.input_buffers
    held = (buffers.input_ids, buffers.positions, buffers.query_start_loc, buffers.seq_lens, tables.slot_mappings)
    tensors = (*held, *tables.input_block_tables, states.draft_tokens, states.last_sampled_tokens)
    return (*map(id, (states, tables, buffers)), *map(torch.Tensor.data_ptr, tensors))


def groups_of(runner: Any) -> str:
    """Whose layers each KV group holds, by membership: "target target draft"."""
    drafted = frozenset(getattr(runner.speculator, "draft_attn_layer_names", ()))
    groups = runner.kv_cache_config.kv_cache_groups
    return " ".join((kind_of_group(group.layer_names, drafted) or Kind.TARGET).value for group in groups)


def _constants(runner: Any) -> Constants:
    envs = importlib.import_module("vllm.envs")
    return Constants(
        pad_slot_id=importlib.import_module("vllm.v1.attention.backends.utils").PAD_SLOT_ID,
        new_sampled=runner.model_state.num_new_sampled_tokens_per_step,
        mark_padding=bool(envs.VLLM_MOE_SKIP_PADDING),
        batches_in_flight=runner.vllm_config.max_concurrent_batches,
        max_query=runner.decode_query_len,
    )


def _pool(max_reqs: int) -> Any:
    """One of the engine's own pools, at the engine's own depth."""
    pools = importlib.import_module("vllm.v1.worker.gpu.buffer_utils")
    return pools.UvaBufferPool(staged_words(max_reqs), torch.int32)
