"""`python -m kernels.prep_fused.bench`: what a step's preparation costs, part by part, stock beside fused.

On a GPU: device time by graph replay, and host + device wall time; under five minutes. torch and triton are enough for
the fused side; with vllm 0.29.0 the stock side is measured too. Everywhere: what a launch costs the host, with a driver
that launches nothing. Exit codes: 0 measured, 2 the command line.
"""

import argparse
import importlib.util
import os
import random
import sys
import tempfile
from collections.abc import Mapping, Sequence
from typing import Any

import torch
import triton

from .stand import Stand

NO_GPU = "no GPU here: device time and wall time of a step are not measured (only what a launch costs the host)"
NOT_HERE = "builders: not in this boundary; they need an engine with a model, see exp=exp7"


def table(title: str, costs: Mapping[str, tuple[float, float, float]]) -> str:
    """One line a row: median and range over the rounds, in us."""
    lines = [
        f"  {name:42} {median:9.2f} us  [{least:.2f}, {most:.2f}]" for name, (median, least, most) in costs.items()
    ]
    return "\n".join([title, *lines])


def _arguments(words: Sequence[str] | None) -> Stand:
    parser = argparse.ArgumentParser(prog="python -m kernels.prep_fused.bench", description=__doc__)
    for name, default in (("requests", 1), ("groups", 1), ("drafts", 7), ("computed", 4096)):
        parser.add_argument(f"--{name}", type=int, default=default, help=f"default {default}")
    found = vars(parser.parse_args(words))
    for name, value in found.items():
        if value < 1:
            parser.error(f"--{name} is {value}, wanted at least 1")
    return Stand(**found)


def world_of(stand: Stand, device: torch.device) -> Any:
    """An engine's objects of the same shape. Only where vllm is."""
    from .proof import engine

    engine.ready(device)
    from .proof.world import Shape, World

    columns = stand.max_len // stand.block
    groups = tuple((stand.block, stand.block, columns, True) for _ in range(stand.groups))
    shape = Shape("bench", groups, stand.drafts, max_reqs=stand.max_reqs, max_tokens=stand.max_tokens)
    return World(shape, device, random.Random(1), steady=(stand.requests, stand.computed))


def has_vllm() -> bool:
    """Whether the stock side can be measured here."""
    return importlib.util.find_spec("vllm") is not None


def on_the_host(stand: Stand) -> str:
    """The dispatcher's table."""
    from .dispatch import costs_us, fused_calls, stock_calls, stub_driver

    with stub_driver():
        calls = fused_calls(stand)
        if has_vllm() and not torch.cuda.is_available():  # with a GPU the stock side is in the wall time
            calls |= stock_calls(world_of(stand, torch.device("cpu")))
        title = "host, CPU time of one thread; a driver that launches nothing, the CPU's buffers; median and ends of 9"
        return table(title, costs_us(calls))


def on_the_device(stand: Stand, device: torch.device) -> str:
    """The two tables of a GPU."""
    from .device import device_us, fused_parts, stock_parts, wall_us

    launch, prepare = fused_parts(stand, device)
    launches, steps = {"fused: prepare + gather + slots": launch}, {"fused: prepare + gather + slots": prepare}
    if has_vllm():
        for name, (alone, whole) in stock_parts(world_of(stand, device)).items():
            launches[f"stock: {name}"], steps[f"stock: {name}"] = alone, whole
    name = torch.cuda.get_device_name()
    replayed = table(f"device time by graph replay on {name}, launches only", device_us(launches))
    return "\n".join([replayed, table(f"host + device wall time a step on {name}, copies included", wall_us(steps))])


def main(words: Sequence[str] | None = None) -> int:
    """Measure what can be measured here, and say what cannot."""
    stand = _arguments(words)
    os.environ.setdefault("TRITON_DEFAULT_FP_FUSION", "1")  # said, so that Triton 3.9 does not ask; no float here
    print(f"prep_fused, {stand}")
    if os.environ.get("TRITON_INTERPRET") == "1":
        print("Triton's interpreter runs here: nothing is measured, its times say nothing of a device")
        return 0
    if torch.cuda.is_available():
        print(on_the_device(stand, torch.device("cuda")))
    else:
        print(NO_GPU)
    if not has_vllm():
        print("vllm is not installed here: the stock side is not measured")
    with tempfile.TemporaryDirectory() as folder, triton.knobs.cache.scope():
        triton.knobs.cache.dir = folder
        print(on_the_host(stand))
    print(NOT_HERE)
    return 0


if __name__ == "__main__":
    sys.exit(main())
