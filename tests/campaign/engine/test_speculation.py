"""The SpecDecoding line: parsed, checked against itself, and named by the shape of its chain."""

from dataclasses import replace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from campaign.engine import speculation
from campaign.engine.speculation import SpecLine, contradictions, lines, pooled, shape

REPORTED = (  # the line of cases C13, in the engine's spelling
    "(APIServer pid=7) INFO 11-30 12:41:58 [metrics.py:120] SpecDecoding metrics: Mean acceptance length: 2.91, "
    "Accepted throughput: 4.40 tokens/s, Drafted throughput: 16.10 tokens/s, Accepted: 44 tokens, Drafted: 161 tokens, "
    "Per-position acceptance rate: 0.739, 0.478, 0.261, 0.174, 0.130, 0.087, 0.043, Avg Draft acceptance rate: 27.3%"
)


def of_counts(drafts: int, accepted: list[int]) -> SpecLine:
    """The line that the engine prints for these counters."""
    total, drafted = sum(accepted), drafts * len(accepted)
    rates = tuple(round(count / drafts, 3) for count in accepted)
    return SpecLine(round(1 + total / drafts, 2), total, drafted, rates, round(100 * total / drafted, 1))


@pytest.mark.case("C13")
def test_the_reported_line_is_parsed_and_agrees_with_itself() -> None:
    (line,) = lines(REPORTED)
    assert (line.mean_length, line.accepted, line.drafted, line.average_pct) == (2.91, 44, 161, 27.3)
    assert len(line.rates) == 7
    assert contradictions(line) == ()
    assert [round(rate, 2) for rate in line.conditional[1:]] == [0.65, 0.55, 0.67, 0.75, 0.67, 0.49]
    assert shape(line) == "no collapse"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"mean_length": 3.91}, "1 + the sum of its rates is 2.912, but it says a length of 3.91"),
        ({"accepted": 54}, "54 of 161 are 33.5 %, but it says 27.3 %"),
        ({"rates": (0.739, 0.261, 0.478, 0.174, 0.130, 0.087, 0.043)}, "pos3 is accepted more often than pos2"),
    ],
    ids=["length", "average", "a rate that grows"],
)
@pytest.mark.case("C13")
def test_a_line_that_cannot_be_is_told(change: dict[str, object], words: str) -> None:
    (line,) = lines(REPORTED)
    (found,) = contradictions(replace(line, **change))  # type: ignore[arg-type]
    assert words in found


@pytest.mark.parametrize(
    ("rates", "words"),
    [
        ((0.78, 0.20, 0.05), "chain collapse after pos1"),
        ((0.80, 0.70, 0.15, 0.10), "chain collapse after pos2"),
        ((0.02, 0.00, 0.00), "drafter ineffective"),
        ((0.15, 0.10, 0.08), "low acceptance: pos1 15 %"),
        ((1.0, 1.0, 1.0), "no collapse"),
    ],
    ids=["fine at the first, then a quarter", "later", "useless", "poor, but a chain", "all accepted"],
)
@pytest.mark.case("C13", "C5")
def test_a_broken_chain_has_another_name_than_a_poor_drafter(rates: tuple[float, ...], words: str) -> None:
    assert words in shape(of_counts(1000, [round(1000 * rate) for rate in rates]))


def test_intervals_are_pooled_by_their_drafts_and_are_no_total() -> None:
    together = pooled((of_counts(100, [80, 60]), of_counts(300, [120, 60])))
    assert together == SpecLine(1.8, 320, 800, (0.5, 0.3), 40.0)


@pytest.mark.parametrize("found", [(), (of_counts(10, [5]), of_counts(10, [5, 2]))], ids=["none", "other lengths"])
def test_what_cannot_be_pooled_is_not(found: tuple[SpecLine, ...]) -> None:
    assert pooled(found) is None


@given(st.integers(1, 10**6), st.lists(st.floats(0, 1), min_size=1, max_size=16))
@example(270, [0.796875, 0.796875, 0.76953125, 0.796875, 0.0, 0.0, 0.0, 0.0])  # 621 of 2160 lie between 28.7 and 28.8
def test_the_engines_own_rounding_is_never_a_contradiction(drafts: int, shares: list[float]) -> None:
    chain = [drafts]
    for share in shares:
        chain.append(int(chain[-1] * share))
    assert contradictions(of_counts(drafts, chain[1:])) == ()


@given(st.from_regex(r"SpecDecoding metrics: [\d., :%A-Za-z-]*", fullmatch=True), st.text())
def test_any_text_can_be_read(line: str, text: str) -> None:
    assert all(found.rates for found in speculation.lines(f"{text}{line}{REPORTED}"))


@given(st.integers(0, len(REPORTED)), st.characters())
def test_a_line_that_something_was_written_into_is_read_or_left_out(place: int, character: str) -> None:
    for found in speculation.lines(REPORTED[:place] + character + REPORTED[place:]):
        assert shape(found)
