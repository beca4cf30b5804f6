"""Twin of campaign.gates.korean."""

from campaign.gates.korean import Korean
from tests.fakes.evidence import bracket, right, wrong
from verdict.words import Verdict

GATE = Korean("korean.jsonl")
CLEAN = tuple(right(f"k{i}", prompt_set="korean") for i in range(16))
CORRUPT = wrong("k15", "1 broken characters, the first U+FFFD in '생각에 �겼다'", prompt_set="korean")


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
