"""What a run of several candidates leaves: result.json, a record for each claim of two arms, one page, its tags."""

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from campaign.bracket import several
from campaign.bracket.looks import Outcome, judge
from campaign.door import compose
from campaign.inspection import look_into
from campaign.names import TAG_ARM
from campaign.planning.plan import Plan, make
from campaign.told import recorded, report
from campaign.told.result import result_of
from campaign.tracking import projection
from tests.fakes.several import boots
from verdict.fit import Scale
from verdict.several import contrasts

CONF = str(Path(__file__).resolve().parents[2] / "conf")
GAINS = {"ahead": 0.05, "fewer": 0.03, "both": 0.14}
EVIL = "<script>alert(1)</script>"


@pytest.fixture(scope="module")
def ran() -> tuple[Plan, Outcome]:
    """A finished run, with a hypothesis that no page may take as it is."""
    campaign = compose(["--config-dir", CONF, "exp=fake7x8", "bracket.mirror=false"])
    assert campaign is not None
    campaign.hypothesis = EVIL
    plan = make(campaign, "fake7x8-1")
    return plan, judge(plan, tuple(boots(plan, GAINS)))


def test_the_result_holds_what_its_contrasts_can_be_made_again_from(ran: tuple[Plan, Outcome]) -> None:
    plan, outcome = ran
    found = result_of(plan, outcome)
    assert (found["kind"], found["verdict"], found["order"]) == ("latin", "PASS", plan.schedule.letters)
    assert found["arms"] == {"A": "base", "B": "ahead", "C": "fewer", "D": "both"}
    assert found["boots"][:2] == ["01-A base ok", "02-B ahead ok"]
    assert found["correction"].startswith("Holm over the candidates")
    again = {one.letter: one for one in contrasts(found["readings"]["step_rate"], found["order"], scale=Scale.LOG)}
    told = {gate["gate"]: gate["numbers"] for gate in found["gates"]}
    for letter, arm in list(found["arms"].items())[1:]:
        assert told[f"{arm} step_rate"]["effect_pct"] == pytest.approx(again[letter].interval.estimate)
    assert told["interaction"]["lo_pct"] > 0


def test_each_claim_of_two_arms_leaves_a_record_that_is_judged_again_as_the_run_was(
    ran: tuple[Plan, Outcome], tmp_path: Path
) -> None:
    recorded.write(tmp_path, *ran)
    files = sorted((tmp_path / "records").iterdir())
    assert [file.stem for file in files] == [f"{arm}.acceptance" for arm in ("ahead", "both", "fewer")]
    for file in files:
        assert ("", "  as the run told it") in look_into(file).rows


def test_the_page_has_a_section_an_arm_the_contrasts_and_no_script(ran: tuple[Plan, Outcome], tmp_path: Path) -> None:
    plan, outcome = ran
    by_arm = several.each(plan, outcome.evidence)
    results = (*outcome.results, replace(outcome.results[0], line=f"PASS          {EVIL}"))
    report.write(tmp_path, plan.campaign, outcome.evidence, results, outcome.verdict, plan.arms, by_arm)
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    for title in (
        "Contrasts with base", "ahead: Bracket of ahead acceptance", "fewer: Acceptance by position",
        "both: Acceptance by position", "Arm ahead", "Arm both",
    ):  # fmt: skip
        assert f"<h2>{title}</h2>" in page
    assert "Order ABDCBCADCDBADACB (A base, B ahead, C fewer, D both)" in page
    assert "more than the sum of its parts" in page
    assert "Bracket of ahead step_rate" not in page
    assert "<script" not in page
    assert "Contrasts with base" in (tmp_path / "report.md").read_text(encoding="utf-8")


def test_the_tracker_gets_a_boot_by_its_arms_name_and_numbers_by_arm(ran: tuple[Plan, Outcome]) -> None:
    _, outcome = ran
    arms = Counter(projection.boot_tags(boot)[TAG_ARM] for boot in outcome.evidence.boots)
    assert arms == {"base": 4, "ahead": 4, "fewer": 4, "both": 4}
    names = {name for name, *_ in projection.experiment_numbers(outcome.evidence, outcome.results, outcome.verdict)}
    assert {"ahead.step_rate.effect_pct", "both.step_rate.p_holm", "interaction.effect_pct"} <= names
    assert projection.verdict_tags(outcome.results, outcome.verdict)["gate.fewer.kv"] == "PASS"
    assert "claim.both.step_rate" in projection.claim_tags(outcome.results)
