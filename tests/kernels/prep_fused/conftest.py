"""The engine's objects for the interpreted half: imported once, on the CPU."""

import os
import random
from collections.abc import Callable, Iterator
from typing import Any

import pytest

Worlds = Callable[..., Any]


@pytest.fixture
def cpu() -> Any:
    """The device of these tests, with the engine imported for it."""
    import torch

    from kernels.prep_fused.proof import engine

    engine.ready(torch.device("cpu"))
    return torch.device("cpu")


@pytest.fixture
def worlds(cpu: Any) -> Iterator[Worlds]:
    """worlds(number or shape, seed=1, **fields): a world of the proof."""
    from kernels.prep_fused.proof.world import SHAPES, World

    def made(shape: Any = 0, seed: int = 1, **fields: Any) -> Any:
        return World(SHAPES[shape] if isinstance(shape, int) else shape, cpu, random.Random(seed), **fields)

    before = os.environ.get("VLLM_MOE_SKIP_PADDING")
    yield made
    if before is None:
        os.environ.pop("VLLM_MOE_SKIP_PADDING", None)
