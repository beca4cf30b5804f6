"""What k of n shows: exact bounds, and how few items prove (statistics.md section 1.7). Rates lie in 0..1."""

from math import ceil, comb, log, log1p, sqrt

from scipy.special import bdtr, betaincinv, ndtri

from verdict.errors import VerdictError


def lower_bound(k: int, n: int, level: float = 0.95) -> float:
    """One-sided Clopper-Pearson lower bound of the rate behind k of n. Raises VerdictError. Section 1.7."""
    _require_count(k, n)
    return 0.0 if k == 0 else float(betaincinv(k, n - k + 1, 1 - level))


def upper_bound(k: int, n: int, level: float = 0.95) -> float:
    """One-sided Clopper-Pearson upper bound of the rate behind k of n. Raises VerdictError. Section 1.7."""
    _require_count(k, n)
    return 1.0 if k == n else float(betaincinv(k + 1, n - k, level))


def two_sided_bounds(k: int, n: int, level: float = 0.95) -> tuple[float, float]:
    """Two-sided Clopper-Pearson interval of the rate behind k of n. Raises VerdictError. Section 1.7."""
    one_sided = (1 + level) / 2
    return lower_bound(k, n, one_sided), upper_bound(k, n, one_sided)


def zero_failures_needed(rate: float, level: float = 0.95) -> int:
    """Items without one failure that show a failure rate under `rate`. Raises VerdictError. Section 1.7."""
    _require_rate(rate)
    return ceil(log(1 - level) / log1p(-rate))


def chance_of_seeing_one(rate: float, n: int) -> float:
    """The chance that n items show at least one failure of this true rate. Raises VerdictError. Section 1.7."""
    _require_rate(rate)
    _require_count(0, n)
    return 1 - (1 - rate) ** n


def mcnemar_exact_p(base_only: int, candidate_only: int) -> float:
    """Exact two-sided p of the items on which just one arm failed. Raises VerdictError. Section 1.7."""
    n = base_only + candidate_only
    if min(base_only, candidate_only) < 0:
        raise VerdictError(f"discordant items are counted from 0, found {base_only} and {candidate_only}")
    return min(1.0, 2 * float(bdtr(min(base_only, candidate_only), n, 0.5))) if n else 1.0


def fisher_exact_p(k_base: int, n_base: int, k_candidate: int, n_candidate: int) -> float:
    """Exact two-sided p that two counts of unpaired trials share one rate. Raises VerdictError. Section 1.7.

    Two-sided as R and scipy have it: all tables at most as likely as the one that was seen.
    """
    _require_count(k_base, n_base)
    _require_count(k_candidate, n_candidate)
    k, n = k_base + k_candidate, n_base + n_candidate
    ways = [comb(n_base, i) * comb(n_candidate, k - i) for i in range(max(0, k - n_candidate), min(k, n_base) + 1)]
    seen = comb(n_base, k_base) * comb(n_candidate, k_candidate)
    return sum(way for way in ways if way <= seen) / comb(n, k)


def difference_bounds(
    k_base: int, n_base: int, k_candidate: int, n_candidate: int, level: float = 0.95
) -> tuple[float, float]:
    """Newcombe's two-sided interval of candidate's rate minus base's, unpaired. Raises VerdictError. Section 1.7."""
    b, (b_low, b_high) = k_base / max(1, n_base), _wilson(k_base, n_base, level)
    c, (c_low, c_high) = k_candidate / max(1, n_candidate), _wilson(k_candidate, n_candidate, level)
    return c - b - sqrt((c - c_low) ** 2 + (b_high - b) ** 2), c - b + sqrt((c_high - c) ** 2 + (b - b_low) ** 2)


def _wilson(k: int, n: int, level: float) -> tuple[float, float]:
    """Wilson's score interval."""
    _require_count(k, n)
    z, rate = float(ndtri((1 + level) / 2)), k / n
    middle, half = rate + z * z / (2 * n), z * sqrt(rate * (1 - rate) / n + z * z / (4 * n * n))
    return (middle - half) / (1 + z * z / n), (middle + half) / (1 + z * z / n)


def n_eff(n: int, m: int, rho: float) -> float:
    """How many independent items n prompts with m repeats are worth, at within-prompt correlation rho (0..1).

    Round it down before it is used as a count. Raises VerdictError. Section 1.7.
    """
    if n < 1 or m < 1 or not 0 <= rho <= 1:
        raise VerdictError(f"wanted n >= 1, m >= 1 and rho in 0..1, found n {n}, m {m}, rho {rho}; count again")
    return n * m / (1 + (m - 1) * rho)


def _require_count(k: int, n: int) -> None:
    if not (n >= 1 and 0 <= k <= n):
        raise VerdictError(f"k of n wants n >= 1 and k in 0..n, found {k} of {n}; count the items again")


def _require_rate(rate: float) -> None:
    if not 0 < rate < 1:
        raise VerdictError(f"a rate lies between 0 and 1, found {rate}; write 0.05 for 5 %")
