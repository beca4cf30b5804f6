"""The numbers of the one plot: boots in run order with their two lines, and the interval (statistics.md section 4)."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp

from verdict.claims import ClaimKind, Judgement
from verdict.fit import Scale
from verdict.interval import Interval
from verdict.sentence import ONE_LOOK, claim_line, look_text, signed, size

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

    `base_line` and `candidate_line` have a point a boot; of a duet they are empty, and `pairs` hold the readings of the
    boots that were up at once. `gates` holds the bounds of the claim (one for a gate,
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
    pairs: tuple[tuple[Point, Point], ...] = ()


def bracket_plot(
    judgement: Judgement,
    values: Sequence[float],
    letters: str,
    *,
    label: str = "",
    voided_boots: int = 0,
    look: tuple[int, int] = ONE_LOOK,
    remarks: Sequence[str] = (),
) -> BracketPlot:
    """The numbers of a judged bracket's plot; `values` are the readings that were judged, in the metric's unit.

    `remarks` (host, registry) end the captions. Draws nothing. Source: statistics.md section 4.
    """
    claim = judgement.claim
    unit = "%" if claim.scale is Scale.LOG else "pp"
    boots = _boots(values, letters)
    lines = () if judgement.fit.n_pairs else (_line(judgement, letters, "A"), _line(judgement, letters, "B"))
    base, candidate = lines or ((), ())
    return BracketPlot(
        title=claim_line(judgement, label or claim.metric, unit, voided_boots=voided_boots, look=look),
        boots=boots,
        base_line=base,
        candidate_line=candidate,
        unit=unit,
        estimate=judgement.estimate,
        interval=judgement.interval,
        gates=_gates(judgement),
        ceiling=claim.ceiling_pct,
        expectation=claim.expect_pct,
        captions=_captions(judgement, unit, voided_boots, look, remarks),
        pairs=_pairs(boots) if judgement.fit.n_pairs else (),
    )


def _boots(values: Sequence[float], letters: str) -> tuple[PlottedBoot, ...]:
    pairs = enumerate(zip(letters, values, strict=True), start=1)
    return tuple(PlottedBoot(place, arm, value, f"{arm}{place}") for place, (arm, value) in pairs)


def _pairs(boots: tuple[PlottedBoot, ...]) -> tuple[tuple[Point, Point], ...]:
    points = [(float(boot.position), boot.value) for boot in boots]
    return tuple(zip(points[::2], points[1::2], strict=True))


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
    judgement: Judgement, unit: str, voided_boots: int, look: tuple[int, int], remarks: Sequence[str]
) -> tuple[str, ...]:
    fit, scale = judgement.fit, judgement.claim.scale
    spread = "" if fit.boot_sd is None else f"boot sd {scale.resolution(fit.boot_sd):.2g} {unit}"
    seen = "" if judgement.mde is None else f"could have seen +-{size(judgement.mde)} {unit} (80 % power)"
    found = (
        f"{'pairs' if fit.n_pairs else 'boots'} in the order they ran; {_drift_text(judgement, unit)}",
        spread,
        seen,
        look_text(look) or "looks: fixed",
        f"voided boots: {voided_boots}",
        *remarks,
    )
    return tuple(text for text in found if text)


def _drift_text(judgement: Judgement, unit: str) -> str:
    fit, scale = judgement.fit, judgement.claim.scale
    if fit.n_pairs:
        return _place_text(fit.second_place, scale, unit)
    if len(fit.slopes) == 1:
        return f"drift {signed(scale.effect(fit.slope_per_boot * (fit.n_boots - 1)), 1)} {unit} over the session"
    slopes = ", ".join(signed(scale.effect(slope), 2) for slope in fit.slopes)
    return f"drift a boot, by session: {slopes} {unit}"


def _place_text(second_place: float | None, scale: Scale, unit: str) -> str:
    if second_place is None:
        return "the place in a pair cannot be told from the arm"
    return f"the second place of a pair reads {signed(scale.effect(second_place), 1)} {unit}"
