"""What k of n shows: exact bounds, and how few items prove (statistics.md section 1.7). Rates lie in 0..1."""

from math import ceil, log, log1p

from scipy.special import bdtr, betaincinv

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
