"""What a launch costs the host, measured without a GPU: real compiled kernels, a driver that launches nothing.

The driver's own launch is left out on every side alike. Under the interpreter nothing is compiled, nothing can be said.
"""

import importlib
import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
import triton
from triton.backends.compiler import GPUTarget

from .host import host_step
from .outputs import allocate
from .stand import Stand

ROUNDS, CALLS = 9, 300
STUB_DEVICE = 1000  # no real one: Triton keeps what it compiled by device
STOCK = {
    "input_batch": (
        "_expand_idx_mapping_kernel",
        "_prepare_pos_seq_lens_kernel",
        "_combine_sampled_and_draft_tokens_kernel",
    ),
    "block_table": ("_gather_block_tables_kernel", "_compute_slot_mappings_kernel"),
}


class StubLaunch:
    """In the launcher's place: it keeps what it was given last."""

    last: tuple[Any, ...] = ()
    keep = False

    def __init__(self, _source: Any, metadata: Any) -> None:
        self.name = metadata.name

    def __call__(self, *arguments: Any) -> None:
        """Take a launch and do nothing."""
        if StubLaunch.keep:
            StubLaunch.last = arguments


class StubUtils:
    """What a compiled kernel asks its driver for."""

    def __init__(self) -> None:
        self.loaded = 0

    def get_device_properties(self, device: int) -> dict[str, int]:
        """An H100's shared memory, in bytes."""
        del device
        return {"max_shared_mem": 232448}

    def load_binary(self, name: str, kernel: bytes, shared: int, device: int) -> tuple[int, int, int, int, int]:
        """(module, function, registers, spills, most threads): a function of its own for each compiled kernel."""
        del name, kernel, shared, device
        self.loaded += 1
        return self.loaded, self.loaded, 32, 0, 1024

    def unload_module(self, module: int) -> None:
        """Nothing was loaded."""


class StubDriver:
    """A device that is not there. `device` may be changed."""

    launcher_cls = StubLaunch

    def __init__(self) -> None:
        self.utils, self.device = StubUtils(), STUB_DEVICE

    def get_current_device(self) -> int:
        """The device's number."""
        return self.device

    def get_current_stream(self, device: int) -> int:
        """A stream of each device."""
        return 1000 + device

    def get_current_target(self) -> GPUTarget:
        """What is compiled for."""
        return GPUTarget("cuda", 90, 32)


@contextmanager
def stub_driver() -> Iterator[StubDriver]:
    """Triton's driver is a stub inside."""
    config, driver = triton.runtime.driver, StubDriver()
    before = config._active
    config.set_active(driver)
    try:
        yield driver
    finally:
        config._active = before


Cost = tuple[float, float, float]  # (median, least, most) of the rounds, in us a call


@torch.inference_mode()  # as the engine runs
def costs_us(calls: Mapping[str, Callable[[], Any]], rounds: int = ROUNDS) -> dict[str, Cost]:
    """This thread's CPU time of each call. Round after round through all of them, so that a slow minute meets all."""
    means: dict[str, list[float]] = {name: [] for name in calls}
    for call in calls.values():
        call()
    for _ in range(rounds):
        for name, call in calls.items():
            began = time.thread_time_ns()
            for _ in range(CALLS):
                call()
            means[name].append((time.thread_time_ns() - began) / CALLS / 1000)
    return {name: (statistics.median(found), min(found), max(found)) for name, found in means.items()}


def fused_calls(stand: Stand) -> dict[str, Callable[[], Any]]:
    """The kernel through the dispatcher, through the cache, and the bare call of what is compiled."""
    plan, (output, batch, descriptor) = stand.plan(torch.device("cpu")), stand.step()
    words = host_step(output.scheduled_spec_decode_tokens, batch, descriptor, stand.max_reqs, 1)
    tensors = plan.tensors(words, allocate(words.num_reqs, words.num_logits, torch.device("cpu")))
    integers, launch = plan.integers(words), plan.launch
    grid = (1 + stand.groups, words.num_reqs_padded + 1)
    compiled = launch.dispatch(grid, tensors, integers)
    bare = (*grid, 1, 0, compiled.function, compiled.packed_metadata, None, None, None)
    everything = (*bare, *tensors, *integers, *launch.constants.values())
    return {
        "fused, Triton's dispatcher": lambda: launch.dispatch(grid, tensors, integers),
        "fused, direct, with its key": lambda: launch(grid, tensors, integers),
        "fused, direct, the bare call": lambda: compiled.run(*everything),
        "fused, a whole `prepare`": lambda: plan.prepare(output, batch, descriptor),
    }


def stock_calls(world: Any) -> dict[str, Callable[[], Any]]:
    """The engine's five launches with the arguments that its own methods give them, and these methods whole."""
    from .proof import engine

    modules = {name: importlib.import_module(f"vllm.v1.worker.gpu.{name}") for name in STOCK}
    kernels = [getattr(modules[name], kernel) for name, names in STOCK.items() for kernel in names]
    step, seen = world.step(), list[Any]()
    hooks = [_hook(kernel, seen) for kernel in kernels]

    def whole() -> None:
        batch = engine.prepare(world.runner, step.scheduler_output, step.batch, step.descriptor)
        engine.prepare_attn(world.runner, batch)

    whole()
    for kernel, hook in zip(kernels, hooks, strict=True):
        kernel.pre_run_hooks.remove(hook)

    def launches() -> None:
        for kernel, arguments, named in seen:
            kernel[(1, 1)](*arguments, **named)

    return {f"stock, {len(seen)} launches, dispatcher": launches, "stock, `prepare_inputs` and `prepare_attn`": whole}


def _hook(kernel: Any, seen: list[Any]) -> Callable[..., None]:
    def record(*arguments: Any, **named: Any) -> None:
        named = {name: value for name, value in named.items() if name in kernel.arg_names}
        seen.append((kernel, arguments, named))

    kernel.pre_run_hooks.append(record)
    return record
