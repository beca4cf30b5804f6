"""Several candidates of one base, planned: their letters, their order, what is refused, what a dry run shows."""

import copy
from collections.abc import Callable
from dataclasses import replace

import pytest

from campaign.brackets import SQUARE, Together
from campaign.config import Arm, Campaign, ClaimConfig, ClaimKindName
from campaign.errors import ConfigError, InvalidError
from campaign.names import BASE
from campaign.planning.plan import Plan, make
from tests.fakes.several import CONF, four_arms

HEAVY = ("torch", "vllm", "mlflow", "pandas", "scipy.stats", "matplotlib")
FOUR = ("base", "ahead", "fewer", "both")


@pytest.fixture(scope="module")
def composed() -> Campaign:
    """Base and three others, on the fake engine, with no coin."""
    return four_arms()


@pytest.fixture
def several(composed: Campaign) -> Campaign:
    """The same, free to be changed."""
    return copy.deepcopy(composed)


def planned(campaign: Campaign) -> Plan:
    return make(campaign, "fake7x8-1")


def test_letters_follow_the_order_of_the_arms_and_each_boot_knows_its_own(several: Campaign) -> None:
    plan = planned(several)
    assert (tuple(plan.arms), plan.candidates) == (FOUR, {"ahead": "B", "fewer": "C", "both": "D"})
    assert plan.schedule.blocks == ("ABDC", "BCAD", "CDBA", "DACB")
    assert [boot.arm for boot in plan.boots[:4]] == ["base", "ahead", "both", "fewer"]
    assert [boot.name for boot in plan.boots[:4]] == ["01-A", "02-B", "03-B", "04-B"]
    assert [(boot.arm, boot.index) for boot in plan.one_of_each] == [(arm, n) for n, arm in enumerate(FOUR, 1)]
    assert plan.looks.boots == (16,)


def test_base_is_a_wherever_it_is_written(several: Campaign) -> None:
    several.arms = {name: several.arms[name] for name in ("both", "fewer", "base", "ahead")}
    assert planned(several).candidates == {"both": "B", "fewer": "C", "ahead": "D"}


def test_a_candidate_is_seen_as_two_arms_with_its_own_boots_in_their_order(several: Campaign) -> None:
    plan = planned(several)
    view = plan.view("both")
    assert (tuple(view.arms), view.schedule.letters, view.looks.boots) == (("base", "both"), "ABABBABA", (8,))
    assert (view.candidates, [tuple(v.arms)[1] for v in plan.views]) == ({}, list(FOUR[1:]))
    assert (tuple(plan.seen_from(BASE)), tuple(plan.seen_from("fewer"))) == (FOUR, ("base", "fewer"))


def test_two_arms_are_their_own_view(exp8: Campaign) -> None:
    plan = make(exp8, "exp8-1")
    assert (plan.views, plan.candidates, tuple(plan.seen_from(BASE))) == ((plan,), {}, ("base", "candidate"))
    assert [boot.arm for boot in plan.one_of_each] == ["base", "candidate"]


def test_the_coin_reads_the_rows_from_right_to_left(several: Campaign) -> None:
    several.bracket.mirror = True
    orders = {make(several, f"fake7x8-{n}").schedule.blocks for n in range(12)}
    assert orders == {("ABDC", "BCAD", "CDBA", "DACB"), ("CDBA", "DACB", "ABDC", "BCAD")}


def test_three_arms_take_two_squares_and_an_arm_may_be_called_candidate(several: Campaign) -> None:
    arms = {"base": several.arms["base"], "candidate": several.arms["ahead"], "fewer": several.arms["fewer"]}
    several.arms, several.bracket.together = arms, None
    plan = planned(several)
    assert (plan.schedule.n_boots, plan.candidates) == (18, {"candidate": "B", "fewer": "C"})
    assert [boot.arm for boot in plan.boots[:3]] == ["base", "candidate", "fewer"]


def test_what_is_registered_are_the_letters_of_the_arms_and_what_is_together(several: Campaign) -> None:
    first = planned(several).claims_digest
    several.arms = {name: several.arms[name] for name in ("base", "fewer", "ahead", "both")}
    second = planned(several).claims_digest
    several.bracket.together = None
    assert len({first, second, planned(several).claims_digest}) == 3


def two_arms(campaign: Campaign) -> None:
    campaign.arms = {name: campaign.arms[name] for name in ("base", "ahead")}


def without_base(campaign: Campaign) -> None:
    del campaign.arms["base"]


def odd_name(campaign: Campaign) -> None:
    campaign.arms["Fast er"] = campaign.arms.pop("ahead")


def sameness(campaign: Campaign) -> None:
    campaign.claims["step_rate"] = ClaimConfig(kind=ClaimKindName.no_difference, metric="step_per_s")


def of_two_arms(campaign: Campaign) -> None:
    campaign.bracket = replace(campaign.bracket, kind=type(campaign.bracket.kind).boots, schedule="ABBA", together=None)


WRONG: dict[str, tuple[Callable[[Campaign], None], str]] = {
    "two arms": (two_arms, r"has the arms base, ahead; wanted base and two to 9 others.*bracket=verdict"),
    "no base": (without_base, r"has the arms ahead, fewer, both; wanted base and"),
    "a name": (odd_name, r"arms\.Fast er: wanted lower-case letters, digits and '_'"),
    "sameness": (sameness, r"claims\.step_rate: bracket=latin compares arms that differ"),
    "another bracket": (of_two_arms, r"has base, ahead, fewer, both; bracket=latin measures several candidates"),
}


