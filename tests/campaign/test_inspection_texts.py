"""Twin of campaign.inspection.texts: every field of an answer, every set of prompts, and what cannot be judged."""

import json

import pytest

from campaign.errors import ConfigError
from campaign.inspection import document, look_into_all

RIGHT = {"kind": "exact", "value": "right"}


@pytest.fixture
def look(tmp_path):
    """look([answer, ...], ...): the one finding of a file for each list of answers."""

    def run(*files):
        paths = [tmp_path / f"{number}.jsonl" for number in range(len(files))]
        for path, answers in zip(paths, files, strict=True):
            path.write_text("\n".join(json.dumps(answer) for answer in answers))
        (finding,) = look_into_all(paths)
        return finding

    return run


def answer(name, text="안녕하세요", **more):
    return {"prompt_id": name, "text": text, "finish_reason": "stop", **more}


GREEDY = answer("a", prompt_set="korean", token_ids=[1, 2], prompt_tokens=5, ok=True)
DRAWN = answer("b", prompt_set="korean_sampled", token_ids=[3, 4], prompt_tokens=5, ok=True, sampled=True)
CORRUPT = DRAWN | {"text": "깊은 \ufffd겼다", "ok": False, "why": "1 broken character"}


@pytest.mark.parametrize(
    ("answers", "code", "words"),
    [
        ([answer("a", "right", check=RIGHT), answer("b", "no", prompt_set="math", check=RIGHT)], 1, "math        0/1"),
        ([answer("a", "right", check=RIGHT), answer("b", "x", prompt_set="math", ok=False, why="y")], 1, "FAIL"),
        ([GREEDY, CORRUPT], 1, "1/1 corrupt when drawn"),
        ([GREEDY, DRAWN], 0, "0/1 corrupt when drawn"),
        ([answer("a", "1.4142", check={"kind": "numeric", "value": 1.41421, "tolerance": 0.001})], 0, "1/1 correct"),
        ([GREEDY, answer("d", "the sea", prompt_set="decode", ok=None)], 0, "0/1 corrupt"),
    ],
    ids=["another set", "judged elsewhere", "drawn and corrupt", "drawn", "a tolerance", "a set nobody judges"],
)
def test_every_set_and_every_field_of_a_file_is_read(look, answers, code, words):
    found = look(answers)
    assert found.code == code
    assert words in "\n".join(found.lines)


@pytest.mark.parametrize("right", [0, 1, 28], ids=["none", "one", "most"])
def test_answers_that_a_budget_hid_are_no_pass(look, right):
    hidden = [{"id": f"h{n}", "text": "", "finish_reason": "length", "check": RIGHT} for n in range(29 - right)]
    found = look([*(answer(f"r{n}", "right", check=RIGHT) for n in range(right)), *hidden])
    assert found.code == 3
    assert "could" in found.lines[1]
    assert look([answer("w", "wrong", check=RIGHT), answer("r", "right", check=RIGHT), *hidden]).code == 1


@pytest.mark.parametrize(
    "change",
    [{"prompt_hash": "bbbb"}, {"max_tokens": 8192}, {"prompt_tokens": 6}],
    ids=["another template", "another budget", "other tokens"],
)
def test_what_was_asked_otherwise_is_not_compared_and_has_no_numbers(look, change):
    base = GREEDY | {"prompt_hash": "aaaa", "max_tokens": 64}
    found = look([base], [base | change])
    assert found.code == 5
    assert json.loads(document([found]))["findings"][0]["numbers"] == {}


def test_drawn_answers_are_counted_and_never_compared_token_by_token(look):
    other = DRAWN | {"token_ids": [3, 9], "text": "깊은 바다"}
    assert look([GREEDY, DRAWN], [GREEDY, other]).code == 0
    assert look([GREEDY, DRAWN], [GREEDY, CORRUPT]).code == 1
    assert look([DRAWN], [CORRUPT]).code == 1
    unsaid = {key: value for key, value in DRAWN.items() if key != "sampled"}
    assert look([GREEDY, unsaid], [GREEDY, unsaid | {"token_ids": [3, 9]}]).code == 0


def test_a_set_of_ones_own_is_compared_with_base(look):
    good, bad = (answer("a", text, prompt_set="math", check=RIGHT) for text in ("right", "wrong"))
    assert look([good], [bad]).code == 1
    assert "math" in "\n".join(look([good], [bad]).lines)


def test_draws_of_one_prompt_show_no_more_than_they_are_worth(look):
    draws = [DRAWN | {"prompt_id": f"b{more}"} for more in ("", *(f".{n}" for n in range(2, 33)))]
    assert "0/32 corrupt when drawn   shows <= 95.0 %" in "\n".join(look(draws).lines)


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"check": {"kind": ["x"]}}, "check kind is"),
        ({"check": {"kind": "regex", "value": "("}}, "wants a regular expression"),
        ({"check": {"kind": "exact"}}, "wants a text that is not empty"),
        ({"check": {"kind": "numeric", "value": "abc"}}, "wants a number"),
        ({"check": {"kind": "json_schema", "value": "abc"}}, "wants a JSON schema"),
        ({"sampled": 1}, "sampled is 1"),
        ({"max_tokens": -1}, "max_tokens is -1"),
        ({"prompt_hash": 5}, "prompt_hash is 5"),
    ],
    ids=lambda found: next(iter(found)) if isinstance(found, dict) else "",
)
def test_a_line_that_cannot_judge_is_a_configuration_error_with_its_place(look, more, words):
    with pytest.raises(ConfigError, match=words):
        look([answer("a", **more)])
