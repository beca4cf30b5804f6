"""Quantiles of Student's t, central and not (statistics.md sections 1.4 and 1.10)."""

from scipy.special import nctdtrinc, stdtrit

from verdict.errors import VerdictError


def two_sided_t(level: float, df: float) -> float:
    """The t that a two-sided interval of this level (0.95 for 95 %) reaches to, for df > 0. Raises VerdictError."""
    if not 0 < level < 1:
        raise VerdictError(f"a level lies between 0 and 1, found {level}; write 0.95 for 95 %")
    if not df > 0:
        raise VerdictError(f"a t interval needs at least one degree of freedom, found {df:g}; boot a longer schedule")
    return float(stdtrit(df, (1 + level) / 2))


def detectable_t(level: float, df: float, power: float) -> float:
    """The true effect, in standard errors, that is found with this power (0.8 for 80 %); good to 1e-7.

    Solves nct.sf(t, df, nc) = power for nc (section 1.10). Raises VerdictError.
    """
    if not 0 < power < 1:
        raise VerdictError(f"a power lies between 0 and 1, found {power}; write 0.8 for 80 %")
    return float(nctdtrinc(df, 1 - power, two_sided_t(level, df)))
