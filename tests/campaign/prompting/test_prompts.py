"""Twin of campaign.prompting.prompts: prompt files, the project's and a team's own."""

import json
import os
import re
from pathlib import Path

import pytest

from campaign.errors import ConfigError
from campaign.prompting.checks import CHECKS, Check, Prompt, Sampling, check_answer
from campaign.prompting.prompts import load_prompts

DOC = Path(__file__).resolve().parents[3] / "docs/prompt_files.md"
ODD_PATTERNS = ("a{99999999999999999999}", "(" * 3000)  # Python raises other errors than its own for them


def lines(*objects):
    return "".join(json.dumps(o, ensure_ascii=False) + "\n" for o in objects)


def line(**fields):
    return {"id": "q1", "prompt": "Log of", "max_tokens": 8} | fields


def load(tmp_path, text):
    path = tmp_path / "prompts.jsonl"
    path.write_text(text, encoding="utf-8")
    return load_prompts(path, "quality")


def test_a_prompt_file_keeps_its_order_and_its_words(tmp_path):
    chat = {"id": "k1", "messages": [{"role": "user", "content": "수도는?"}], "max_tokens": 16}
    first, second = load(tmp_path, lines(chat | {"check": {"kind": "korean"}}, line()))
    assert first == Prompt("k1", "quality", ({"role": "user", "content": "수도는?"},), None, 16, Check("korean"))
    assert first.said == "수도는?"
    assert (second.prompt, second.messages, second.check) == ("Log of", None, None)


def test_a_byte_order_mark_blank_lines_and_carriage_returns_do_no_harm(tmp_path):
    assert len(load(tmp_path, "\ufeff" + lines(line()).replace("\n", "\r\n") + "\r\n\n")) == 1


def test_a_line_separator_inside_a_text_is_no_new_line(tmp_path):
    (found,) = load(tmp_path, lines(line(prompt="a\u2028b\x85c")))
    assert found.prompt == "a\u2028b\x85c"


@pytest.mark.parametrize(
    ("bad", "sentence"),
    [
        ("{", "is no JSON"),
        ('{"id": "q1", "id": "q2", "prompt": "x", "max_tokens": 8}', "is no JSON (key 'id' stands there twice)"),
        ('{"id": "q1", "prompt": "x", "max_tokens": 8, "check": {"kind": "exact", "kind": "korean"}}', "key 'kind'"),
        (lines(line(id="d1.turn2")), "id 'd1.turn2' ends as those of a window's later turns do"),
        ("[1]", "found a list, wanted one object a line"),
        (lines(line(id="../x")), "id is '../x'"),
        (lines(line(id="q#1")), "id is 'q#1'"),
        (lines(line(id="한글")), "it becomes a key"),
        (lines({"prompt": "x", "max_tokens": 8}), "id is None"),
        (lines(line(max_tokens=0)), "max_tokens is 0"),
        (lines(line(max_tokens=True)), "max_tokens is True"),
        (lines(line(max_token=8)), "unknown key 'max_token'"),
        (lines(line(messages=[])), "found both"),
        (lines({"id": "q1", "max_tokens": 8}), "found neither"),
        (lines({"id": "q1", "messages": [], "max_tokens": 8}), "messages is not a list"),
        (lines({"id": "q1", "messages": [{"role": "user"}], "max_tokens": 8}), "messages is not a list"),
        (lines({"id": "q1", "messages": [{"role": "user", "content": 3}], "max_tokens": 8}), "messages is not a list"),
        (lines(line(prompt="")), "a text that is not empty"),
        (lines(line(check="korean")), "check is a text"),
        (lines(line(check={"kind": "korean", "limit": 1})), "check is an object"),
        (lines(line(check={"kind": "koraen"})), "check kind is 'koraen'; wanted one of exact, contains"),
        (lines(line(check={"kind": "exact"})), "check exact wants a text that is not empty, found nothing"),
        (lines(line(check={"kind": "contains", "value": []})), "wants texts that are not empty"),
        (lines(line(check={"kind": "numeric", "value": "many"})), "wants a number"),
        (lines(line(check={"kind": "numeric", "value": True})), "wants a number"),
        (lines(line(check={"kind": "regex", "value": "("})), "wants a regular expression"),
        *((lines(line(check={"kind": "regex", "value": odd})), "wants a regular expression") for odd in ODD_PATTERNS),
        (lines(line(check={"kind": "korean", "value": 3})), "takes a reference text or nothing"),
        (lines(line(check={"kind": []})), "check kind is []"),
        (lines(line(check={"kind": "exact", "value": "4", "tolerance": 1})), "check exact takes no tolerance"),
        (lines(line(check={"kind": "numeric", "value": 4, "tolerance": -1})), "tolerance is -1"),
        (lines(line(check={"kind": "json", "value": 42})), "wants an object or a list"),
        (lines(line(check={"kind": "json"})), "wants an object or a list"),
        (lines(line(check={"kind": "python_literal", "value": "f(1)"})), "wants a Python literal"),
        (lines(line(check={"kind": "python_literal", "value": [1]})), "wants a Python literal"),
        (lines(line(check={"kind": "json_schema", "value": "x"})), "wants a JSON schema, an object"),
        (lines(line(check={"kind": "json_schema", "value": {"type": "nmber"}})), "wants a JSON schema ("),
        (lines(line(check={"kind": "json_schema", "value": {"$ref": "http://x/y"}})), "nothing is fetched"),
        (lines(line(check={"kind": "json_schema", "value": {"$ref": "#/$defs/a"}})), "references lie in it"),
        (lines(line(check={"kind": "json_schema", "value": {"$dynamicRef": "http://x/y"}})), "nothing is fetched"),
        (lines(line(check={"kind": "json_schema", "value": {"$schema": ["x"]}})), "$schema in it is a text"),
        (lines(line(check={"kind": "json_schema", "value": {"pattern": ODD_PATTERNS[0]}})), "wants a JSON schema ("),
        (lines(line(sampling={"temperature": 0.8})), "this lane is greedy"),
    ],
)
def test_a_bad_line_is_refused_with_file_and_line(tmp_path, bad, sentence):
    with pytest.raises(ConfigError) as error:
        load(tmp_path, lines(line(id="good")) + bad)
    assert f"{tmp_path / 'prompts.jsonl'}:2: " in str(error.value)
    assert sentence in str(error.value)


