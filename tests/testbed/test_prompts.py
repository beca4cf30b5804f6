"""The prompt files: they parse, they are what the templates say, their checkers are known."""

import json
from pathlib import Path

import pytest

from testbed import corpus, prompts
from testbed.check import KINDS, right

SETS = sorted(prompts.SETS)


def of(set_name: str) -> list[dict]:
    return corpus.read_jsonl(prompts.PROMPTS / f"{set_name}.jsonl")


@pytest.mark.parametrize("set_name", SETS)
def test_the_committed_file_is_what_the_templates_give(set_name):
    committed = (prompts.PROMPTS / f"{set_name}.jsonl").read_text(encoding="utf-8")
    assert committed == prompts.render(set_name)


@pytest.mark.parametrize(
    ("set_name", "count"),
    [
        ("quality", 9),
        ("korean", 16),
        ("trained_quality", 64),
        ("trained_korean", 80),
        ("heldout", 25),
        ("decode", 8),
        ("shared_prefix", 16),
    ],
)
def test_a_set_has_its_number_of_prompts(set_name, count):
    assert len(of(set_name)) == count


def test_no_id_is_used_twice():
    ids = [prompt["id"] for set_name in SETS for prompt in of(set_name)]
    assert len(ids) == len(set(ids))


@pytest.mark.parametrize("set_name", SETS)
def test_a_prompt_is_a_chat_or_plain_text_and_never_both(set_name):
    assert all(("messages" in prompt) != ("prompt" in prompt) for prompt in of(set_name))


@pytest.mark.parametrize("set_name", [name for name in SETS if name != "decode"])
def test_every_question_has_a_known_checker(set_name):
    assert {prompt["check"]["kind"] for prompt in of(set_name)} <= set(KINDS)


def test_decode_prompts_are_long_and_unchecked():
    assert all(128 <= prompt["max_tokens"] <= 256 and "check" not in prompt for prompt in of("decode"))


@pytest.mark.parametrize("template", corpus.CHATS, ids=lambda template: template["id"])
def test_the_written_answer_passes_its_own_check(template):
    for row in template["rows"]:
        prompt = prompts.chat_prompt(template, row, "any")
        assert right(template["answer"].format(*row), prompt["check"])


@pytest.mark.parametrize("template", corpus.CHATS, ids=lambda template: template["id"])
def test_a_held_out_question_is_never_trained_on(template):
    held_out = corpus.chat_text(template, template["rows"][-1])
    assert held_out not in [corpus.chat_text(template, row) for row in corpus.trained_rows(template)]


def test_every_prefix_answer_stands_in_its_prefix():
    for prompt in of("shared_prefix"):
        assert prompt["check"]["value"] in prompt["messages"][0]["content"]


def test_the_questions_of_a_family_share_one_prefix():
    systems = [prompt["messages"][0]["content"] for prompt in of("shared_prefix")]
    assert [len(set(systems[:8])), len(set(systems[8:])), len(set(systems))] == [1, 1, 2]


def test_files_are_utf8_json_lines():
    for file in Path(prompts.PROMPTS).glob("*.jsonl"):
        assert all(json.loads(line)["id"] for line in file.read_text(encoding="utf-8").splitlines())
