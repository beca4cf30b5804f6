"""Twin of campaign.gates.quality (and of items and counted, which it shares with korean)."""

from dataclasses import replace

import pytest

from campaign.evidence import WitnessRow
from campaign.gates.quality import Quality
from tests.fakes.evidence import VERDICT, answer, bracket, died, drafts, right, wrong
from verdict.words import Verdict

GATE = Quality("prompts.jsonl")
ALL_RIGHT = tuple(right(f"q{i}") for i in range(9))


HIDDEN = answer("q8", text="", finish_reason="length", why="budget: nothing to see at the token limit")


def with_last(last):
    return {"answers": (*ALL_RIGHT[:-1], last)}


def check(**fields):
    return GATE.check(bracket(**({"base": {"answers": ALL_RIGHT}, "candidate": {"answers": ALL_RIGHT}} | fields)))


def test_nine_of_nine_pass_and_say_what_they_show():
    result = check()
    assert result.verdict is Verdict.PASS
    assert result.line.startswith("PASS          quality     9/9 correct   shows >= 71.7 % (95 %)")
    assert result.numbers["shown_pct"] == pytest.approx(71.7, abs=0.05)


def test_one_wrong_answer_in_one_candidate_boot_fails_the_item():
    result = check(at={5: with_last(wrong("q8"))})
    assert result.verdict is Verdict.FAIL
    assert "8/9 correct   shows >= 57.1 %" in result.line
    told = (
        "items that only base fails: 0, that only the candidate fails: 1; exact McNemar p = 1 (told, not the verdict)"
    )
    assert result.details == ("q8: candidate 05-B: wanted '42', got '41' (stop)", told)


def test_the_same_wrong_answer_in_every_boot_is_one_line():
    result = check(candidate=with_last(wrong("q8")))
    assert result.details[0] == "q8: candidate 02-B and 3 more: wanted '42', got '41' (stop)"
    assert len(result.details) == 2


def test_an_item_that_base_fails_too_is_void_and_on_the_line():
    result = check(base=with_last(wrong("q8")), candidate=with_last(wrong("q8")))
    assert result.verdict is Verdict.PASS
    assert "8/8 correct" in result.line
    assert result.line.endswith("1 void, base fails 1")


def test_base_failing_in_one_boot_only_makes_the_item_void_too():
    result = check(at={1: with_last(wrong("q8"))}, candidate=with_last(wrong("q8")))
    assert result.verdict is Verdict.PASS
    assert "1 void" in result.line


def test_an_item_that_only_base_fails_is_passed_and_told():
    result = check(base=with_last(wrong("q8")))
    assert result.verdict is Verdict.PASS
    assert "9/9 correct" in result.line
    assert result.line.endswith("base fails 1")


@pytest.mark.case("H11")
def test_zero_in_every_arm_is_the_harness_and_no_pass():
    nothing = {"answers": tuple(wrong(f"q{i}") for i in range(9))}
    result = check(base=nothing, candidate=nothing)
    assert result.verdict is Verdict.INCONCLUSIVE
    assert "harness suspect: 0/9 in every arm" in result.line


def test_zero_in_the_candidate_alone_is_a_fail():
    assert check(candidate={"answers": tuple(wrong(f"q{i}") for i in range(9))}).verdict is Verdict.FAIL


def test_an_answer_behind_the_token_limit_is_no_wrong_answer():
    hidden = answer("q8", text="", finish_reason="length", why="budget: nothing to see at the token limit")
    result = check(candidate=with_last(hidden))
    assert result.verdict is Verdict.INCONCLUSIVE
    assert "1 of 9 items could not be judged" in result.line
    assert "budget" in result.details[0]


@pytest.mark.case("H8")
@pytest.mark.parametrize("theirs", [right("q8"), HIDDEN, wrong("q8")], ids=["right", "hidden too", "wrong"])
def test_a_budget_that_hides_bases_answer_is_no_failure_of_base_that_lets_the_candidate_off(theirs):
    result = check(base=with_last(HIDDEN), candidate=with_last(theirs))
    assert result.verdict is (Verdict.PASS if theirs.ok else Verdict.INCONCLUSIVE)
    assert "void" not in result.line
    assert theirs.ok or "1 of 9 items could not be judged" in result.line


@pytest.mark.case("H8")
def test_a_wrong_answer_fails_where_a_base_boot_is_right_and_another_hid_its_answer_behind_the_limit():
    result = check(at={4: with_last(HIDDEN)}, candidate=with_last(wrong("q8")))
    assert result.verdict is Verdict.FAIL
    assert "8/9 correct" in result.line


def test_void_items_alone_are_no_pass():
    failing, passing = {"answers": (wrong("q1"),)}, {"answers": (right("q1"),)}
    result = GATE.check(bracket(base=passing, candidate=failing, at={4: failing}))
    assert result.verdict is Verdict.INCONCLUSIVE
    assert "harness suspect: 0/1 in every arm" in result.line


@pytest.mark.case("H14")
def test_another_rendered_prompt_is_invalid_before_any_count():
    longer = tuple(right(f"q{i}", prompt_tokens=51) for i in range(9))
    result = check(candidate={"answers": longer})
    assert result.verdict is Verdict.INVALID
    assert "quality/q0 has 12 tokens in boot 01-A and 51 in boot 02-B" in result.line


def test_no_answers_cannot_be_judged():
    result = check(base={}, candidate={})
    assert result.verdict is Verdict.INCONCLUSIVE
    assert "no answers to judge" in result.line


def test_an_item_that_the_candidate_never_got_is_not_passed():
    assert check(candidate={"answers": ALL_RIGHT[:-1]}).verdict is Verdict.INCONCLUSIVE


