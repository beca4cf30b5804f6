"""Twin of campaign.gates.warm, through the gates of acceptance and of the time to first token."""

import pytest

from campaign.evidence import DraftCounts, PrefixFacts, PrefixPass
from campaign.gates.acceptance import Acceptance
from campaign.gates.draft_rate import DraftRate
from campaign.gates.paired import paired_differences
from campaign.gates.ttft import Ttft
from campaign.names import ACCEPTANCE_ALL_PP, TTFT_WARM_S
from tests.fakes.evidence import acceptance, bracket, drafts, speculating
from verdict.claims import Claim, ClaimKind, Direction
from verdict.fit import Scale
from verdict.words import Verdict

COLD = drafts(435, 79, 40, 20, 10)
STARVED = drafts(180, 5, 0, 0, 0)
ALL = Claim("draft_rate", ACCEPTANCE_ALL_PP, ClaimKind.equivalence, 0.5, Scale.LINEAR, Direction.TWO_SIDED)
FASTER = Claim("ttft", TTFT_WARM_S, ClaimKind.superiority, 0.0, Scale.LOG, Direction.LOWER)


def one(counts: DraftCounts, hits: int, rounds: int = 1) -> PrefixPass:
    each = {f"p{i}": counts for i in range(2)}
    plain = dict.fromkeys(each, 500)
    times = dict.fromkeys(each, 0.05)
    return PrefixPass(1000, 1000, 2 * hits, 0, each, dict.fromkeys(each, hits), plain, times, rounds)


def arm(warm: DraftCounts, cold: DraftCounts = COLD, hits: int = 0, rounds: int = 1):
    """A boot that drafted so on an emptied and on a full cache; acceptance is claimed on the full one."""
    return speculating(warm) | {"prefix": PrefixFacts(468, one(cold, 0), one(warm, hits, rounds))}


def check(candidate: DraftCounts, cold: DraftCounts = COLD, base: DraftCounts = COLD):
    arms = {"base": arm(base), "candidate": arm(candidate, cold, hits=448)}
    return Acceptance().check(bracket(claims=(acceptance(),), **arms))


def test_drafts_that_come_along_with_the_hits_pass_and_both_passes_are_told():
    found = check(COLD)
    assert found.verdict is Verdict.PASS
    (line,) = [line for line in found.details if line.startswith("candidate, prefix cache cold -> warm")]
    assert "hits 0.0 % -> 89.6 %: pos1 43.5 % (3480/8000) -> 43.5 % (3480/8000)" in line


@pytest.mark.case("C6")
@pytest.mark.parametrize(
    ("cold", "warm", "position"),
    [
        (drafts(780, 600, 500, drafted=1000), drafts(20, 10, 0, drafted=1000), "pos1 2.0 %"),
        (drafts(780, 600, 500, drafted=1000), drafts(780, 60, 50, drafted=1000), "pos2 given pos1 7.7 %"),
    ],
    ids=["of the public report", "behind the first position"],
)
def test_a_collapse_on_a_full_cache_fails_by_name_with_the_share_it_follows(cold, warm, position):
    base = arm(cold, cold)
    arms = {"base": base, "candidate": arm(warm, cold, hits=448)}
    # the claim itself sees nothing where base has collapsed too
    blind = Acceptance().check(bracket(claims=(acceptance(),), **(arms | {"base": arm(warm, cold)})))
    assert blind.verdict is Verdict.FAIL
    assert "acceptance collapses with the hit share (0.0 % -> 89.6 % of the tokens looked up)" in blind.line
    assert position in blind.line
    assert "% of the cold pass" not in blind.line
    assert "of the cold pass that are no repeats" in blind.line


def test_a_fall_that_is_no_collapse_fails_by_the_claim_and_says_what_it_follows():
    found = check(drafts(380, 70, 36, 18, 9))
    assert found.verdict is Verdict.FAIL
    assert found.line.endswith("it falls with the hit share (0.0 % -> 89.6 %): pos1 43.5 % cold, 38.0 % warm")


def test_a_fall_of_the_cold_pass_too_is_not_blamed_on_the_hits():
    found = check(drafts(380, 70, 36, 18, 9), cold=drafts(380, 70, 36, 18, 9))
    assert found.verdict is Verdict.FAIL
    assert "hit share" not in found.line


