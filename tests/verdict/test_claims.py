import json
from pathlib import Path
from typing import Any

import pytest

from verdict.claims import Claim, ClaimKind, Direction, decide, judge
from verdict.errors import VerdictError
from verdict.fit import Scale
from verdict.words import Verdict

VECTORS = json.loads(Path(__file__).with_name("vectors.json").read_text())
DATA = {d["id"]: d for d in VECTORS["datasets"]}
TABLE = VECTORS["decision_table"]
EIGHT = "ABBABAAB"
KINDS = {kind.replace("_", ""): kind for kind in ClaimKind}


def speed(bound: float, kind: ClaimKind = ClaimKind.superiority, **more: Any) -> Claim:
    direction = more.pop("direction", Direction.HIGHER)
    return Claim("speed", "step_per_s", kind, bound, Scale.LOG, direction, **more)


def acceptance(margin_pp: float = 2.0, kind: ClaimKind = ClaimKind.equivalence) -> Claim:
    return Claim("acceptance", "acceptance_pos1_pp", kind, margin_pp, Scale.LINEAR, Direction.TWO_SIDED)


def _rates(name: str) -> list[float]:
    return [100 * accepted / drafts for accepted, drafts in DATA[name]["accepted_drafts"]]


def _judged(name: str, claim: Claim, **more: Any) -> Verdict:
    data = DATA[name]
    return judge(claim, data["boot_metric"], data.get("schedule", EIGHT), **more).verdict


@pytest.mark.parametrize("row", TABLE, ids=lambda r: f"{r['kind']} [{r['lo']}, {r['hi']}] against {r['bound']}")
def test_an_interval_is_decided_as_in_the_golden_table(row: dict[str, Any]) -> None:
    assert decide(KINDS[row["kind"]], row["lo"], row["hi"], row["bound"]) is Verdict(row["verdict"])


@pytest.mark.parametrize(
    ("lo", "hi", "verdict"), [(-1, 1, "PASS"), (0, 1, "PASS"), (-1, 0, "PASS"), (0.1, 1, "FAIL"), (-1, -0.1, "FAIL")]
)
def test_no_difference_asks_whether_zero_is_inside(lo: float, hi: float, verdict: str) -> None:
    assert decide(ClaimKind.no_difference, lo, hi, 0) == verdict


@pytest.mark.parametrize(("lo", "hi", "bound"), [(float("nan"), 1, 0), (2, 1, 0), (0, 1, float("nan"))])
def test_an_interval_that_is_none_is_refused(lo: float, hi: float, bound: float) -> None:
    with pytest.raises(VerdictError, match="against a finite bound"):
        decide(ClaimKind.superiority, lo, hi, bound)


@pytest.mark.parametrize(
    ("name", "gate", "verdict"),
    [
        ("D1_clear_win", 5, DATA["D1_clear_win"]["expected"]["verdict_gate_5pct"]),
        ("D1_clear_win", 0, DATA["D1_clear_win"]["expected"]["verdict_gate_0pct"]),
        ("D1_clear_win", 9, DATA["D1_clear_win"]["expected"]["verdict_gate_9pct"]),
        ("D2_null", 0, DATA["D2_null"]["expected"]["verdict_gate_0pct"]),
        ("D2_null", 5, DATA["D2_null"]["expected"]["verdict_gate_5pct"]),
        ("D3a_drift", 0, DATA["D3a_drift"]["expected"]["interleaved_ABBABAAB"]["verdict_gate_0pct"]),
        ("D5c_ABABA", 5, DATA["D5c_ABABA"]["expected"]["verdict_gate_5pct"]),
        ("D12_outlier_boot", 0, DATA["D12_outlier_boot"]["expected"]["verdict_gate_0pct"]),
    ],
)
def test_a_superiority_claim_gets_the_reference_verdict(name: str, gate: float, verdict: str) -> None:
    assert _judged(name, speed(gate)) == verdict


