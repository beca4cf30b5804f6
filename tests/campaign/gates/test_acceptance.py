"""Twin of campaign.gates.acceptance."""

import pytest
from numpy.random import default_rng

from campaign.evidence import DraftCounts
from campaign.gates.acceptance import Acceptance
from campaign.gates.chain import collapse, totals
from campaign.gates.paired import paired_differences
from campaign.names import acceptance_pp
from tests.fakes.evidence import acceptance, bracket, died, drafts, speculating
from verdict.words import Verdict

BASE = drafts(781, 610, 470, 355, 260)


def check(candidate=BASE, base=BASE, gate=None, **fields):
    plain = {"base": speculating(base), "candidate": speculating(candidate), "claims": (acceptance(),)}
    return (gate or Acceptance()).check(bracket(**(plain | fields)))


def test_identical_counters_pass_as_identical():
    result = check()
    assert result.verdict is Verdict.PASS
    assert result.line.startswith("PASS          accept pos1 +0.00 pp")
    assert "identical" in result.line


def test_every_position_is_reported_with_its_counts():
    details = check().details
    assert "accept pos1 of all drafts: base 78.1 % (3124/4000), candidate 78.1 % (3124/4000)" in details
    assert "accept pos5 given pos4: base 73.2 % (1040/1420), candidate 73.2 % (1040/1420)" in details


def test_a_move_of_the_first_position_out_of_the_margin_fails():
    result = check(candidate=drafts(700, 550, 420, 320, 235))
    assert result.verdict is Verdict.FAIL
    assert "must stay within +-2 pp" in result.line


@pytest.mark.case("C13")
def test_a_later_position_under_half_of_bases_conditional_rate_is_a_collapse():
    result = check(candidate=drafts(781, 200, 150, 110, 80))
    assert result.verdict is Verdict.FAIL
    assert "chain collapse after pos1: pos2 given pos1 25.6 % (800/3124), base 78.1 % (2440/3124)" in result.line


def test_a_collapse_is_judged_by_conditional_rates_not_by_plain_ones():
    assert "after pos3" in check(candidate=drafts(781, 610, 470, 120, 90)).line


def test_position_one_that_stays_and_a_chain_that_shrinks_a_little_is_no_collapse():
    assert check(candidate=drafts(781, 500, 320, 200, 120)).verdict is Verdict.PASS


@pytest.mark.case("C13")
def test_the_log_line_of_a_healthy_chain_holds_its_own_conditional_rates():
    line = drafts(739, 478, 261, 174, 130, 87, 43)
    assert check(candidate=line, base=line).verdict is Verdict.PASS
    assert line.acceptance_length == pytest.approx(2.912)


def test_a_rate_of_a_handful_of_drafts_is_not_judged_as_collapse():
    few = drafts(19, 2, 1, 1, 1, drafted=25)
    assert "collapse" not in check(base=drafts(19, 15, 12, 10, 8, drafted=25), candidate=few, letters="AB").line


def test_repeats_of_an_arm_are_no_new_drafts_by_which_alike_chains_collapse():
    """Boots of one arm draft alike: read as new drafts, 15 to 24 % of such arms fell (statistics.md 1.7, point 4)."""
    draws = default_rng(5)

    def arm(drafted):
        reached = [drafted]
        for _ in range(5):
            reached.append(int(draws.binomial(reached[-1], 0.4)))
        return totals([DraftCounts(drafted, tuple(reached[1:]))] * 8)

    for drafted in (30, 60, 150):
        fell = sum(bool(collapse(arm(drafted), arm(drafted), 0.5, 20)) for _ in range(300))
        assert fell <= 3, f"{fell} of 300 of {drafted} drafts a boot"


def test_what_is_under_the_limit_and_not_shown_to_be_is_inconclusive_and_says_why():
    base, candidate = drafts(40, 20, drafted=50), drafts(40, 9, drafted=50)
    result = check(candidate=candidate, base=base)
    assert result.verdict is Verdict.INCONCLUSIVE
    assert "a chain collapse is neither shown nor excluded after pos1: pos2 given pos1 22.5 % (36/160)" in result.line
    assert "40 drafts and 40 of base that are no repeats" in result.line
    assert "more boots are more repeats" in result.line
    assert check(candidate=drafts(40, 1, drafted=50), base=base).verdict is Verdict.FAIL


def test_a_position_that_is_too_thin_to_be_judged_says_so():
    found = check(candidate=drafts(40, 19, 0, drafted=50), base=drafts(40, 19, 12, drafted=50))
    assert found.verdict is Verdict.PASS
    (thin,) = [line for line in found.details if "thin" in line]
    assert thin.startswith("accept pos3 given pos2: base 63.2 % (48/76), candidate 0.0 % (0/76), thin: no collapse is")


