import pytest

from verdict.errors import VerdictError
from verdict.words import ScreenWord, Verdict, agreeing, number_of


def test_the_words_are_those_of_the_house() -> None:
    assert [str(word) for word in Verdict] == ["PASS", "FAIL", "INCONCLUSIVE", "VOID", "INVALID"]


def test_a_screen_never_says_a_verdict() -> None:
    assert not {str(word) for word in ScreenWord} & {str(word) for word in Verdict}


def test_the_error_of_this_room_is_a_value_error() -> None:
    assert issubclass(VerdictError, ValueError)


@pytest.mark.parametrize(
    ("number", "told"),
    [(0, "0 boots are"), (1, "1 boot is"), (1.0, "1 boot is"), (2, "2 boots are"), (0.5, "0.5 boots are")],
)
def test_a_number_goes_with_its_noun_and_its_verb(number: float, told: str) -> None:
    assert f"{number_of(number, 'boot')} {agreeing(number, 'is', 'are')}" == told


def test_a_large_count_keeps_its_digits() -> None:
    assert number_of(1234567, "token") == "1234567 tokens"
