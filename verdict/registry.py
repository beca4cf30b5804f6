"""What a host's earlier brackets say of its noise, and whether its A/A brackets still come out right (section 1.12)."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import comb, isfinite, sqrt

from verdict.errors import VerdictError
from verdict.history import LEAST_NU0, History
from verdict.proportions import two_sided_bounds

MOST_NU0 = 30
AA_ALPHA = 0.05
AA_LEVEL = 0.01


@dataclass(frozen=True)
class Residuals:
    """What one valid bracket leaves: its residual sum of squares (ln^2, or points^2) and degrees of freedom."""

    rss: float
    df: int


def pooled(brackets: Sequence[Residuals]) -> History | None:
    """s0^2 = sum RSS / sum df on min(sum df, 30) degrees of freedom; None under 8, or where nothing ever varied.

    Raises VerdictError for a bracket without a degree of freedom, or a sum of squares that is none.
    """
    for bracket in brackets:
        if bracket.df < 1 or not (isfinite(bracket.rss) and bracket.rss >= 0):
            raise VerdictError(
                f"a bracket leaves RSS >= 0 on df >= 1, found {bracket.rss} on {bracket.df}; leave it out"
            )
    df = sum(bracket.df for bracket in brackets)
    rss = sum(bracket.rss for bracket in brackets)
    return History(s0=sqrt(rss / df), nu0=min(df, MOST_NU0)) if df >= LEAST_NU0 and rss > 0 else None


@dataclass(frozen=True)
class Calibration:
    """How the A/A brackets of a host came out; `low` and `high` are Clopper-Pearson's 95 % bounds on their rate."""

    differing: int
    brackets: int
    low: float
    high: float
    limit: int | None  # from so many on the pipeline must be calibrated again; None while no count would say it

    @property
    def is_off(self) -> bool:
        """Whether too many differ for a pipeline that errs in 5 %."""
        return self.limit is not None and self.differing >= self.limit


def aa_calibration(differing: int, brackets: int) -> Calibration:
    """Of so many A/A brackets so many differ. Raises VerdictError for an impossible count."""
    low, high = two_sided_bounds(differing, brackets)
    return Calibration(differing, brackets, low, high, aa_limit(brackets))


def aa_limit(brackets: int) -> int | None:
    """The smallest count that a pipeline which errs in 5 % reaches in at most 1 % of cases: 4 of 10, 12 of 100."""
    below = 0.0
    for count in range(brackets + 1):
        if 1 - below <= AA_LEVEL:
            return count
        below += comb(brackets, count) * AA_ALPHA**count * (1 - AA_ALPHA) ** (brackets - count)
    return None
