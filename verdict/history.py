"""What a host is known for: its boot sd, and what that says about a screen or a block (statistics.md 1.4, 1.6)."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import log, log1p, sqrt

from scipy.special import fdtri

from verdict.errors import VerdictError
from verdict.fit import ErrorBar, Fit
from verdict.student import two_sided_t

LEAST_NU0 = 8
LEAST_S0, MOST_NU0 = 1e-12, 10**12  # beyond these nobody measured anything, and variances leave a float's range
VOID_LEVEL = 0.99
NOISY_LEVEL = 0.99
FLAT_CAP_LN = log1p(0.05)


@dataclass(frozen=True)
class History:
    """The registry's row for one host and metric: sd of one boot (ln, or points) on nu0 degrees of freedom."""

    s0: float
    nu0: int

    def __post_init__(self) -> None:
        if not (LEAST_S0 <= self.s0 <= 1 / LEAST_S0) or not 1 <= self.nu0 <= MOST_NU0:
            raise VerdictError(
                f"a history needs s0 > 0 and nu0 >= 1, found s0 {self.s0} and nu0 {self.nu0}; "
                "measure the host with A/A brackets first"
            )

    @property
    def is_usable(self) -> bool:
        """Whether an error bar may be borrowed from it: nu0 of 8 or more (statistics.md section 1.12)."""
        return self.nu0 >= LEAST_NU0


def moderated(fit: Fit, history: History) -> Fit:
    """The fit with the history's variance mixed in, for screens only; units as the fit's (section 1.4).

    Where the bracket is noisier than its host's history allows, the fit keeps its own variance and says
    HOST_NOISY. Raises VerdictError where such a fit has no variance of its own (it cannot).
    """
    if host_is_noisy(fit, history):
        return replace(fit, error_bar=ErrorBar.HOST_NOISY)
    df = history.nu0 + fit.own_df
    s2 = (history.nu0 * history.s0**2 + (fit.s2 or 0.0) * fit.own_df) / df
    return replace(fit, s2=s2, df=df, se=sqrt(s2 * fit.v), boot_sd=sqrt(s2), error_bar=ErrorBar.BORROWED)


def variance_ratio(fit: Fit, history: History) -> float | None:
    """s^2 / s0^2 of a fit on its own variance, no unit; None with no degree of freedom (section 1.4)."""
    return None if fit.s2 is None else fit.s2 / history.s0**2


def noisy_limit(own_df: int, history: History) -> float:
    """F(.99; own df, nu0): the variance ratio over which a host is noisier than its history (section 1.4)."""
    return float(fdtri(own_df, history.nu0, NOISY_LEVEL))


def host_is_noisy(fit: Fit, history: History) -> bool:
    """Whether the HOST-NOISY guard fires for a fit on its own variance (sections 1.4 and 1.6)."""
    ratio = variance_ratio(fit, history)
    return ratio is not None and ratio > noisy_limit(fit.own_df, history)


def void_threshold_ln(history: History) -> float:
    """t(.995, nu0) * sqrt(2) * s0, in ln: 1 % of good pairs of boots differ by more (section 1.6, V1)."""
    return two_sided_t(VOID_LEVEL, history.nu0) * sqrt(2) * history.s0


def void_cap(history: History | None) -> float | None:
    """The ln difference of an outer same-arm pair that voids a block: max(5 %, threshold); none without a registry.

    Source: house.md, void cap.
    """
    return None if history is None else max(FLAT_CAP_LN, void_threshold_ln(history))


def base_disagreement_ln(values: Sequence[float], letters: str) -> float | None:
    """|ln first - ln last| of one block whose ends are of the same arm; None where they are not (section 1.6).

    Raises VerdictError for lists of different length and for readings that are not positive.
    """
    if len(values) != len(letters) or len(letters) < 2:
        raise VerdictError(f"block {letters!r} wants a reading a boot and two boots or more, found {len(values)}")
    if letters[0] != letters[-1]:
        return None
    if not (0 < values[0] < float("inf") and 0 < values[-1] < float("inf")):
        raise VerdictError(
            f"a failed boot is CRASH, never a number: found {values[0]} and {values[-1]} at the ends of {letters}, "
            "wanted finite, positive readings; judge the crash"
        )
    return abs(log(values[0]) - log(values[-1]))


def worst_drift_bias_ln(values: Sequence[float], letters: str) -> float | None:
    """Half the disagreement of the ends, in ln: the most that any monotone drift can bias one ABA (section 1.6)."""
    apart = base_disagreement_ln(values, letters)
    return None if apart is None else apart / 2
