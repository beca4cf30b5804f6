"""The order of a bracket of several arms."""

from collections import Counter
from itertools import pairwise

import pytest

from verdict.errors import VerdictError
from verdict.latin import other_side, parse_latin, square
from verdict.several import matrix_of


@pytest.mark.parametrize("arms", range(3, 9))
def test_each_arm_is_once_a_row_as_often_in_each_place_and_after_each_other_arm(arms: int) -> None:
    for design in (square(arms), other_side(square(arms))):
        rows = design.blocks
        assert all(len(set(row)) == len(row) == arms for row in rows)
        places = [Counter(column) for column in zip(*rows, strict=True)]
        assert all(set(found.values()) == {len(rows) // arms} for found in places)
        pairs = Counter(a + b for row in rows for a, b in pairwise(row))
        assert (len(pairs), set(pairs.values())) == (arms * (arms - 1), {len(rows) // arms})
        assert matrix_of(design.letters).shape == (design.n_boots, arms + 1)
        assert design.own_df == design.n_boots - arms - 1


def test_four_arms_take_sixteen_boots_and_three_take_two_squares() -> None:
    assert (square(4).blocks, square(3).n_boots) == (("ABDC", "BCAD", "CDBA", "DACB"), 18)


def test_the_other_side_of_the_coin_is_read_from_right_to_left() -> None:
    assert other_side(square(4)).blocks == ("CDBA", "DACB", "ABDC", "BCAD")


def test_a_square_of_ones_own_is_taken_as_it_is_written() -> None:
    assert parse_latin("ABC BCA CAB", 3).blocks == ("ABC", "BCA", "CAB")


@pytest.mark.parametrize(
    ("text", "arms", "words"),
    [
        ("ABCD BADC CDAB DCBE", 4, "found the letter 'E', wanted A, B, C, D for the 4 arms"),
        ("ABBA BAAB", 3, "row ABBA is not complete: wanted each of ABC once; for example 'ABC BCA"),
        ("ABC ABC ABC", 3, "place 1 of the rows is A A A, no Latin square"),
        ("ABC BCA CAB ABC", 3, "place 1 of the rows is A B C A, no Latin square"),
        ("", 3, "has rows, found nothing"),
        ("AB BA", 2, "has 3 to 10 of them, found 2"),
    ],
)
def test_what_is_no_complete_design_is_refused_with_one_that_is(text: str, arms: int, words: str) -> None:
    with pytest.raises(VerdictError, match=words):
        parse_latin(text, arms)
