"""Answers that go wrong, by whole runs on the fake engine: what a person reads of them, and which gate they fail."""

import json
import unicodedata
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.line import ROOT, Line, gates
from tests.fakes.overlay import Change, write_overlay

RUNNER = "vllm/v1/worker/model_runner.py"
PROTOCOL = "vllm/entrypoints/openai/protocol.py"
OTHER_ANSWERS = Change(RUNNER, 'os.environ.get("FAKE_ANSWERS")', 'os.environ.get("FAKE_ANSWERS_CANDIDATE")')
OTHER_TEMPLATE = Change(PROTOCOL, "return before + text +", 'return "Think twice. " + before + text +')
SCREEN = ("bracket.schedule=ABA", "bracket.mirror=false")


class Suite:
    """Prompt files of a test, and what either arm answers."""

    def __init__(self, line: Line, *changes: Change) -> None:
        self.line, self.home = line, line.folder.parent
        self.rows: dict[str, list[str]] = {}
        write_overlay(self.home / "overlays", "fake_texts", *changes)

    def add(
        self, prompt_set: str, name: str, check: dict[str, Any] | None, base: Any, theirs: Any, **more: Any
    ) -> None:
        """A prompt; an answer is a text, or the keys that the fake engine knows."""
        chat = {"id": name, "messages": [{"role": "user", "content": f"{prompt_set} {name}?"}], "max_tokens": 160}
        self.write(prompt_set, chat | ({"check": check} if check else {}) | more)
        for arm, found in (("base", base), ("candidate", theirs)):
            row = found if isinstance(found, dict) else {"text": found}
            self.write(arm, {"prompt": f"{prompt_set} {name}?"} | row)

    def write(self, name: str, row: dict[str, Any]) -> None:
        """A line of a file of this test."""
        self.rows.setdefault(name, []).append(json.dumps(row, ensure_ascii=False) + "\n")

    def path(self, name: str) -> Path:
        """The file of a prompt set or of an arm's answers."""
        path = self.home / f"{name}.jsonl"
        path.write_text("".join(self.rows.get(name, [])), encoding="utf-8")
        return path

    def run(self, *more: str) -> Any:
        """A screen of the arms."""
        prompts = [f"gates.{name}.prompts={self.path(name)}" for name in ("quality", "korean") if name in self.rows]
        paths = f"host.overlay_path=[{ROOT / 'tests/fakes/overlays'},{self.home / 'overlays'}]"
        answers = [f"engine.env.FAKE_ANSWERS={self.path('base')}"]
        answers += [f"engine.env.FAKE_ANSWERS_CANDIDATE={self.path('candidate')}"]
        arm = "arms.candidate.overlays=[fake_async,fake_texts]"
        return self.line.run("fake8", *SCREEN, *prompts, paths, *answers, arm, *more)


KOREAN = {"kind": "korean"}


def every_damage(suite: Suite) -> None:
    """One prompt a kind; the last one of the Korean set leaves the engine bad."""
    rival = {"text": "Seoul", "rival": "seoul", "gap": 0.05}, {"text": "seoul", "rival": "Seoul", "gap": 0.05}
    suite.add("quality", "tie", {"kind": "regex", "value": "(?i)seoul"}, *rival)
    thought = {"text": "391", "reasoning": "391"}
    suite.add("quality", "thought", {"kind": "numeric", "value": 391}, thought, thought)
    budget = {"text": "", "reasoning": "so " * 100}
    suite.add("quality", "budget", {"kind": "numeric", "value": 42}, "42", budget)
    endless = "42 it is, and more. " * 9
    suite.add("quality", "length", {"kind": "contains", "value": "42"}, endless, endless)
    suite.add("quality", "refusal", {"kind": "numeric", "value": 42}, "42", "I would rather not say")
    suite.add("quality", "loop", {"kind": "numeric", "value": 42}, "42", {"text": "think " * 20, "accepts": 0})
    form = {"kind": "exact", "value": "한국어 서빙"}
    suite.add("quality", "form", form, "한국어 서빙", unicodedata.normalize("NFD", "한국어 서빙"))
    suite.add(
        "korean", "stream", KOREAN, "깊은 생각에 잠겼다", {"text": "깊은 생각에 �겼다", "whole": "깊은 생각에 잠겼다"}
    )
    suite.add("korean", "bytes", KOREAN, "잠 깰 수 있는 영상", "잠 <0xEA><0xB9><0xB0> 수 있는 영상")
    suite.add("korean", "han", KOREAN, "분석 결과", "분析 결과")
    fine = "ㅋㅋㅋ ① 50％ 한자 '漢字'의 뜻은 업무(業務)"
    suite.add("korean", "fine", KOREAN, fine, fine)
    suite.add("korean", "nan", KOREAN, "네, 알겠습니다", "You" + 100 * "!")
    suite.write("candidate", {"prompt": "Hello.", "text": "!" * 12})


