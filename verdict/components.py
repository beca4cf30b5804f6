"""Where a boot's noise comes from: between boots, within a boot, and how requests hang together (statistics.md 1.10).

T1^2 = MSW, T2^2 = max(0, (MSB - MSW) / n) by one-way analysis of variance on boots centred by arm and session (as the
reference vector D4 has it: one degree of freedom is taken off MSB, whatever was centred); rho by the autocorrelation
of neighbours, or for 64 requests and more by non-overlapping batch means.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import sqrt
from statistics import fmean

from verdict.errors import VerdictError

BATCHED_FROM = 64
MOST_RHO = 0.99


@dataclass(frozen=True)
class Components:
    """Of ln of the requests' rates. `between_sd` is the boots' own sd, `within_sd` a request's; no unit."""

    msb: float
    msw: float
    requests: int  # a boot
    rho: float

    @property
    def within_sd(self) -> float:
        """sigma_w: T1."""
        return sqrt(self.msw)

    @property
    def between_sd(self) -> float:
        """sigma_boot: T2."""
        return sqrt(max(0.0, (self.msb - self.msw) / self.requests))

    @property
    def icc(self) -> float:
        """The boots' share of all variance, 0..1."""
        between = self.between_sd**2
        return between / (between + self.msw) if between + self.msw else 0.0

    @property
    def tau(self) -> float:
        """(1 + rho) / (1 - rho): so many requests say as much as one that hangs on none."""
        return (1 + self.rho) / (1 - self.rho)


def components(ln_rates: Sequence[Sequence[float]], groups: Sequence[object]) -> Components:
    """Of boots in run order, each with its requests' ln rates in the order they were sent; a group an arm and session.

    Raises VerdictError where boots have unequally many requests, under two, or no group has two boots.
    """
    counts = {len(boot) for boot in ln_rates}
    n_groups = len(set(groups))
    if len(counts) != 1 or min(counts) < 2 or len(ln_rates) <= n_groups:
        raise VerdictError(
            f"variance components need equally many requests a boot (two or more) and two boots of a group, found "
            f"{[len(boot) for boot in ln_rates]} requests in {n_groups} groups"
        )
    (n,) = counts
    means = [fmean(boot) for boot in ln_rates]
    centre = {group: fmean(m for m, g in zip(means, groups, strict=True) if g == group) for group in set(groups)}
    between = sum((mean - centre[group]) ** 2 for mean, group in zip(means, groups, strict=True))
    within = sum((x - mean) ** 2 for boot, mean in zip(ln_rates, means, strict=True) for x in boot)
    return Components(
        msb=n * between / (len(means) - 1),
        msw=within / (len(means) * (n - 1)),
        requests=n,
        rho=fmean(_rho(boot) for boot in ln_rates),
    )


def lag1(series: Sequence[float]) -> float:
    """Autocorrelation of neighbours, -1..1; 0 for a series that never varies."""
    mean = fmean(series)
    total = sum((x - mean) ** 2 for x in series)
    return sum((a - mean) * (b - mean) for a, b in pairwise(series)) / total if total else 0.0


def batched_rho(series: Sequence[float]) -> float:
    """rho by batch means: tau = batch length * variance of batch means / variance of requests, rho from tau."""
    length = int(sqrt(len(series)))
    batches = [fmean(series[i : i + length]) for i in range(0, len(series) - length + 1, length)]
    variance, of_batches = _variance(series), _variance(batches)
    tau = length * of_batches / variance if variance else 1.0
    return (tau - 1) / (tau + 1)


def best_requests(found: Components, boot_s: float, request_s: float) -> float | None:
    """Requests a boot that make the most of an hour (Kalibera & Jones): past it buy a boot, not a request.

    `boot_s` is what a boot costs besides its requests. None where the boots do not differ at all: one is enough.
    """
    if found.between_sd == 0 or request_s <= 0:
        return None
    return sqrt(boot_s / request_s * found.msw * found.tau) / found.between_sd


def _rho(series: Sequence[float]) -> float:
    rho = batched_rho(series) if len(series) >= BATCHED_FROM else lag1(series)
    return max(-MOST_RHO, min(MOST_RHO, rho))


def _variance(values: Sequence[float]) -> float:
    mean = fmean(values)
    return sum((x - mean) ** 2 for x in values) / (len(values) - 1)
