"""Speculative decoding as configured."""

import json
from dataclasses import dataclass

from vllm import faults

EagleModelTypes = ("eagle", "eagle3", "mtp", "dflash")


@dataclass
class SpeculativeConfig:
    """The parsed --speculative-config."""

    method: str
    num_speculative_tokens: int
    model: str | None = None
    disable_padded_drafter_batch: bool = False


def parse(text: str | None) -> SpeculativeConfig | None:
    """None when nothing is drafted."""
    if not text:
        return None
    found = SpeculativeConfig(**json.loads(text))
    found.method = faults.ACTIVE.get("resolves_method") or decided(found.method, (found.model or "").lower())
    return found


def decided(method: str, drafter: str) -> str:
    """As the engine: but for four explicit methods, a drafter's path decides by what it contains."""
    if method in ("eagle", "eagle3", "dflash", "dspark"):
        return method
    by_name = {"eagle-": "eagle", "eagle3": "eagle3", "dflash": "dflash", "dspark": "dspark"}
    return next((name for part, name in by_name.items() if part in drafter), method)
