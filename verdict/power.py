"""What a bracket can see: half width, smallest detectable effect, boots to resolve (statistics.md section 1.10)."""

from collections.abc import Sequence
from functools import cache
from math import ceil, log1p, sqrt

import numpy as np
from scipy.special import gammaln, nctdtr, ndtr

from verdict.design import FloatArray, covariance_factor, design_matrix, paired_matrix
from verdict.errors import VerdictError
from verdict.fit import Fit, Scale
from verdict.interval import NO_ERROR_BAR
from verdict.schedule import BLOCK_BOOTS
from verdict.student import detectable_t, two_sided_t

MOST_BOOTS = 1000
COSTLY = 2.0  # times the standard schedule's variance
_NODES = 200


def design_v(letters: str, sessions: Sequence[int] | None = None, pairs: Sequence[int] | None = None) -> float:
    """Variance of the effect in units of the boot variance (section 1.2). Raises VerdictError (see design_matrix)."""
    return float(covariance_factor(_matrix(letters, sessions, pairs))[0, 0])


def design_df(letters: str, sessions: Sequence[int] | None = None, pairs: Sequence[int] | None = None) -> int:
    """Residual degrees of freedom of a schedule (section 1.3). Raises VerdictError (see design_matrix)."""
    matrix = _matrix(letters, sessions, pairs)
    return len(matrix) - int(matrix.shape[1])


def costly(letters: str, pairs: Sequence[int] | None = None) -> str:
    """What a schedule costs against the standard one of as many boots, in words; empty up to twice its variance.

    The standard schedule's is 4/N in boot variances (section 1.2). Raises VerdictError (see design_matrix).
    """
    times = design_v(letters, pairs=pairs) * len(letters) / BLOCK_BOOTS
    if times <= COSTLY:
        return ""
    return f"{letters} gives {times:.1f} times the variance of a standard schedule of as many boots, ABBA BAAB ..."


def _matrix(letters: str, sessions: Sequence[int] | None, pairs: Sequence[int] | None) -> FloatArray:
    return design_matrix(letters, sessions) if pairs is None else paired_matrix(letters, pairs)


def half_width(sd: float, letters: str, level: float = 0.95, *, df: float | None = None) -> float:
    """Expected half width of the two-sided interval, in the unit of sd, the sd of one boot (section 1.10).

    `df` is given where the variance is borrowed. Raises VerdictError with no degree of freedom.
    """
    return two_sided_t(level, _df(letters, df)) * sd * sqrt(design_v(letters))


def mde(
    sd: float,
    letters: str,
    level: float = 0.95,
    power: float = 0.8,
    *,
    df: float | None = None,
    pairs: Sequence[int] | None = None,
) -> float:
    """Smallest true effect found with this power, in the unit of sd, the sd of one boot (section 1.10).

    `df` is given where the variance is borrowed; of a duet (`pairs`) the sd is what a boot has of its own, beside what
    it shares with the other boot of its pair. Raises VerdictError with no degree of freedom.
    """
    return detectable_t(level, _df(letters, df, pairs), power) * sd * sqrt(design_v(letters, pairs=pairs))


def mde_pct(
    sd_ln: float,
    schedule_letters: str,
    level: float = 0.95,
    power: float = 0.8,
    *,
    df: float | None = None,
    pairs: Sequence[int] | None = None,
) -> float:
    """`mde` of a ratio metric in log per cent (100 x ln), from the sd of one boot in ln (section 1.10)."""
    return Scale.LOG.resolution(mde(sd_ln, schedule_letters, level, power, df=df, pairs=pairs))


def mde_from_fit(fit: Fit, level: float, power: float, scale: Scale) -> float:
    """What a measured bracket could have seen: log per cent for LOG, points for LINEAR (section 1.10).

    Raises VerdictError where the fit has no error bar.
    """
    if fit.se is None:
        raise VerdictError(f"{NO_ERROR_BAR} ({fit.n_boots} boots; boot ABBA BAAB, or give the host's history)")
    return mde_from_se(fit.se, fit.df, level, power, scale)


def mde_from_se(se: float, df: float, level: float, power: float, scale: Scale) -> float:
    """The same from a standard error on the fitted scale and its degrees of freedom. Raises VerdictError."""
    return scale.resolution(detectable_t(level, df, power) * se)