@pytest.mark.case("C5", "C8")
def test_a_length_near_one_with_three_drafted_is_an_ineffective_drafter():
    result = check(candidate=drafts(10, 6, 4))
    assert result.verdict is Verdict.FAIL
    assert "drafter ineffective: candidate gets 1.02 tokens a step of 3 drafted" in result.line


@pytest.mark.parametrize("candidate", [drafts(0, 0, 0), drafts(700, 500, 300)], ids=["in both arms", "in base only"])
@pytest.mark.case("C5")
def test_an_ineffective_drafter_of_base_fails_too_and_says_that_nothing_was_compared(candidate):
    result = check(candidate=candidate, base=drafts(0, 0, 0))
    assert result.verdict is Verdict.FAIL
    assert "base gets 1.00 tokens a step of 3 drafted; a comparison with such a base means nothing" in result.line


@pytest.mark.case("C8")
def test_a_candidate_whose_drafts_are_never_accepted_fails_although_base_is_normal():
    result = check(candidate=drafts(0, 0, 0), base=drafts(750, 550, 400))
    assert result.verdict is Verdict.FAIL
    assert "drafter ineffective: candidate gets 1.00 tokens a step of 3 drafted" in result.line


def test_one_drafted_token_that_is_seldom_taken_is_not_called_ineffective():
    assert "ineffective" not in check(candidate=drafts(40), base=drafts(40)).line


@pytest.mark.parametrize("counts", [None, drafts(0, 0, 0, drafted=0), drafts()], ids=["none", "zero", "no positions"])
def test_no_drafts_are_not_an_acceptance_of_zero(counts):
    result = check(candidate=BASE, at={2: {"natural": counts}})
    assert result.verdict is Verdict.INCONCLUSIVE
    assert "no drafts in window of boot 02-B (candidate)" in result.line
    assert "not wired" in result.line
    assert result.numbers == {}


def test_paired_differences_average_the_boots_of_a_prompt():
    by_boot = {2: drafts(80, drafted=100), 3: drafts(90, drafted=100)}
    evidence = bracket(
        "ABBA",
        base={"by_prompt": {"q1": drafts(70, drafted=100), "q2": drafts(0, drafted=0)}},
        at={i: {"by_prompt": {"q1": counts, "q2": counts}} for i, counts in by_boot.items()},
    )
    assert paired_differences(evidence, acceptance()) == [pytest.approx(15.0)]


def test_prompts_that_move_apart_widen_the_interval_of_boots_that_are_identical():
    apart = {f"quality/q{i}": drafts(781 + move) for i, move in enumerate((-200, 200, -150, 150))}
    result = check(at={i: {"by_prompt": apart} for i in (2, 3, 5, 8)})
    assert result.verdict is Verdict.INCONCLUSIVE
    assert result.judgement.interval.half_width > 10


def test_without_counters_a_prompt_it_says_so():
    result = check(at={i: {"by_prompt": {}} for i in range(1, 9)})
    assert result.details[0].startswith("without the spread of the prompts")


def test_a_missing_claim_is_inconclusive():
    result = check(claims=())
    assert result.verdict is Verdict.INCONCLUSIVE
    assert "no claim is registered as acceptance" in result.line


def test_a_failed_boot_leaves_the_claim_open():
    result = check(at={5: died(natural=None)})
    assert result.verdict is Verdict.INCONCLUSIVE
    assert "boot 05-B failed" in result.line


def test_an_arm_that_never_ran_leaves_it_open():
    result = check(at={i: died(natural=None) for i in (2, 3, 5, 8)})
    assert result.verdict is Verdict.INCONCLUSIVE


def test_numbers_carry_every_position_of_both_arms():
    numbers = check().numbers
    assert numbers[f"base_{acceptance_pp(5)}"] == pytest.approx(26.0)
    assert numbers["candidate_acceptance_length"] == pytest.approx(3.476)
    assert numbers["effect_pp"] == 0


def test_the_limit_of_collapse_is_a_field():
    assert check(candidate=drafts(781, 500, 320, 200, 120), gate=Acceptance(collapse_ratio=0.9)).verdict is Verdict.FAIL


def test_an_arm_that_shows_fewer_positions_has_collapsed_there():
    result = check(candidate=drafts(781, 640))
    assert result.verdict is Verdict.FAIL
    assert "chain collapse after pos2" in result.line