@pytest.mark.parametrize(("change", "words"), WRONG.values(), ids=WRONG)
def test_arms_that_the_bracket_does_not_take_are_refused(
    several: Campaign, change: Callable[[Campaign], None], words: str
) -> None:
    change(several)
    with pytest.raises(ConfigError, match=words):
        planned(several)


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (Together("both", ["ahead"]), "found arm both of the parts ahead; wanted an arm and two others"),
        (Together("both", ["ahead", "both"]), "found arm both of the parts ahead, both; wanted an arm and two others"),
        (Together("both", ["ahead", "none_such"]), "no candidate 'none_such'; there are ahead, fewer, both"),
        (Together("both", ["ahead", "base"]), "no candidate 'base'"),
    ],
)
def test_what_is_together_are_three_candidates(several: Campaign, found: Together, words: str) -> None:
    several.bracket.together = found
    with pytest.raises(ConfigError, match=words):
        planned(several)


def test_two_arms_have_nothing_together(exp8: Campaign) -> None:
    exp8.bracket.together = Together("candidate", ["base", "candidate"])
    with pytest.raises(ConfigError, match=r"bracket\.together is of several arms"):
        make(exp8, "exp8-1")


@pytest.mark.parametrize(
    ("schedule", "words"),
    [
        ("ABDC BCAD CDBA DACE", "bracket.schedule: found the letter 'E', wanted A, B, C, D for the 4 arms"),
        ("ABBA BAAB", "row ABBA is not complete"),
        ("ABCD ABCD", "no Latin square"),
    ],
)
def test_an_order_that_is_no_complete_design_is_refused(several: Campaign, schedule: str, words: str) -> None:
    several.bracket.schedule = schedule
    with pytest.raises(ConfigError, match=words):
        planned(several)


def test_planned_looks_are_of_two_arms(several: Campaign) -> None:
    several.bracket.looks = [8, 16]
    with pytest.raises(ConfigError, match=r"bracket\.looks=\[8, 16\]: a bracket of several arms is judged once"):
        planned(several)


def test_more_boots_than_are_allowed_are_refused(several: Campaign) -> None:
    several.bracket.schedule, several.bracket.max_boots = SQUARE, 12
    with pytest.raises(ConfigError, match=r"bracket\.schedule has 16 boots, bracket\.max_boots allows 12"):
        planned(several)


def test_candidates_that_are_alike_are_refused(several: Campaign) -> None:
    several.arms["fewer"] = several.arms["ahead"]
    with pytest.raises(InvalidError, match="arms identical: ahead and fewer ask for the same"):
        planned(several)


def test_a_candidate_that_is_base_is_refused_by_its_name(several: Campaign) -> None:
    several.arms["fewer"] = Arm(serve={"async_scheduling": False})
    with pytest.raises(InvalidError, match="arms identical: base and fewer ask for the same overlays"):
        planned(several)


def test_a_dry_run_of_several_arms_imports_nothing_heavy(python) -> None:
    run = (
        "import sys; from campaign.__main__ import main; code = main(sys.argv[1:]); "
        f"print('HEAVY', *sorted(set({HEAVY!r}) & set(sys.modules))); sys.exit(code)"
    )
    done = python("-c", run, "--config-dir", CONF, "exp=fake7x8", "dry_run=true")
    assert (done.returncode, done.stdout.rpartition("HEAVY")[2].strip()) == (0, ""), done.stdout + done.stderr


def test_a_dry_run_shows_arms_order_contrasts_and_what_could_be_seen(asked) -> None:
    words = ["--config-dir", CONF, "exp=fake7x8", "bracket.mirror=false", "host.registry=null"]
    done = asked(*words, "dry_run=true")
    assert done.returncode == 0, done.stderr
    for told in (
        "  differ by   fewer: serve max_num_seqs 4 -> 3",
        "  bracket     ABDC BCAD CDBA DACB: 16 boots (A is base, B ahead, C fewer, D both), about 2 minutes",
        "  contrasts   step_rate: ahead - base, fewer - base, both - base; one fit with a dummy each, Holm over 3.",
        "  interaction both - ahead - fewer (+ base): told with its interval, and no part of the verdict",
        "  could see   step/s 2.6 % at a boot sd of 1 %",
        "  could see   interaction 3.1 % at a boot sd of 1 %",
    ):
        assert told in done.stdout
    assert done.stdout.endswith("dry run: nothing was started\n")


@pytest.mark.parametrize(
    ("word", "code", "told"),
    [
        ("arms.ahed.knobs.fake_async=1", 2, "no arm 'ahed'"),
        ("arms.ahead.knobs.fake_async=2", 2, "fake_async"),
        ("bracket.together=null", 0, "Holm over 3"),
        ("bracket.schedule='ABCD BADC CDAB DCBA'", 0, "ABCD BADC CDAB DCBA: 16 boots"),
    ],
)
def test_the_command_line_changes_an_arm_and_the_bracket(asked, word: str, code: int, told: str) -> None:
    done = asked("--config-dir", CONF, "exp=fake7x8", "bracket.mirror=false", "dry_run=true", word)
    assert (done.returncode, told in done.stdout + done.stderr) == (code, True), done.stdout + done.stderr
