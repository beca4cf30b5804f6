"""The metamorphic list of statistics.md section 1.14, at the level of boots."""

from itertools import pairwise

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from verdict.claims import Claim, ClaimKind, Direction, Judgement, decide, judge
from verdict.errors import VerdictError
from verdict.fit import Scale, fit
from verdict.interval import interval
from verdict.schedule import mirrored, parse_schedule
from verdict.words import Verdict

SCHEDULES = st.sampled_from(["ABABA", "ABBABAAB", "ABABABAB", "ABBABAABABBA", "ABABABABA"])
RATES = st.floats(50, 200)
BRACKETS = SCHEDULES.flatmap(lambda s: st.tuples(st.just(s), st.lists(RATES, min_size=len(s), max_size=len(s))))
KINDS = st.sampled_from(
    [(ClaimKind.superiority, 0.0), (ClaimKind.equivalence, 30.0), (ClaimKind.non_inferiority, 20.0)]
)
KINDS_AND_NONE = KINDS | st.just((ClaimKind.no_difference, 0.0))

steady = settings(max_examples=60, deadline=None, derandomize=True)


def claim(kind: ClaimKind, bound: float, direction: Direction = Direction.HIGHER) -> Claim:
    return Claim("c", "m", kind, bound, Scale.LOG, direction)


def ends(judged: Judgement) -> tuple[float, float, float]:
    """Interval and estimate in ln, where a mirror is exact."""
    assert judged.interval is not None
    found = judged.interval
    return tuple(Scale.LOG.difference(x) for x in (found.lo, found.hi, found.estimate))  # type: ignore[return-value]


def varied(values: list[float], letters: str) -> bool:
    """Whether the residuals are far enough from rounding that both sides are the same fit."""
    found = fit(values, letters, scale=Scale.LOG)
    return found.se is not None and found.se > 1e-6


def undecided_by_a_hair(judged: Judgement) -> bool:
    lo, hi, _ = ends(judged)
    bound = Scale.LOG.difference(judged.claim.bound)
    return min(abs(abs(lo) - abs(bound)), abs(abs(hi) - abs(bound))) < 1e-9


@steady
@given(BRACKETS, KINDS_AND_NONE, st.floats(1e-3, 1e3))
def test_another_unit_of_the_readings_changes_nothing(
    bracket: tuple[str, list[float]], kind: tuple[ClaimKind, float], c: float
) -> None:
    letters, values = bracket
    assume(varied(values, letters))
    one = judge(claim(*kind), values, letters)
    other = judge(claim(*kind), [c * value for value in values], letters)
    assume(not undecided_by_a_hair(one))
    assert ends(other) == pytest.approx(ends(one), rel=1e-6, abs=1e-9)
    assert other.verdict is one.verdict


@steady
@given(BRACKETS)
def test_exchanging_the_arms_negates_the_effect_and_its_interval(bracket: tuple[str, list[float]]) -> None:
    letters, values = bracket
    assume(varied(values, letters))
    swapped = mirrored(parse_schedule(letters)).letters
    lo, hi, estimate = ends(judge(claim(ClaimKind.superiority, 0), values, letters))
    assert ends(judge(claim(ClaimKind.superiority, 0), values, swapped)) == pytest.approx(
        (-hi, -lo, -estimate), rel=1e-6, abs=1e-9
    )


@steady
@given(BRACKETS, st.floats(0.5, 60))
def test_exchanging_the_arms_leaves_an_equivalence_verdict(bracket: tuple[str, list[float]], margin: float) -> None:
    letters, values = bracket
    one = judge(claim(ClaimKind.equivalence, margin), values, letters)
    assume(not undecided_by_a_hair(one))
    swapped = mirrored(parse_schedule(letters)).letters
    assert judge(claim(ClaimKind.equivalence, margin), values, swapped).verdict is one.verdict


@steady
@given(BRACKETS)
def test_exchanging_the_arms_mirrors_superiority_over_nothing(bracket: tuple[str, list[float]]) -> None:
    letters, values = bracket
    one = judge(claim(ClaimKind.superiority, 0), values, letters)
    assume(varied(values, letters) and not undecided_by_a_hair(one))
    swapped = mirrored(parse_schedule(letters)).letters
    mirror = {Verdict.PASS: Verdict.FAIL, Verdict.FAIL: Verdict.PASS, Verdict.INCONCLUSIVE: Verdict.INCONCLUSIVE}
    assert judge(claim(ClaimKind.superiority, 0), values, swapped).verdict is mirror[one.verdict]


