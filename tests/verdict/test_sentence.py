import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from verdict.claims import Claim, ClaimKind, Direction, Judgement, judge
from verdict.errors import VerdictError
from verdict.fit import Scale
from verdict.history import History
from verdict.interval import Interval
from verdict.sentence import Counted, applied_margin, claim_line, count_line, decimals, head, signed, size, void_line
from verdict.words import Verdict

DATA = {d["id"]: d for d in json.loads(Path(__file__).with_name("vectors.json").read_text())["datasets"]}
EIGHT = "ABBABAAB"


def speed(name: str, gate: float, kind: ClaimKind = ClaimKind.superiority, **more: Any) -> Judgement:
    way = more.pop("direction", Direction.HIGHER)
    history = more.pop("history", None)
    claim = Claim("speed", "step_per_s", kind, gate, Scale.LOG, way, **more)
    return judge(claim, DATA[name]["boot_metric"], DATA[name]["schedule"], history=history)


def acceptance(name: str, **more: Any) -> Judgement:
    claim = Claim("acceptance", "acceptance_pos1_pp", ClaimKind.equivalence, 2, Scale.LINEAR, Direction.TWO_SIDED)
    rates = [100 * accepted / drafts for accepted, drafts in DATA[name]["accepted_drafts"]]
    return judge(claim, rates, EIGHT, **more)


# Whole lines, or their beginnings, as they stand in statistics.md section 4.
DESIGN_LINES = {
    "pass": (
        claim_line(speed("D1_clear_win", 5, expect_pct=(7, 12)), "step/s", "%"),
        "PASS          step/s      +8.8 %  [+8.2, +9.3]   gate >= +5   expected 7..12: confirmed in band   "
        "8 boots ABBABAAB   could see 0.7 %",
    ),
    "fail": (
        claim_line(speed("D2_null", 5), "step/s", "%"),
        "FAIL          step/s      -0.1 %  [-1.4, +1.2]   gate >= +5   whole interval below the gate",
    ),
    "acceptance stays": (
        claim_line(acceptance("D6a_accept_pass"), "accept p1", "pp"),
        "PASS          accept p1   +0.13 pp [-0.09, +0.35] 90 %   must stay within +-2 pp",
    ),
    "acceptance open": (
        claim_line(acceptance("D6b_accept_inconclusive"), "accept p1", "pp"),
        "INCONCLUSIVE  accept p1   +1.13 pp [-0.87, +3.13] 90 %   must stay within +-2 pp: "
        "not shown to move, not shown to stay",
    ),
    "screen": (
        claim_line(speed("D5a_tiny_ABA", 5, history=History(0.006, 8)), "step/s", "%"),
        "SCREEN-PROMOTE step/s     +9.7 %  [+7.9, +11.6] borrowed error bar, 3 boots: not a verdict",
    ),
}


@pytest.mark.parametrize(("line", "design"), DESIGN_LINES.values(), ids=DESIGN_LINES)
def test_a_claim_is_told_as_in_the_design(line: str, design: str) -> None:
    assert line.startswith(design)


def test_a_pass_is_told_in_one_whole_line() -> None:
    line, design = DESIGN_LINES["pass"]
    assert line == design


INCONCLUSIVE = {
    "acceptance": (acceptance("D6b_accept_inconclusive"), "pp", "could see 2.9 pp; 44 boots would resolve 1.1 pp"),
    "speed": (speed("D12_outlier_boot", 0), "%", "could see 6.4 %; 36 boots would resolve 2.5 %"),
    "on the gate": (speed("D2_null", 0), "%", "the estimate sits on the bound: over 1000 boots would be needed"),
    "no error bar": (speed("D5a_tiny_ABA", 5), "%", "8 boots would give a verdict"),
    "screen": (
        speed("D5a_tiny_ABA", 5, history=History(0.006, 8)),
        "%",
        "could see 2.4 %; 8 boots would resolve 1.5 %",
    ),
    "ceiling": (speed("D1_clear_win", 5, ceiling_pct=8), "%", "could see 0.7 %; find out what was measured"),
    "prompts": (
        acceptance("D6a_accept_pass", paired_differences=[9.0, -9.0, 8.0, -8.0]),
        "pp",
        "more prompts, not more boots, would resolve it",
    ),
    "boots beside prompts": (
        acceptance("D6b_accept_inconclusive", paired_differences=[0.5, -0.5, 0.4, -0.4] * 4),
        "pp",
        "boots would resolve it",
    ),
}


