"""The numbers of the one plot: boots in run order with their two lines, and the interval (statistics.md section 4)."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp

from verdict.claims import ClaimKind, Judgement
from verdict.fit import Scale
from verdict.interval import Interval
from verdict.sentence import claim_line, signed, size

Point = tuple[float, float]


@dataclass(frozen=True)
class PlottedBoot:
    """One boot: place in the run (from 1), arm (A hollow, B filled), reading in the metric's unit, label like A1."""

    position: int
    arm: str
    value: float
    label: str


@dataclass(frozen=True)
class BracketPlot:
    """All numbers of the bracket plot. Left: boots and lines in the metric's unit. Right: per cent or points.

    `base_line` and `candidate_line` have a point a boot; `gates` holds the bounds of the claim (one for a gate,
    two for a margin on both sides); `expectation` is the predicted band.
    """

    title: str
    boots: tuple[PlottedBoot, ...]
    base_line: tuple[Point, ...]
    candidate_line: tuple[Point, ...]
    unit: str
    estimate: float
    interval: Interval | None
    gates: tuple[float, ...]
    ceiling: float | None
    expectation: tuple[float, float] | None
    captions: tuple[str, ...]


def bracket_plot(
    judgement: Judgement,
    values: Sequence[float],
    letters: str,
    *,
    label: str = "",
    voided_boots: int = 0,
    looks: int = 1,
    remarks: Sequence[str] = (),
) -> BracketPlot:
    """The numbers of a judged bracket's plot; `values` are the readings that were judged, in the metric's unit.

    `remarks` (host, registry) end the captions. Draws nothing. Source: statistics.md section 4.
    """
    claim = judgement.claim
    unit = "%" if claim.scale is Scale.LOG else "pp"
    base = _line(judgement, letters, "A")
    candidate = _line(judgement, letters, "B")
    return BracketPlot(
        title=claim_line(judgement, label or claim.metric, unit, voided_boots=voided_boots, looks=looks),
        boots=_boots(values, letters),
        base_line=base,
        candidate_line=candidate,
        unit=unit,
        estimate=judgement.estimate,
        interval=judgement.interval,
        gates=_gates(judgement),
        ceiling=claim.ceiling_pct,
        expectation=claim.expect_pct,
        captions=_captions(judgement, unit, voided_boots, looks, remarks),
    )


def _boots(values: Sequence[float], letters: str) -> tuple[PlottedBoot, ...]:
    pairs = enumerate(zip(letters, values, strict=True), start=1)
    return tuple(PlottedBoot(place, arm, value, f"{arm}{place}") for place, (arm, value) in pairs)


def _line(judgement: Judgement, letters: str, arm: str) -> tuple[Point, ...]:
    """What the model gives for this arm in every place of the run."""
    steps = ((arm == "B") - (letter == "B") for letter in letters)
    heights = [height + step * judgement.fit.delta for height, step in zip(judgement.fit.fitted, steps, strict=True)]
    is_log = judgement.claim.scale is Scale.LOG
    return tuple((float(i), exp(height) if is_log else height) for i, height in enumerate(heights, start=1))


def _gates(judgement: Judgement) -> tuple[float, ...]:
    """The bounds in the interval's unit; margins of ratios are symmetric in ln, as they were judged."""
    claim = judgement.claim
    width = claim.scale.difference(claim.bound)
    low, high = claim.scale.effect(-width), claim.scale.effect(width)
    return {
        ClaimKind.superiority: (claim.bound,),
        ClaimKind.non_inferiority: (low,),
        ClaimKind.equivalence: (low, high),
        ClaimKind.no_difference: (0.0,),
    }[claim.kind]


def _captions(
    judgement: Judgement, unit: str, voided_boots: int, looks: int, remarks: Sequence[str]
) -> tuple[str, ...]:
    fit, scale = judgement.fit, judgement.claim.scale
    spread = "" if fit.boot_sd is None else f"boot sd {scale.resolution(fit.boot_sd):.2g} {unit}"
    seen = "" if judgement.mde is None else f"could have seen +-{size(judgement.mde)} {unit} (80 % power)"
    found = (
        f"boots in the order they ran; {_drift_text(judgement, unit)}",
        spread,
        seen,
        f"looks: {looks if looks > 1 else 'fixed'}",
        f"voided boots: {voided_boots}",
        *remarks,
    )
    return tuple(text for text in found if text)


def _drift_text(judgement: Judgement, unit: str) -> str:
    fit, scale = judgement.fit, judgement.claim.scale
    if len(fit.slopes) == 1:
        return f"drift {signed(scale.effect(fit.slope_per_boot * (fit.n_boots - 1)), 1)} {unit} over the session"
    slopes = ", ".join(signed(scale.effect(slope), 2) for slope in fit.slopes)
    return f"drift a boot, by session: {slopes} {unit}"
