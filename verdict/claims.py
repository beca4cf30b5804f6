"""A claim over a bracket, and how it is judged (statistics.md sections 1.4, 1.5, 1.8; house.md, decisions).

- A screen (ABA, ABBA) is INCONCLUSIVE whatever it shows. With a usable history it borrows an error bar and advises
  SCREEN-PROMOTE or SCREEN-DROP (only what is ruled out is dropped); without one it has no interval.
- A longer bracket uses its own variance only.
- Margins of ratio metrics are symmetric in ln: x % stands for +-ln(1 + x/100), so that exchanging the arms of an
  equivalence claim exchanges nothing else.
- An estimate above the physical ceiling turns a PASS into INCONCLUSIVE: what cannot be was not measured, so it
  cannot prove the gate either.
- Readings that never vary give an interval without width: superiority is then INCONCLUSIVE (a rate that never varies
  is no measurement), the other kinds are decided on that point.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import isfinite

from verdict.claim import Claim, ClaimKind, Direction
from verdict.errors import VerdictError
from verdict.fit import ErrorBar, Fit, Scale, fit
from verdict.history import History, moderated, worst_drift_bias_ln
from verdict.interval import CombinedInterval, Interval, combined_interval, interval
from verdict.notes import (
    NO_ERROR_BAR_YET,
    SUSPECT,
    drift_note,
    expectation_note,
    flag_notes,
    history_note,
    moved_note,
    variance_note,
)
from verdict.resolution import resolution
from verdict.words import ScreenWord, Verdict

__all__ = ["Claim", "ClaimKind", "Direction", "Judgement", "decide", "distance_to_bound", "judge", "judge_fit"]

ROUNDING = 1e-12
"""Nearer than this to a bound is at it: ln 105 - ln 100 is not to the last bit what ln 106.365 - ln 101.3 is."""


@dataclass(frozen=True)
class Judgement:
    """A judged claim, and all that its sentence and its plot need.

    `interval` and `estimate` are in the direction of better, in per cent or points; `fit` is of the readings as they
    are. `error` is the same interval and its parts on the fitted scale (ln, or points). `mde` and `mde_then` are in log
    per cent or points, the second one after `boots_to_resolve` boots.
    """

    claim: Claim
    verdict: Verdict
    interval: Interval | None
    estimate: float
    level: float
    fit: Fit
    error: CombinedInterval | None
    letters: str
    mde: float | None
    boots_to_resolve: int | None
    mde_then: float | None
    screen: ScreenWord | None
    expectation: str | None
    notes: tuple[str, ...]


def decide(kind: ClaimKind, lo: float, hi: float, bound: float) -> Verdict:
    """The verdict of an interval, oriented so that + is better; one unit for all three numbers (section 1.5).

    Raises VerdictError for a number that is none and for an interval whose ends are swapped.
    """
    if not (isfinite(bound) and lo <= hi):
        raise VerdictError(f"an interval is [lo, hi] against a finite bound, found [{lo}, {hi}] and {bound}")
    passed, failed = _outcome(kind, _at(lo, bound), _at(hi, bound), bound)
    if passed:
        return Verdict.PASS
    return Verdict.FAIL if failed else Verdict.INCONCLUSIVE


def judge(
    claim: Claim,
    values: Sequence[float],
    letters: str,
    *,
    sessions: Sequence[int] | None = None,
    history: History | None = None,
    paired_differences: Sequence[float] | None = None,
    level: float | None = None,
    pairs: Sequence[int] | None = None,
) -> Judgement:
    """Judge a claim by the readings of a bracket, one a boot, in the metric's unit and in run order.

    How: see the top of this module. `paired_differences` (points, a prompt each, candidate less base) add the
    prompts' error; `level` (0.978 for a planned look) replaces the kind's own; `pairs` are a duet's.
    Raises VerdictError as fit and combined_interval do.
    Source: statistics.md sections 1.4, 1.5, 1.8; house.md, zero variance and void cap.
    """
    raw = fit(values, letters, scale=claim.scale, sessions=sessions, pairs=pairs)
    return judge_fit(claim, raw, values, letters, history=history, paired_differences=paired_differences, level=level)


def judge_fit(
    claim: Claim,
    raw: Fit,
    values: Sequence[float],
    letters: str,
    *,
    history: History | None = None,
    paired_differences: Sequence[float] | None = None,
    level: float | None = None,
) -> Judgement:
    """`judge` of readings that are fitted already. Raises VerdictError as combined_interval does."""
    used = _with_error_bar(raw, history)
    wanted_level = claim.kind.level if level is None else level
    delta = claim.sign * raw.delta
    bar = _error_bar(replace(used, delta=delta), claim, wanted_level, paired_differences)
    shown = None if bar is None else _shown(bar.interval, claim.scale)
    estimate = claim.scale.effect(delta)
    verdict = _verdict(claim, used, bar, estimate)
    screen = _screen_word(claim, used, bar)
    unresolved = verdict is Verdict.INCONCLUSIVE and not _above_ceiling(claim, estimate)
    seen = resolution(used, bar, claim.scale, distance_to_bound(claim, delta) if unresolved else None)
    expectation = expectation_note(claim.expect_pct, estimate, shown)
    found = [
        screen.value if screen else None,
        NO_ERROR_BAR_YET if bar is None else None,
        expectation,
        SUSPECT if _above_ceiling(claim, estimate) else None,
        variance_note(raw),
        moved_note(shown, claim.scale) if shown and _passed_equivalence(claim, verdict) else None,
        _drift_note(claim, used, values, letters),
        history_note(raw, history),
        *flag_notes(used),
    ]
    return Judgement(
        claim=claim,
        verdict=verdict,
        interval=shown,
        estimate=estimate,
        level=wanted_level,
        fit=used,
        error=bar,
        letters=letters,
        mde=seen.mde,
        boots_to_resolve=seen.boots,
        mde_then=seen.mde_then,
        screen=screen,
        expectation=expectation,
        notes=tuple(note for note in found if note is not None),
    )


def _at(end: float, bound: float) -> float:
    """An end of an interval; the bound itself (or 0, or minus it) where only rounding lies between them."""
    return next((edge for edge in (bound, -bound, 0.0) if abs(end - edge) <= ROUNDING), end)


def _outcome(kind: ClaimKind, lo: float, hi: float, bound: float) -> tuple[bool, bool]:
    """Whether the interval passes, and whether it fails."""
    if kind is ClaimKind.superiority:
        return lo >= bound, hi < bound
    if kind is ClaimKind.non_inferiority:
        return lo > -bound, hi < -bound
    if kind is ClaimKind.equivalence:
        return lo > -bound and hi < bound, lo > bound or hi < -bound
    return lo <= 0 <= hi, not lo <= 0 <= hi


def _with_error_bar(raw: Fit, history: History | None) -> Fit:
    return moderated(raw, history) if raw.is_screen and history is not None and history.is_usable else raw


def _error_bar(
    oriented: Fit, claim: Claim, level: float, paired_differences: Sequence[float] | None
) -> CombinedInterval | None:
    """The interval on the fitted scale; None for a screen without a history."""
    if paired_differences is not None and claim.scale is not Scale.LINEAR:
        raise VerdictError(f"claim {claim.name}: paired differences are in points, wanted a linear metric, found log")
    if oriented.is_screen and oriented.error_bar is ErrorBar.OWN:
        return None
    if paired_differences is not None:
        return combined_interval(oriented, paired_differences, level)
    se = oriented.se or 0.0
    return CombinedInterval(interval(oriented, level, scale=Scale.LINEAR), se, se, 0.0, oriented.df)


def _shown(found: Interval, scale: Scale) -> Interval:
    return Interval(scale.effect(found.lo), scale.effect(found.hi), found.level, scale.effect(found.estimate))


def _verdict(claim: Claim, used: Fit, bar: CombinedInterval | None, estimate: float) -> Verdict:
    unjudgeable = used.zero_variance and claim.kind is ClaimKind.superiority
    if bar is None or used.is_screen or unjudgeable:
        return Verdict.INCONCLUSIVE
    word = _decided(claim, bar)
    return Verdict.INCONCLUSIVE if word is Verdict.PASS and _above_ceiling(claim, estimate) else word


def _decided(claim: Claim, bar: CombinedInterval) -> Verdict:
    return decide(claim.kind, bar.interval.lo, bar.interval.hi, claim.scale.difference(claim.bound))


def _screen_word(claim: Claim, used: Fit, bar: CombinedInterval | None) -> ScreenWord | None:
    if bar is None or not used.is_screen:
        return None
    return ScreenWord.DROP if _decided(claim, bar) is Verdict.FAIL else ScreenWord.PROMOTE


def distance_to_bound(claim: Claim, delta: float) -> float:
    """From an oriented estimate to the nearest bound of its claim, both on the fitted scale (section 1.5)."""
    bound = claim.scale.difference(claim.bound)
    if claim.kind is ClaimKind.equivalence:
        return abs(abs(delta) - bound)
    return abs(delta + bound) if claim.kind is ClaimKind.non_inferiority else abs(delta - bound)


def _drift_note(claim: Claim, used: Fit, values: Sequence[float], letters: str) -> str | None:
    if not used.is_screen or claim.scale is not Scale.LOG:
        return None
    return drift_note(used, claim.sign * used.delta, worst_drift_bias_ln(values, letters), claim.scale)


def _above_ceiling(claim: Claim, estimate: float) -> bool:
    return claim.ceiling_pct is not None and estimate > claim.ceiling_pct


def _passed_equivalence(claim: Claim, verdict: Verdict) -> bool:
    return claim.kind is ClaimKind.equivalence and verdict is Verdict.PASS
