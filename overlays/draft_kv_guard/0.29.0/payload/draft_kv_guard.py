"""Added by the overlay draft_kv_guard: whether DFlash drafts is decided for each request, not for the whole batch.

The stock V1 runner calls the drafter only if every request of the batch has room for the drafter's queries. A prompt
that is prefilled beside one that has none is cached without draft KV, and every later hit on it drafts badly. Here the
drafter runs all the same. A request without room ("over") gets the draft KV of its own tokens; its queries write
nothing, stand at position 0 and attend to what it has, and its drafts are token 0, as the stock engine's are when it
skips.
"""

import os
from dataclasses import dataclass
from typing import Any

import torch
from vllm.logger import init_logger
from vllm.utils.torch_utils import async_tensor_h2d

try:
    from campaign_engine_report import state
except ImportError:  # another overlay, which may not be staged
    state = None

OVERLAY = "draft_kv_guard"
VARIABLE = "VLLM_GLM53_DRAFT_KV_GUARD"
NO_SLOT = -1  # the engine's padding: such a key and value are not written
MARK = "_draft_kv_guard"

logger = init_logger(__name__)
counts = {
    "steps": 0,  # drafting steps, with either value of the knob
    "guarded_steps": 0,  # those that were decided here: all, or none
    "batches": 0,  # steps in which a request was over, with either value
    "requests_over": 0,  # in those steps: requests that were over,
    "requests_fitting": 0,  # requests that were not,
    "tokens_fitting": 0,  # and their tokens: with the knob at 0 their draft KV is missing for good
    "drafter_calls": 0,  # calls that the stock engine would have skipped
}


def knob() -> str:
    """The knob as asked. Raises ValueError for anything but 0 and 1."""
    value = os.environ.get(VARIABLE, "1")
    if value not in ("0", "1"):
        raise ValueError(f"{VARIABLE} is {value!r}, but must be '0' or '1'; unset it for '1'")
    return value


GUARDS = knob() == "1"


@dataclass(frozen=True)
class Shield:
    """What a batch with a request over is drafted under: the drafter's limit in tokens, and which requests are over."""

    limit: int
    over: torch.Tensor  # [requests] bool, where the drafter runs


def takes_over(runner: Any, metadata: Any, queries: int) -> bool:
    """Whether the drafter is called although the stock runner, with `queries` more tokens a request, would skip it."""
    if not runner.speculative_config.use_dflash():
        return False
    setattr(runner.drafter, MARK, None)
    counts["steps"] += 1
    counts["guarded_steps"] += GUARDS
    limit, lengths = runner.effective_drafter_max_model_len, metadata.seq_lens_cpu_upper_bound
    if metadata.max_seq_len + queries <= limit or lengths is None:
        return False
    over = (lengths[: metadata.num_reqs] + queries > limit).tolist()
    _count(over, metadata.query_start_loc_cpu.tolist())
    if GUARDS:
        rows = async_tensor_h2d(over, dtype=torch.bool, device=runner.device)
        setattr(runner.drafter, MARK, Shield(limit, rows))
        counts["drafter_calls"] += 1
    return GUARDS


def _count(over: list[bool], starts: list[int]) -> None:
    if not counts["batches"]:
        logger.info("[%s] knob=%d: a request is at the drafter's limit; the drafter %s for its batch",
                    OVERLAY, GUARDS, "runs" if GUARDS else "is skipped")  # fmt: skip
    counts["batches"] += 1
    counts["requests_over"] += sum(over)
    counts["requests_fitting"] += len(over) - sum(over)
    counts["tokens_fitting"] += sum(starts[i + 1] - starts[i] for i, is_over in enumerate(over) if not is_over)


def shield(drafter: Any, metadata: Any) -> None:
    """Before the drafter runs: nothing of a request over may be written or read outside of what it has."""
    batch: Shield | None = getattr(drafter, MARK, None)
    if batch is None:
        return
    _hide_context(drafter, batch.limit)
    rows, queries = batch.over[:, None], metadata.max_query_len
    metadata.slot_mapping.view(-1, queries).masked_fill_(rows, NO_SLOT)
    drafter.positions[: metadata.num_actual_tokens].view(-1, queries).masked_fill_(rows, 0)
    own = (metadata.seq_lens - queries).clamp(max=batch.limit)
    metadata.seq_lens = torch.where(batch.over, own, metadata.seq_lens)
    metadata.max_seq_len = min(metadata.max_seq_len, batch.limit)
    if metadata.seq_lens_cpu_upper_bound is not None:
        metadata.seq_lens_cpu_upper_bound = metadata.seq_lens_cpu_upper_bound.clamp(max=batch.limit)


def _hide_context(drafter: Any, limit: int) -> None:
    """A drafter may be made for fewer positions than the target; those after them get no draft KV."""
    positions = drafter._context_positions_buffer[: drafter._dflash_num_context]
    beyond = positions >= limit
    drafter._context_slot_mapping_buffer[: drafter._dflash_num_context].masked_fill_(beyond, NO_SLOT)
    positions.masked_fill_(beyond, 0)


def withhold(drafter: Any, drafts: torch.Tensor) -> torch.Tensor:
    """After it ran: the drafts [requests, K] with token 0 for requests over, and their probabilities to match."""
    batch: Shield | None = getattr(drafter, MARK, None)
    if batch is None:
        return drafts
    if drafter._last_draft_probs is not None:
        rows = batch.over[:, None, None]
        certain = torch.zeros_like(drafter._last_draft_probs)
        certain[..., 0] = 1
        drafter._last_draft_probs = torch.where(rows, certain, drafter._last_draft_probs)
    return drafts.masked_fill(batch.over[:, None], 0)


if state is not None:
    state.publish(OVERLAY, lambda: {"guards": GUARDS})
    state.count(OVERLAY, lambda: counts if counts["steps"] else {})  # the API server drafts nothing and says nothing
