"""The verdict look by look, from records alone: what stays, what goes on, what ends, and what voided boots do."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from campaign.bracket.looks import Outcome, judge, look_lines
from campaign.bracket.reruns import HOST_UNFIT, Voided, spent
from campaign.config import Campaign
from campaign.evidence import BootRecord
from campaign.host.registry import Known
from campaign.journal import RunFolder
from campaign.names import PREFIX_HIT_PCT, STEP_PER_S, acceptance_pp
from campaign.planning.plan import Plan, make
from campaign.told.result import result_of
from tests.fakes.evidence import whole
from verdict.history import History
from verdict.words import Verdict

SIXTEEN = "ABBABAABABBABAAB"
CLEAR = [100 + 9 * (x == "B") + (0.2, -0.3, 0.1, 0.0)[i % 4] for i, x in enumerate(SIXTEEN)]
# eight boots that say +3 % on a sd that lets nobody be sure, then eight that do
LATER = [100.0, 106, 101.5, 100, 103, 103, 100, 105, 99.5, 107, 107, 99.5, 105, 100, 100.5, 104]
NOTHING = [100.0, 101.1, 99.2, 100.2, 98.9, 101, 99, 100.7, 100, 99.1, 100.9, 100.1, 99.3, 100.8, 99.9, 100.3]


@pytest.fixture
def plan(exp8: Campaign) -> Plan:
    exp8.bracket.mirror = False
    return make(exp8, "exp8-20261130-120000-5f3c")


def records(rates: Sequence[float], **fields: Any) -> tuple[BootRecord, ...]:
    """Boots with these speeds, in which every other gate finds what it looks for."""
    n = len(rates)
    made = whole(SIXTEEN[:n], list(rates), **fields).boots
    return tuple(replace(r, seconds={"total": 60.0}, facts=r.facts | {"resolved": "{}"}) for r in made)


def words(outcome: Outcome, gate: str = "step_rate") -> list[tuple[str, int]]:
    """The gate's verdict at each look, with the look that it is from."""
    return [(r.verdict.value, r.look) for look in outcome.looks for r in look.results if r.gate == gate]


# looks


def test_a_claim_that_the_first_look_decides_ends_the_bracket_there(plan: Plan) -> None:
    found = judge(plan, records(CLEAR[:8]))
    assert words(found) == [("PASS", 1)]
    assert (found.ends, found.evidence.letters) == ("nothing is left that more boots could decide", SIXTEEN[:8])
    (line,) = (r.line for r in found.results if r.gate == "step_rate")
    assert "97.8 %" in line
    assert line.endswith("look 1 of 3")


def test_nothing_is_judged_between_two_looks(plan: Plan) -> None:
    found = judge(plan, records(CLEAR[:7]))
    assert (found.looks, found.ends) == ((), "")
    assert "7 of 8 boots ran" in next(r.line for r in found.results if r.gate == "step_rate")


def test_an_open_claim_goes_on_and_a_decided_one_stays_as_it_was_told(plan: Plan) -> None:
    eight, ten, twelve = (judge(plan, records(LATER[:n])) for n in (8, 10, 12))
    assert words(eight) == words(ten) == [("INCONCLUSIVE", 1)]
    assert (eight.ends, ten.ends) == ("", "")
    assert words(twelve) == [("INCONCLUSIVE", 1), ("PASS", 2)]
    assert words(twelve, "acceptance") == [("PASS", 1), ("PASS", 1)]
    (line,) = look_lines(twelve.looks[0], plan)
    assert line.startswith(
        "look 1 of 3   8 boots: acceptance PASS +0.00 pp [+0.00, +0.00] 95.3 %, step_rate INCONCLUSIVE"
    )
    assert line.endswith("goes on to 12 boots")


def test_boots_beyond_the_look_that_ended_it_change_nothing(plan: Plan) -> None:
    eight, more = judge(plan, records(CLEAR[:8])), judge(plan, records([*CLEAR[:8], 70, 200, 70, 200]))
    assert [r.line for r in more.results] == [r.line for r in eight.results]


def test_the_last_look_ends_it_whatever_it_says(plan: Plan) -> None:
    plan.campaign.bracket.futility = False
    found = judge(plan, records(NOTHING))
    assert [word for word, _ in words(found)] == ["INCONCLUSIVE"] * 3
    assert (found.ends, found.verdict) == ("it is the last look", Verdict.INCONCLUSIVE)


def test_an_estimate_on_the_gate_is_futile_and_going_on_all_the_same_is_allowed(plan: Plan) -> None:
    given_up = judge(plan, records(NOTHING[:8]))
    assert given_up.ends.startswith("futility: step_rate: the estimate lies ")
    plan.campaign.bracket.futility = False
    assert judge(plan, records(NOTHING[:8])).ends == ""


