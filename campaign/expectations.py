"""What the experiments of `conf/exp/` expect of one engine: the part of an engine's configuration that they read."""

from dataclasses import dataclass
from typing import Any


@dataclass
class Exp8Expectation:
    """What EXP-8 claims on this engine: the fleet's 7..12 % of step time belongs to the fleet's engine."""

    gate_pct: float = 0.0
    ceiling_pct: float | None = None
    expect_pct: Any = None  # [low, high]; Any, because a typed list cannot hold an interpolation


@dataclass
class SharedPrefixExpectation:
    """What the prefix-cache experiment needs of this engine."""

    block_size: int | None = None  # tokens; null is the engine's own


@dataclass
class Exp7Expectation:
    """What EXP-7 claims on this engine, and how long its window is: an interpreted step takes a tenth of a second."""

    gate_pct: float = 0.0
    max_tokens: int = 256  # of each answer in the window
    repeats: int = 2
    warm_up_requests: int = 4
    max_warm_up_requests: int = 12
