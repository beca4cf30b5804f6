"""Several candidates of one base, judged on planted readings: each beside base, the speeds in one fit."""

import copy
import time
from dataclasses import replace
from pathlib import Path

import pytest

from campaign.bracket import several
from campaign.bracket.bench import Bench
from campaign.bracket.looks import Outcome, judge
from campaign.bracket.session import Progress, _proven_unlike, void_the_broken_off, void_the_tainted
from campaign.config import Campaign
from campaign.errors import ExitCode
from campaign.evidence import BootRecord
from campaign.gates.base import GateResult
from campaign.gates.fused import Fused
from campaign.journal import RunFolder
from campaign.names import MACHINE_BOOT, STEP_PER_S
from campaign.planning.plan import Plan, make
from tests.fakes.evidence import wrong
from tests.fakes.several import boots, four_arms
from verdict.words import Verdict

GAINS = {"ahead": 0.05, "fewer": 0.03, "both": 0.08}
ARMS = ("ahead", "fewer", "both")
GATES = ("kv", "quality", "korean", "outputs", "acceptance", "step_rate")


@pytest.fixture(scope="module")
def composed() -> Campaign:
    """Base and three others, on the fake engine, with no coin."""
    return four_arms()


@pytest.fixture
def campaign(composed: Campaign) -> Campaign:
    """The same, free to be changed."""
    return copy.deepcopy(composed)


@pytest.fixture
def plan(campaign: Campaign) -> Plan:
    return make(campaign, "fake7x8-1")


def gate(outcome: Outcome, name: str) -> GateResult:
    """The one answer of this name."""
    (found,) = [result for result in outcome.results if result.gate == name]
    return found


def test_every_gate_is_asked_of_every_candidate_by_its_name(plan: Plan) -> None:
    outcome = judge(plan, tuple(boots(plan, GAINS)))
    assert [r.gate for r in outcome.results] == [f"{arm} {name}" for arm in ARMS for name in GATES] + ["interaction"]
    assert {r.verdict for r in outcome.results[:-1]} == {Verdict.PASS}
    assert gate(outcome, "fewer kv").line.startswith("PASS          fewer  KV ")
    assert (outcome.verdict, outcome.code) == (Verdict.PASS, ExitCode.PASS)
    assert outcome.ends == "nothing is left that more boots could decide"


def test_the_speeds_are_judged_in_one_fit_with_holms_p(plan: Plan) -> None:
    outcome = judge(plan, tuple(boots(plan, GAINS)))
    for arm in ARMS:
        found = gate(outcome, f"{arm} step_rate")
        assert found.judgement is not None
        assert (found.judgement.fit.df, found.judgement.letters) == (16 - 3 - 2, plan.schedule.letters)
        assert 0 < found.numbers["p_holm"] < 0.05
        assert "Holm over 3: p " in found.line
        assert f"16 boots {plan.schedule.letters}" in found.line
    claim = gate(outcome, "ahead acceptance").judgement
    assert claim is not None
    assert (claim.letters, claim.fit.n_boots) == (plan.view("ahead").schedule.letters, 8)


def test_a_planted_interaction_is_named_with_its_interval_and_changes_no_code(plan: Plan) -> None:
    more = judge(plan, tuple(boots(plan, GAINS | {"both": 0.14})))
    found = gate(more, "interaction")
    assert found.line.startswith("INTERACTION   step/s      +")
    assert "both beyond ahead and fewer: more than the sum of its parts" in found.line
    assert 0 < found.numbers["lo_pct"] < found.numbers["effect_pct"] < found.numbers["hi_pct"]
    assert (found.verdict, more.code) == (Verdict.INCONCLUSIVE, ExitCode.PASS)
    less = judge(plan, tuple(boots(plan, GAINS | {"both": 0.05})))
    assert "less than the sum of its parts" in gate(less, "interaction").line
    added = gate(judge(plan, tuple(boots(plan, GAINS))), "interaction")
    assert "INCONCLUSIVE, not shown to be more or less than the sum of its parts" in added.line


def test_nothing_is_said_of_what_is_not_together(campaign: Campaign) -> None:
    campaign.bracket.together = None
    plan = make(campaign, "fake7x8-1")
    assert judge(plan, tuple(boots(plan, GAINS))).results[-1].gate == "both step_rate"


def test_a_gate_that_fails_fails_its_arm_by_name_and_no_other(plan: Plan) -> None:
    ran = [replace(b, answers=(wrong("q0"), *b.answers[1:])) if b.arm == "fewer" else b for b in boots(plan, GAINS)]
    outcome = judge(plan, tuple(ran))
    assert [r.gate for r in outcome.results if r.verdict is Verdict.FAIL] == ["fewer quality"]
    assert (outcome.code, outcome.ends) == (ExitCode.FAIL, "fewer quality is FAIL")


def test_a_slower_arm_fails_although_the_others_gain(plan: Plan) -> None:
    outcome = judge(plan, tuple(boots(plan, GAINS | {"fewer": -0.04})))
    assert gate(outcome, "fewer step_rate").verdict is Verdict.FAIL
    assert {gate(outcome, f"{arm} step_rate").verdict for arm in ("ahead", "both")} == {Verdict.PASS}
    assert outcome.code is ExitCode.FAIL


