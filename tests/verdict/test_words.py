from verdict.errors import VerdictError
from verdict.words import ScreenWord, Verdict


def test_the_words_are_those_of_the_house() -> None:
    assert [str(word) for word in Verdict] == ["PASS", "FAIL", "INCONCLUSIVE", "VOID", "INVALID"]


def test_a_screen_never_says_a_verdict() -> None:
    assert not {str(word) for word in ScreenWord} & {str(word) for word in Verdict}


def test_the_error_of_this_room_is_a_value_error() -> None:
    assert issubclass(VerdictError, ValueError)
