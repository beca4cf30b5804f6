"""Methods that the product does not judge by: the contrast of its tables, and the cross-checks of its vectors.

numpy and scipy.special only; readings are in the metric's unit unless they are called ln.
"""

from collections.abc import Sequence
from functools import cache
from itertools import combinations, product
from math import log, sqrt

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import betaincinv, chdtri, ndtr, ndtri, stdtr, stdtrit

Floats = NDArray[np.float64]
NODES = 200
WIDEST_Z = 8.0


def welch(base: Floats, candidate: Floats) -> tuple[Floats, Floats, Floats, Floats]:
    """Difference of means, t, p and df of Welch's test along the last axis."""
    n, m = base.shape[-1], candidate.shape[-1]
    v, w = base.var(axis=-1, ddof=1) / n, candidate.var(axis=-1, ddof=1) / m
    delta = candidate.mean(axis=-1) - base.mean(axis=-1)
    df = (v + w) ** 2 / (v**2 / (n - 1) + w**2 / (m - 1))
    t = delta / np.sqrt(v + w)
    return delta, t, 2 * stdtr(df, -np.abs(t)), df


def welch_covers(base: Floats, candidate: Floats, true: float, level: float = 0.95) -> Floats:
    """Whether Welch's interval holds the true difference, along the last axis."""
    delta, t, _, df = welch(base, candidate)
    return np.asarray(np.abs(delta - true) <= stdtrit(df, (1 + level) / 2) * np.abs(delta / t))


def fieller(base: Sequence[float], candidate: Sequence[float], level: float = 0.95) -> dict[str, float]:
    """The interval of the ratio of two means, each with its own variance (no drift term)."""
    a, b = np.asarray(base), np.asarray(candidate)
    df = len(a) + len(b) - 2
    v, w = a.var(ddof=1) / len(a), b.var(ddof=1) / len(b)
    t, ratio = stdtrit(df, (1 + level) / 2), b.mean() / a.mean()
    g = t**2 * v / a.mean() ** 2
    half = t / a.mean() * sqrt((1 - g) * w + ratio**2 * v)
    return {"ratio": ratio, "lo": (ratio - half) / (1 - g), "hi": (ratio + half) / (1 - g), "df": df}


def bootstrap(base: Sequence[float], candidate: Sequence[float], level: float = 0.95) -> tuple[float, float]:
    """The percentile interval of the ratio of means over every resample of both arms."""
    draws = [np.array(list(product(arm, repeat=len(arm)))).mean(axis=1) for arm in (base, candidate)]
    ratios = np.divide.outer(draws[1], draws[0]).ravel()
    tail = (1 - level) / 2
    lo, hi = np.quantile(ratios, [tail, 1 - tail], method="inverted_cdf")
    return float(lo), float(hi)


def permutation_p(base: Sequence[float], candidate: Sequence[float]) -> float:
    """Two-sided p of the difference of means over every way to deal the readings to the arms."""
    pooled = np.array([*base, *candidate])
    chosen = [list(found) for found in combinations(range(len(pooled)), len(base))]
    apart = [abs(np.delete(pooled, found).mean() - pooled[found].mean()) for found in chosen]
    seen = abs(np.mean(candidate) - np.mean(base))
    return float(np.mean(np.array(apart) >= seen - 1e-12))


def sign_flip_p(differences: Sequence[float]) -> float:
    """Two-sided p of the mean over every way to turn the signs of block differences."""
    found = np.asarray(differences)
    flips = np.array(list(product((1, -1), repeat=len(found))))
    means = np.abs((flips * found).mean(axis=1))
    return float(np.mean(means >= abs(found.mean()) - 1e-15))


def jeffreys(k: int, n: int, level: float = 0.9) -> tuple[float, float]:
    """Jeffreys' two-sided interval of a rate."""
    tail = (1 - level) / 2
    return float(betaincinv(k + 0.5, n - k + 0.5, tail)), float(betaincinv(k + 0.5, n - k + 0.5, 1 - tail))


def pocock_z(fractions: Sequence[float], alpha: float, *, two_sided: bool) -> float:
    """The constant z of group-sequential looks at these information fractions (Armitage, McPherson and Rowe)."""
    return float(brentq(lambda z: _crossing(z, fractions, two_sided) - alpha, 1.0, 4.0, xtol=1e-12))


@cache
def _gauss() -> tuple[Floats, Floats]:
    return np.polynomial.legendre.leggauss(NODES)


def _crossing(z: float, fractions: Sequence[float], two_sided: bool) -> float:
    """The chance that Brownian motion leaves the boundary at one look or another."""
    nodes, weights = _gauss()
    low = -z if two_sided else -WIDEST_Z
    grid, mass, before = np.zeros(1), np.ones(1), 0.0
    for fraction in fractions:
        step, top, bottom = sqrt(fraction - before), z * sqrt(fraction), low * sqrt(fraction)
        points = (top - bottom) / 2 * nodes + (top + bottom) / 2
        density = np.exp(-(((points[:, None] - grid) / step) ** 2) / 2) / (step * sqrt(2 * np.pi))
        mass = (top - bottom) / 2 * weights * (density @ mass)
        grid, before = points, fraction
    lost = 0.0 if two_sided else 1 - ndtr(WIDEST_Z)
    return float(1 - mass.sum() - lost)


def mixture_radius(se: float, tau: float, alpha: float) -> float:
    """The radius of a normal-mixture confidence sequence (statistics.md section 1.9)."""
    total = se**2 + tau**2
    return se * sqrt(total / tau**2 * (2 * log(1 / alpha) + log(total / se**2)))


def fixed_radius(se: float, alpha: float) -> float:
    """The radius of a normal interval of one look."""
    return float(ndtri(1 - alpha / 2)) * se


def benjamini_yekutieli(p: Sequence[float]) -> list[float]:
    """Adjusted p of Benjamini-Hochberg where the tests may depend on each other in any way."""
    found, m = np.asarray(p, dtype=np.float64), len(p)
    order, ranks = np.argsort(found), np.arange(1, m + 1)
    scaled = float(np.sum(1 / ranks)) * m * found[order] / ranks
    adjusted = np.empty(m)
    adjusted[order] = np.minimum(1.0, np.minimum.accumulate(scaled[::-1])[::-1])
    return [float(x) for x in adjusted]


def sd_factor(df: int, level: float = 0.95) -> tuple[float, float]:
    """What a true sd may be, over the one that was seen on so many degrees of freedom."""
    tail = (1 - level) / 2
    return sqrt(df / chdtri(df, tail)), sqrt(df / chdtri(df, 1 - tail))


def tail(t: float, df: float) -> float:
    """The chance of more than t."""
    return float(stdtr(df, -t))


def quantile(level: float, df: float) -> float:
    """The t below which a share `level` lies."""
    return float(stdtrit(df, level))
