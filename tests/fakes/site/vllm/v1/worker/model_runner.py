"""The "model": a prompt's known answer, or a text made of the prompt's hash. A token is one character."""

import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

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


def answers() -> dict[str, dict[str, Any]]:
    """Prompt -> the row of its answer, from the JSON lines of FAKE_ANSWERS."""
    path = os.environ.get("FAKE_ANSWERS")
    if not path:
        return {}
    rows = (json.loads(line) for line in Path(path).read_text(encoding="utf-8").splitlines() if line.strip())
    return {row["prompt"]: row for row in rows}


ANSWERS = answers()
LEAST_SURE = 5.0  # nats between the likeliest token and the next one


@dataclass(frozen=True)
class Manner:
    """How a prompt is asked, as far as a known answer can depend on it."""

    drawn: bool = False
    streamed: bool = True
    warm: bool = False  # the prompt is in the prefix cache
    boot: str = ""  # the served model name


def reasoning(prompt: str) -> str:
    """What a reasoning parser takes out of the answer."""
    return str(ANSWERS.get(prompt, {}).get("reasoning", ""))


def rival(prompt: str, place: int) -> tuple[int, float]:
    """The second likeliest token at a place, and by how many nats it is less likely than the first."""
    row = ANSWERS.get(prompt, {})
    other = str(row.get("rival", ""))
    return ord(other[place]) if place < len(other) else EOS, float(row.get("gap", LEAST_SURE))


def known_text(prompt: str, manner: Manner) -> str | None:
    """The known answer to a prompt, as it is asked."""
    row = ANSWERS.get(prompt, {})
    if "by_boot" in row:
        number = int((re.findall(r"-(\d+)-[AB]-", manner.boot) or ["0"])[-1])
        return str(row["by_boot"][number % len(row["by_boot"])])
    for key, holds in (("drawn", manner.drawn), ("warm", manner.warm), ("whole", not manner.streamed)):
        if holds and key in row:
            return str(row[key])
    return row.get("text")


def natural_text(prompt: str, manner: Manner) -> str:
    """What the model answers when nothing cuts it."""
    text = known_text(prompt, manner)
    if text is None:
        text = ". ".join(words(prompt, n) for n in range(WORDS_NATURAL + int(4 * draw(prompt)))) + "."
    return corrupted(text) if faults.on("korean_corruption") else text


def words(prompt: str, n: int) -> str:
    """The n-th piece of a made text."""
    return WORDS[int(draw(prompt, "word", n) * len(WORDS))]


def corrupted(text: str) -> str:
    """Every seventh Hangul syllable broken."""
    return "".join(BROKEN if "가" <= c <= "힣" and i % 7 == 0 else c for i, c in enumerate(text))


def tokens(prompt: str, manner: Manner, *, ignore_eos: bool) -> Iterator[int]:
    """Token ids: the reasoning, the natural text and the end token; with ignore_eos it goes on for ever."""
    yield from map(ord, reasoning(prompt) + natural_text(prompt, manner))
    yield EOS
    n = 0
    while ignore_eos:
        yield from map(ord, " " + words(prompt, n) + ".")
        n += 1


def text_of(ids: list[int]) -> str:
    """The visible text of token ids."""
    return "".join(chr(i) for i in ids if i != EOS)