@steady
@given(BRACKETS, st.floats(-0.05, 0.05))
def test_a_linear_drift_changes_neither_effect_nor_error(bracket: tuple[str, list[float]], drift: float) -> None:
    letters, values = bracket
    drifted = [value * 2.718281828459045 ** (drift * place) for place, value in enumerate(values)]
    still, moved = fit(values, letters, scale=Scale.LOG), fit(drifted, letters, scale=Scale.LOG)
    assert moved.delta == pytest.approx(still.delta, rel=1e-6, abs=1e-9)
    assert moved.se == pytest.approx(still.se, rel=1e-6, abs=1e-9)
    assert moved.slope_per_boot == pytest.approx(still.slope_per_boot + drift, abs=1e-9)


@steady
@given(st.lists(RATES, min_size=8, max_size=8))
def test_running_the_time_backwards_changes_nothing(values: list[float]) -> None:
    there = fit(values, "ABBAABBA", scale=Scale.LOG)
    back = fit(values[::-1], "ABBAABBA", scale=Scale.LOG)
    assert back.delta == pytest.approx(there.delta, rel=1e-6, abs=1e-9)
    assert back.se == pytest.approx(there.se, rel=1e-6, abs=1e-9)
    assert back.slope_per_boot == pytest.approx(-there.slope_per_boot, rel=1e-6, abs=1e-9)


@steady
@given(BRACKETS, KINDS)
def test_lower_is_better_equals_higher_is_better_of_the_inverse(
    bracket: tuple[str, list[float]], kind: tuple[ClaimKind, float]
) -> None:
    letters, values = bracket
    assume(kind[0] is not ClaimKind.equivalence and varied(values, letters))
    lower = judge(claim(*kind, Direction.LOWER), values, letters)
    higher = judge(claim(*kind, Direction.HIGHER), [1 / value for value in values], letters)
    assume(not undecided_by_a_hair(lower))
    assert ends(lower) == pytest.approx(ends(higher), rel=1e-6, abs=1e-9)
    assert lower.verdict is higher.verdict


@steady
@given(BRACKETS)
def test_a_direction_does_not_touch_an_equivalence(bracket: tuple[str, list[float]]) -> None:
    letters, values = bracket
    judged = [judge(claim(ClaimKind.equivalence, 10, way), values, letters) for way in Direction]
    assert len({ends(one) for one in judged}) == 1
    assert len({one.verdict for one in judged}) == 1


@steady
@given(BRACKETS)
def test_a_boot_less_is_a_degree_of_freedom_less(bracket: tuple[str, list[float]]) -> None:
    letters, values = bracket
    lengths = range(4, len(letters) + 1)
    freedoms = [fit(values[:n], letters[:n], scale=Scale.LOG).df for n in lengths]
    assert all(longer == shorter + 1 for shorter, longer in pairwise(freedoms))


@steady
@given(st.lists(RATES, min_size=3, max_size=3))
def test_an_aba_without_a_registry_has_no_interval(values: list[float]) -> None:
    with pytest.raises(VerdictError, match="no residual df and no history"):
        interval(fit(values, "ABA", scale=Scale.LOG), 0.95, scale=Scale.LOG)
    assert judge(claim(ClaimKind.superiority, 0), values, "ABA").verdict is Verdict.INCONCLUSIVE


@steady
@given(BRACKETS, st.data(), st.sampled_from([float("nan"), float("inf"), float("-inf"), 0.0, -3.0]))
def test_a_failed_boot_never_becomes_a_number(
    bracket: tuple[str, list[float]], data: st.DataObject, bad: float
) -> None:
    letters, values = bracket
    place = data.draw(st.integers(0, len(values) - 1))
    broken = [*values[:place], bad, *values[place + 1 :]]
    with pytest.raises(VerdictError, match="CRASH, never a number"):
        judge(claim(ClaimKind.superiority, 0), broken, letters)


@steady
@given(BRACKETS, KINDS_AND_NONE)
def test_the_verdict_is_a_function_of_what_is_printed(
    bracket: tuple[str, list[float]], kind: tuple[ClaimKind, float]
) -> None:
    letters, values = bracket
    assume(varied(values, letters))
    judged = judge(claim(*kind), values, letters)
    assume(not undecided_by_a_hair(judged))
    lo, hi, _ = ends(judged)
    assert judged.verdict is decide(kind[0], lo, hi, Scale.LOG.difference(kind[1]))


@steady
@given(st.sampled_from(list(ClaimKind)), st.floats(-9, 9), st.floats(0, 9), st.floats(0.1, 9))
def test_a_narrower_interval_never_turns_a_decision_round(
    kind: ClaimKind, lo: float, width: float, bound: float
) -> None:
    wide = decide(kind, lo, lo + width, bound)
    narrow = decide(kind, lo + width / 4, lo + width / 2, bound)
    assume(kind is not ClaimKind.no_difference)
    assert wide in (Verdict.INCONCLUSIVE, narrow)
