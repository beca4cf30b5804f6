"""Judge an answer by the `check` of its prompt. All comparisons are of stripped NFC text."""

import json
import re
import unicodedata
from collections.abc import Callable
from typing import Any

HANGUL = re.compile("[\uac00-\ud7a3]")
FOREIGN = re.compile("[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]")
BYTE_PIECE = re.compile(r"<0x[0-9A-Fa-f]{2}>")
NUMBER = re.compile(r"-?\d+(?:\.\d+)?")


def normal(text: str) -> str:
    """Stripped, NFC."""
    return unicodedata.normalize("NFC", text).strip()


def clean_korean(answer: str, prompt: str = "") -> bool:
    """Hangul, and nothing that tells of broken bytes or of another language (unless the prompt has it)."""
    foreign = set(FOREIGN.findall(answer)) - set(FOREIGN.findall(prompt))
    broken = "\ufffd" in answer or BYTE_PIECE.search(answer)
    return bool(HANGUL.search(answer)) and not foreign and not broken


def _numeric(answer: str, value: str) -> bool:
    numbers = NUMBER.findall(answer)
    return bool(numbers) and float(numbers[-1]) == float(value)


def _json(answer: str, value: Any) -> bool:
    try:
        return json.loads(answer) == value
    except json.JSONDecodeError:
        return False


def _korean(answer: str, value: str | None) -> bool:
    return clean_korean(answer) and (value is None or answer == normal(value))


KINDS: dict[str, Callable[[str, Any], bool]] = {
    "exact": lambda answer, value: answer == normal(value),
    "contains": lambda answer, value: normal(value) in answer,
    "regex": lambda answer, value: re.search(value, answer) is not None,
    "numeric": _numeric,
    "json": _json,
    "korean": _korean,
}


def right(answer: str, check: dict[str, Any]) -> bool:
    """Whether the answer passes its check."""
    return KINDS[check["kind"]](normal(answer), check["value"])
