"""Twin of campaign.gates.warm, through the gates of acceptance and of the time to first token."""

import pytest

from campaign.evidence import DraftCounts, PrefixFacts, PrefixPass
from campaign.gates.acceptance import Acceptance
from campaign.gates.ttft import Ttft
from campaign.names import TTFT_WARM_S
from tests.fakes.evidence import acceptance, bracket, drafts, speculating
from verdict.claims import Claim, ClaimKind, Direction
from verdict.fit import Scale
from verdict.words import Verdict

COLD = drafts(435, 79, 40, 20, 10)
STARVED = drafts(180, 5, 0, 0, 0)
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
