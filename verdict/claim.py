"""A claim: one registered statement about a metric, and what its words may be (statistics.md section 1.5)."""

from dataclasses import dataclass
from enum import StrEnum
from math import isfinite

from verdict.errors import VerdictError
from verdict.fit import Scale


class ClaimKind(StrEnum):
    """What kind of statement a claim makes (section 1.5)."""

    superiority = "superiority"
    equivalence = "equivalence"
    non_inferiority = "non_inferiority"
    no_difference = "no_difference"

    @property
    def level(self) -> float:
        """The two-sided level of its interval: 0.95, or 0.9 for the two that have a margin (section 1.5)."""
        return 0.9 if self in _WITH_MARGIN else 0.95

    @property
    def is_oriented(self) -> bool:
        """Whether + means better in its interval; otherwise + means a larger reading (section 1.5)."""
        return self in _ORIENTED


_WITH_MARGIN = (ClaimKind.equivalence, ClaimKind.non_inferiority)
_ORIENTED = (ClaimKind.superiority, ClaimKind.non_inferiority)


class Direction(StrEnum):
    """Which way of a metric is better."""

    HIGHER = "higher"
    LOWER = "lower"
    TWO_SIDED = "two_sided"


@dataclass(frozen=True)
class Claim:
    """One registered statement about a metric; per cent for a LOG metric, points for a LINEAR one.

    `bound` is the gate of a superiority claim (any sign), the margin (over 0) of an equivalence or non-inferiority
    claim, and 0 for no_difference. Gate, ceiling and expectation are in the direction of better.
    Raises VerdictError for a bound, a band or a direction that its kind cannot have.
    """

    name: str
    metric: str
    kind: ClaimKind
    bound: float
    scale: Scale
    direction: Direction
    ceiling_pct: float | None = None
    expect_pct: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        _require_words(self)
        _require_bound(self)
        if self.kind.is_oriented and self.direction is Direction.TWO_SIDED:
            raise VerdictError(
                f"claim {self.name}: {self.kind} needs a direction, found two_sided; say higher or lower"
            )
        if self.expect_pct is not None and not self.expect_pct[0] <= self.expect_pct[1]:
            raise VerdictError(
                f"claim {self.name}: a band is [low, high], found {list(self.expect_pct)}; swap its ends"
            )

    @property
    def sign(self) -> int:
        """-1 where a rise of the reading is a loss, else 1 (section 1.5, orientation)."""
        return -1 if self.kind.is_oriented and self.direction is Direction.LOWER else 1


def _require_words(claim: Claim) -> None:
    # A plain "lower" would be taken for something else in silence, and turn the verdict round.
    for found, wanted in ((claim.kind, ClaimKind), (claim.scale, Scale), (claim.direction, Direction)):
        if not isinstance(found, wanted):
            words = ", ".join(wanted)
            raise VerdictError(f"claim {claim.name}: wanted a {wanted.__name__} ({words}), found {found!r}; convert it")


def _require_bound(claim: Claim) -> None:
    wanted = {
        ClaimKind.superiority: ("over -100 %", claim.scale is Scale.LINEAR or claim.bound > -100),
        ClaimKind.equivalence: ("over 0", claim.bound > 0),
        ClaimKind.non_inferiority: ("over 0", claim.bound > 0),
        ClaimKind.no_difference: ("0", claim.bound == 0),
    }
    rule, holds = wanted[claim.kind]
    if not (holds and isfinite(claim.bound)):
        raise VerdictError(f"claim {claim.name}: the bound of {claim.kind} is {rule}, found {claim.bound}; correct it")
