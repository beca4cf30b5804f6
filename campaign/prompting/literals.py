"""Python literals in answers: read by `ast.literal_eval`, which runs nothing, and compared by value and type."""

import ast
import re
import unicodedata
import warnings
from collections.abc import Iterator
from itertools import islice
from typing import Any

FENCED = re.compile(r"```[A-Za-z0-9]*\n(.*?)```", re.DOTALL)
CLOSING = {"(": ")", "[": "]", "{": "}"}
LONGEST = 20_000  # characters of an answer in which a literal is looked for
MOST_PLACES = 50  # brackets at which one is looked for

Literal = tuple[str, Any]  # the type's name, and the value made hashable: true is not 1, a list no tuple


def read(text: str) -> Literal | None:
    """The literal that a whole text is; None when it is none."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # an answer's own escapes
            return _canonical(ast.literal_eval(text.strip()))
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError, OverflowError):
        return None


def first(text: str, like: Literal | None) -> Literal | None:
    """The first literal of an answer that has the type of `like`: in a code block, the whole, a line, in brackets."""
    found = (read(place) for place in _places(text[:LONGEST]))
    return next((one for one in found if one is not None and (like is None or one[0] == like[0])), None)


def _places(text: str) -> Iterator[str]:
    yield from FENCED.findall(text)
    yield text
    yield from (line for line in text.splitlines() if line.strip())
    starts = (place for place, character in enumerate(text) if character in CLOSING)
    yield from (text[start:end] for start in islice(starts, MOST_PLACES) if (end := _end(text, start)))


def _end(text: str, start: int) -> int:
    """Behind the bracket that closes the one at `start`; 0 when none does. Brackets in quotes are not told apart."""
    opening, depth = text[start], 0
    for place in range(start, len(text)):
        depth += (text[place] == opening) - (text[place] == CLOSING[opening])
        if depth == 0:
            return place + 1
    return 0


def _canonical(value: Any) -> Literal:
    if isinstance(value, dict):
        return "dict", frozenset((_canonical(key), _canonical(item)) for key, item in value.items())
    if isinstance(value, list | tuple):
        return type(value).__name__, tuple(_canonical(item) for item in value)
    if isinstance(value, set):
        return "set", frozenset(_canonical(item) for item in value)
    if isinstance(value, str):
        return "str", unicodedata.normalize("NFC", value)
    is_number = isinstance(value, int | float | complex) and not isinstance(value, bool)
    return "number" if is_number else type(value).__name__, value