def test_a_gate_about_an_overlay_is_asked_of_the_arms_that_have_it(campaign: Campaign) -> None:
    campaign.gates.fused = Fused(overlay="fake_async")
    plan = make(campaign, "fake7x8-1")
    found = [r.gate for r in judge(plan, tuple(boots(plan, GAINS))).results if r.gate.endswith("fused")]
    assert found == ["ahead fused", "both fused"]


def test_no_speed_is_judged_before_every_arm_has_its_boots(plan: Plan) -> None:
    """The last row lacks a boot of an arm that the first candidate has nothing to do with."""
    ran = [b if b.index < 16 else replace(b, metrics={}) for b in boots(plan, GAINS)]
    outcome = judge(plan, tuple(ran))
    assert plan.boots[-1].arm == "ahead"
    assert "step_per_s is missing in boot 16-B" in gate(outcome, "ahead step_rate").line
    assert "15 of 16 boots gave step_per_s" in gate(outcome, "fewer step_rate").line
    assert not [r for r in outcome.results if r.gate == "interaction"]


def test_an_engine_that_only_proves_its_logic_gives_no_speed_and_no_interaction(campaign: Campaign) -> None:
    campaign.engine.logic_only = "Triton's interpreter"
    plan = make(campaign, "fake7x8-1")
    outcome = judge(plan, tuple(boots(plan, GAINS | {"both": 0.14})))
    for name in (*(f"{arm} step_rate" for arm in ARMS), "interaction"):
        found = gate(outcome, name)
        assert found.verdict is Verdict.INCONCLUSIVE
        assert "logic only (Triton's interpreter)" in found.line
        assert all(number.startswith("logic_only.") for number in found.numbers)
        assert "sum of its parts" not in found.line
    assert outcome.code is ExitCode.INCONCLUSIVE


def test_what_the_voided_boots_would_say_is_told_beside_the_verdict(plan: Plan) -> None:
    ran = boots(plan, GAINS)
    void = replace(ran[1], status="void", reason="foreign CPU", metrics=ran[1].metrics | {STEP_PER_S: 60.0})
    outcome = judge(plan, tuple(ran), voided=((void,),))
    found = gate(outcome, "ahead step_rate")
    assert found.verdict is Verdict.PASS
    assert any("with the voided boots" in line and "17 boots" in line for line in found.details)


def test_a_boot_that_failed_ends_it_and_names_its_arm(plan: Plan) -> None:
    ran = boots(plan, GAINS)[:3]
    outcome = judge(plan, (*ran[:2], replace(ran[2], status="failed", reason="engine died", metrics={})))
    assert outcome.code is ExitCode.FAIL
    assert "arm both, boot 03-B: engine died" in outcome.results[0].line


def test_an_answer_as_one_bracket_gives_it_is_got_back(plan: Plan) -> None:
    result = GateResult("kv", Verdict.PASS, "PASS          KV          base 100")
    told = several.told_of(plan, "both", result)
    assert (told.gate, told.line) == ("both kv", "PASS          both   KV          base 100")
    assert several.alone(plan, "both", told) == result


# between two boots


@pytest.fixture
def bench(plan: Plan, tmp_path: Path) -> Bench:
    return Bench(plan, RunFolder.create(tmp_path / "runs", "fake7x8-1"), {}, {}, lambda _: None)


def kept(bench: Bench, ran: list[BootRecord]) -> Progress:
    bench.folder.keep(*ran)
    return Progress.of(bench.plan, bench.folder)


def test_a_row_that_was_broken_off_is_begun_again(bench: Bench) -> None:
    ran = [replace(b, facts=b.facts | {MACHINE_BOOT: "one"}) for b in boots(bench.plan, GAINS)[:6]]
    run = kept(bench, ran)
    void_the_broken_off(bench, run, "one", time.time() + 7200)
    assert [r.index for r in run.records] == [1, 2, 3, 4]
    assert [r.index for group in run.voided for r in group] == [5, 6]


def test_a_boot_that_the_machine_spoiled_is_run_again_in_its_place(bench: Bench) -> None:
    ran = boots(bench.plan, GAINS)[:3]
    run = kept(bench, [*ran[:2], replace(ran[2], status="void", reason="foreign CPU")])
    void_the_tainted(bench, run)
    assert ([r.index for r in run.records], run.ended()) == ([1, 2], "")


def test_a_candidate_that_shows_itself_as_base_is_invalid_and_the_others_are_not(plan: Plan) -> None:
    base, ahead, both, fewer = boots(plan, GAINS)[:4]
    alike = replace(fewer, facts=base.facts)
    assert [_proven_unlike(plan, [base], one).status for one in (ahead, both, fewer)] == ["ok"] * 3
    found = _proven_unlike(plan, [base, ahead, both], alike)
    assert (found.status, found.metrics) == ("invalid", {})
    assert "arms identical: both engines run the same files" in found.reason
    unswitched = replace(ahead, facts=ahead.facts | {"resolved": base.facts["resolved"]})
    assert "knob fake_async changes nothing" in _proven_unlike(plan, [base, both], unswitched).reason


def test_rows_have_no_outer_pair_that_could_void_them(bench: Bench) -> None:
    """The ends of a row are of different arms, however far apart they are."""
    ran = boots(bench.plan, {"both": 0.5, "fewer": -0.5})[:4]
    run = kept(bench, ran)
    void_the_tainted(bench, run)
    assert len(run.records) == 4
