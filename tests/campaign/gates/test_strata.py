"""Twin of campaign.gates.strata, through the gate of acceptance: contexts, cold and warm, slides; and other texts."""

import pytest

from campaign.evidence import DraftCounts
from campaign.gates.acceptance import Acceptance
from tests.fakes.evidence import acceptance, answer, bracket, drafts, speculating
from verdict.words import Verdict

FINE = drafts(781, 610, 470, 355, 260)
HUNDRED = DraftCounts(100, (78, 61, 47, 36, 26))


def check(base=None, candidate=None, **fields):
    """The gate on boots that are alike but for what is counted apart."""
    arms = {
        "base": speculating(FINE) | {"counted": base or {}} | fields.pop("of_base", {}),
        "candidate": speculating(FINE) | {"counted": candidate or base or {}} | fields.pop("of_candidate", {}),
    }
    return Acceptance().check(bracket(claims=(acceptance(),), **arms, **fields))


@pytest.mark.parametrize(
    ("candidate", "sentence"),
    [
        (DraftCounts(100, (25, 20, 15, 10, 5)), "collapse at context 2048+ tokens: pos1 25.0 % (100/400), base 78.0 %"),
        (DraftCounts(100, (78, 15, 10, 5, 2)), "at context 2048+ tokens: chain collapse after pos1: pos2 given pos1"),
    ],
    ids=["pos1", "the chain"],
)
def test_a_collapse_at_long_contexts_alone_fails(candidate, sentence):
    short = {"context 0-2047": HUNDRED}
    found = check(short | {"context 2048+": HUNDRED}, short | {"context 2048+": candidate})
    assert found.verdict is Verdict.FAIL
    assert sentence in found.line


def test_each_context_is_told_in_order_with_its_counts_and_a_thin_one_says_so():
    thin = DraftCounts(2, (1, 1, 0, 0, 0))
    found = check({"context 512+": thin, "context 0-127": HUNDRED, "context 128-511": HUNDRED}, None)
    told = [line for line in found.details if line.startswith("pos1 at context")]
    assert [line.split(" (")[0] for line in told] == [
        "pos1 at context 0-127 tokens", "pos1 at context 128-511 tokens", "pos1 at context 512+ tokens",
    ]  # fmt: skip
    assert told[0].endswith("base 78.0 % (312/400), candidate 78.0 % (312/400)")
    assert told[2].endswith("thin: not judged under 20 drafts that are no repeats")
    assert found.verdict is Verdict.PASS


def test_a_thin_context_is_not_judged():
    one = {"context 0+": DraftCounts(4, (3, 3, 3, 3, 3))}
    assert check(one, {"context 0+": DraftCounts(4, (0, 0, 0, 0, 0))}).verdict is Verdict.PASS


@pytest.mark.parametrize(("turns", "word"), [(1, Verdict.FAIL), (5, Verdict.INCONCLUSIVE), (6, Verdict.PASS)])
def test_a_windows_repeats_of_its_prompts_are_no_new_drafts_of_a_context(turns, word):
    base, candidate = DraftCounts(100, (60, 50, 40, 30, 20)), DraftCounts(100, (15, 12, 10, 5, 5))
    found = check({"context 0+": base}, {"context 0+": candidate}, turns=turns)
    assert found.verdict is word
    seen = "a collapse at context 0+ tokens is neither shown nor excluded: pos1 15.0 % (60/400), base 60.0 % (240/400)"
    assert (seen in found.line) == (word is Verdict.INCONCLUSIVE)


def test_cold_and_warm_requests_are_told_beside_the_window_with_their_counts():
    parts = {"cold": DraftCounts(10, (5, 1)), "warm up": DraftCounts(40, (30, 20)), "first": FINE, "last": FINE}
    (base, candidate) = [line for line in check(parts).details if line.startswith("tokens a step of")]
    assert "cold request 1.600 (40 drafts), warm up 2.250 (160 drafts), first part of the window 3.476" in base
    assert candidate.startswith("tokens a step of candidate (by the streams' chunks)")


@pytest.mark.case("C11")
def test_acceptance_that_slides_within_a_window_is_told_although_its_mean_passes():
    first, last = DraftCounts(100, (78, 61, 47, 21)), DraftCounts(100, (70, 50, 35, 25))
    found = check({"first": first, "last": last})
    (slides,) = [line for line in found.details if "slides" in line]
    assert "boot 01-A 3.070 to 2.800, boot 02-B 3.070 to 2.800" in slides
    assert found.verdict is Verdict.PASS


def test_arms_that_answer_otherwise_are_said_to_be_compared_on_different_text():
    of_candidate = {"answers": (answer("p1", "안녕."), answer("p2", "같다."))}
    of_base = {"answers": (answer("p1", "잘 가."), answer("p2", "같다."))}
    found = check(of_base=of_base, of_candidate=of_candidate)
    assert found.details[-1] == "1 of 2 prompts are answered otherwise: acceptance is compared on different text"
    assert not any("otherwise" in line for line in check(of_base=of_base, of_candidate=of_base).details)


@pytest.mark.case("B11")
def test_counters_that_stay_at_zero_while_drafts_happen_are_not_an_acceptance_of_zero():
    seen = "the counters show 0 drafts, but 120 engine steps gave 255 tokens after the first ones; its log: 40 drafted"
    found = check(of_base={"natural": DraftCounts(0, ()), "facts": {"draft_counters": seen}})
    assert found.verdict is Verdict.INCONCLUSIVE
    assert f"counters not wired in boot 01-A (base): {seen}; no acceptance is made of this" in found.line


@pytest.mark.case("B10")
def test_two_estimators_of_acceptance_are_not_compared():
    by_log = {"facts": {"acceptance_estimator": "the log's intervals"}}
    found = check(of_base={"facts": {"acceptance_estimator": "token-weighted"}}, of_candidate=by_log)
    assert found.verdict is Verdict.INCONCLUSIVE
    assert "08-B" in found.line or "07-A" in found.line
    assert "two estimators are not compared" in found.line


@pytest.mark.case("B10")
def test_the_estimator_of_the_acceptance_is_named():
    assert any("token-weighted, counters' differences over answers" in line for line in check().details)
