"""One bracket, fitted: least squares of the boot readings on arm, session and drift (statistics.md section 1.3)."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import expm1, inf, isclose, log1p, sqrt

import numpy as np
from scipy.special import stdtrit

from verdict.design import FloatArray, covariance_factor, design_matrix, paired_matrix
from verdict.errors import VerdictError
from verdict.schedule import LEAST_OWN_DF, LEAST_PAIRS

IDENTICAL_WITHIN = 1e-12
FLAG_LEVEL = 0.01
LARGEST_LN = 700.0
"""Where exp() is about to overflow: an interval of a hopelessly noisy bracket ends here."""


class Scale(StrEnum):
    """How a metric is compared: LOG by ratio (step/s, ms), LINEAR by difference (percentage points)."""

    LOG = "log"
    LINEAR = "linear"

    def effect(self, difference: float) -> float:
        """A difference on the fitted scale as people read it: per cent for LOG, points for LINEAR (section 1.3)."""
        return 100 * expm1(min(difference, LARGEST_LN)) if self is Scale.LOG else difference

    def difference(self, effect: float) -> float:
        """The inverse of `effect`: per cent (over -100) or points to the fitted scale."""
        return log1p(effect / 100) if self is Scale.LOG else effect

    def resolution(self, width: float) -> float:
        """A width on the fitted scale in log per cent (100 x ln) or points; symmetric, as section 1.10 prints it."""
        return 100 * width if self is Scale.LOG else width


class ErrorBar(StrEnum):
    """Where the variance of a fit comes from (statistics.md section 1.4)."""

    OWN = "own"
    BORROWED = "borrowed"
    HOST_NOISY = "host-noisy"


@dataclass(frozen=True)
class Fit:
    """A fitted bracket; candidate less base, on the ln scale for LOG and in points for LINEAR.

    `se`, `s2` and `boot_sd` (the sd of one boot) are None where no degree of freedom is left. `df` belongs to `se`,
    `own_df` to the residuals; they differ only where the variance is borrowed. `slopes` holds the drift of each session
    a boot, `slope_per_boot` the first one; `intercepts` are base in the middle of each session. Of a duet there is no
    slope and an intercept a pair (base, between the places); `second_place` is what the second place adds, None where
    it cannot be told from the arm.
    """

    delta: float
    se: float | None
    v: float
    df: int
    s2: float | None
    slope_per_boot: float
    boot_sd: float | None
    n_boots: int
    residuals: tuple[float, ...]
    fitted: tuple[float, ...]
    intercepts: tuple[float, ...]
    slopes: tuple[float, ...]
    leverages: tuple[float, ...]
    own_df: int
    error_bar: ErrorBar = ErrorBar.OWN
    n_pairs: int = 0
    second_place: float | None = None

    @property
    def zero_variance(self) -> bool:
        """Whether every boot of an arm gave the same reading, to one part in 1e12 (house.md, zero variance)."""
        return self.s2 == 0

    @property
    def is_screen(self) -> bool:
        """Whether it has under two residual degrees of freedom (ABA, ABBA; section 1.2), or is a duet under 4 pairs."""
        return self.own_df < LEAST_OWN_DF or 0 < self.n_pairs < LEAST_PAIRS


def fit(
    values: Sequence[float],
    letters: str,
    *,
    scale: Scale,
    sessions: Sequence[int] | None = None,
    pairs: Sequence[int] | None = None,
) -> Fit:
    """Least squares of one reading a boot (any unit; in run order) on arm, session intercepts and session slopes.

    With `pairs`, the pair number of each boot of a duet, on arm, place and pair intercepts instead.
    Raises VerdictError where a reading is missing, not finite or, for LOG, not positive, and where the
    schedule cannot tell effect from drift. Source: statistics.md sections 1.2 and 1.3.
    """
    matrix = design_matrix(letters, sessions) if pairs is None else paired_matrix(letters, pairs)
    y = _readings(values, letters, scale)
    factor = covariance_factor(matrix)
    coefficients = factor @ matrix.T @ y
    tolerance = IDENTICAL_WITHIN * max(1.0, float(np.abs(y).max()))
    residuals = _settled(y - matrix @ coefficients, tolerance)
    n_pairs = len(set(pairs or ()))
    n_intercepts = n_pairs or (matrix.shape[1] - 1) // 2
    placed = matrix.shape[1] - 1 - n_pairs if pairs is not None else 0  # columns between arm and intercepts
    last = 1 + placed + n_intercepts
    df = len(y) - matrix.shape[1]
    v = float(factor[0, 0])
    s2 = float(residuals @ residuals) / df if df else None
    return Fit(
        delta=float(coefficients[0]) if abs(coefficients[0]) > tolerance else 0.0,
        se=None if s2 is None else sqrt(s2 * v),
        v=v,
        df=df,
        s2=s2,
        slope_per_boot=0.0 if pairs is not None else float(coefficients[last]),
        boot_sd=None if s2 is None else sqrt(s2),
        n_boots=len(y),
        residuals=tuple(residuals.tolist()),
        fitted=tuple((y - residuals).tolist()),
        intercepts=tuple(coefficients[1 + placed : last].tolist()),
        slopes=tuple(coefficients[last:].tolist()),
        leverages=tuple(np.einsum("ij,jk,ik->i", matrix, factor, matrix).tolist()),
        own_df=df,
        n_pairs=n_pairs,
        second_place=float(coefficients[1]) if placed else None,
    )


def session_deltas(values: Sequence[float], letters: str, sessions: Sequence[int], *, scale: Scale) -> dict[int, float]:
    """The effect of each session alone, on the fitted scale: a disagreement of hosts is a finding (section 1.2).

    Raises VerdictError where a session alone cannot tell effect from drift.
    """
    design_matrix(letters, sessions)
    places = {name: [i for i, session in enumerate(sessions) if session == name] for name in dict.fromkeys(sessions)}
    return {
        name: fit([values[i] for i in place], "".join(letters[i] for i in place), scale=scale).delta
        for name, place in places.items()
    }


def studentised_residuals(fit: Fit) -> tuple[float, ...]:
    """Externally studentised residuals, one a boot, no unit (section 1.4). Raises VerdictError under two own df."""
    if fit.own_df < LEAST_OWN_DF:
        raise VerdictError(
            f"a studentised residual needs two residual degrees of freedom, found {fit.own_df}; boot a longer schedule"
        )
    rss = sum(residual**2 for residual in fit.residuals)
    return tuple(_studentised(e, h, rss, fit.own_df) for e, h in zip(fit.residuals, fit.leverages, strict=True))


def flagged_boots(fit: Fit) -> tuple[int, ...]:
    """Positions (from 1) of boots that stand apart: flagged, never dropped (section 1.4). Empty under two own df."""
    if fit.own_df < LEAST_OWN_DF:
        return ()
    limit = flag_limit(fit)
    return tuple(i for i, t in enumerate(studentised_residuals(fit), start=1) if abs(t) > limit)


def flag_limit(fit: Fit) -> float:
    """The studentised residual beyond which a boot is flagged: t(1 - .01/2N, own df - 1), no unit (section 1.4).

    The two boots of a pair have one residual between them, so that of a duet N is its pairs.
    """
    return float(stdtrit(fit.own_df - 1, 1 - FLAG_LEVEL / (2 * (fit.n_pairs or fit.n_boots))))


def _readings(values: Sequence[float], letters: str, scale: Scale) -> FloatArray:
    found = np.asarray(values, dtype=np.float64)
    if len(found) != len(letters):
        raise VerdictError(f"{letters} wants {len(letters)} readings, one a boot, found {len(found)}; is a boot lost?")
    if not np.isfinite(found).all() or (scale is Scale.LOG and (found <= 0).any()):
        wanted = "finite, positive" if scale is Scale.LOG else "finite"
        raise VerdictError(
            f"a failed boot is CRASH, never a number: found {found.tolist()}, wanted {wanted} readings; "
            "judge the crash, not the bracket"
        )
    return np.log(found) if scale is Scale.LOG else found


def _settled(residuals: FloatArray, tolerance: float) -> FloatArray:
    # Rounding noise of a reading that never varied must not become a tiny error bar.
    return residuals if np.abs(residuals).max() > tolerance else np.zeros_like(residuals)


def _studentised(residual: float, leverage: float, rss: float, df: int) -> float:
    if residual == 0 or isclose(leverage, 1):
        return 0.0
    rest = rss - residual**2 / (1 - leverage)
    if rest <= IDENTICAL_WITHIN * rss:
        return inf if residual > 0 else -inf
    return residual / sqrt(rest / (df - 1) * (1 - leverage))
