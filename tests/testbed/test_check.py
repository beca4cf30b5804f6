"""The checkers, one sentence each."""

import unicodedata

import pytest

from testbed.check import clean_korean, right


@pytest.mark.parametrize(
    ("answer", "kind", "value", "passes"),
    [
        (" 1, 2 ", "exact", "1, 2", True),
        ("1, 2, 3", "exact", "1, 2", False),
        (unicodedata.normalize("NFD", "한국어"), "exact", "한국어", True),
        ("It is Oslo.", "contains", "Oslo", True),
        ("It ends at 15:15.", "regex", r"\b15:15\b", True),
        ("It ends at 115:15.", "regex", r"\b15:15\b", False),
        ("Both bring 42 boxes.", "numeric", "42", True),
        ("Both bring boxes.", "numeric", "42", False),
        ('{"b": 2, "a": 1}', "json", {"a": 1, "b": 2}, True),
        ('{"a": 1', "json", {"a": 1}, False),
        ("맞습니다.", "korean", "맞습니다.", True),
        ("맞습니다.", "korean", None, True),
        ("맞�니다.", "korean", None, False),
    ],
)
def test_an_answer_is_judged_by_its_kind(answer, kind, value, passes):
    assert right(answer, {"kind": kind, "value": value}) is passes


@pytest.mark.parametrize(
    ("answer", "prompt", "clean"),
    [
        ("따뜻합니다.", "", True),
        ("따뜻<0xED>합니다.", "", False),
        ("분析 결과입니다.", "", False),
        ("한자 漢字의 뜻입니다.", "漢字의 뜻은?", True),
        ("No Hangul here.", "", False),
    ],
)
def test_clean_korean_is_hangul_without_foreign_letters_or_broken_bytes(answer, prompt, clean):
    assert clean_korean(answer, prompt) is clean