FAILING: dict[str, Callable[[BootRecord], BootRecord]] = {
    "quality": lambda r: replace(r, answers=tuple(
        replace(a, ok=a.ok and not (a.prompt_id == "q8" and r.letter == "B"), why="no") for a in r.answers)),
    "kv": lambda r: replace(r, kv=r.kv and replace(r.kv, blocks=10)),
}  # fmt: skip


@pytest.mark.parametrize("gate", FAILING)
def test_a_gate_that_fails_ends_it_although_a_claim_is_open(plan: Plan, gate: str) -> None:
    found = judge(plan, tuple(map(FAILING[gate], records(LATER[:8]))))
    assert (found.ends, found.verdict) == (f"{gate} is FAIL", Verdict.FAIL)


UNSTEADY = [70, 71.1, 68.9, 70, 71.2, 69.0, 70, 71.0, 70, 70.2, 70, 70.1]  # acceptance, open at the first look


def two_looks(*last: BootRecord) -> tuple[BootRecord, ...]:
    """Twelve boots whose speed passes at the first look and whose acceptance does not, these the last of them."""
    boots = [
        replace(r, metrics=r.metrics | {acceptance_pp(1): rate})
        for r, rate in zip(records(CLEAR[:12]), UNSTEADY, strict=True)
    ]
    return (*boots[: 12 - len(last)], *last)


BREAKING: dict[str, tuple[Callable[[BootRecord], BootRecord], float, str, str]] = {
    "lost answers": (lambda r: replace(r, answers=r.answers[:-1]), 0, "FAIL", "no rate of lost answers"),
    "no reading": (
        lambda r: replace(r, metrics={k: v for k, v in r.metrics.items() if k != STEP_PER_S}),
        0, "INCONCLUSIVE", "step_per_s is missing in boot 12-A"),
    "a block that does not close": (
        lambda r: replace(r, metrics=r.metrics | {STEP_PER_S: 130.0}), 0.2, "VOID", "block 3 (ABBA): its outer bases"),
    "another work": (
        lambda r: replace(r, metrics=r.metrics | {PREFIX_HIT_PCT: 80.0}), 0, "INVALID", "prefix-cache hits differ"),
}  # fmt: skip


@pytest.mark.parametrize("name", BREAKING)
def test_what_breaks_after_a_look_that_passed_is_told(exp8: Campaign, name: str) -> None:
    """A claim that passed at the first look does not hide that its later boots cannot be judged."""
    exp8.bracket.mirror, exp8.bracket.futility = False, False
    breaks, sd_pct, word, told = BREAKING[name]
    history = Known(History(sd_pct / 100, 20)) if sd_pct else None
    plan = make(exp8, "exp8-1", history)
    boots = tuple(replace(r, metrics=r.metrics | {PREFIX_HIT_PCT: 0.0}) for r in two_looks())
    assert words(judge(plan, boots))[:2] == [("PASS", 1), ("PASS", 1)]
    found = judge(plan, (*boots[:-1], breaks(boots[-1])))
    assert words(found) == [("PASS", 1), (word, 0)]
    assert found.verdict is not Verdict.PASS
    assert told in next(r.line for r in found.results if r.gate == "step_rate")


def test_a_speed_that_says_nothing_is_not_waited_for(exp8: Campaign) -> None:
    exp8.bracket.mirror, exp8.engine.logic_only = False, "Triton's interpreter"
    plan = make(exp8, "exp8-1")
    found = judge(plan, records(LATER[:8]))
    assert found.ends == "nothing is left that more boots could decide"


def test_a_patchs_own_gates_have_no_correction_however_many_they_are(plan: Plan) -> None:
    """Intersection-union: the level of a claim does not depend on how many gates stand beside it (section 1.11)."""
    both = judge(plan, records(CLEAR[:8]))
    plan.campaign.gates.acceptance = plan.campaign.gates.outputs = plan.campaign.gates.korean = None
    alone = judge(plan, records(CLEAR[:8]))
    lines = [next(r.line for r in found.results if r.gate == "step_rate") for found in (both, alone)]
    assert lines[0] == lines[1]
    assert result_of(plan, both)["correction"].startswith("none: every gate must pass")


def test_a_run_that_was_planned_without_looks_is_judged_once_at_its_end(exp8: Campaign) -> None:
    exp8.bracket.mirror, exp8.bracket.looks = False, []
    plan = make(exp8, "exp8-1")
    found = judge(plan, records(CLEAR[:8]))
    (line,) = (r.line for r in found.results if r.gate == "step_rate")
    assert (found.ends, words(found)) == ("nothing is left that more boots could decide", [("PASS", 1)])
    assert "look" not in line
    assert "97.8 %" not in line
    assert look_lines(found.looks[0], plan) == []


# minutes


