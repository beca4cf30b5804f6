"""What a judged bracket could see, and how many boots would decide it (statistics.md sections 1.10 and 4)."""

from dataclasses import dataclass
from math import sqrt

from verdict.fit import Fit, Scale
from verdict.interval import CombinedInterval
from verdict.power import MOST_BOOTS, boots_to_resolve, mde_from_se, standard_mde
from verdict.schedule import BLOCK_BOOTS
from verdict.student import two_sided_t

POWER = 0.8
LEAST_FINAL_BOOTS = 2 * BLOCK_BOOTS


@dataclass(frozen=True)
class Resolution:
    """Smallest effects seen with 80 % power, in log per cent (LOG) or points (LINEAR), now and after `boots` boots.

    None where nothing honest can be said: no error bar, no variance, or no bracket of 1000 boots would do.
    """

    mde: float | None
    boots: int | None
    mde_then: float | None


def resolution(fit: Fit, bar: CombinedInterval | None, scale: Scale, distance: float | None) -> Resolution:
    """The resolution of a fit with its error bar on the fitted scale; section 4's N * (half / wanted)^2.

    `distance` is from the estimate to the nearest bound, on the fitted scale; None where nothing is left to resolve.
    """
    if bar is None:
        return Resolution(None, None if distance is None else LEAST_FINAL_BOOTS, None)
    if bar.se == 0:
        return Resolution(None, None, None)
    seen = mde_from_se(bar.se, bar.df, bar.interval.level, POWER, scale)
    boots = None if distance is None else _boots(fit, bar, distance)
    return Resolution(seen, boots, _mde_then(fit, bar, scale, boots))


def _boots(fit: Fit, bar: CombinedInterval, distance: float) -> int | None:
    # Boots cannot shrink the prompts' part of the error: they must fit into what that part leaves.
    t = two_sided_t(bar.interval.level, bar.df)
    room_squared = distance**2 - (t * bar.se_prompt) ** 2
    if room_squared <= 0 or (t * bar.se_boot) ** 2 * fit.n_boots > room_squared * MOST_BOOTS:
        return None
    wanted = boots_to_resolve(fit.n_boots, t * bar.se_boot, sqrt(room_squared))
    return max(wanted, LEAST_FINAL_BOOTS, BLOCK_BOOTS * (fit.n_boots // BLOCK_BOOTS + 1))


def _mde_then(fit: Fit, bar: CombinedInterval, scale: Scale, boots: int | None) -> float | None:
    if boots is None or fit.boot_sd is None or bar.se_prompt:
        return None
    return scale.resolution(standard_mde(fit.boot_sd, boots, bar.interval.level, POWER, paired=fit.n_pairs > 0))
