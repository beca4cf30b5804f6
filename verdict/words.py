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