def test_a_failed_boot_is_named():
    result = check(at={5: died()})
    assert result.verdict is Verdict.INCONCLUSIVE
    assert "boot 05-B failed: engine died" in result.line


def test_a_wrong_answer_before_a_failed_boot_is_still_a_fail():
    assert check(at={2: with_last(wrong("q8")), 5: died()}).verdict is Verdict.FAIL


def test_a_bracket_that_stopped_early_says_how_far_it_came():
    cut = bracket("ABB", base={"answers": ALL_RIGHT}, candidate={"answers": ALL_RIGHT})
    assert "3 of 8 boots ran" in GATE.check(replace(cut, letters=VERDICT)).line


def test_korean_answers_stay_readable_in_the_details():
    result = check(candidate=with_last(wrong("q8", why="wanted '서울', got '부산' (stop)")))
    assert "wanted '서울', got '부산'" in result.details[0]


@pytest.mark.case("H5")
def test_a_right_answer_with_a_remark_is_told():
    noted = right("q8", why="right, but its Hangul is decomposed (NFD): compared in NFC")
    result = check(candidate=with_last(noted))
    assert result.verdict is Verdict.PASS
    assert "NFD" in result.details[0]


@pytest.mark.case("H14")
def test_other_tokens_of_as_many_are_another_rendered_prompt():
    hashed = tuple(right(f"q{i}", prompt_hash="aa") for i in range(9))
    other = tuple(right(f"q{i}", prompt_hash="bb") for i in range(9))
    result = check(base={"answers": hashed}, candidate={"answers": other})
    assert result.verdict is Verdict.INVALID
    assert "quality/q0 has other tokens in boot 02-B than in boot 01-A (12 in both)" in result.line
    assert check(base={"answers": hashed}).verdict is Verdict.PASS  # an engine that gives no ids is compared by number


@pytest.mark.case("H8")
@pytest.mark.parametrize(
    ("theirs", "sentence"),
    [
        ({"max_tokens": 8192}, "had a budget of 4096 tokens in boot 01-A and of 8192 in boot 02-B"),
        (
            {"max_tokens": 4096, "token_ids": (7,) * 64},
            "had a budget of 4096 tokens in boot 01-A and of 64 in boot 02-B",
        ),
    ],
    ids=["another question", "a shorter limit of the engine's own"],
)
def test_arms_with_different_budgets_are_not_compared(theirs, sentence):
    cut = right("q8", max_tokens=4096, token_ids=(7,) * 4096, finish_reason="length")
    result = check(base=with_last(cut), candidate=with_last(replace(cut, **theirs)))
    assert result.verdict is Verdict.INVALID
    assert sentence in result.line


@pytest.mark.case("H7")
def test_a_loop_without_an_accepted_draft_is_one_fault_with_the_arms_to_bisect_it():
    looped = with_last(wrong("q8", "wanted '42', got 'think think' (stop); loop: 'think ' 40 times in a row"))
    refused = {"by_prompt": {"quality/q8": drafts(0, 0, 0, drafted=57)}}
    result = check(candidate=looped | refused)
    assert result.verdict is Verdict.FAIL
    told = result.details[-1]
    assert told.startswith(
        "q8: a loop, and 0 of its 57 drafts accepted in 02-B: one fault; to bisect, run this candidate"
    )
    assert all(word in told for word in ("enforce_eager=true", "cudagraph_mode=NONE", "as it is"))
    accepted = {"by_prompt": {"quality/q8": drafts(30, 20, 10, drafted=57)}}
    assert not any("one fault" in line for line in check(candidate=looped | accepted).details)


@pytest.mark.case("H13")
def test_a_pass_names_the_knobs_that_it_holds_for():
    pair = (
        WitnessRow("prefix_cache", "asked", "flag", "1", "1", True),
        WitnessRow("async_dflash", "asked", "variable", "1", "1", True),
        WitnessRow("model.method", "asked", "method", "dflash", "dflash", True),
    )
    both = {"answers": ALL_RIGHT, "witness": pair, "facts": {"prompts_cache": "warm: every prompt was asked twice"}}
    result = check(candidate=both)
    assert result.verdict is Verdict.PASS
    assert result.details == (
        "holds for exactly prefix_cache=1, async_dflash=1, measured in these engines; prompts answered cold and warm",
    )


@pytest.mark.case("H13")
def test_each_knob_alone_passes_and_the_pair_fails():
    """Accuracies 0.86, 0.86, 0.85 and 0.66 of 50 items: each bracket is judged on its own arms alone."""
    of = {n: tuple(right(f"q{i}") if i < n else wrong(f"q{i}") for i in range(50)) for n in (43, 33)}
    assert check(base={"answers": of[43]}, candidate={"answers": of[43]}).verdict is Verdict.PASS
    result = check(base={"answers": of[43]}, candidate={"answers": of[33]})
    assert result.verdict is Verdict.FAIL
    assert "33/43 correct" in result.line
    assert any("that only the candidate fails: 10; exact McNemar p = 0.00195" in line for line in result.details)


def test_a_claimed_rate_needs_the_bound_and_says_how_many_items_show_it():
    claiming = Quality("prompts.jsonl", claimed_above_pct=95)
    result = claiming.check(bracket(base={"answers": ALL_RIGHT}, candidate={"answers": ALL_RIGHT}))
    assert result.verdict is Verdict.INCONCLUSIVE
    assert "no failure in 9 items shows at most 28.3 % failing (95 %), claimed is under 5 %: 59 items" in result.line
    many = {"answers": tuple(right(f"q{i}") for i in range(59))}
    assert claiming.check(bracket(base=many, candidate=many)).verdict is Verdict.PASS
