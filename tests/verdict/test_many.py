"""Many claims at once: adjusted p-values against the vectors, verdicts made again from them, the best of several."""

import json
from math import exp, log
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from statsmodels.stats.multitest import multipletests

from verdict.claims import Claim, ClaimKind, Direction, Judgement, judge
from verdict.errors import VerdictError
from verdict.fit import Scale
from verdict.looks import planned
from verdict.many import (
    Correction,
    among_many,
    benjamini_hochberg,
    best,
    confirmed,
    holm,
    p_values,
)
from verdict.words import Verdict

VECTORS = json.loads(Path(__file__).with_name("vectors.json").read_text())
DATA = {d["id"]: d for d in VECTORS["datasets"]}
MANY = VECTORS["multiplicity"]
EIGHT = "ABBABAAB"


def judged(
    effect: float,
    seed: int,
    kind: ClaimKind = ClaimKind.superiority,
    bound: float = 0.0,
    level: float | None = None,
) -> Judgement:
    """Eight boots with a boot sd of 1 % and about this ln effect."""
    noise = np.random.default_rng(seed).normal(0, 0.01, 8)
    values = [150 * exp(n + effect * (x == "B")) for n, x in zip(noise, EIGHT, strict=True)]
    return judge(Claim("speed", "step_per_s", kind, bound, Scale.LOG, Direction.HIGHER), values, EIGHT, level=level)


# adjusting


def test_the_adjusted_p_values_are_the_reference_ones() -> None:
    assert holm(MANY["p"]) == pytest.approx(MANY["holm_adjusted"], abs=1e-9)
    assert benjamini_hochberg(MANY["p"]) == pytest.approx(MANY["bh_adjusted"], abs=1e-9)
    assert sum(p <= 0.05 for p in holm(MANY["p"])) == MANY["holm_rejects_at_05"]
    assert sum(p <= 0.05 for p in benjamini_hochberg(MANY["p"])) == MANY["bh_rejects_at_05"]
    assert sum(p <= 0.10 for p in benjamini_hochberg(MANY["p"])) == MANY["bh_rejects_at_10"]


@settings(max_examples=25)
@given(st.lists(st.floats(0, 1), min_size=1, max_size=20))
def test_they_are_those_of_statsmodels_in_any_order(p: list[float]) -> None:
    assert holm(p) == pytest.approx(multipletests(p, method="holm")[1], abs=1e-12)
    assert benjamini_hochberg(p) == pytest.approx(multipletests(p, method="fdr_bh")[1], abs=1e-12)


@pytest.mark.parametrize("p", [[-0.1], [1.1], [float("nan")]])
def test_what_is_no_p_value_is_refused(p: list[float]) -> None:
    with pytest.raises(VerdictError, match="between 0 and 1"):
        holm(p)


# verdicts from p-values


@given(st.floats(-0.04, 0.04), st.integers(0, 2**32 - 1), st.sampled_from(list(ClaimKind)))
def test_without_a_correction_the_p_values_say_what_the_interval_says(
    effect: float, seed: int, kind: ClaimKind
) -> None:
    found = judged(effect, seed, kind, 2.0 if kind in (ClaimKind.equivalence, ClaimKind.non_inferiority) else 0.0)
    (one,) = among_many([found], Correction.none)
    assert one.verdict is found.verdict
    (alone,) = among_many([found], Correction.holm)
    assert (alone.p, alone.verdict) == (one.p, one.verdict)


@given(st.floats(-0.04, 0.04), st.integers(0, 2**32 - 1), st.sampled_from(list(ClaimKind)))
def test_at_a_planned_look_the_p_values_say_what_its_wider_interval_says(
    effect: float, seed: int, kind: ClaimKind
) -> None:
    bound = 2.0 if kind in (ClaimKind.equivalence, ClaimKind.non_inferiority) else 0.0
    level = planned((8, 12, 16)).level(kind)
    found = judged(effect, seed, kind, bound, level)
    (one,) = among_many([found], Correction.none)
    assert one.verdict is found.verdict
    single = p_values(judged(effect, seed, kind, bound))
    assert one.p.passing >= single.passing
    assert (one.p.passing > single.passing) or level == kind.level or single.passing == 1


