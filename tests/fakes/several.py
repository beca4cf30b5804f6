"""Boots of several arms as a run would have recorded them, with the speeds that a test plants."""

import json
from collections.abc import Mapping
from math import exp
from pathlib import Path
from typing import Any

import numpy as np

from campaign.config import Campaign
from campaign.door import compose
from campaign.evidence import BootRecord, WitnessRow
from campaign.names import BASE, STEP_PER_S
from campaign.planning.plan import Plan
from tests.fakes.evidence import boot, drafts, kv, right, speculating

CONF = str(Path(__file__).resolve().parents[1] / "conf")


def four_arms() -> Campaign:
    """Base and three others, on the fake engine, with no coin."""
    found = compose(["--config-dir", CONF, "exp=fake7x8", "bracket.mirror=false"])
    assert found is not None
    return found


def boots(plan: Plan, effects_ln: Mapping[str, float], sd: float = 0.005, seed: int = 1) -> list[BootRecord]:
    """A boot for each of the plan, each at 100 step/s times its arm's effect, drifting, with noise of the boots."""
    noise = np.random.default_rng(seed).normal(0, sd, len(plan.boots))
    rates = [
        100 * exp(effects_ln.get(b.arm, 0.0) + 0.001 * b.index + e) for b, e in zip(plan.boots, noise, strict=True)
    ]
    return [_boot(b.index, b.letter, b.arm, rate) for b, rate in zip(plan.boots, rates, strict=True)]


def _boot(index: int, letter: str, arm: str, rate: float) -> BootRecord:
    ahead = arm in ("ahead", "both")
    resolved = {"async_scheduling": ahead, "max_concurrent_batches": 1 + ahead, "max_num_seqs": 4}
    plain: dict[str, Any] = speculating(drafts(781, 610, 470, 355, 260)) | {
        "kv": kv(),
        "answers": tuple(right(f"q{i}") for i in range(9))
        + tuple(right(f"k{i}", prompt_set="korean") for i in range(16)),
        "seconds": {"total": 60.0},
        "witness": tuple(
            WitnessRow(f"serve.{name}", "resolved", name, "", "", ok=True)
            for name in ("async_scheduling", "max_num_seqs")
        ),
        "facts": {"stage": ("5f" if arm == BASE else arm[:2]) * 32, "resolved": json.dumps(resolved)},
    }
    plain["metrics"] = plain["metrics"] | {STEP_PER_S: rate}
    return boot(index, letter, **(plain | {"arm": arm}))
