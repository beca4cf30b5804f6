"""Times on a GPU: device time of a launch by CUDA-graph replay, and the host and device wall time of a step.

A graph is for timing only: in production it would keep the addresses of one step's pool buffers (trap l). Launches are
replayed; copies to the device are in the wall time.
"""

import statistics
import time
from collections.abc import Callable, Mapping
from typing import Any

import torch

from .dispatch import Cost
from .host import host_step
from .outputs import allocate
from .stand import Stand

IN_GRAPH, REPLAYS, ROUNDS, STEPS = 20, 50, 9, 200


def _captured(launch: Callable[[], Any]) -> torch.cuda.CUDAGraph:
    launch()  # compiles outside of the capture
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(IN_GRAPH):
            launch()
    return graph


def _replayed_us(graph: torch.cuda.CUDAGraph) -> float:
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    start.record()
    for _ in range(REPLAYS):
        graph.replay()
    end.record()
    torch.cuda.synchronize()
    return float(start.elapsed_time(end)) * 1000 / (REPLAYS * IN_GRAPH)


def _spread(found: Mapping[str, list[float]]) -> dict[str, Cost]:
    return {name: (statistics.median(times), min(times), max(times)) for name, times in found.items()}


@torch.inference_mode()
def device_us(launches: Mapping[str, Callable[[], Any]]) -> dict[str, Cost]:
    """Device time of each, in us: (median, least, most) of ROUNDS, gaps between launches in a graph included."""
    graphs = {name: _captured(launch) for name, launch in launches.items()}
    rounds = [{name: _replayed_us(graph) for name, graph in graphs.items()} for _ in range(ROUNDS)]
    return _spread({name: [each[name] for each in rounds] for name in launches})


def _step_us(step: Callable[[], Any]) -> float:
    torch.cuda.synchronize()
    began = time.perf_counter()
    for _ in range(STEPS):
        step()
    torch.cuda.synchronize()
    return (time.perf_counter() - began) / STEPS * 1e6


@torch.inference_mode()
def wall_us(steps: Mapping[str, Callable[[], Any]]) -> dict[str, Cost]:
    """Host and device of each, in us a step: (median, least, most) of ROUNDS, steps queued one after another."""
    for step in steps.values():
        step()
    rounds = [{name: _step_us(step) for name, step in steps.items()} for _ in range(ROUNDS)]
    return _spread({name: [each[name] for each in rounds] for name in steps})


def fused_parts(stand: Stand, device: torch.device) -> tuple[Callable[[], Any], Callable[[], Any]]:
    """(the launch alone, a whole `prepare`). The launch is all parts at once: prepare, gather and slots."""
    plan, (output, batch, descriptor) = stand.plan(device), stand.step()
    words = host_step(output.scheduled_spec_decode_tokens, batch, descriptor, stand.max_reqs, 1)
    tensors = plan.tensors(words, allocate(words.num_reqs, words.num_logits, device))
    integers, grid = plan.integers(words), (1 + stand.groups, words.num_reqs_padded + 1)
    return lambda: plan.launch(grid, tensors, integers), lambda: plan.prepare(output, batch, descriptor)


def stock_parts(world: Any) -> dict[str, tuple[Callable[[], Any], Callable[[], Any]]]:
    """part -> (its launches alone, the engine's method): prepare (three launches), gather and slots (one each)."""
    from .proof import engine

    step = world.step()

    def prepare() -> Any:
        return engine.prepare(world.runner, step.scheduler_output, step.batch, step.descriptor)

    batch, tables = prepare(), world.tables
    launches = engine.prepare_launches(world.runner, batch)

    def gather() -> Any:
        return tables.gather_block_tables(batch.idx_mapping, batch.num_reqs_after_padding)

    def slots() -> Any:
        return tables.compute_slot_mappings(
            batch.idx_mapping, batch.query_start_loc, batch.positions, batch.num_tokens_after_padding
        )

    return {"prepare": (launches, prepare), "gather": (gather, gather), "slots": (slots, slots)}