def test_the_p_of_a_superiority_claim_is_that_of_the_two_sided_test() -> None:
    data = DATA["D4_autocorrelation"]["expected"]
    claim = Claim("speed", "step_per_s", ClaimKind.superiority, 0, Scale.LOG, Direction.HIGHER)
    found = p_values(judge(claim, data["boot_metric"], DATA["D4_autocorrelation"]["schedule"]))
    assert found.passing == pytest.approx(0.102, abs=0.001)
    assert found.failing == 1.0


def test_the_p_of_a_margin_is_tosts() -> None:
    claim = Claim("speed", "step_per_s", ClaimKind.equivalence, 2, Scale.LOG, Direction.TWO_SIDED)
    found = p_values(judge(claim, DATA["D2_null"]["boot_metric"], EIGHT))
    assert found.passing == pytest.approx(0.0062, abs=0.0002)


def test_a_hit_by_the_raw_p_alone_is_taken_back() -> None:
    """One real regression among nineteen claims without an effect, of which one looks bad by luck."""
    claims = [judged(-0.05, 1), *(judged(0.0, seed) for seed in range(100, 118))]
    unlucky = next(judged(0.0, seed) for seed in range(1000) if judged(0.0, seed).verdict is Verdict.FAIL)
    found = among_many([*claims, unlucky], Correction.holm)
    assert found[0].verdict is Verdict.FAIL
    assert (unlucky.verdict, found[-1].verdict) == (Verdict.FAIL, Verdict.INCONCLUSIVE)
    assert found[-1].p.failing > p_values(unlucky).failing


def test_a_claim_without_an_error_bar_has_no_p_value() -> None:
    claim = Claim("speed", "step_per_s", ClaimKind.superiority, 0, Scale.LOG, Direction.HIGHER)
    with pytest.raises(VerdictError, match="no error bar"):
        p_values(judge(claim, [100.0, 104.0, 100.0], "ABA"))


def test_holm_keeps_any_false_alarm_of_twenty_equal_patches_under_five_per_cent() -> None:
    nights = [[judged(0.0, 1000 * night + one) for one in range(10)] for night in range(150)]
    alarms = {
        how: sum(any(a.verdict is Verdict.FAIL for a in among_many(night, how)) for night in nights) / len(nights)
        for how in (Correction.none, Correction.holm)
    }
    assert alarms[Correction.holm] < 0.06 < 0.1 < alarms[Correction.none]


# the best of several


def test_the_best_of_several_equal_patches_looks_better_than_it_is_and_its_confirmation_does_not() -> None:
    chosen, fresh = [], []
    for night in range(150):
        found = {str(one): judged(0.0, 77_000 + 10 * night + one) for one in range(8)}
        winner = best(found)
        chosen.append(log(1 + found[winner.name].estimate / 100))
        shown = confirmed(winner, ["selection"], "fresh", judged(0.0, 990_000 + night))
        fresh.append(log(1 + shown.judgement.estimate / 100))
    assert np.mean(chosen) > 0.006  # about 1.4 sd of an effect, which is 0.7 %
    assert abs(np.mean(fresh)) < 0.0025


def test_only_fresh_boots_confirm_a_winner_and_only_they_are_quoted() -> None:
    winner = best({"p1": judged(0.01, 1), "p2": judged(0.05, 2)})
    assert (winner.name, winner.of, hasattr(winner, "estimate")) == ("p2", 2, False)
    with pytest.raises(VerdictError, match="run-2, whose boots cannot confirm it"):
        confirmed(winner, ["run-1", "run-2"], "run-2", judged(0.05, 2))
    assert confirmed(winner, ["run-1", "run-2"], "run-3", judged(0.0, 3)).verdict is judged(0.0, 3).verdict


def test_one_candidate_is_not_the_best_of_anything() -> None:
    with pytest.raises(VerdictError, match="two or more, found 1"):
        best({"p1": judged(0.0, 1)})
