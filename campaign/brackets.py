"""The bracket's part of the configuration: order, looks, budgets of boots, minutes and re-runs."""

from dataclasses import dataclass, field
from enum import Enum

from omegaconf import MISSING

STANDARD_SCHEDULE, LOOKS = "ABBA BAAB", (8, 12, 16)  # of bracket=verdict
SQUARE = "square"  # of bracket=latin


class BracketKind(Enum):
    """One engine at a time, boot after boot; both arms live at once, requests alternating; or several arms in rows."""

    boots = "boots"
    duet = "duet"
    latin = "latin"


class BurnIn(Enum):
    """Whether a boot that is not measured goes first: where the compile cache is cold, always, or never."""

    auto = "auto"
    always = "always"
    never = "never"


@dataclass
class Together:
    """Of several arms, one that has the changes of two others: what it adds to their sum is told."""

    arm: str = MISSING
    parts: list[str] = field(default_factory=list)


@dataclass
class Bracket:
    """The ordered boots. `schedule` is written in A (base) and B (candidate), a block a word; of a duet, a pair.

    Of several arms it is written in A (base), B, C, ... (the others in the order of `arms`), a row a word; `square` is
    a balanced design of them (verdict/latin.py).
    """

    kind: BracketKind = BracketKind.boots
    schedule: str = MISSING
    looks: list[int] = field(default_factory=list)  # planned looks, in boots; none is one look, at the end
    max_boots: int = 16
    max_minutes: float | None = None  # no block is begun that would end later than this; all that a run starts counts
    futility: bool = True  # stop INCONCLUSIVE where the boots that are left would hardly decide it
    burn_in: BurnIn = BurnIn.auto
    reruns_per_block: int = 1  # of boots that the environment tainted
    reruns: int = 2  # of such boots in the whole bracket; more, and the host is unfit
    aa_pairs: int = 2  # of a duet: pairs of base beside base that go first
    rest_s: float = 0.0  # of a duet: before the other engine's turn, until the one that answered idles
    together: Together | None = None  # of several arms
    mechanism: bool = False  # one more boot an arm, not measured, under the engine's profiler
    mirror: bool = True
    refuse_underpowered: bool = False


def planned_looks(schedule: str, max_boots: int) -> list[int]:
    """The looks of the shipped schedule as far as `max_boots` goes; none for any other schedule."""
    looks = [boots for boots in LOOKS if boots <= max_boots]
    return looks if schedule == STANDARD_SCHEDULE and len(looks) > 1 else []