@pytest.mark.parametrize(("judged", "unit", "end"), INCONCLUSIVE.values(), ids=INCONCLUSIVE)
def test_an_open_claim_says_what_would_resolve_it(judged: Judgement, unit: str, end: str) -> None:
    assert judged.verdict is Verdict.INCONCLUSIVE
    assert claim_line(judged, "x", unit).endswith(end)


def test_readings_that_never_vary_are_not_offered_more_boots() -> None:
    claim = Claim("speed", "step_per_s", ClaimKind.superiority, 2, Scale.LOG, Direction.HIGHER)
    line = claim_line(judge(claim, [70.0] * 8, EIGHT), "step/s", "%")
    assert line.endswith("identical   8 boots ABBABAAB   readings that never vary cannot resolve it")


def test_an_effect_without_an_error_bar_says_so_in_its_place() -> None:
    line = claim_line(speed("D5a_tiny_ABA", 5), "step/s", "%")
    assert line.startswith("INCONCLUSIVE  step/s      +9.7 %  [no error bar yet]   3 boots: not a verdict   gate >= +5")
    assert line.count("no error bar yet") == 1


def test_a_loss_of_a_lower_is_better_metric_says_which_way_is_better() -> None:
    judged = speed("D7_lower_is_better", 3, ClaimKind.non_inferiority, direction=Direction.LOWER)
    line = claim_line(judged, "TPOT", "%")
    assert line.startswith("PASS          TPOT        -2.0 %  [-2.2, -1.7] 90 %   may lose at most 3 %")
    assert "lower is better: + is a gain" in line


@pytest.mark.parametrize(
    ("name", "text"), [("D2_null", "no difference shown"), ("D1_clear_win", "zero lies outside the interval")]
)
def test_no_difference_is_never_told_as_no_change(name: str, text: str) -> None:
    line = claim_line(speed(name, 0, ClaimKind.no_difference), "step/s", "%")
    assert text in line
    assert "no change" not in line


def test_a_planned_look_names_its_level_and_its_number() -> None:
    claim = Claim("speed", "step_per_s", ClaimKind.superiority, 5, Scale.LOG, Direction.HIGHER)
    judged = judge(claim, DATA["D1_clear_win"]["boot_metric"], EIGHT, level=0.978)
    line = claim_line(judged, "step/s", "%", voided_boots=4, look=(2, 3))
    assert "97.8 %   gate" in line
    assert line.endswith("4 voided   look 2 of 3")


def test_a_long_schedule_is_told_by_its_boots_alone() -> None:
    judged = speed("D8_sequential", 0)
    assert "16 boots ABBABAABABBABAAB" in claim_line(judged, "x", "%")
    assert "16 boots   could" in claim_line(replace(judged, letters="ABBA" * 5), "x", "%")


@pytest.mark.parametrize(
    ("half_width", "unit", "places"),
    [(1.1, "%", 1), (0.5, "%", 1), (0.05, "%", 2), (0.004, "%", 3), (2.0, "pp", 2), (0.006, "pp", 3), (0.0, "%", 1)],
)
def test_an_effect_is_rounded_to_the_first_digit_of_its_half_width(half_width: float, unit: str, places: int) -> None:
    judged = replace(speed("D1_clear_win", 5), interval=Interval(-half_width, half_width, 0.95, 0.0))
    assert decimals(judged, unit) == places


