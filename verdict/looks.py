"""When a bracket may be judged, and at what level: planned looks, and when to give up (statistics.md section 1.9).

Each look repeats the test, so each has a stricter level than a single one. The levels are Pocock's, lowered for the few
degrees of freedom, and hold for ABBA BAAB ... in one session with a slope.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import sqrt

from verdict.claims import ClaimKind, Judgement, distance_to_bound
from verdict.errors import VerdictError
from verdict.fit import Scale
from verdict.schedule import BLOCK_BOOTS
from verdict.student import two_sided_t

FUTILE_SHARE = 0.25  # of the projected half width
ONE_LOOK = (0.05, 0.05)
CALIBRATED: Mapping[tuple[int, ...], tuple[float, float]] = {
    # looks in boots -> alpha of each look, two-sided and one-sided, so that all of them err in 5 %.
    # 8/12/16 as in statistics.md; the others from three million simulated sessions (2026-11-30), rounded down.
    (8, 12): (0.0295, 0.031),
    (8, 16): (0.028, 0.029),
    (12, 16): (0.032, 0.0335),
    (8, 12, 16): (0.022, 0.0235),
    (8, 16, 24): (0.0205, 0.022),
    (8, 12, 16, 20): (0.0185, 0.02),
    (8, 12, 16, 20, 24): (0.016, 0.0175),
}


@dataclass(frozen=True)
class Looks:
    """The planned looks, each in boots so far, and the alpha of each one of them."""

    boots: tuple[int, ...]
    two_sided: float
    one_sided: float

    @property
    def last(self) -> int:
        """Boots at the last look."""
        return self.boots[-1]

    def level(self, kind: ClaimKind) -> float:
        """The two-sided level of a claim's interval at every look: 0.978, 0.953 for a margin; 0.95, 0.9 for one look.

        A no_difference claim is decided at the first look, whichever way, so it has the level of a single one.
        """
        if kind is ClaimKind.no_difference:
            return kind.level
        return 1 - self.two_sided if kind.level == ClaimKind.superiority.level else 1 - 2 * self.one_sided

    def next(self, boots: int) -> int | None:
        """The first look after so many boots; None after the last."""
        return next((look for look in self.boots if look > boots), None)


def planned(boots: Sequence[int]) -> Looks:
    """The looks with their levels; a single one has the usual 95 and 90 %.

    Raises VerdictError for looks whose levels nobody has computed: a guess would not keep the 5 %.
    """
    looks = tuple(boots)
    if len(looks) == 1 and looks[0] > 0:
        return Looks(looks, *ONE_LOOK)
    if looks not in CALIBRATED:
        known = ", ".join(str(list(found)) for found in CALIBRATED)
        raise VerdictError(
            f"found the looks {list(looks)}, whose levels are not known; wanted one of {known}, or none for a "
            "single look at the end"
        )
    return Looks(looks, *CALIBRATED[looks])


def projected_half_width(found: Judgement, boots: int) -> float | None:
    """The half width that the standard schedule of so many boots would have at this boot sd, on the fitted scale.

    The prompts' part of the error, which boots do not shrink, is in it. None without an error bar.
    """
    if found.error is None or found.fit.boot_sd is None:
        return None
    se = sqrt(found.fit.boot_sd**2 * BLOCK_BOOTS / boots + found.error.se_prompt**2)
    return two_sided_t(found.level, boots - 3) * se


def futility(found: Judgement, last: int) -> str:
    """Why an undecided claim is not worth the boots up to the last look, in words; empty where it is (section 1.9).

    The estimate lies within a quarter of the projected half width of its bound, or nearer than the prompts' own error
    lets anybody see. Non-binding: going on all the same keeps the error rates.
    """
    projected = projected_half_width(found, last)
    if projected is None or found.error is None or found.fit.zero_variance:
        return ""
    away = distance_to_bound(found.claim, found.claim.sign * found.fit.delta)
    unit = "%" if found.claim.scale is Scale.LOG else "pp"
    shown = f"the estimate lies {found.claim.scale.resolution(away):.2g} {unit} from its bound"
    if away < two_sided_t(found.level, found.error.df) * found.error.se_prompt:
        return f"{shown}, less than the prompts alone leave open; more prompts would tell, not more boots"
    if away < FUTILE_SHARE * projected:
        return f"{shown}, and {last} boots would see +-{found.claim.scale.resolution(projected):.2g} {unit}"
    return ""
