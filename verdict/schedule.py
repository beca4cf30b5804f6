"""A schedule: which arm is booted in which place (statistics.md section 1.2)."""

import hashlib
from dataclasses import dataclass, replace

from verdict.design import design_matrix, paired_matrix
from verdict.errors import VerdictError

BLOCK_BOOTS = 4
LEAST_OWN_DF = 2
"""Residual degrees of freedom from which a bracket has an error bar of its own: ABABA has 2, ABBA 1, ABA 0."""
LEAST_PAIRS = 4
"""Pairs of a duet from which it has a verdict of its own."""

_NAMED = {"screen": ("ABA",), "verdict": ("ABBA", "BAAB")}
_SWAP = str.maketrans("AB", "BA")


@dataclass(frozen=True)
class Schedule:
    """The boots of a bracket in run order, in blocks; A is base, B is candidate. Of a duet a block is a pair.

    Of several arms B, C, ... are candidates, and a block is a row that has each arm once (verdict/latin.py).
    """

    blocks: tuple[str, ...]
    paired: bool = False
    arms: int = 2

    @property
    def letters(self) -> str:
        """All boots in run order, for example ABBABAAB."""
        return "".join(self.blocks)

    @property
    def n_boots(self) -> int:
        """Number of boots."""
        return len(self.letters)

    @property
    def is_of_several(self) -> bool:
        """Whether base has several candidates."""
        return self.arms > len("AB")

    @property
    def own_df(self) -> int:
        """Residual degrees of freedom in one session: boots less candidates, intercept and slope (section 1.3).

        Of a duet, pairs less arm and, where it can be told, place.
        """
        if self.paired:
            return len(self.blocks) - min(2, len(set(self.blocks)))
        return self.n_boots - self.arms - 1

    @property
    def pairs(self) -> tuple[int, ...] | None:
        """The pair number of each boot of a duet, from 1; None for boots one after another."""
        return tuple(number for number, _ in enumerate(self.blocks, 1) for _ in "AB") if self.paired else None

    @property
    def is_screen(self) -> bool:
        """Whether it has too few boots for an error bar of its own (ABA, ABBA; section 1.2), or under 4 pairs."""
        return self.own_df < LEAST_OWN_DF or (self.paired and len(self.blocks) < LEAST_PAIRS)


def parse_schedule(text: str) -> Schedule:
    """A schedule from its text: blocks split by spaces, or one run of letters that is cut into blocks of four.

    Raises VerdictError for other characters (lower case too) and for schedules on which the effect and the
    drift cannot be told apart. Source: statistics.md section 1.2.
    """
    strange = sorted(set(text) - set("AB "))
    if strange or not text.strip():
        found = repr(text) if text.strip() else "nothing"
        raise VerdictError(f"a schedule holds only A, B and spaces, found {found}; write for example 'ABBA BAAB'")
    words = text.split()
    blocks = _cut(words[0]) if len(words) == 1 else tuple(words)
    design_matrix("".join(blocks))
    return Schedule(blocks)


def parse_pairs(text: str) -> Schedule:
    """The schedule of a duet from its text: a word a pair, AB or BA, the first letter started first.

    Raises VerdictError for other words. Source: statistics.md section 1.2, last point.
    """
    words = tuple(text.split())
    if not words or not {"AB", "BA"}.issuperset(words):
        found = repr(text.strip()) if words else "nothing"
        raise VerdictError(f"a duet is written in pairs, AB or BA, found {found}; write for example 'AB BA AB BA'")
    schedule = Schedule(words, paired=True)
    paired_matrix(schedule.letters, schedule.pairs or ())
    return schedule


def named(name: str) -> Schedule:
    """The schedule of a bracket's name: `screen` is ABA, `verdict` is ABBA BAAB (house.md). Raises VerdictError."""
    if name not in _NAMED:
        raise VerdictError(f"a bracket is named {' or '.join(_NAMED)}, found {name!r}; or write its letters")
    return Schedule(_NAMED[name])


def mirrored(schedule: Schedule) -> Schedule:
    """The same schedule with the two arms exchanged (statistics.md section 1.2)."""
    return replace(schedule, blocks=tuple(block.translate(_SWAP) for block in schedule.blocks))


def coin(claim_digest: str, campaign_id: str) -> bool:
    """True where the schedule is to be mirrored: one bit of a SHA-256 of claim and campaign (house.md, on disk)."""
    return bool(hashlib.sha256(f"{claim_digest}\n{campaign_id}".encode()).digest()[0] & 1)


def _cut(word: str) -> tuple[str, ...]:
    if len(word) % BLOCK_BOOTS:
        return (word,)
    return tuple(word[start : start + BLOCK_BOOTS] for start in range(0, len(word), BLOCK_BOOTS))