def test_an_id_may_not_come_twice(tmp_path):
    with pytest.raises(ConfigError, match=r"prompts\.jsonl:3: id 'q1' is already on line 1"):
        load(tmp_path, lines(line(), line(id="q2"), line()))


def test_an_empty_file_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="holds no prompt"):
        load(tmp_path, "\n")


def test_a_missing_file_and_one_that_is_no_text_are_refused(tmp_path):
    with pytest.raises(ConfigError, match=r"nowhere\.jsonl"):
        load_prompts(tmp_path / "nowhere.jsonl", "quality")
    with pytest.raises(ConfigError, match="cannot be read"):
        load_prompts(tmp_path / ("x" * 300), "quality")
    (tmp_path / "latin.jsonl").write_bytes(b'{"id": "caf\xe9"}')
    with pytest.raises(ConfigError, match="is no UTF-8 text"):
        load_prompts(tmp_path / "latin.jsonl", "quality")
    os.mkfifo(tmp_path / "pipe.jsonl")  # would be waited for
    with pytest.raises(ConfigError, match=r"pipe\.jsonl: is no file"):
        load_prompts(tmp_path / "pipe.jsonl", "quality")


def drawn(tmp_path, **sampling):
    path = tmp_path / "drawn.jsonl"
    path.write_text(lines(line(**sampling)), encoding="utf-8")
    return load_prompts(path, "korean_sampled", sampled=True)


def test_a_drawn_prompt_stands_there_once_a_repeat_with_the_next_seed(tmp_path):
    found = drawn(tmp_path, sampling={"temperature": 0.8, "top_p": 0.9, "seed": 7, "repeats": 3})
    assert [p.id for p in found] == ["q1", "q1.2", "q1.3"]
    assert [p.sampling for p in found] == [Sampling(0.8, 0.9, seed) for seed in (7, 8, 9)]


@pytest.mark.parametrize(
    ("sampling", "sentence"),
    [
        (None, "sampling is missing"),
        (0.8, "sampling is a number"),
        ({"top_p": 0.9}, "wanted temperature"),
        ({"temperature": 0}, "temperature is 0; wanted a number from 0.01 to 2"),
        ({"temperature": 0.8, "top_p": 0}, "top_p is 0"),
        ({"temperature": 0.8, "seed": 1.5}, "seed is 1.5"),
        ({"temperature": 0.8, "repeats": True}, "repeats is True"),
        ({"temperature": 0.8, "top_k": 5}, "sampling is an object"),
    ],
    ids=str,
)
def test_a_drawn_lane_says_how_it_draws(tmp_path, sampling, sentence):
    with pytest.raises(ConfigError) as error:
        drawn(tmp_path, **({"sampling": sampling} if sampling is not None else {}))
    assert "drawn.jsonl:1: " in str(error.value)
    assert sentence in str(error.value)


def test_the_examples_of_the_documentation_are_prompt_files(tmp_path):
    greedy, sampled = re.findall(r"```jsonl\n(.*?)```", DOC.read_text(encoding="utf-8"), re.DOTALL)
    found = {p.id: p for p in load(tmp_path, greedy)}
    assert {p.check.kind for p in found.values()} == set(CHECKS)
    right = {"sum": "42", "root": "1.4142", "drum": '{"price": 95.0, "item": "drum", "color": "grey"}'}
    right |= {"order-form": 'Here: {"item": "drum", "count": 2}', "pairs": "It is [(1, 'a'), (2, 'b')]."}
    assert {name: check_answer(found[name], text, "stop") for name, text in right.items()} == dict.fromkeys(
        right, (True, "")
    )
    (tmp_path / "drawn.jsonl").write_text(sampled, encoding="utf-8")
    assert len(load_prompts(tmp_path / "drawn.jsonl", "korean_sampled", sampled=True)) == 4


def test_where_a_prompt_stands_is_no_part_of_what_is_registered(tmp_path: Path) -> None:
    line = '{"id": "a", "prompt": "x", "max_tokens": 8}'
    (tmp_path / "one.jsonl").write_text(line)
    (tmp_path / "two.jsonl").write_text(f"\n{line}")
    one, two = (load_prompts(tmp_path / f"{name}.jsonl", "decode")[0] for name in ("one", "two"))
    assert (one.where, two.where) == (f"{tmp_path}/one.jsonl:1", f"{tmp_path}/two.jsonl:2")
    assert (str(one), one) == (str(two), two)