def test_a_number_has_its_sign_and_zero_is_never_negative() -> None:
    assert [signed(x, 1) for x in (1.26, -1.26, -0.04, 0.0)] == ["+1.3", "-1.3", "+0.0", "+0.0"]


def test_a_small_width_does_not_become_nothing() -> None:
    assert [size(x) for x in (12.34, 0.66, 0.0123)] == ["12.3", "0.7", "0.012"]


@pytest.mark.parametrize("word", [*Verdict, "SCREEN-PROMOTE", "SCREEN-DROP"])
def test_the_effects_stand_in_one_column(word: str) -> None:
    assert len(head(word, "step/s")) == 26
    assert head(word, "step/s").split() == [word, "step/s"]


def test_a_long_label_keeps_its_space() -> None:
    assert head(Verdict.PASS, "acceptance at position one") == "PASS          acceptance at position one "


COUNTS = {
    "no failure": (
        count_line(Verdict.PASS, "Korean", 0, 16, noun="corrupt", counted=Counted.FAILURES),
        "PASS          Korean      0/16 corrupt   shows <= 17.1 % (95 %); 0/59 needed for 5 %",
    ),
    "one failure": (
        count_line(Verdict.FAIL, "Korean", 1, 16, noun="corrupt", counted=Counted.FAILURES),
        "FAIL          Korean      1/16 corrupt   shows <= 26.4 % (95 %)",
    ),
    "enough": (
        count_line(Verdict.PASS, "Korean", 0, 59, noun="corrupt", counted=Counted.FAILURES),
        "PASS          Korean      0/59 corrupt   shows <= 5.0 % (95 %)",
    ),
    "all right": (
        count_line(Verdict.PASS, "quality", 9, 9, noun="correct", counted=Counted.SUCCESSES),
        "PASS          quality     9/9 correct   shows >= 71.7 % (95 %); 59/59 needed for 95 %",
    ),
    "one wrong": (
        count_line(Verdict.FAIL, "quality", 8, 9, noun="correct", counted=Counted.SUCCESSES),
        "FAIL          quality     8/9 correct   shows >= 57.1 % (95 %)",
    ),
}


@pytest.mark.parametrize(("line", "design"), COUNTS.values(), ids=COUNTS)
def test_a_count_says_what_it_shows(line: str, design: str) -> None:
    assert line == design


def test_a_count_names_the_rate_it_was_asked_for() -> None:
    line = count_line(Verdict.PASS, "Korean", 0, 16, noun="corrupt", counted=Counted.FAILURES, proven_rate=0.02)
    assert line.endswith("0/149 needed for 2 %")


def test_an_impossible_count_is_refused() -> None:
    with pytest.raises(VerdictError, match="found 17 of 16"):
        count_line(Verdict.PASS, "Korean", 17, 16, noun="corrupt", counted=Counted.FAILURES)


def test_a_void_block_says_how_far_its_ends_are_apart() -> None:
    line = void_line("step/s", 0.0555127099303, 0.0379618741679, History(0.008, 8), reruns_left=1, reruns=2)
    assert line == (
        "VOID          step/s      bases 5.6 % apart (limit 3.8 %, host sd 0.8 %): measure again (1 of 2 re-runs left)"
    )


@pytest.mark.parametrize(
    ("kind", "scale", "bound", "told"),
    [
        (ClaimKind.equivalence, Scale.LOG, 5.0, "-4.76 to +5.00 %, symmetric in ln"),
        (ClaimKind.non_inferiority, Scale.LOG, 5.0, "down to -4.76 %, in ln"),
        (ClaimKind.equivalence, Scale.LINEAR, 2.0, ""),
        (ClaimKind.superiority, Scale.LOG, 5.0, ""),
        (ClaimKind.no_difference, Scale.LOG, 0.0, ""),
    ],
    ids=str,
)
def test_a_margin_in_per_cent_is_told_as_it_is_applied(kind: ClaimKind, scale: Scale, bound: float, told: str) -> None:
    assert applied_margin(Claim("c", "m", kind, bound, scale, Direction.HIGHER)) == told
