"""Short remarks that stand beside a verdict and never change it (statistics.md section 1.5)."""

from math import isinf

from verdict.fit import ErrorBar, Fit, Scale, flagged_boots, studentised_residuals
from verdict.history import LEAST_NU0, History, host_is_noisy
from verdict.interval import Interval

NO_ERROR_BAR_YET = "no error bar yet"
IDENTICAL = "identical"
NO_VARIANCE = "every boot of an arm gave the same value"
SUSPECT = "above the physical ceiling: the measurement is suspect"
HOST_NOISY = "HOST-NOISY: this bracket is noisier than its host's history, its own variance is used"


def expectation_note(expected: tuple[float, float] | None, estimate: float, found: Interval | None) -> str | None:
    """Where the estimate lies against the predicted band, all in one unit; ends included (section 1.5)."""
    if expected is None:
        return None
    low, high = expected
    if estimate < low:
        return "below band"
    if estimate > high:
        return "above band"
    confirmed = found is not None and low <= found.lo and found.hi <= high
    return "confirmed in band" if confirmed else "in band"


def variance_note(fit: Fit) -> str | None:
    """`identical` where no boot differs from any other, another word where only the arms differ (house.md)."""
    if not fit.zero_variance:
        return None
    return NO_VARIANCE if fit.delta else IDENTICAL


def moved_note(found: Interval, scale: Scale) -> str | None:
    """That an effect is there although it is inside the margin: zero is outside the interval (section 1.5)."""
    if found.covers(0):
        return None
    unit = "%" if scale is Scale.LOG else "pp"
    return f"moved by {abs(found.estimate):.2g} {unit}, inside the margin"


def history_note(raw: Fit, history: History | None) -> str | None:
    """What the host's registry has to say about a fit on its own variance (sections 1.4 and 1.12)."""
    if history is None:
        return None
    if not history.is_usable:
        return f"the host's history has {history.nu0} of the {LEAST_NU0} degrees of freedom it needs: not used"
    return HOST_NOISY if host_is_noisy(raw, history) else None


def drift_note(fit: Fit, oriented_delta: float, worst_bias: float | None, scale: Scale) -> str | None:
    """The effect that is left of one ABA under the worst monotone drift (section 1.6); None for longer schedules."""
    if worst_bias is None or fit.n_boots != 3 or oriented_delta <= 0:
        return None
    left = scale.effect(oriented_delta - worst_bias)
    if left <= 0:
        return "drift between two boots alone could explain the effect"
    unit = "%" if scale is Scale.LOG else "pp"
    return f"even if all drift fell between two boots, the effect stays above +{left:.2g} {unit}"


def flag_notes(fit: Fit) -> tuple[str, ...]:
    """One remark for each boot that stands apart; such a boot is kept (section 1.4)."""
    if fit.error_bar is not ErrorBar.OWN:
        return ()
    what = "pair" if fit.n_pairs else "boot"
    found = {(place + 1) // 2 if fit.n_pairs else place: place for place in flagged_boots(fit)}
    return tuple(
        f"{what} {number} stands apart (studentised residual {_shown(studentised_residuals(fit)[place - 1])}): kept"
        for number, place in found.items()
    )


def _shown(residual: float) -> str:
    return "beyond measure" if isinf(residual) else f"{residual:+.1f}"
