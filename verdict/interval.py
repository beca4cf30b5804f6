"""Confidence intervals of a fitted bracket (statistics.md sections 1.4 and 1.8)."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

import numpy as np

from verdict.errors import VerdictError
from verdict.fit import Fit, Scale
from verdict.student import two_sided_t

NO_ERROR_BAR = "no residual df and no history: refuse to give an interval"


@dataclass(frozen=True)
class Interval:
    """An effect and its two-sided interval: per cent for LOG, points for LINEAR; level 0.95 is 95 %."""

    lo: float
    hi: float
    level: float
    estimate: float

    @property
    def half_width(self) -> float:
        """Half of hi - lo, in the interval's unit."""
        return (self.hi - self.lo) / 2

    @property
    def identical(self) -> bool:
        """Whether the effect is exactly zero and has no width: every boot gave the same reading (house.md)."""
        return self.lo == self.hi == 0

    def covers(self, effect: float) -> bool:
        """Whether an effect in the interval's unit lies inside, ends included."""
        return self.lo <= effect <= self.hi


@dataclass(frozen=True)
class CombinedInterval:
    """The interval with boot and prompt error, in points, and the parts it is made of (section 1.8)."""

    interval: Interval
    se: float
    se_boot: float
    se_prompt: float
    df: float

    @property
    def identical(self) -> bool:
        """Whether neither a boot nor a prompt moved: zero effect, zero width."""
        return self.interval.identical


def interval(fit: Fit, level: float, *, scale: Scale) -> Interval:
    """delta +- t * SE at a two-sided level (0.95), in per cent for LOG, in points for LINEAR (section 1.4).

    Raises VerdictError where the fit has no degree of freedom and nothing was borrowed.
    """
    se = _required_se(fit)
    return _around(fit.delta, two_sided_t(level, fit.df) * se, level, scale)


def combined_interval(fit: Fit, paired_differences: Sequence[float], level: float) -> CombinedInterval:
    """The LINEAR interval whose error holds both boots and prompts, in points (section 1.8).

    `paired_differences` are candidate less base of the same prompt, in points. Raises VerdictError for fewer
    than two prompts, a difference that is not finite, and a fit without a degree of freedom.
    """
    se_boot, se_prompt = _required_se(fit), prompt_se(paired_differences)
    se = sqrt(se_boot**2 + se_prompt**2)
    df = _satterthwaite(se_boot, fit.df, se_prompt, len(paired_differences) - 1)
    found = _around(fit.delta, two_sided_t(level, df) * se, level, Scale.LINEAR)
    return CombinedInterval(found, se, se_boot, se_prompt, df)


def prompt_se(paired_differences: Sequence[float]) -> float:
    """sd(d) / sqrt(P) of per-prompt differences, in their unit (section 1.8). Raises VerdictError under two prompts."""
    found = np.asarray(paired_differences, dtype=np.float64)
    if len(found) < 2 or not np.isfinite(found).all():
        raise VerdictError(
            f"the prompt error needs two or more finite paired differences, found {found.tolist()}; "
            "measure the same prompts in both arms"
        )
    return float(found.std(ddof=1)) / sqrt(len(found))


def _around(delta: float, reach: float, level: float, scale: Scale) -> Interval:
    return Interval(scale.effect(delta - reach), scale.effect(delta + reach), level, scale.effect(delta))


def _required_se(fit: Fit) -> float:
    if fit.se is None:
        raise VerdictError(f"{NO_ERROR_BAR} ({fit.n_boots} boots; boot ABBA BAAB, or give the host's history)")
    return fit.se


def _satterthwaite(se_boot: float, df_boot: float, se_prompt: float, df_prompt: float) -> float:
    # With one part zero this is the other part's df; with both zero any df gives the same point.
    total = se_boot**2 + se_prompt**2
    if total == 0:
        return df_boot
    boot_share, prompt_share = se_boot**2 / total, se_prompt**2 / total
    return 1 / (boot_share**2 / df_boot + prompt_share**2 / df_prompt)