def test_a_collapse_that_too_few_drafts_show_is_not_decided():
    few, low = DraftCounts(30, (24, 12, 6, 3, 1)), DraftCounts(30, (10, 5, 2, 1, 0))
    starved = speculating(few) | {"prefix": PrefixFacts(468, one(few, 0), one(low, 448))}
    found = Acceptance().check(bracket(claims=(acceptance(),), base=arm(few, few), candidate=starved))
    assert found.verdict is Verdict.INCONCLUSIVE
    assert "neither shown nor excluded that acceptance collapses with the hit share" in found.line


def test_the_gain_of_a_full_cache_is_told_with_its_price():
    arms = {"base": arm(COLD), "candidate": arm(STARVED, hits=448)}
    seconds = (0.050, 0.020, 0.021, 0.051, 0.020, 0.049, 0.050, 0.020)
    found = Ttft().check(bracket(claims=(FASTER,), metrics={TTFT_WARM_S: seconds}, **arms))
    assert found.verdict is Verdict.PASS
    assert "TTFT warm" in found.line
    assert [line for line in found.details if line.startswith("price: ")] == [
        "price: base 1.584 tokens a step cold, 1.584 warm", "price: candidate 1.584 tokens a step cold, 1.185 warm",
    ]  # fmt: skip


def test_the_gain_of_an_interpreted_engine_is_no_gain():
    arms = {"base": arm(COLD), "candidate": arm(COLD, hits=448)}
    seconds = (0.050, 0.020, 0.021, 0.051, 0.020, 0.049, 0.050, 0.020)
    found = Ttft().check(bracket(claims=(FASTER,), metrics={TTFT_WARM_S: seconds}, logic_only="an interpreter", **arms))
    assert found.verdict is Verdict.INCONCLUSIVE
    assert "logic only (an interpreter)" in found.line


def test_without_its_claim_it_is_not_judged():
    found = Ttft().check(bracket(base=arm(COLD), candidate=arm(COLD)))
    assert (found.verdict, "no claim is registered as ttft" in found.line) == (Verdict.INCONCLUSIVE, True)


def test_a_collapse_carries_the_numbers_and_the_interval_of_the_claim_beside_it():
    found = check(STARVED)
    assert found.verdict is Verdict.FAIL
    assert "acceptance collapses with the hit share" in found.line
    assert found.details[0].startswith("the claim by itself: FAIL accept pos1 -25.50 pp")
    assert found.numbers["effect_pp"] == pytest.approx(-25.5)
    assert found.judgement is None  # so that a PASS of an earlier look does not outlive it (bracket/looks.py)


def test_a_loss_behind_the_first_position_that_is_no_collapse_fails_the_claim_on_all_positions():
    weaker = drafts(435, 60, 28, 12, 6)  # at no position under half of its own cold pass
    arms = {"base": arm(COLD), "candidate": arm(weaker, hits=448)}
    evidence = bracket(claims=(acceptance(), ALL), **arms)
    assert Acceptance().check(evidence).verdict is Verdict.PASS
    found = DraftRate().check(evidence)
    assert found.verdict is Verdict.FAIL
    assert found.line.startswith("FAIL          accept all  -0.86 pp")
    assert found.numbers["effect_pp"] == pytest.approx(100 * (541 - 584) / 5000)


def test_the_warm_prompts_alone_are_what_acceptance_is_claimed_on():
    both = {"quality/q0": drafts(100), "prefix/p0": drafts(500), "prefix/p1": drafts(700)}
    boots = {"base": arm(COLD) | {"by_prompt": both}, "candidate": arm(COLD) | {"by_prompt": both}}
    assert paired_differences(bracket(**boots), acceptance()) == [0.0, 0.0]


def test_the_rounds_of_the_warm_pass_are_no_new_drafts():
    few, low = DraftCounts(40, (40, 30, 20, 10, 5)), DraftCounts(40, (40, 12, 8, 4, 2))
    arms = {"base": arm(few, few, rounds=20), "candidate": arm(low, few, hits=448, rounds=20)}
    found = Acceptance(min_reached=1).check(bracket(claims=(acceptance(),), **arms))
    assert found.verdict is Verdict.INCONCLUSIVE
    assert "neither shown nor excluded" in found.line