def test_a_bracket_whose_minutes_would_be_passed_ends_before_the_boots_that_would_pass_them(exp8: Campaign) -> None:
    exp8.bracket.mirror, exp8.bracket.max_minutes = False, 11.0
    plan = make(exp8, "exp8-1")
    assert judge(plan, records(LATER[:7])).ends == ""
    found = judge(plan, records(LATER[:8]))
    assert found.ends == "bracket.max_minutes=11: the next 4 boots would end at about 12 minutes"
    assert judge(plan, records(LATER[:4])).ends == ""
    besides = judge(plan, records(LATER[:4]), besides_s=190.0)  # burn-ins, failed attempts, base beside base
    assert besides.ends == "bracket.max_minutes=11: the next 4 boots would end at about 11 minutes"
    assert words(found) == [("INCONCLUSIVE", 1)]


# voided boots


def voided(record: BootRecord, **metrics: float) -> BootRecord:
    return replace(record, status="void", reason="foreign CPU 1.2 cores", metrics=record.metrics | metrics)


def test_the_result_with_the_voided_boots_stands_beside_the_one_without(plan: Plan) -> None:
    boots = records(CLEAR[:8])
    spoiled = voided(boots[1], **{STEP_PER_S: 80.0})
    found, clean = judge(plan, boots, [[spoiled]]), judge(plan, boots)
    (result,) = (r for r in found.results if r.gate == "step_rate")
    assert result.verdict is Verdict.PASS
    assert "1 voided   look 1 of 3" in result.line
    (beside,) = (text for text in result.details if text.startswith("with the voided boots: "))
    assert "which would be INCONCLUSIVE (9 boots ABBBABAAB)" in beside
    without = next(r for r in clean.results if r.gate == "step_rate")
    assert result.judgement == without.judgement
    assert not any("voided" in text for text in without.details)
    assert [f"{b.index}{b.status}" for b in found.evidence.boots[:3]] == ["1ok", "2void", "2ok"]
    assert result_of(plan, found)["voided"] == ["02-B: foreign CPU 1.2 cores"]


BUDGETS: dict[str, tuple[int, int, Sequence[int], int, str]] = {
    "the first": (1, 2, [], 3, ""),
    "another of the block": (1, 2, [2], 3, "1 of 1 re-run of block 1 is used"),
    "of the next block": (1, 2, [2], 5, ""),
    "the third in all": (1, 2, [2, 5], 9, "2 of 2 re-runs are used"),
    "none is allowed": (1, 0, [], 1, "0 of 0 re-runs are used"),
    "two a block": (2, 2, [2], 3, ""),
}


@pytest.mark.parametrize(("a_block", "in_all", "before", "now", "why"), BUDGETS.values(), ids=BUDGETS)
def test_a_spoiled_boot_is_run_again_within_its_budget(
    plan: Plan, a_block: int, in_all: int, before: Sequence[int], now: int, why: str
) -> None:
    plan.campaign.bracket.reruns_per_block, plan.campaign.bracket.reruns = a_block, in_all
    boots = records(CLEAR)
    found = spent(plan, voided(boots[now - 1]), [[voided(boots[i - 1])] for i in before])
    assert found.startswith(why) if why else found == ""


def test_a_block_that_is_run_again_counts_once(plan: Plan) -> None:
    boots = records(CLEAR)
    block: Voided = [[voided(b) for b in boots[:4]]]
    assert spent(plan, voided(boots[4]), block) == ""
    assert spent(plan, voided(boots[4]), [*block, [voided(boots[9])]]).startswith("2 of 2")


def test_a_machine_that_cannot_start_anything_is_unfit_at_once_and_its_resume_is_not_counted(plan: Plan) -> None:
    boot = records(CLEAR)[0]
    unfit = replace(voided(boot), facts=boot.facts | {HOST_UNFIT: "true"})
    assert spent(plan, unfit, []) != ""
    assert spent(plan, voided(boot), [[unfit], [unfit], [unfit]]) == ""


def test_a_spent_budget_is_void_and_tells_no_number(plan: Plan) -> None:
    boots = records(CLEAR[:8])
    found = judge(plan, (*boots[:2], voided(boots[2])), [[voided(boots[1])]])
    assert (found.verdict, int(found.code)) == (Verdict.VOID, 4)
    assert "HOST-UNFIT, 1 of 1 re-run of block 1 is used (bracket.reruns_per_block): arm candidate" in found.ends
    assert "%" not in found.results[0].line


# the journal of voided boots


def test_a_voided_boot_is_gone_from_the_records_and_kept_with_its_reason(tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path / "runs", "exp8-1")
    boots = records(CLEAR[:4])
    folder.keep(*boots)
    folder.void([3, 4], "the ends of ABBA are 7.1 % apart")
    assert [r.index for r in folder.records()] == [1, 2]
    ((third, fourth),) = folder.voided()
    assert (third.index, third.status, third.reason) == (3, "void", "the ends of ABBA are 7.1 % apart")
    assert fourth.metrics == boots[3].metrics
    folder.keep(boots[2])
    assert [r.status for r in folder.records()] == ["ok"] * 3
    assert folder.voided() == ((third, fourth),)
