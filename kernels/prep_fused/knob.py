"""The knob's words (trap e): whoever writes one that is not known gets the stock chain, and is told."""

from dataclasses import dataclass
from enum import Enum


class Mode(Enum):
    """What the knob asks for."""

    OFF = "off"
    SHADOW = "shadow"
    ARMED = "armed"
    DISARMED = "disarmed"  # something was asked for that nobody understands


WORDS = {
    "": Mode.OFF,
    "0": Mode.OFF,
    "off": Mode.OFF,
    "false": Mode.OFF,
    "no": Mode.OFF,
    "shadow": Mode.SHADOW,
    "1": Mode.ARMED,
}


@dataclass(frozen=True)
class Knob:
    """What was asked for, and why it is not given."""

    mode: Mode
    reason: str = ""


def parse(text: str | None) -> Knob:
    """Blanks around it and capitals do not count; `true`, `yes`, `on`, `2` and `armed` are no words of this knob."""
    word = (text or "").strip().lower()
    if word in WORDS:
        return Knob(WORDS[word])
    return Knob(Mode.DISARMED, f"the knob is {text!r}, wanted 0, off, false, no, shadow or 1: the stock chain runs")
