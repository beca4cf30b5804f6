import pytest

from verdict.fit import Scale, fit
from verdict.history import History
from verdict.interval import Interval
from verdict.notes import (
    drift_note,
    expectation_note,
    flag_notes,
    history_note,
    moved_note,
    variance_note,
)

EIGHT = "ABBABAAB"
ABA = fit([100.3, 109.6, 99.5], "ABA", scale=Scale.LOG)


@pytest.mark.parametrize(
    ("estimate", "found", "word"),
    [
        (7.0, Interval(7.0, 12.0, 0.95, 7.0), "confirmed in band"),
        (9.0, Interval(8.0, 12.1, 0.95, 9.0), "in band"),
        (12.0, Interval(6.9, 12.0, 0.95, 12.0), "in band"),
        (9.0, None, "in band"),
        (6.9, None, "below band"),
        (12.1, None, "above band"),
    ],
)
def test_the_ends_of_a_band_belong_to_it(estimate: float, found: Interval | None, word: str) -> None:
    assert expectation_note((7, 12), estimate, found) == word


def test_without_a_prediction_nothing_is_compared() -> None:
    assert expectation_note(None, 9.0, None) is None


@pytest.mark.parametrize(
    ("lo", "hi", "scale", "note"),
    [
        (-0.1, 0.5, Scale.LINEAR, None),
        (0.0, 0.5, Scale.LINEAR, None),
        (0.1, 0.5, Scale.LINEAR, "moved by 0.3 pp, inside the margin"),
        (-0.5, -0.1, Scale.LOG, "moved by 0.3 %, inside the margin"),
    ],
)
def test_a_move_is_told_where_zero_is_outside(lo: float, hi: float, scale: Scale, note: str | None) -> None:
    assert moved_note(Interval(lo, hi, 0.9, (lo + hi) / 2), scale) == note


def test_an_ordinary_bracket_has_a_variance() -> None:
    assert variance_note(fit([1.0, 2.0, 2.1, 1.1, 2.0], "ABBAB", scale=Scale.LOG)) is None


@pytest.mark.parametrize(
    ("worst_bias", "note"),
    [
        (0.004, "even if all drift fell between two boots, the effect stays above +9.3 %"),
        (0.2, "drift between two boots alone could explain the effect"),
        (None, None),
    ],
)
def test_an_aba_says_what_drift_could_have_done(worst_bias: float | None, note: str | None) -> None:
    assert drift_note(ABA, ABA.delta, worst_bias, Scale.LOG) == note


def test_a_loss_is_not_defended_against_drift() -> None:
    assert drift_note(ABA, -ABA.delta, 0.004, Scale.LOG) is None


def test_a_history_that_agrees_says_nothing() -> None:
    quiet = fit([100.0, 109.0, 108.0, 99.0, 109.0], "ABBAB", scale=Scale.LOG)
    assert history_note(quiet, None) is None
    assert history_note(quiet, History(0.01, 20)) is None
    assert str(history_note(quiet, History(0.0001, 20))).startswith("HOST-NOISY")


def test_the_only_boot_that_varies_is_flagged_without_a_number() -> None:
    values = [70.0] * 8
    values[3] = 71.0
    expected = ("boot 4 stands apart (studentised residual beyond measure): kept",)
    assert flag_notes(fit(values, EIGHT, scale=Scale.LINEAR)) == expected
