"""Simulated sessions with a fixed seed: the error rates that the formulas promise (statistics.md section 1.12)."""

import numpy as np
import pytest

from verdict.claims import Claim, ClaimKind, Direction, judge
from verdict.fit import Scale
from verdict.words import Verdict

SESSIONS = 2000
EIGHT = "ABBABAAB"
ARM = np.array([letter == "B" for letter in EIGHT])
PLACE = np.arange(8) - 3.5


def readings(seed: int, *, sd_ln: float = 0.01, drift_ln: float = 0.0, effect_ln: float = 0.0) -> list[list[float]]:
    noise = np.random.default_rng(seed).normal(0, sd_ln, (SESSIONS, 8))
    ln_rate = np.log(150) + noise + drift_ln * PLACE / 7 + effect_ln * ARM
    return np.exp(ln_rate).tolist()


def share(claim: Claim, sessions: list[list[float]], word: Verdict) -> float:
    return sum(judge(claim, values, EIGHT).verdict is word for values in sessions) / len(sessions)


def claim(kind: ClaimKind, bound: float = 0.0) -> Claim:
    return Claim("aa", "step_per_s", kind, bound, Scale.LOG, Direction.HIGHER)


@pytest.mark.parametrize("drift_ln", [0.0, -0.03], ids=["no drift", "3 % drift"])
def test_two_equal_arms_are_called_different_in_one_of_twenty_sessions(drift_ln: float) -> None:
    false_positives = share(claim(ClaimKind.no_difference), readings(20261130, drift_ln=drift_ln), Verdict.FAIL)
    assert false_positives == pytest.approx(0.05, abs=0.015)


def test_a_base_that_always_runs_first_would_break_it() -> None:
    rates = np.log(readings(20261130, drift_ln=-0.03))
    first, last = rates[:, :4], rates[:, 4:]
    t = (last.mean(1) - first.mean(1)) / np.sqrt((first.var(1, ddof=1) + last.var(1, ddof=1)) / 4)
    assert (np.abs(t) > 2.447).mean() > 0.15


def test_a_patch_on_the_gate_passes_in_one_of_forty_sessions() -> None:
    sessions = readings(7, effect_ln=np.log(1.05))
    assert share(claim(ClaimKind.superiority, 5), sessions, Verdict.PASS) == pytest.approx(0.025, abs=0.01)
    assert share(claim(ClaimKind.superiority, 5), sessions, Verdict.FAIL) == pytest.approx(0.025, abs=0.01)


def test_a_move_of_the_whole_margin_passes_in_one_of_twenty_sessions() -> None:
    sessions = readings(11, sd_ln=0.004, effect_ln=np.log(1.02))
    assert share(claim(ClaimKind.equivalence, 2), sessions, Verdict.PASS) == pytest.approx(0.05, abs=0.015)


def test_an_effect_of_the_detectable_size_is_found_in_four_of_five_sessions() -> None:
    sessions = readings(13, effect_ln=0.0248470542148)
    assert share(claim(ClaimKind.superiority), sessions, Verdict.PASS) == pytest.approx(0.8, abs=0.03)
