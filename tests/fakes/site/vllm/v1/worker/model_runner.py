"""The "model": a prompt's known answer, or a text made of the prompt's hash. A token is one character."""

import json
import os
from collections.abc import Iterator
from pathlib import Path

from vllm import faults
from vllm.v1.spec_decode.dflash import draw

EOS = 2
BROKEN = "\ufffd"
WORDS = (
    "같은 조건에서 다시 잰다",
    "엔진은 초안을 먼저 쓴다",
    "한 번의 부팅은 한 개의 값이다",
    "the step rate is read from the engine",
    "측정은 조용한 기계에서 한다",
    "a draft is checked by the target",
    "답은 언제나 같다",
    "every window has its counters",
)
WORDS_NATURAL = 4


def answers() -> dict[str, str]:
    """Prompt -> answer, from the JSON lines of FAKE_ANSWERS."""
    path = os.environ.get("FAKE_ANSWERS")
    if not path:
        return {}
    rows = (json.loads(line) for line in Path(path).read_text(encoding="utf-8").splitlines() if line.strip())
    return {row["prompt"]: row["text"] for row in rows}


ANSWERS = answers()


def natural_text(prompt: str) -> str:
    """What the model answers when nothing cuts it."""
    text = ANSWERS.get(prompt)
    if text is None:
        text = ". ".join(words(prompt, n) for n in range(WORDS_NATURAL + int(4 * draw(prompt)))) + "."
    return corrupted(text) if faults.on("korean_corruption") else text


def words(prompt: str, n: int) -> str:
    """The n-th piece of a made text."""
    return WORDS[int(draw(prompt, "word", n) * len(WORDS))]


def corrupted(text: str) -> str:
    """Every seventh Hangul syllable broken."""
    return "".join(BROKEN if "가" <= c <= "힣" and i % 7 == 0 else c for i, c in enumerate(text))


def tokens(prompt: str, *, ignore_eos: bool) -> Iterator[int]:
    """Token ids: the natural text and the end token; with ignore_eos it goes on for ever."""
    yield from map(ord, natural_text(prompt))
    yield EOS
    n = 0
    while ignore_eos:
        yield from map(ord, " " + words(prompt, n) + ".")
        n += 1


def text_of(ids: list[int]) -> str:
    """The visible text of token ids."""
    return "".join(chr(i) for i in ids if i != EOS)
