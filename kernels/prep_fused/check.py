"""`python -m kernels.prep_fused.check`: random batches through the engine's stock methods and the kernel, bit for bit.

Needs the engine's environment. Without a GPU everything runs in Triton's interpreter, and the output says so: that
shows the logic and nothing else. Exit codes: 0 equal, 1 a difference, or a row of the contract that was hardly
exercised, 2 the command line.
"""

import argparse
import os
import random
import sys
import time
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from .proof.world import Shape, World

SHOWN = 20  # differences
INTERPRETED = "in Triton's interpreter: logic only, nothing is shown of a device"


def _arguments(words: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m kernels.prep_fused.check", description=__doc__)
    parser.add_argument("--batches", type=int, default=300, help="random batches in all (default 300)")
    parser.add_argument("--seed", type=int, default=None, help="the first world's seed (default: drawn, and printed)")
    found = parser.parse_args(words)
    if found.batches < 1:
        parser.error(f"--batches is {found.batches}, wanted at least 1")
    return found


def device_here() -> torch.device:
    """A GPU where there is one. Without, Triton interprets; it must not be imported before."""
    if torch.cuda.is_available() and os.environ.get("TRITON_INTERPRET") != "1":
        return torch.device("cuda")
    os.environ["TRITON_INTERPRET"] = "1"
    return torch.device("cpu")


def try_world(shape: "Shape", seed: int, batches: int, device: torch.device) -> tuple["World", Counter[str], list[str]]:
    """`batches` trials under one plan: (the world, rows exercised, differences with their batch)."""
    from .proof.contract import exercised
    from .proof.trial import trial
    from .proof.world import World

    world = World(shape, device, random.Random(seed))
    plan, rows, wrong = world.plan(), Counter[str](), []
    for number in range(batches):
        outcome = trial(world, plan)
        rows += exercised(world, outcome)
        wrong += [f"seed {seed} batch {number}: {text}" for text in outcome.differences]
    return world, rows, wrong


def main(words: Sequence[str] | None = None) -> int:
    """Try every world and print what was tried."""
    asked = _arguments(words)
    device = device_here()
    from .proof import engine

    engine.ready(device)
    from .proof.contract import ENOUGH, ROWS
    from .proof.world import SHAPES

    seed = random.SystemRandom().randrange(10**9) if asked.seed is None else asked.seed
    how = f"on {torch.cuda.get_device_name()}" if device.type == "cuda" else INTERPRETED
    print(f"prep_fused against vLLM {engine.version()}, {how}")
    rows, wrong, began = Counter[str](), list[str](), time.perf_counter()
    for number, shape in enumerate(SHAPES):
        batches = asked.batches // len(SHAPES) + (number < asked.batches % len(SHAPES))
        _, reached, found = try_world(shape, seed + number, batches, device)
        rows, wrong = rows + reached, wrong + found
        print(f"  seed {seed + number}: {batches} batches, {len(found)} differences: {shape.name}")
    print("rows of the contract, and the batches that exercised them")
    for name, when in ROWS.items():
        print(f"  {rows[name]:5} {name} ({when})")
    rare = [name for name in ROWS if rows[name] < ENOUGH]
    for text in wrong[:SHOWN]:
        print(f"  {text}")
    said = f"{len(wrong)} DIFFERENCES" if wrong else "bit-exact"
    seldom = f"{len(rare)} of {len(ROWS)} rows exercised fewer than {ENOUGH} times"
    print(f"{asked.batches} batches in {time.perf_counter() - began:.0f} s: {said}; {seldom}; {how}")
    return 1 if wrong or rare else 0


if __name__ == "__main__":
    sys.exit(main())
