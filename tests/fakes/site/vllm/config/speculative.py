"""Speculative decoding as configured."""

import json
from dataclasses import dataclass

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
    return SpeculativeConfig(**json.loads(text)) if text else None