@pytest.mark.case("H1", "H3", "H4", "H5", "H6", "H7", "H8", "H10", "H12")
def test_every_kind_of_damage_is_told_by_its_name(line: Line) -> None:
    suite = Suite(line, OTHER_ANSWERS)
    every_damage(suite)
    done = suite.run()
    assert done.returncode == 1, done.stdout + done.stderr
    found = gates(done.stdout)
    assert (found["quality"], found["Korean"], found["outputs"]) == ("FAIL", "FAIL", "FAIL")
    for told in (
        "4/7 correct",
        "refusal: candidate 02-B: wanted '42', got 'I would rather not say' (stop)",
        "budget: candidate 02-B: budget: nothing to see at the token limit",
        "loop: 'think ' 20 times in a row",
        "loop: a loop, and 0 of its ",
        "serve.enforce_eager=true",
        "form: candidate 02-B: right, but its Hangul is decomposed (NFD)",
        "4/5 corrupt",
        "in one piece 0: the server's streaming breaks them",
        "<0xEA><0xB9><0xB0> (meant '깰')",
        "the first '析'",
        "suspected NaN: 100 times '!' from character 3; a short prompt asked after it is bad too",
        "near-tie: quality/tie at token 0: base prefers its token by 0.05 nats, the candidate its own by 0.05",
        "real: quality/refusal at token 0",
    ):
        assert told in done.stdout, told
    answers = {a["prompt_id"]: a for a in line.boots()[0]["answers"]}
    assert (answers["thought"]["text"], answers["thought"]["reasoning"]) == ("391", "391")
    assert len(answers["thought"]["token_ids"]) == 7  # both, and the end token: counted once
    assert (answers["length"]["finish_reason"], answers["length"]["ok"]) == ("length", True)


@pytest.mark.case("H2", "H9", "H11", "H13")
def test_what_breaks_only_when_drawn_or_from_a_warm_cache_fails_and_a_harness_that_scores_zero_does_not(
    line: Line,
) -> None:
    suite = Suite(line, OTHER_ANSWERS)
    restless = {"by_boot": ["one", "two", "three"]}
    suite.add("quality", "zero", {"kind": "numeric", "value": 42}, restless, restless)
    suite.add("quality", "zero2", {"kind": "numeric", "value": 42}, "none", "none")
    suite.add("korean", "warm", KOREAN, "하늘은 파랗다", {"text": "하늘은 파랗다", "warm": "하늘은 藍色"})
    drawn = {"text": "바다는 넓다", "drawn": "바다는 � 넓다"}
    sampling = {"sampling": {"temperature": 0.8, "seed": 3, "repeats": 2}}
    suite.add("drawn", "sea", KOREAN, "바다는 넓다", drawn, **sampling)
    done = suite.run("engine.knobs.prefix_cache=1", f"gates.korean.sampled={suite.path('drawn')}")
    assert done.returncode == 1, done.stdout + done.stderr
    found = gates(done.stdout)
    assert (found["quality"], found["Korean"], found["outputs"]) == ("INCONCLUSIVE", "FAIL", "INCONCLUSIVE")
    for told in (
        "harness suspect: 0/2 in every arm",
        "warm: candidate 02-B: from a warm prefix cache: 2 Han or kana",
        "2/2 corrupt when drawn",
        "2 draws are worth 1 item",
        "not deterministic here: base differs from itself on 1/",
        "prompts answered cold and warm",
    ):
        assert told in done.stdout, told
    sampled = [a for a in line.boots()[0]["answers"] if a["sampled"]]
    assert [a["prompt_id"] for a in sampled] == ["sea", "sea.2"]


@pytest.mark.case("H14")
def test_another_chat_template_in_one_arm_is_invalid_and_gives_no_quality_verdict(line: Line) -> None:
    suite = Suite(line, OTHER_TEMPLATE)
    suite.add("quality", "sum", {"kind": "numeric", "value": 42}, "42", "42")
    suite.add("korean", "sky", KOREAN, "하늘은 파랗다", "하늘은 파랗다")
    done = suite.run("model.chat_template.enable_thinking=false")
    assert done.returncode == 5, done.stdout + done.stderr
    found = gates(done.stdout)
    assert (found["quality"], found["Korean"], found["outputs"]) == ("INVALID", "INVALID", "INVALID")
    length = len("quality sum?") + len('{"enable_thinking": false}')
    assert f"has {length} tokens in boot 01-A and {length + 13} in boot 02-B: another chat template" in done.stdout
    assert "chats       template arguments enable_thinking=false" in done.stdout
    assert not any(f"{n}/{n} correct" in done.stdout for n in (1, 2))