@pytest.mark.parametrize(
    ("name", "margin", "verdict"),
    [
        ("D2_null", 2, DATA["D2_null"]["expected"]["equivalence_2pct"]),
        ("D2_null", 1, DATA["D2_null"]["expected"]["equivalence_1pct"]),
        ("D3a_drift", 2, DATA["D3a_drift"]["expected"]["interleaved_ABBABAAB"]["equivalence_2pct"]),
    ],
)
def test_an_equivalence_claim_of_a_ratio_gets_the_reference_verdict(name: str, margin: float, verdict: str) -> None:
    assert _judged(name, speed(margin, ClaimKind.equivalence)) == verdict


def test_a_noisy_server_is_inconclusive_however_many_requests_it_answered() -> None:
    data = DATA["D4_autocorrelation"]
    judged = judge(speed(0), data["expected"]["boot_metric"], data["schedule"])
    assert judged.verdict == data["expected"]["verdict_gate_0pct"]


@pytest.mark.parametrize("name", ["D6a_accept_pass", "D6b_accept_inconclusive", "D6c_accept_fail"])
def test_an_acceptance_claim_gets_the_reference_verdict(name: str) -> None:
    judged = judge(acceptance(), _rates(name), EIGHT)
    assert judged.verdict == DATA[name]["expected"]["verdict"]
    assert judged.interval is not None
    assert [judged.interval.lo, judged.interval.hi] == pytest.approx(DATA[name]["expected"]["ci90"], rel=1e-9)


def test_the_prompts_of_an_acceptance_claim_widen_its_interval() -> None:
    prompts = DATA["D6d_prompts_x_boots"]
    pairs = zip(prompts["cand_by_prompt"], prompts["base_by_prompt"], strict=True)
    judged = judge(acceptance(), _rates("D6a_accept_pass"), EIGHT, paired_differences=[c - b for c, b in pairs])
    assert judged.verdict == prompts["expected"]["verdict_combined"]
    assert judged.error is not None
    assert judged.error.se == pytest.approx(prompts["expected"]["se_combined"], rel=1e-9)
    assert judged.interval is not None
    assert [judged.interval.lo, judged.interval.hi] == pytest.approx(prompts["expected"]["ci90_combined"], rel=1e-9)


def test_paired_points_do_not_fit_a_ratio() -> None:
    with pytest.raises(VerdictError, match="paired differences are in points"):
        judge(speed(0), DATA["D2_null"]["boot_metric"], EIGHT, paired_differences=[0.1, -0.1])


D7 = DATA["D7_lower_is_better"]["expected"]


@pytest.mark.parametrize(
    ("kind", "bound", "verdict"),
    [
        (ClaimKind.non_inferiority, 3, D7["verdict_noninferior_3pct"]),
        (ClaimKind.non_inferiority, 1, D7["verdict_noninferior_1pct"]),
        (ClaimKind.superiority, 0, D7["verdict_superiority_0"]),
    ],
)
def test_a_rise_of_a_lower_is_better_metric_is_a_loss(kind: ClaimKind, bound: float, verdict: str) -> None:
    assert _judged("D7_lower_is_better", speed(bound, kind, direction=Direction.LOWER)) == verdict


def test_the_interval_of_a_lower_is_better_metric_points_to_better_and_its_fit_to_the_readings() -> None:
    judged = judge(
        speed(3, ClaimKind.non_inferiority, direction=Direction.LOWER), DATA["D7_lower_is_better"]["boot_metric"], EIGHT
    )
    assert judged.interval is not None
    ends = [Scale.LOG.difference(judged.interval.lo), Scale.LOG.difference(judged.interval.hi)]
    assert ends == pytest.approx(D7["oriented_ci90"], rel=1e-9)
    assert judged.fit.delta == pytest.approx(D7["fit_raw"]["delta"], rel=1e-9)
    assert judged.estimate < 0 < judged.fit.delta


@pytest.mark.parametrize("kind", [ClaimKind.equivalence, ClaimKind.no_difference])
def test_the_interval_of_a_must_not_move_claim_keeps_the_sign_of_the_readings(kind: ClaimKind) -> None:
    bound = 3 if kind is ClaimKind.equivalence else 0
    claim = speed(bound, kind, direction=Direction.LOWER)
    assert judge(claim, DATA["D7_lower_is_better"]["boot_metric"], EIGHT).estimate > 0


