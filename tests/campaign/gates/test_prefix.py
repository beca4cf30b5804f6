"""Twin of campaign.gates.prefix: hits that are there, that are not, and counters that cannot say."""

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from campaign.evidence import PrefixFacts, PrefixPass
from campaign.gates.prefix import Prefix, lost_units
from campaign.names import FILLED_BESIDE
from tests.fakes.evidence import bracket, died, kv
from verdict.words import Verdict

ON, OFF = ({"resolved": json.dumps({"prefix_caching": on})} for on in (True, False))
BLOCK = 32


def one(hits: int | None = 0, queries: int | None = None, tokens: int = 500, ttft_s: float = 0.05, **fields):
    """A pass of two prompts of so many tokens, each with so many hits."""
    looked_up = 2 * tokens if queries is None and hits is not None else queries
    plain = {
        "prompt_tokens": 2 * tokens,
        "queries": looked_up,
        "hits": None if hits is None else 2 * hits,
        "preemptions": 0,
        "counts": {},
        "hits_of": {"p1": hits or 0, "p2": hits or 0},
        "tokens_of": {"p1": tokens, "p2": tokens},
        "ttft_s": {"p1": ttft_s, "p2": ttft_s},
    }
    return PrefixPass(**(plain | fields))


def facts(warm: PrefixPass, cold: PrefixPass | None = None, shared: int = 468) -> PrefixFacts:
    return PrefixFacts(shared, cold or one(), warm)


NOTHING = facts(one(queries=0), one(queries=0))
WELL = facts(one(hits=448))


def check(candidate: PrefixFacts = WELL, base: PrefixFacts = NOTHING, resolved=ON, block: int = BLOCK, **fields):
    """The gate on a bracket whose candidate resolves the cache on, and base off."""
    arms = {
        "base": {"facts": OFF, "prefix": base, "kv": kv(block_size=block)},
        "candidate": {"facts": resolved, "prefix": candidate, "kv": kv(block_size=block)},
    }
    return Prefix().check(bracket(**arms, **fields))


def test_hits_where_they_are_asked_for_and_nowhere_else_pass_with_their_shares():
    found = check()
    assert found.verdict is Verdict.PASS
    assert found.line.endswith("cold -> warm: base nothing looked up, candidate 0.0 % -> 89.6 %")
    assert found.details[1].startswith("candidate: shared prefix 468 tokens, 14 blocks of 32; warm pass 896 of 1000")
    assert found.details[2] == "candidate: on, 1 unit of 32 tokens lost in every prompt"
    assert found.numbers == {"candidate_cold_hit_pct": 0.0, "candidate_warm_hit_pct": pytest.approx(89.6)}


@pytest.mark.parametrize(
    ("candidate", "more", "verdict", "words"),
    [
        pytest.param(
            facts(one(), shared=240), {"block": 784}, Verdict.INCONCLUSIVE,
            "the shared prefix of 240 tokens is shorter than 3 resolved blocks of 784 (2352 tokens)",
            id="a prefix shorter than a block", marks=pytest.mark.case("B4"),
        ),
        pytest.param(
            facts(one(hits=100), shared=95), {}, Verdict.INCONCLUSIVE, "shorter than 3 resolved blocks of 32",
            id="a prefix one token short of three blocks",
        ),
        pytest.param(
            facts(one(hits=448, queries=2100)), {}, Verdict.INCONCLUSIVE,
            "hit rate unreliable: 2100 tokens looked up of 1000 served, without a preemption",
            id="looked up once per attempt", marks=pytest.mark.case("B5"),
        ),
        pytest.param(
            facts(one(ttft_s=0.8), one(ttft_s=5.5)), {}, Verdict.INCONCLUSIVE,
            "two kinds of evidence disagree: 0 hits of 1000 tokens looked up, but first tokens after 5500.0 ms cold "
            "and 800.0 ms warm",
            id="no hits, and yet it works", marks=pytest.mark.case("B6"),
        ),
        pytest.param(
            facts(one(hits=161, preemptions=180)), {}, Verdict.INCONCLUSIVE,
            "warm pass: 180 preemptions: tokens of prompts that were computed again count as hits",
            id="hits of preempted requests", marks=pytest.mark.case("B2"),
        ),
        pytest.param(
            facts(one(hits=600, queries=1000)), {}, Verdict.INCONCLUSIVE,
            "1200 tokens hit of 1000 looked up: the counters contradict each other", id="more hits than queries",
        ),
        pytest.param(
            facts(one()), {}, Verdict.INVALID,
            "knob not engaged: prefix caching resolves to on, with 0 hits of 1000 tokens looked up", id="never engaged",
        ),
        pytest.param(
            facts(one(hits=None)), {}, Verdict.INVALID, "resolves to on, with no counter of hits", id="not counted",
        ),
        pytest.param(
            facts(one(hits=448), one(hits=300)), {}, Verdict.INVALID,
            "60.0 % hits in the cold pass, wanted at most 1 %: the cache was not emptied", id="the cold pass is warm",
        ),
        pytest.param(
            WELL, {"resolved": OFF}, Verdict.INVALID,
            "prefix caching is off by the engine's configuration, and 896 tokens hit", id="off, and it hits",
        ),
        pytest.param(
            facts(one(ttft_s=5.55), one(ttft_s=5.48)), {"resolved": ON}, Verdict.INVALID,
            "first tokens after 5480.0 ms cold and 5550.0 ms warm", id="asked on, went off with the model",
            marks=pytest.mark.case("C12"),
        ),
    ],
)  # fmt: skip
def test_what_the_counters_show_is_believed_only_as_far_as_it_goes(candidate, more, verdict, words):
    found = check(candidate, **more)
    assert found.verdict is verdict
    assert words in found.line


