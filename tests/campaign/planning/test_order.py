"""What a plan says of its boots before the first: their order, what ends them early, what is left out, the minutes."""

from collections.abc import Callable
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from campaign.config import Campaign
from campaign.planning.order import format_order
from campaign.planning.plan import make, rests_of
from campaign.traffic.alternate import order

Compose = Callable[..., Campaign]
SCREEN, DUET = ("exp=exp8", "bracket=screen"), ("exp=exp8", "bracket=duet")


def told(compose: Compose, *words: str) -> str:
    """The lines of a dry run that say what will be booted."""
    return "\n".join(format_order(make(compose(*words, "host.registry=null"), "run-1")))


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (SCREEN, "bracket.max_minutes=90: it has one block, which is not cut for it"),
        (DUET, "bracket.max_minutes=90: no pair is begun that would pass it"),
        (("exp=exp8",), "bracket.max_minutes=90: no block is begun that would pass it"),
        (("exp=exp8", "bracket.max_boots=8"), "bracket.max_minutes=90: no block is begun that would pass it"),
    ],
    ids=["a screen", "a duet", "three looks", "one look"],
)
def test_a_limit_of_minutes_says_what_it_does(compose: Compose, words: tuple[str, ...], says: str) -> None:
    assert says in told(compose, *words, "bracket.max_minutes=90")
    assert "max_minutes" not in told(compose, *words)


@pytest.mark.parametrize("words", [("exp=exp8",), SCREEN, DUET], ids=" ".join)
def test_the_boots_under_the_profiler_are_told_with_their_minutes(compose: Compose, words: tuple[str, ...]) -> None:
    line = "  mechanism   after the verdict 2 boots more under the engine's profiler, one an arm, about 2 minutes more"
    assert line in told(compose, *words, "bracket.mechanism=true").splitlines()
    assert f"{line}, outside of bracket.max_minutes" in told(
        compose, *words, "bracket.mechanism=true", "bracket.max_minutes=90"
    )
    assert "mechanism" not in told(compose, *words)


@pytest.mark.parametrize(
    ("words", "note"),
    [
        (("bracket.max_boots=10",), "it is judged once, after 8 boots, and no more are made; 12 allows the next look"),
        (("bracket.max_boots=13",), "it is judged last, after 12 boots, and no more are made; 16 allows the next look"),
        (
            ("bracket.max_boots=40",),
            "it is judged last, after 16 boots, and no more are made; bracket.looks=[...] plan",
        ),
        (("bracket.max_boots=8",), ""),
        ((), ""),
        (("bracket.schedule=ABBA",), ""),
        (("bracket.looks=[]",), ""),
        (("bracket=screen",), ""),
        (("bracket=duet",), ""),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_a_limit_of_boots_between_two_looks_says_where_it_ends(
    compose: Compose, words: tuple[str, ...], note: str
) -> None:
    lines = [line for line in told(compose, "exp=exp8", *words).splitlines() if line.startswith("  note  ")]
    assert len(lines) == bool(note)
    assert note in "".join(lines)


def test_equal_arms_have_one_look_whatever_the_limit(compose: Compose) -> None:
    assert "note" not in told(compose, "exp=aa", "bracket.max_boots=10")


@given(st.integers(1, 5), st.integers(1, 9))
def test_the_rests_are_the_turns_to_the_other_engine(turns: int, prompts: int) -> None:
    scraped_last = 1
    sides = [scraped_last, *(side for _, side in order(turns, prompts))]
    assert rests_of(turns, prompts) == sum(one != other for one, other in pairwise(sides))


def test_the_minutes_of_a_duet_count_its_rests(compose: Compose) -> None:
    """8 prompts, twice: 18 turns to the other engine, 1.2 s each."""
    plan = make(compose(*DUET), "run-1")
    assert plan.rests == 18
    assert plan.minutes(16) == pytest.approx(16 * 1.2 + 8 * 18 * 1.2 / 60)
    assert "about 22 minutes (22 s of each pair are rests of 1.2 s between the engines)" in told(compose, *DUET)
    without = told(compose, *DUET, "bracket.rest_s=0")
    assert "about 19 minutes" in without
    assert "rests" not in without
    assert make(compose("exp=exp8"), "run-1").rests == 0


def test_one_of_a_thing_is_told_as_one(compose: Compose) -> None:
    text = told(compose, *DUET, "bracket.schedule=AB", "bracket.aa_pairs=1")
    assert "1 pair of boots, both live at once" in text
    assert "1 pair of base beside base first" in text