def test_a_move_down_needs_as_many_boots_as_a_move_up() -> None:
    up = _rates("D6b_accept_inconclusive")
    down = [140 - rate for rate in up]
    boots = judge(acceptance(), up, EIGHT).boots_to_resolve
    assert boots == judge(acceptance(), down, EIGHT).boots_to_resolve == 44


@pytest.mark.parametrize("look", DATA["D8_sequential"]["expected"]["path"], ids=lambda look: f"{look['boots']} boots")
def test_a_planned_look_is_judged_at_its_own_level(look: dict[str, Any]) -> None:
    data, n = DATA["D8_sequential"], look["boots"]
    values, letters = data["boot_metric"][:n], data["schedule"][:n]
    judged = judge(speed(0), values, letters, level=1 - data["nominal_two_sided"])
    assert judged.verdict == look["verdict_gate_0pct"]
    assert judge(speed(0), values, letters).verdict == look["unadjusted_verdict"]


def test_two_hosts_have_one_effect() -> None:
    data = DATA["D9_two_sessions"]
    judged = judge(speed(0), data["boot_metric"], data["schedule"], sessions=data["sessions"])
    assert judged.verdict is Verdict.PASS
    assert judged.interval is not None
    assert judged.interval.lo == pytest.approx(100 * data["expected"]["ci95"][0], rel=1e-9)


@pytest.mark.parametrize(
    ("kind", "bound", "level"),
    [("superiority", 0, 0.95), ("no_difference", 0, 0.95), ("equivalence", 2, 0.9), ("non_inferiority", 2, 0.9)],
)
def test_each_kind_has_its_level(kind: str, bound: float, level: float) -> None:
    judged = judge(speed(bound, ClaimKind(kind)), DATA["D2_null"]["boot_metric"], EIGHT)
    assert judged.interval is not None
    assert judged.level == judged.interval.level == level


def test_a_failed_boot_is_never_judged() -> None:
    with pytest.raises(VerdictError, match="a failed boot is CRASH"):
        judge(speed(5), [100.0] * 7 + [float("nan")], EIGHT)


@pytest.mark.parametrize(
    ("kind", "bound", "sentence"),
    [
        (ClaimKind.equivalence, 0, "over 0, found 0"),
        (ClaimKind.equivalence, float("nan"), "over 0, found nan"),
        (ClaimKind.non_inferiority, -1, "over 0, found -1"),
        (ClaimKind.no_difference, 1, "is 0, found 1"),
        (ClaimKind.superiority, -100, "over -100 %, found -100"),
        (ClaimKind.superiority, float("inf"), "found inf"),
    ],
)
def test_a_bound_that_its_kind_cannot_have_is_refused(kind: ClaimKind, bound: float, sentence: str) -> None:
    with pytest.raises(VerdictError, match=sentence):
        speed(bound, kind)


def test_a_gate_may_be_negative() -> None:
    assert _judged("D2_null", speed(-2)) is Verdict.PASS


@pytest.mark.parametrize("kind", [ClaimKind.superiority, ClaimKind.non_inferiority])
def test_a_claim_of_better_needs_to_know_which_way_is_better(kind: ClaimKind) -> None:
    with pytest.raises(VerdictError, match="needs a direction, found two_sided; say higher or lower"):
        speed(1, kind, direction=Direction.TWO_SIDED)


def test_a_band_whose_ends_are_swapped_is_refused() -> None:
    with pytest.raises(VerdictError, match=r"a band is \[low, high\], found \[12, 7\]"):
        speed(5, expect_pct=(12, 7))


def test_a_plain_word_is_not_taken_for_a_choice() -> None:
    with pytest.raises(VerdictError, match="wanted a Direction"):
        speed(5, direction="lower")


@pytest.mark.parametrize("pair", [(100.0, 105.0), (101.3, 106.365), (99.7, 104.685)], ids=str)
def test_a_tie_at_the_margin_is_one_verdict_whatever_the_last_bit_of_its_readings(pair):
    claim = Claim("speed", "step_per_s", ClaimKind.equivalence, 5.0, Scale.LOG, Direction.TWO_SIDED)
    values = [pair[letter == "B"] for letter in "ABBABAAB"]
    assert judge(claim, values, "ABBABAAB").verdict is Verdict.INCONCLUSIVE
