"""The order of a bracket of several arms: each arm once a row, as often in every place, after every other one.

A row is a block. A drift over the session is fitted; what a boot owes to its place in the row or to the boot before it
falls on all arms alike. Williams' design: one square for an even number of arms, two for an odd one.
"""

from collections import Counter
from dataclasses import replace

from verdict.errors import VerdictError
from verdict.schedule import Schedule, mirrored

LETTERS = "ABCDEFGHIJ"  # A is base
LEAST_ARMS = 3


def square(arms: int) -> Schedule:
    """Williams' design of so many arms. Raises VerdictError for fewer than three, and for more than ten."""
    _require_arms(arms)
    zigzag = [(place + 1) // 2 if place % 2 else -(place // 2) for place in range(arms)]  # 0 1 -1 2 -2 ...
    rows = [_row([(start + step) % arms for step in zigzag]) for start in range(arms)]
    return Schedule(tuple(rows + [row[::-1] for row in rows] * (arms % 2)), arms=arms)


def _row(places: list[int]) -> str:
    return "".join(LETTERS[place] for place in places)


def parse_latin(text: str, arms: int) -> Schedule:
    """The schedule from its rows, a word each; every row has each arm once, every place has each arm equally often.

    Raises VerdictError for anything else: it would be no complete design.
    """
    _require_arms(arms)
    rows, letters = tuple(text.split()), LETTERS[:arms]
    if not rows:
        raise VerdictError(f"a schedule of {arms} arms has rows, found nothing; write for example {_example(arms)}")
    if strange := sorted(set("".join(rows)) - set(letters)):
        raise VerdictError(f"found the letter {strange[0]!r}, wanted {', '.join(letters)} for the {arms} arms")
    for row in rows:
        if sorted(row) != sorted(letters):
            raise VerdictError(
                f"row {row} is not complete: wanted each of {letters} once; for example {_example(arms)}"
            )
    if uneven := _uneven(rows):
        raise VerdictError(f"{uneven}; wanted every letter equally often in each place, for example {_example(arms)}")
    return Schedule(rows, arms=arms)


def _uneven(rows: tuple[str, ...]) -> str:
    """The first place that the arms do not share alike, in words."""
    for place, column in enumerate(zip(*rows, strict=True), start=1):
        found = Counter(column)
        if len(found) < len(rows[0]) or len(set(found.values())) > 1:
            return f"place {place} of the rows is {' '.join(column)}, no Latin square"
    return ""


def other_side(schedule: Schedule) -> Schedule:
    """What the coin makes of it: two arms exchanged, the rows of several read from right to left (section 1.2)."""
    if not schedule.is_of_several:
        return mirrored(schedule)
    return replace(schedule, blocks=tuple(row[::-1] for row in schedule.blocks))


def _example(arms: int) -> str:
    return repr(" ".join(square(arms).blocks))


def _require_arms(arms: int) -> None:
    if not LEAST_ARMS <= arms <= len(LETTERS):
        raise VerdictError(f"a bracket of several arms has {LEAST_ARMS} to {len(LETTERS)} of them, found {arms}")
