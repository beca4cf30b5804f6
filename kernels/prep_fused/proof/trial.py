"""One trial: a random step through stock, reference and kernel, everything compared, bit for bit."""

import dataclasses
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch

from ..plan import Plan, Prepared
from ..reference import Step as ReferenceStep
from ..reference import prep_reference
from ..shadow import first_difference
from . import engine
from .world import Step, World


@dataclasses.dataclass(frozen=True)
class Outcome:
    """What one trial showed: every difference, named, and the step that was tried."""

    step: Step
    stock: Any  # the engine's InputBatch
    differences: tuple[str, ...]


def trial(world: World, plan: Plan) -> Outcome:
    """One step in `world`. The order is ours, reference, stock: stock alone writes into the live buffers."""
    step = world.step()
    world.garbage()
    prepared = plan.prepare(step.scheduler_output, step.batch, step.descriptor)
    reference = _reference(world, step)
    stock = engine.prepare(world.runner, step.scheduler_output, step.batch, step.descriptor)
    attention = engine.prepare_attn(world.runner, stock)
    found = [
        *(f"fused {text}" for text in world.ours.differences()),
        *(f"reference {text}" for text in world.reference.differences()),
        *(f"fused {text}" for text in batch_differences(engine.input_batch(prepared.fields), stock)),
        *(f"fused {text}" for text in _attention_differences(prepared, attention)),
        *(f"reference {text}" for text in _fresh_differences(reference, stock)),
    ]
    return Outcome(step, stock, tuple(found))


def _reference(world: World, step: Step) -> dict[str, torch.Tensor]:
    scheduled = [int(n) for n in step.batch.num_scheduled_tokens]
    drafts = step.scheduler_output.scheduled_spec_decode_tokens
    logits = [len(drafts.get(name, ())) + world.shape.new_sampled for name in step.batch.req_ids]
    words = ReferenceStep(
        requests=[int(slot) for slot in step.batch.idx_mapping_np],
        query_start_loc=list(_sums(scheduled)),
        cu_num_logits=list(_sums(logits)),
        num_reqs_padded=step.descriptor.num_reqs or len(scheduled),
        num_tokens_padded=max(sum(scheduled), step.descriptor.num_tokens),
    )
    return prep_reference(world.states, world.tables, world.reference, words, world.constants)


def _sums(lengths: list[int]) -> Iterator[int]:
    total = 0
    yield total
    for length in lengths:
        total += length
        yield total


def batch_differences(ours: Any, stock: Any) -> list[str]:
    """The fields of two of the engine's `InputBatch`es that are not the same, host words and types included."""
    names = [field.name for field in dataclasses.fields(stock)]
    pairs = ((name, getattr(ours, name), getattr(stock, name)) for name in names)
    return [f"InputBatch.{name}: {first}" for name, mine, theirs in pairs if (first := _difference(mine, theirs))]


def _difference(ours: Any, stock: Any) -> str:
    if type(ours) is not type(stock):
        return f"a {type(ours).__name__}, stock has a {type(stock).__name__}"
    if isinstance(stock, np.ndarray):
        if ours.dtype != stock.dtype:
            return f"{ours.dtype}, stock has {stock.dtype}"
        return first_difference(torch.from_numpy(ours), torch.from_numpy(stock))
    if isinstance(stock, torch.Tensor):
        return first_difference(ours, stock)
    return "" if ours == stock else f"{ours!r}, stock has {stock!r}"


def _attention_differences(prepared: Prepared, stock: Any) -> list[str]:
    """What `prepare_attn` returns, view for view."""
    tables, slots = stock
    found = [first_difference(mine, theirs) for mine, theirs in zip(prepared.block_tables, tables, strict=True)]
    found.append(first_difference(prepared.slot_mappings, slots))
    return [f"prepare_attn view {number}: {first}" for number, first in enumerate(found) if first]


def _fresh_differences(reference: dict[str, torch.Tensor], stock: Any) -> list[str]:
    pairs = ((name, value, getattr(stock, name).cpu()) for name, value in reference.items())
    return [f"{name}: {first}" for name, value, theirs in pairs if (first := first_difference(value, theirs))]
