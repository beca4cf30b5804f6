"""What stands beside a verdict: ceiling, expectation, moves, boots that stand apart."""

import json
from pathlib import Path
from typing import Any

import pytest

from verdict.claims import Claim, ClaimKind, Direction, judge
from verdict.fit import Scale
from verdict.words import Verdict

VECTORS = json.loads(Path(__file__).with_name("vectors.json").read_text())
DATA = {d["id"]: d for d in VECTORS["datasets"]}
EIGHT = "ABBABAAB"


def speed(bound: float, kind: ClaimKind = ClaimKind.superiority, **more: Any) -> Claim:
    direction = more.pop("direction", Direction.HIGHER)
    return Claim("speed", "step_per_s", kind, bound, Scale.LOG, direction, **more)


def acceptance(margin_pp: float = 2.0, kind: ClaimKind = ClaimKind.equivalence) -> Claim:
    return Claim("acceptance", "acceptance_pos1_pp", kind, margin_pp, Scale.LINEAR, Direction.TWO_SIDED)


def _rates(name: str) -> list[float]:
    return [100 * accepted / drafts for accepted, drafts in DATA[name]["accepted_drafts"]]


@pytest.mark.parametrize(
    ("ceiling", "verdict"), [(None, Verdict.PASS), (13.6, Verdict.PASS), (8.0, Verdict.INCONCLUSIVE)]
)
def test_an_effect_above_the_physical_ceiling_cannot_pass(ceiling: float | None, verdict: Verdict) -> None:
    judged = judge(speed(5, ceiling_pct=ceiling), DATA["D1_clear_win"]["boot_metric"], EIGHT)
    suspect = "above the physical ceiling: the measurement is suspect" in judged.notes
    assert (judged.verdict, suspect) == (verdict, ceiling == 8.0)


def test_a_ceiling_does_not_save_a_claim_that_fails() -> None:
    judged = judge(speed(20, ceiling_pct=8), DATA["D1_clear_win"]["boot_metric"], EIGHT)
    assert judged.verdict is Verdict.FAIL
    assert judged.boots_to_resolve is None


@pytest.mark.parametrize(
    ("band", "word"),
    [((7, 12), "confirmed in band"), ((8.5, 12), "in band"), ((1, 8), "above band"), ((9, 12), "below band")],
)
def test_a_prediction_is_compared_and_does_not_decide(band: tuple[float, float], word: str) -> None:
    judged = judge(speed(5, expect_pct=band), DATA["D1_clear_win"]["boot_metric"], EIGHT)
    assert judged.expectation == word
    assert word in judged.notes
    assert judged.verdict is Verdict.PASS


def test_a_move_inside_the_margin_passes_and_is_told() -> None:
    values = [value + (1.0 if arm == "B" else 0.0) for arm, value in zip(EIGHT, _rates("D6a_accept_pass"), strict=True)]
    judged = judge(acceptance(), values, EIGHT)
    assert judged.verdict is Verdict.PASS
    assert "moved by 1.1 pp, inside the margin" in judged.notes


def test_a_boot_that_stands_apart_is_told_and_kept() -> None:
    judged = judge(speed(0), DATA["D12_outlier_boot"]["boot_metric"], EIGHT)
    assert "boot 5 stands apart (studentised residual -29.4): kept" in judged.notes


def test_a_claim_that_is_decided_needs_no_more_boots() -> None:
    assert judge(speed(5), DATA["D1_clear_win"]["boot_metric"], EIGHT).boots_to_resolve is None