def boots_to_resolve(n_boots: int, half_width: float, wanted_half_width: float) -> int:
    """Boots for a wanted half width: N * (half / wanted)^2, up to a multiple of 4 (section 4). Both in one unit.

    Raises VerdictError where the wanted width is not positive.
    """
    if not wanted_half_width > 0:
        raise VerdictError(f"a wanted half width is positive, found {wanted_half_width}; the estimate is at the bound")
    boots = n_boots * (half_width / wanted_half_width) ** 2
    # A hair over a multiple of four is rounding, not another block.
    return BLOCK_BOOTS * ceil(boots / BLOCK_BOOTS - 1e-9)


def standard_letters(n_boots: int) -> str:
    """ABBA BAAB ABBA ... of this many boots, a multiple of four (section 1.9). Raises VerdictError."""
    if n_boots < BLOCK_BOOTS or n_boots % BLOCK_BOOTS:
        raise VerdictError(f"the standard schedule has 4, 8, 12, ... boots, found {n_boots}")
    return ("ABBABAAB" * n_boots)[:n_boots]


def boots_for_mde(sd: float, wanted: float, level: float = 0.95, power: float = 0.8) -> int | None:
    """Boots of the standard schedule (8 or more) that see `wanted`, both in one unit; None over 1000 (house.md).

    Raises VerdictError where sd or wanted is not positive.
    """
    if not (sd > 0 and wanted > 0):
        raise VerdictError(f"sd and wanted effect are positive, found {sd} and {wanted}; give both in one unit")
    ladder = range(2 * BLOCK_BOOTS, MOST_BOOTS + 1, BLOCK_BOOTS)
    return next((n for n in ladder if standard_mde(sd, n, level, power) <= wanted), None)


def standard_mde(sd: float, n_boots: int, level: float = 0.95, power: float = 0.8, *, paired: bool = False) -> float:
    """`mde` of the standard schedule, whose v is 4/N, in the unit of sd (section 1.10). Raises VerdictError.

    Of a duet's pairs of boots with `paired`.
    """
    df = n_boots // 2 - 2 if paired else n_boots - 3
    return detectable_t(level, df, power) * sd * sqrt(BLOCK_BOOTS / n_boots)


def superiority_power(
    sd_ln: float, letters: str, gate_pct: float, true_pct: float, level: float = 0.95, *, df: float | None = None
) -> float:
    """Chance (0..1) that a true effect passes a gate, both in per cent (section 1.10). Raises VerdictError."""
    freedom = _df(letters, df)
    apart = (log1p(true_pct / 100) - log1p(gate_pct / 100)) / (sd_ln * sqrt(design_v(letters)))
    return 1 - float(nctdtr(freedom, apart, two_sided_t(level, freedom)))


def tost_power_at_zero(sd: float, letters: str, margin: float, level: float = 0.9, *, df: float | None = None) -> float:
    """Chance (0..1) that an arm which does not move passes an equivalence claim; sd and margin in one unit.

    Source: statistics.md section 1.10. Raises VerdictError.
    """
    return tost_power(sd, letters, margin, 0.0, level, df=df)


def tost_power(
    sd: float, letters: str, margin: float, true: float, level: float = 0.9, *, df: float | None = None
) -> float:
    """Chance (0..1) that a true move passes an equivalence claim; sd, margin and move in one unit (section 1.10).

    Integrates over the sd that the boots will show. Raises VerdictError.
    """
    freedom = _df(letters, df)
    se = sd * sqrt(design_v(letters))
    t = two_sided_t(level, freedom)
    most = min(margin / (t * se), 1 + 12 / sqrt(freedom))
    nodes, weights = _gauss()
    shown = (nodes + 1) * most / 2
    room = margin / se - t * shown
    passing = ndtr(room - true / se) - ndtr(-room - true / se)
    return float((weights * passing * _chi_density(shown, freedom)).sum() * most / 2)


@cache
def _gauss() -> tuple[FloatArray, FloatArray]:
    """Nodes and weights of the integral; the same ones for every call."""
    return np.polynomial.legendre.leggauss(_NODES)


def _chi_density(shown: FloatArray, df: float) -> FloatArray:
    """Density of shown sd over true sd."""
    constant = df / 2 * np.log(df / 2) - gammaln(df / 2) + np.log(2)
    return np.asarray(np.exp(constant + (df - 1) * np.log(shown) - df * shown**2 / 2))


def _df(letters: str, df: float | None, pairs: Sequence[int] | None = None) -> float:
    found = design_df(letters, pairs=pairs) if df is None else df
    if not found > 0:
        raise VerdictError(f"{NO_ERROR_BAR} ({letters}; boot ABBA BAAB, or give the host's history)")
    return found
