"""Twin of campaign.prompting.bounded, by the checkers that use it: answers and expressions that break or do not end."""

import pytest

from campaign.prompting import bounded
from campaign.prompting.checks import Check, Prompt, check_answer

PRICED = {"properties": {"price": {"multipleOf": 0.01}}}
ENDLESS = r"(\w+\s?)+:$"  # twice as long with each letter
LONG = "The quick brown fox jumps over the lazy dog and keeps on running."


def check(kind, value, text):
    return check_answer(Prompt("p1", "quality", None, "무엇입니까?", 64, Check(kind, value)), text, "stop")


@pytest.mark.parametrize(
    ("kind", "value", "text"),
    [
        ("json", {"a": 1}, "[" * 600 + "]" * 600),
        ("json_schema", PRICED, '{"price": 1' + 400 * "0" + "}"),
        ("json_schema", PRICED, '{"price": NaN}'),
        ("json_schema", {"$dynamicRef": "http://nowhere/x"}, "{}"),
        ("json_schema", {"patternProperties": {"(": {}}}, '{"a": 1}'),
        ("python_literal", "[1]", "1" + 400 * "0" + "+1j"),
    ],
    ids=["deep", "large", "not a number", "a reference elsewhere", "no expression", "a large complex number"],
)
def test_an_answer_that_breaks_its_checker_is_wrong_and_ends_nothing(kind, value, text):
    ok, why = check(kind, value, text)
    assert ok is False
    assert why.startswith(("cannot be judged (", "wanted "))


@pytest.mark.parametrize(
    ("kind", "value", "text"),
    [("regex", ENDLESS, LONG), ("json_schema", {"properties": {"a": {"pattern": ENDLESS}}}, f'{{"a": "{LONG}"}}')],
    ids=["a regex", "a pattern of a schema"],
)
def test_an_expression_that_does_not_end_leaves_the_answer_unjudged(monkeypatch, kind, value, text):
    monkeypatch.setattr(bounded, "CPU_S", 1)
    assert check(kind, value, text) == (None, "cannot be judged: the expression took over 1 s of CPU")


def test_a_schema_with_patterns_judges_as_any_other():
    digits = {"properties": {"a": {"pattern": r"^\d+$"}}}
    assert check("json_schema", digits, '{"a": "42"}') == (True, "")
    assert "$.a: 'x' does not match" in check("json_schema", digits, '{"a": "x"}')[1]
