"""Whether a text that was put together by lines is what its name says: Python that parses, JSON without doubles."""

import ast
import json
from collections.abc import Sequence


def problem(path: str, content: bytes) -> str:
    """What is wrong with a .py or .json file as such; empty where nothing is, and for every other name."""
    if path.endswith(".py"):
        return _python(content)
    return _json(content) if path.endswith(".json") else ""


def _python(content: bytes) -> str:
    try:
        ast.parse(content)
    except SyntaxError as error:
        return f"it is no Python (line {error.lineno}: {error.msg})"
    except ValueError as error:
        return f"it is no Python ({error})"
    return ""


def _json(content: bytes) -> str:
    try:
        json.loads(content.decode("utf-8"), object_pairs_hook=_once)
    except ValueError as error:  # UnicodeDecodeError and JSONDecodeError are ones too
        return f"it is no JSON that says each thing once ({error})"
    return ""


def _once(pairs: Sequence[tuple[str, object]]) -> dict[str, object]:
    """A reader keeps the last of two equal keys, so the line of the other would say nothing."""
    made = dict(pairs)
    if len(made) != len(pairs):
        keys = [key for key, _ in pairs]
        raise ValueError(f"the key {next(key for key in keys if keys.count(key) > 1)!r} is there twice")
    return made
