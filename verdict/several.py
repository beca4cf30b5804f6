"""Several candidates of one base: one least-squares fit with a dummy each, Holm over all (statistics.md 1.11).

The error bar, the drift and the base boots are shared, so that a candidate is compared on more degrees of freedom than
a bracket of its own would have. A verdict is that of the interval, and stands only where the adjusted p agrees.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import sqrt

import numpy as np
from scipy.special import stdtr

from verdict.claims import Claim, distance_to_bound, judge_fit
from verdict.design import INSEPARABLE, FloatArray, covariance_factor, session_columns
from verdict.errors import VerdictError
from verdict.fit import IDENTICAL_WITHIN, Fit, Scale
from verdict.history import History
from verdict.interval import Interval
from verdict.many import Adjusted, Correction, PValues, among_many, holm
from verdict.power import MOST_BOOTS, boots_to_resolve, mde_from_se
from verdict.student import two_sided_t

BASE = "A"
POWER = 0.8


@dataclass(frozen=True)
class Contrast:
    """One candidate against the base that all share; p two-sided against no effect, adjusted by Holm over all."""

    letter: str
    interval: Interval  # per cent for LOG, points for LINEAR; not adjusted
    p: float
    p_holm: float


def contrasts(
    values: Sequence[float],
    letters: str,
    *,
    scale: Scale,
    level: float = 0.95,
    sessions: Sequence[int] | None = None,
) -> tuple[Contrast, ...]:
    """Every candidate (B, C, ...) against base (A): one least-squares fit with a dummy each and each session's drift.

    Raises VerdictError where an effect cannot be told from the drift, or no degree of freedom is left.
    """
    found = fitted(values, letters, scale, sessions)
    told = [found.combined({name: 1.0}, scale, level) for name in found.names]
    p_holm = holm([p for _, p in told])
    return tuple(
        Contrast(name, bar, p, adjusted) for name, (bar, p), adjusted in zip(found.names, told, p_holm, strict=True)
    )


def interaction(
    values: Sequence[float],
    letters: str,
    *,
    both: str,
    parts: tuple[str, str],
    scale: Scale,
    level: float = 0.95,
    sessions: Sequence[int] | None = None,
) -> Contrast:
    """What two changes together add to the sum of each alone: both - part - part, on the fitted scale; 0 is additive.

    For LOG a ratio of ratios, in per cent. It is one planned question, so its p is not adjusted. Raises VerdictError as
    `contrasts` does, and for a letter that the bracket does not have.
    """
    found = fitted(values, letters, scale, sessions)
    if missing := {both, *parts} - set(found.names):
        raise VerdictError(f"no candidate {', '.join(sorted(missing))} in {letters}; it has {', '.join(found.names)}")
    bar, p = found.combined({both: 1.0, parts[0]: -1.0, parts[1]: -1.0}, scale, level)
    return Contrast(f"{both}-{parts[0]}-{parts[1]}", bar, p, p)


@dataclass(frozen=True)
class Fitted:
    """A bracket of several candidates, fitted: the effect of each against base, and their covariance [K, K].

    `matrix` has a column a candidate, then an intercept and a slope a session; `s2` is the variance of one boot.
    """

    names: tuple[str, ...]
    matrix: FloatArray
    factor: FloatArray
    coefficients: FloatArray
    residuals: FloatArray
    df: int

    @property
    def s2(self) -> float:
        """The boots' own variance, on the fitted scale."""
        return float(self.residuals @ self.residuals) / self.df

    def combined(self, weights: Mapping[str, float], scale: Scale, level: float) -> tuple[Interval, float]:
        """A weighted sum of effects with its interval, and its two-sided p against 0."""
        k = len(self.names)
        w = np.array([weights.get(name, 0.0) for name in self.names])
        delta = float(w @ self.coefficients[:k])
        se = sqrt(max(0.0, self.s2 * float(w @ self.factor[:k, :k] @ w)))
        reach = two_sided_t(level, self.df) * se
        bar = Interval(scale.effect(delta - reach), scale.effect(delta + reach), level, scale.effect(delta))
        return bar, _two_sided(delta, se, self.df)


def fitted(values: Sequence[float], letters: str, scale: Scale, sessions: Sequence[int] | None = None) -> Fitted:
    """The least-squares fit behind `contrasts`. Raises VerdictError as that does."""
    names = tuple(sorted(set(letters) - {BASE}))
    if BASE not in letters or not names or len(values) != len(letters):
        raise VerdictError(f"wanted a reading a boot, base A and candidates B, C, ...; found {len(values)}, {letters}")
    matrix = matrix_of(letters, sessions)
    y = _readings(values, scale)
    factor = covariance_factor(matrix)
    coefficients = factor @ matrix.T @ y
    rest, df = y - matrix @ coefficients, len(y) - matrix.shape[1]
    if df < 1:
        raise VerdictError(f"{letters} leaves no residual degree of freedom for {len(names)} candidates; boot more")
    tolerance = IDENTICAL_WITHIN * max(1.0, float(np.abs(y).max()))
    return Fitted(names, matrix, factor, coefficients, rest if np.abs(rest).max() > tolerance else 0.0 * rest, df)