def test_a_base_that_does_not_fail_closed_is_invalid():
    found = check(base=WELL)
    assert found.verdict is Verdict.INVALID
    assert "boot 01-A (base): prefix caching is off" in found.line


def test_one_boot_of_many_that_contradicts_itself_is_named():
    found = check(at={5: {"facts": ON, "prefix": facts(one(hits=448, queries=2100))}})
    assert found.verdict is Verdict.INCONCLUSIVE
    assert "boot 05-B (candidate), warm pass" in found.line


@pytest.mark.parametrize(
    ("at", "words"),
    [({2: died()}, "boot 02-B failed: engine died"), ({2: {"prefix": None}}, "no prompts with a shared prefix")],
    ids=["a dead boot", "a workload without a prefix"],
)
def test_without_all_boots_nothing_is_judged(at, words):
    found = check(at=at)
    assert found.verdict is Verdict.INCONCLUSIVE
    assert words in found.line


UNIT = 2144
ROWS = {3784: 0, 7542: 4288, 11292: 8576, 15019: 12864, 18770: 15008}


@pytest.mark.case("C7")
def test_one_unit_lost_in_every_prompt_is_on_and_a_prompt_too_short_for_it_is_not_off():
    rows = {f"p{tokens}": tokens for tokens in ROWS}
    seen = replace(one(hits=1), tokens_of=rows, hits_of={f"p{tokens}": hits for tokens, hits in ROWS.items()})
    assert lost_units(seen, UNIT) == 1
    short = replace(seen, tokens_of={"p3784": 3784}, hits_of={"p3784": 0})
    assert lost_units(short, UNIT) is None  # alone it says nothing
    found = check(facts(seen, shared=3 * UNIT), block=UNIT)
    assert found.verdict is Verdict.PASS
    assert "candidate: on, 1 unit of 2144 tokens lost in every prompt" in found.details


@given(st.lists(st.integers(1, 20_000), min_size=1, max_size=8), st.integers(1, 4096), st.integers(0, 3))
def test_the_units_that_were_lost_are_found_again(tokens, block, lost):
    rows = {str(i): n for i, n in enumerate(tokens)}
    hits = {name: max(0, (n - 1) // block - lost) * block for name, n in rows.items()}
    found = lost_units(replace(one(), tokens_of=rows, hits_of=hits), block)
    assert found == (lost if any(hits.values()) else None)


@pytest.mark.parametrize(
    ("hits", "word"),
    [(32, Verdict.INCONCLUSIVE), (192, Verdict.INCONCLUSIVE), (224, Verdict.PASS), (448, Verdict.PASS)],
)
def test_a_full_cache_that_holds_little_of_the_prefix_shows_nothing_of_its_hits(hits, word):
    found = check(facts(one(hits=hits)))
    assert found.verdict is word
    if word is Verdict.INCONCLUSIVE:
        assert f"warm pass: {2 * hits} of 896 tokens of the shared prefix were hit, wanted at least 50 %" in found.line


@pytest.mark.parametrize(
    ("counted", "verdict", "words"),
    [
        ({}, Verdict.PASS, "cold -> warm"),
        ({FILLED_BESIDE: "468"}, Verdict.PASS, "cold -> warm"),
        ({FILLED_BESIDE: "467"}, Verdict.INCONCLUSIVE, "467 tokens were prefilled beside a request at the drafter's"),
        (
            {FILLED_BESIDE: ""},
            Verdict.INCONCLUSIVE,
            "nothing counts what was prefilled beside a request at the drafter's",
        ),
    ],
    ids=["filled alone", "reached", "over too soon", "not counted"],
)
def test_a_cache_that_was_to_be_filled_beside_a_long_request_must_be_shown_to_be(counted, verdict, words):
    found = check(resolved=ON | counted)
    assert found.verdict is verdict
    assert words in found.line


def test_times_of_an_interpreter_carry_their_label_here_too():
    found = check(facts(one(ttft_s=0.8), one(ttft_s=5.5)), logic_only="an interpreter")
    assert found.line.endswith("first tokens after 5500.0 ms cold and 800.0 ms warm (logic only (an interpreter))")
