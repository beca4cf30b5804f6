"""Twin of campaign.gates.korean."""

import pytest

from campaign.gates.korean import Korean
from tests.fakes.evidence import bracket, right, wrong
from verdict.words import Verdict

GATE = Korean("korean.jsonl")
CLEAN = tuple(right(f"k{i}", prompt_set="korean") for i in range(16))
CORRUPT = wrong("k15", "1 broken character, the first U+FFFD in '생각에 �겼다'", prompt_set="korean")


def test_no_corruption_in_sixteen_passes_and_says_what_is_needed_for_five_per_cent():
    result = GATE.check(bracket(base={"answers": CLEAN}, candidate={"answers": CLEAN}))
    assert result.line == ("PASS          Korean      0/16 corrupt   shows <= 17.1 % (95 %); 0/59 needed for 5 %")


def test_one_corrupt_answer_fails_and_shows_the_place():
    result = GATE.check(bracket(base={"answers": CLEAN}, candidate={"answers": (*CLEAN[:-1], CORRUPT)}))
    assert result.verdict is Verdict.FAIL
    assert "1/16 corrupt   shows <= 26.4 %" in result.line
    assert "�겼다" in result.details[0]


def test_a_prompt_that_base_corrupts_too_is_void():
    both = {"answers": (*CLEAN[:-1], CORRUPT)}
    result = GATE.check(bracket(base=both, candidate=both))
    assert result.verdict is Verdict.PASS
    assert "0/15 corrupt" in result.line
    assert "1 void, base fails 1" in result.line


def test_corruption_in_every_arm_and_prompt_is_the_harness():
    broken = {"answers": tuple(wrong(f"k{i}", prompt_set="korean") for i in range(16))}
    result = GATE.check(bracket(base=broken, candidate=broken))
    assert result.verdict is Verdict.INCONCLUSIVE
    assert "harness suspect" in result.line


def test_the_quality_prompts_are_not_counted():
    mixed = {"answers": (*CLEAN, wrong("q1"))}
    assert GATE.check(bracket(base={"answers": CLEAN}, candidate=mixed)).verdict is Verdict.PASS


def test_greedy_answers_alone_say_that_drawn_ones_were_not_shown():
    result = GATE.check(bracket(base={"answers": CLEAN}, candidate={"answers": CLEAN}))
    assert result.details == ("greedy answers only: what happens to drawn ones is not shown (gates.korean.sampled)",)


DRAWN = Korean("korean.jsonl", sampled="drawn.jsonl")
DRAWS = tuple(
    right(f"k{i}{repeat}", prompt_set="korean_sampled", sampled=True)
    for i in range(4)
    for repeat in ("", ".2", ".3", ".4")
)


@pytest.mark.case("H2")
def test_drawn_answers_are_counted_apart_and_are_worth_less_than_their_number():
    both = {"answers": CLEAN + DRAWS}
    result = DRAWN.check(bracket(base=both, candidate=both))
    assert result.verdict is Verdict.PASS
    told = "0/16 corrupt when drawn   shows <= 52.7 % (95 %); 0/59 needed for 5 %   16 draws are worth 4 items"
    assert any(told in line for line in result.details)
    assert result.numbers["sampled_shown_pct"] == pytest.approx(52.7, abs=0.05)


@pytest.mark.case("H2")
def test_a_syllable_that_breaks_only_when_drawn_fails_the_gate_although_greedy_answers_are_clean():
    broken = wrong(
        "k3.4", "1 broken character, the first U+FFFD in '생각에 �겼다'", prompt_set="korean_sampled", sampled=True
    )
    result = DRAWN.check(bracket(base={"answers": CLEAN + DRAWS}, candidate={"answers": (*CLEAN, *DRAWS[:-1], broken)}))
    assert result.verdict is Verdict.FAIL
    assert "1/16 corrupt when drawn" in result.line
    assert any(
        "base fails 0/16, the candidate 1/16: +6 pp [-28, +70] (95 %, as 4 items), Fisher p = 1" in d
        for d in result.details
    )
    assert any("0/16 corrupt   shows" in line for line in result.details)


@pytest.mark.case("H4")
@pytest.mark.parametrize(
    ("foreign", "verdict", "outcome"),
    [(40, Verdict.FAIL, "1/16 corrupt"), (3, Verdict.PASS, "0/15 corrupt")],
    ids=["far more than base", "about as much as base"],
)
def test_foreign_script_that_base_writes_too_is_judged_by_its_share(foreign, verdict, outcome):
    def mixed(count):
        why = f"{count} Han or kana outside brackets and quotes against 60 Hangul, the first '析'"
        return (*CLEAN[:-1], wrong("k15", why, prompt_set="korean", foreign=count, hangul=60))

    result = GATE.check(bracket(base={"answers": mixed(2)}, candidate={"answers": mixed(foreign)}))
    assert result.verdict is verdict
    assert outcome in result.line
    assert any("worse than base, and not void" in line for line in result.details) is (verdict is Verdict.FAIL)


def test_a_claimed_rate_of_corruption_needs_so_many_clean_items():
    claiming = Korean("korean.jsonl", claimed_below_pct=2)
    result = claiming.check(bracket(base={"answers": CLEAN}, candidate={"answers": CLEAN}))
    assert result.verdict is Verdict.INCONCLUSIVE
    assert "149 items would show it" in result.line
    many = {"answers": tuple(right(f"k{i}", prompt_set="korean") for i in range(149))}
    assert claiming.check(bracket(base=many, candidate=many)).verdict is Verdict.PASS