def _readings(values: Sequence[float], scale: Scale) -> FloatArray:
    found = np.asarray(values, dtype=np.float64)
    if not np.isfinite(found).all() or (scale is Scale.LOG and (found <= 0).any()):
        raise VerdictError(f"a failed boot is CRASH, never a number: found {list(values)}; judge the crash")
    return np.log(found) if scale is Scale.LOG else found


def matrix_of(letters: str, sessions: Sequence[int] | None = None) -> FloatArray:
    """A column a candidate, an intercept a session, a slope a session. Raises VerdictError where they coincide."""
    names = sorted(set(letters) - {BASE})
    dummies = [np.array([float(letter == name) for letter in letters]) for name in names]
    matrix = np.column_stack([*dummies, *session_columns(letters, sessions)])
    if np.linalg.matrix_rank(matrix) < matrix.shape[1]:
        raise VerdictError(f"{INSEPARABLE} (found {letters})")
    return matrix


def _two_sided(delta: float, se: float, df: int) -> float:
    if se == 0:
        return 0.0 if delta else 1.0
    return min(1.0, 2 * float(stdtr(df, -abs(delta) / se)))


# each judged by a claim


def judge_each(
    claim: Claim,
    values: Sequence[float],
    letters: str,
    *,
    sessions: Sequence[int] | None = None,
    history: History | None = None,
) -> dict[str, Adjusted]:
    """The claim judged for every candidate (B, C, ...) against base (A), readings in run order, by letter.

    The host's history is for its remark only: the error bar is the bracket's own.
    Of readings that never vary nothing is adjusted. Raises VerdictError as `contrasts` does.
    """
    found = fitted(values, letters, claim.scale, sessions)
    fits = [_fit(found, at, letters) for at in range(len(found.names))]
    alone = [judge_fit(claim, fit, values, letters, history=history) for fit in fits]
    if found.s2 == 0:
        return {
            name: Adjusted(one, Correction.none, PValues(1.0, 1.0), one.verdict)
            for name, one in zip(found.names, alone, strict=True)
        }
    adjusted = among_many(alone, Correction.holm)
    return {name: _told(one, len(alone)) for name, one in zip(found.names, adjusted, strict=True)}


def _told(found: Adjusted, of: int) -> Adjusted:
    """With the adjusted verdict in the judgement too, the p that speaks for it, and the boots that would resolve it."""
    p, one = min(found.p.passing, found.p.failing), found.judgement
    told = replace(
        one,
        verdict=found.verdict,
        notes=(*one.notes, f"Holm over {of}: p {p:.2g}"),
        boots_to_resolve=_boots(found, of),
        mde_then=None,  # what a bracket of two arms would see after so many boots is not what this one would
    )
    return replace(found, judgement=told)


def _boots(found: Adjusted, of: int) -> int | None:
    """Boots of whole squares that would decide it at Holm's first step; None where it is decided or none would do."""
    one, arms = found.judgement, of + 1
    if one.boots_to_resolve is None and one.verdict is found.verdict:
        return None
    distance = distance_to_bound(one.claim, one.claim.sign * one.fit.delta)
    half = two_sided_t(strictest(one.level, of), one.fit.df) * (one.fit.se or 0.0)
    if not distance * sqrt(MOST_BOOTS / one.fit.n_boots) > half:
        return None
    whole = arms * arms * (1 + arms % 2)
    wanted = max(one.fit.n_boots + 1, boots_to_resolve(one.fit.n_boots, half, distance))
    return whole * -(-wanted // whole)


def _fit(found: Fitted, at: int, letters: str) -> Fit:
    """One candidate's effect as a fit of its own; residuals, drift and df are those of the whole bracket."""
    k, sessions = len(found.names), (found.matrix.shape[1] - len(found.names)) // 2
    v, y = float(found.factor[at, at]), found.matrix @ found.coefficients
    slopes = found.coefficients[k + sessions :]
    return Fit(
        delta=float(found.coefficients[at]),
        se=sqrt(found.s2 * v),
        v=v,
        df=found.df,
        s2=found.s2,
        slope_per_boot=float(slopes[0]),
        boot_sd=sqrt(found.s2),
        n_boots=len(letters),
        residuals=tuple(found.residuals.tolist()),
        fitted=tuple(y.tolist()),
        intercepts=tuple(found.coefficients[k : k + sessions].tolist()),
        slopes=tuple(slopes.tolist()),
        leverages=tuple(np.einsum("ij,jk,ik->i", found.matrix, found.factor, found.matrix).tolist()),
        own_df=found.df,
    )


def strictest(level: float, candidates: int) -> float:
    """The level of Holm's first step: what the smallest of so many p-values is held to."""
    return 1 - (1 - level) / candidates


def detectable_pct(sd_ln: float, letters: str, weights: Mapping[str, float], level: float) -> float:
    """Smallest weighted sum of effects seen with 80 % power, in log per cent, from the sd of one boot in ln (1.10).

    Raises VerdictError where the schedule cannot tell the effects from the drift, or leaves no degree of freedom.
    """
    matrix, names = matrix_of(letters), sorted(set(letters) - {BASE})
    w = np.array([weights.get(name, 0.0) for name in names] + [0.0] * (matrix.shape[1] - len(names)))
    v = float(w @ covariance_factor(matrix) @ w)
    return mde_from_se(sd_ln * sqrt(v), len(letters) - matrix.shape[1], level, POWER, Scale.LOG)
