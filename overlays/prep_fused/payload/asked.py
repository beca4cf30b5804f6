"""What was asked of this process: the mode, and how often an armed step is checked against the engine's own."""

import os
from dataclasses import dataclass

from campaign_prep_fused.prep_fused.knob import Mode, parse

MODE = "VLLM_GLM53_PREP_FUSED"
CHECK_EVERY = "VLLM_GLM53_PREP_FUSED_CHECK_EVERY"
DEFAULT_EVERY = 64


@dataclass(frozen=True)
class Asked:
    """The knobs as they were read. `reason` says why a mode that was asked for is not given."""

    mode: Mode
    every: int  # armed steps from one self-check to the next
    reason: str = ""


def from_environment() -> Asked:
    """Never raises: a word that is not known disarms, and the engine prepares its steps by itself."""
    knob, text = parse(os.environ.get(MODE)), os.environ.get(CHECK_EVERY, str(DEFAULT_EVERY))
    if text.isascii() and text.isdigit() and int(text) > 0:
        return Asked(knob.mode, int(text), knob.reason)
    why = f"{CHECK_EVERY} is {text!r}, wanted a whole number of steps from 1: the stock chain runs"
    return Asked(knob.mode if knob.mode is Mode.OFF else Mode.DISARMED, DEFAULT_EVERY, knob.reason or why)
