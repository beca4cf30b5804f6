"""Judging what has no error bar of its own: screens, and readings that never vary."""

import json
from pathlib import Path
from typing import Any

import pytest

from verdict.claims import Claim, ClaimKind, Direction, judge
from verdict.fit import ErrorBar, Scale
from verdict.history import History
from verdict.words import ScreenWord, Verdict

VECTORS = json.loads(Path(__file__).with_name("vectors.json").read_text())
DATA = {d["id"]: d for d in VECTORS["datasets"]}
EIGHT = "ABBABAAB"


def speed(bound: float, kind: ClaimKind = ClaimKind.superiority, **more: Any) -> Claim:
    direction = more.pop("direction", Direction.HIGHER)
    return Claim("speed", "step_per_s", kind, bound, Scale.LOG, direction, **more)


def acceptance(margin_pp: float = 2.0, kind: ClaimKind = ClaimKind.equivalence) -> Claim:
    return Claim("acceptance", "acceptance_pos1_pp", kind, margin_pp, Scale.LINEAR, Direction.TWO_SIDED)


@pytest.mark.parametrize("name", ["D5a_tiny_ABA", "D5b_tiny_ABBA"])
def test_a_screen_without_a_history_shows_its_effect_and_no_error_bar(name: str) -> None:
    judged = judge(speed(5), DATA[name]["boot_metric"], DATA[name]["schedule"])
    assert judged.verdict is Verdict.INCONCLUSIVE
    assert (judged.interval, judged.mde, judged.screen, judged.error) == (None, None, None, None)
    assert "no error bar yet" in judged.notes
    assert judged.boots_to_resolve == 8
    assert judged.estimate > 9


@pytest.mark.parametrize(
    ("name", "key"), [("D5a_tiny_ABA", "ci95"), ("D5b_tiny_ABBA", "moderated_ci95"), ("D3c_not_void", "ci95")]
)
def test_a_screen_with_a_history_borrows_an_error_bar_and_stays_inconclusive(name: str, key: str) -> None:
    data = DATA[name]
    judged = judge(speed(0), data["boot_metric"], data["schedule"], history=History(**data["history"]))
    assert judged.verdict is Verdict.INCONCLUSIVE
    assert judged.fit.error_bar is ErrorBar.BORROWED
    assert judged.screen is ScreenWord.PROMOTE
    assert "SCREEN-PROMOTE" in judged.notes
    assert judged.interval is not None
    assert [judged.interval.lo, judged.interval.hi] == pytest.approx([100 * x for x in data["expected"][key]], rel=1e-9)


@pytest.mark.parametrize(("gate", "word"), [(5, ScreenWord.PROMOTE), (10, ScreenWord.PROMOTE), (20, ScreenWord.DROP)])
def test_a_screen_drops_only_what_is_ruled_out(gate: float, word: ScreenWord) -> None:
    data = DATA["D5a_tiny_ABA"]
    judged = judge(speed(gate), data["boot_metric"], "ABA", history=History(**data["history"]))
    assert (judged.screen, judged.verdict) == (word, Verdict.INCONCLUSIVE)


def test_a_bracket_of_its_own_never_borrows() -> None:
    data = DATA["D5c_ABABA"]
    alone = judge(speed(5), data["boot_metric"], "ABABA")
    known = judge(speed(5), data["boot_metric"], "ABABA", history=History(0.006, 8))
    assert known.interval == alone.interval
    assert (known.verdict, known.screen) == (Verdict.PASS, None)


def test_a_history_of_few_boots_lends_nothing_and_says_so() -> None:
    judged = judge(speed(5), DATA["D5a_tiny_ABA"]["boot_metric"], "ABA", history=History(0.006, 7))
    assert judged.interval is None
    assert any("7 of the 8 degrees of freedom" in note for note in judged.notes)


def test_a_host_noisier_than_its_history_is_named() -> None:
    judged = judge(speed(0), DATA["D12_outlier_boot"]["boot_metric"], EIGHT, history=History(0.002, 20))
    assert any(note.startswith("HOST-NOISY") for note in judged.notes)
    assert judged.fit.error_bar is ErrorBar.OWN


STILL = [70.0] * 8
APART = [70.0 if arm == "A" else 71.0 for arm in EIGHT]


@pytest.mark.parametrize(
    ("claim", "values", "verdict", "note"),
    [
        (acceptance(), STILL, Verdict.PASS, "identical"),
        (acceptance(), APART, Verdict.PASS, "every boot of an arm gave the same value"),
        (acceptance(0.5), APART, Verdict.FAIL, "every boot of an arm gave the same value"),
        (acceptance(0, ClaimKind.no_difference), STILL, Verdict.PASS, "identical"),
        (acceptance(0, ClaimKind.no_difference), APART, Verdict.FAIL, "every boot of an arm gave the same value"),
        (speed(0), STILL, Verdict.INCONCLUSIVE, "identical"),
        (speed(0), APART, Verdict.INCONCLUSIVE, "every boot of an arm gave the same value"),
        (speed(2, ClaimKind.non_inferiority), STILL, Verdict.PASS, "identical"),
    ],
)
def test_readings_that_never_vary_are_judged_as_the_house_says(
    claim: Claim, values: list[float], verdict: Verdict, note: str
) -> None:
    judged = judge(claim, values, EIGHT)
    assert judged.verdict is verdict
    assert note in judged.notes
    assert judged.mde is None


def test_the_prompts_still_count_where_the_boots_never_vary() -> None:
    judged = judge(acceptance(), STILL, EIGHT, paired_differences=[9.0, -9.0, 9.0, -9.0])
    assert judged.verdict is Verdict.INCONCLUSIVE
    assert judged.boots_to_resolve is None
