import pytest

from verdict.fit import Fit, Scale, fit
from verdict.interval import CombinedInterval, combined_interval, interval
from verdict.power import MOST_BOOTS, standard_mde
from verdict.resolution import Resolution, resolution
from verdict.student import two_sided_t

VALUES = [100.4, 99.3, 101.1, 100.9, 100.6, 99.8, 100.2, 99.9]
EIGHT = fit(VALUES, "ABBABAAB", scale=Scale.LINEAR)
STILL = fit([70.0] * 8, "ABBABAAB", scale=Scale.LINEAR)


def bar(found: Fit, level: float = 0.95) -> CombinedInterval:
    se = found.se or 0.0
    return CombinedInterval(interval(found, level, scale=Scale.LINEAR), se, se, 0.0, found.df)


REACH = bar(EIGHT).interval.half_width


def test_without_an_error_bar_only_a_whole_bracket_helps() -> None:
    screen = fit([1.0, 2.0, 1.0], "ABA", scale=Scale.LINEAR)
    assert resolution(screen, None, Scale.LINEAR, 1.0) == Resolution(None, 8, None)
    assert resolution(screen, None, Scale.LINEAR, None) == Resolution(None, None, None)


def test_readings_that_never_vary_have_no_resolution() -> None:
    assert resolution(STILL, bar(STILL), Scale.LINEAR, 1.0) == Resolution(None, None, None)


@pytest.mark.parametrize(("share", "boots"), [(1.0, 12), (0.9, 12), (0.5, 32), (1e-6, None)])
def test_the_boots_follow_from_how_near_the_bound_is(share: float, boots: int | None) -> None:
    found = resolution(EIGHT, bar(EIGHT), Scale.LINEAR, share * REACH)
    assert found.boots == boots
    assert boots is None or found.mde_then == pytest.approx(standard_mde(EIGHT.boot_sd or 0, boots))


def test_no_more_boots_are_named_than_anybody_would_run() -> None:
    nearest = REACH * (8 / MOST_BOOTS) ** 0.5
    assert resolution(EIGHT, bar(EIGHT), Scale.LINEAR, 1.001 * nearest).boots == MOST_BOOTS
    assert resolution(EIGHT, bar(EIGHT), Scale.LINEAR, 0.999 * nearest).boots is None


def test_a_decided_claim_still_says_what_it_could_have_seen() -> None:
    found = resolution(EIGHT, bar(EIGHT), Scale.LINEAR, None)
    assert found.mde == pytest.approx(standard_mde(EIGHT.boot_sd or 0, 8))
    assert (found.boots, found.mde_then) == (None, None)


def test_more_boots_do_not_shrink_the_prompts_part() -> None:
    both = combined_interval(EIGHT, [3.0, -3.0, 2.5, -2.5, 1.0, -1.0], 0.9)
    prompts = two_sided_t(0.9, both.df) * both.se_prompt
    assert resolution(EIGHT, both, Scale.LINEAR, 0.99 * prompts).boots is None
    boots_alone = resolution(EIGHT, bar(EIGHT, 0.9), Scale.LINEAR, 1.1 * prompts).boots
    with_prompts = resolution(EIGHT, both, Scale.LINEAR, 1.1 * prompts)
    assert with_prompts.boots is not None
    assert boots_alone is not None
    assert with_prompts.boots >= boots_alone
    assert with_prompts.mde_then is None
