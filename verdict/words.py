"""The words a verdict is told in (house.md, Words)."""

from enum import StrEnum


class Verdict(StrEnum):
    """The five answers a gate can give.

    VOID says that the environment was tainted; INVALID that something else was measured than what was asked.
    """

    PASS = "PASS"
    FAIL = "FAIL"
    INCONCLUSIVE = "INCONCLUSIVE"
    VOID = "VOID"
    INVALID = "INVALID"


class ScreenWord(StrEnum):
    """What a screen with a borrowed error bar advises. Never a verdict (statistics.md section 1.5)."""

    PROMOTE = "SCREEN-PROMOTE"
    DROP = "SCREEN-DROP"


def number_of(number: float, noun: str) -> str:
    """A number with what it counts: `1 boot`, `0 boots`; the noun is given in the singular."""
    shown = f"{number:g}" if isinstance(number, float) else str(number)
    return f"{shown} {agreeing(number, noun, f'{noun}s')}"


def agreeing(number: float, one: str, many: str) -> str:
    """The word that goes with a number: `is` or `are`."""
    return one if number == 1 else many
