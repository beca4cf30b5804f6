"""Prompt files and the checkers of their answers. Pure: no engine, no clock; only `load_prompts` reads a file.

A prompt file is JSON lines: {"id", "messages" or "prompt", "max_tokens", "check": {"kind", "value"}}, check optional.
Texts are compared in NFC. The content is scored first; the finish reason decides nothing by itself (cases H5, H12).
"""

import json
import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from campaign.corruption import corruption, uncut
from campaign.errors import ConfigError

ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,79}")  # ids become keys, metric names and file names
LONE_SURROGATE = re.compile("[\ud800-\udfff]")
NUMBER = re.compile(r"(?:(?<!\w)[-+])?\d[\d,]*(?:\.\d+)?(?:[eE][-+]?\d+)?")
OPENING = re.compile(r"[{\[]")
KEYS = {"id", "messages", "prompt", "max_tokens", "check"}
SHOWN_CHARACTERS = 80
MOST_OPENINGS = 50  # brackets at which a JSON answer is looked for


@dataclass(frozen=True)
class Check:
    """How an answer is scored; the value is what its kind wants."""

    kind: str
    value: Any = None


@dataclass(frozen=True)
class Prompt:
    """One prompt of a set: chat messages or a plain text, with a limit in tokens."""

    id: str
    prompt_set: str
    messages: tuple[dict[str, str], ...] | None
    prompt: str | None
    max_tokens: int
    check: Check | None = None

    @property
    def said(self) -> str:
        """All that the engine is told, as one text."""
        return self.prompt or "\n".join(message["content"] for message in self.messages or ())


def check_answer(prompt: Prompt, text: str, finish_reason: str) -> tuple[bool | None, str]:
    """Whether an answer is right, and why not; None where the prompt has no checker or the budget hid the answer.

    A right answer may carry a remark (decomposed Hangul). Source: cases H5, H8, H12; house.md.
    """
    if prompt.check is None:
        return None, ""
    is_empty = not uncut(text, cut_off=finish_reason == "length").strip()
    if is_empty and finish_reason == "length":
        return None, "budget: nothing to see at the token limit"
    if is_empty:
        return False, f"empty answer ({finish_reason})"
    reason = CHECKS[prompt.check.kind](prompt.check.value, text, finish_reason, prompt.said)
    if reason:
        return False, reason
    is_composed = unicodedata.is_normalized("NFC", text)
    return True, "" if is_composed else "right, but its Hangul is decomposed (NFD): compared in NFC"


def _exact(value: Any, text: str, finish_reason: str, _said: str) -> str:
    same = _nfc(text).strip() == _nfc(value).strip()
    return "" if same else _wanted(value, text, finish_reason)


def _contains(value: Any, text: str, finish_reason: str, _said: str) -> str:
    missing = [part for part in _parts(value) if _nfc(part) not in _nfc(text)]
    return _wanted(missing[0], text, finish_reason) if missing else ""


def _regex(value: Any, text: str, finish_reason: str, _said: str) -> str:
    return "" if re.search(_nfc(value), _nfc(text)) else _wanted(value, text, finish_reason)


def _numeric(value: Any, text: str, finish_reason: str, _said: str) -> str:
    """The last number of the answer is the answer; full-width digits and thousands commas are read."""
    found = NUMBER.findall(unicodedata.normalize("NFKC", text))
    same = bool(found) and _number(found[-1]) == _number(str(value))
    return "" if same else _wanted(value, text, finish_reason)


def _json(value: Any, text: str, finish_reason: str, _said: str) -> str:
    """The first JSON value of the answer that can be read, wherever it stands."""
    wanted = json.dumps(_plain(value), sort_keys=True)
    decoder = json.JSONDecoder()
    for opening in islice(OPENING.finditer(text), MOST_OPENINGS):
        try:
            found, _ = decoder.raw_decode(text, opening.start())
        except (ValueError, RecursionError):
            continue
        return "" if json.dumps(_plain(found), sort_keys=True) == wanted else _wanted(value, text, finish_reason)
    return _wanted(value, text, finish_reason)


def _korean(value: Any, text: str, finish_reason: str, said: str) -> str:
    """Free of corruption; what the prompt or the reference text says is never corruption."""
    return corruption(_nfc(text), known=_nfc(f"{said}\n{value or ''}"), cut_off=finish_reason == "length")


CHECKS: dict[str, Callable[[Any, str, str, str], str]] = {
    "exact": _exact,
    "contains": _contains,
    "regex": _regex,
    "numeric": _numeric,
    "json": _json,
    "korean": _korean,
}


def _nfc(text: str) -> str:
    return unicodedata.normalize("NFC", text)


def _parts(value: Any) -> list[str]:
    return [value] if isinstance(value, str) else list(value)


def _number(text: str) -> float:
    return float(text.replace(",", ""))


def _plain(value: Any) -> Any:
    """A JSON value with its texts in NFC and 3.0 as 3; true is not 1."""
    if isinstance(value, str):
        return _nfc(value)
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {_nfc(key): _plain(item) for key, item in value.items()}
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _wanted(value: Any, text: str, finish_reason: str) -> str:
    """Expected against got, each on one line and cut."""
    wanted = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return f"wanted {_shown(wanted)}, got {_shown(text)} ({finish_reason})"


def _shown(text: str) -> str:
    return f"{text[:SHOWN_CHARACTERS]!r}{'...' if len(text) > SHOWN_CHARACTERS else ''}"


def load_prompts(path: Path, set_name: str) -> tuple[Prompt, ...]:
    """The prompts of a file, in its order. Raises ConfigError with file and line, what was found and is wanted."""
    if path.exists() and not path.is_file():  # a pipe would be waited for
        raise ConfigError(f"{path}: is no file; wanted JSON lines, one prompt each")
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read ({error.strerror}); wanted a prompt file") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: is no UTF-8 text ({error}); wanted JSON lines, one prompt each") from error
    lines = {number: line for number, line in enumerate(text.split("\n"), start=1) if line.strip()}
    prompts = {number: _parsed(line, f"{path}:{number}", set_name) for number, line in lines.items()}
    if not prompts:
        raise ConfigError(f"{path}: holds no prompt; wanted JSON lines, one prompt each")
    _require_unique(prompts, path)
    return tuple(prompts.values())


def _require_unique(prompts: dict[int, Prompt], path: Path) -> None:
    first: dict[str, int] = {}
    for number, prompt in prompts.items():
        if first.setdefault(prompt.id, number) != number:
            raise ConfigError(f"{path}:{number}: id {prompt.id!r} is already on line {first[prompt.id]}; rename one")


def _parsed(line: str, where: str, set_name: str) -> Prompt:
    try:
        found = json.loads(line)
    except ValueError as error:
        raise ConfigError(f"{where}: is no JSON ({error}); wanted one object a line") from error
    if not isinstance(found, dict):
        raise ConfigError(f"{where}: found {_kind(found)}, wanted one object a line")
    if LONE_SURROGATE.search(json.dumps(found, ensure_ascii=False)):
        raise ConfigError(
            f"{where}: holds half of a surrogate pair (\\ud800 to \\udfff); wanted text that UTF-8 can hold"
        )
    strange = sorted(found.keys() - KEYS)
    if strange:
        raise ConfigError(f"{where}: unknown key {strange[0]!r}; wanted some of {', '.join(sorted(KEYS))}")
    messages, prompt = _told(found, where)
    limit = _max_tokens(found, where)
    return Prompt(_id(found, where), set_name, messages, prompt, limit, _check(found.get("check"), where))


def _id(found: dict[str, Any], where: str) -> str:
    name = found.get("id")
    if not isinstance(name, str) or not ID.fullmatch(name):
        raise ConfigError(f"{where}: id is {name!r}; wanted letters, digits, '_', '-' and '.' (it becomes a key)")
    return name


def _max_tokens(found: dict[str, Any], where: str) -> int:
    limit = found.get("max_tokens")
    if not isinstance(limit, int) or isinstance(limit, bool) or limit < 1:
        raise ConfigError(f"{where}: max_tokens is {limit!r}; wanted a whole number of tokens, 1 or more")
    return limit


def _told(found: dict[str, Any], where: str) -> tuple[tuple[dict[str, str], ...] | None, str | None]:
    messages, prompt = found.get("messages"), found.get("prompt")
    if (messages is None) == (prompt is None):
        raise ConfigError(f"{where}: wanted either messages or prompt, found {'neither' if prompt is None else 'both'}")
    if prompt is not None:
        if not isinstance(prompt, str) or not prompt:
            raise ConfigError(f"{where}: prompt is {_kind(prompt)}; wanted a text that is not empty")
        return None, prompt
    if not isinstance(messages, list) or not messages or not all(_is_message(message) for message in messages):
        raise ConfigError(f'{where}: messages is not a list of {{"role": text, "content": text}}; correct it')
    return tuple(messages), None


def _is_message(message: Any) -> bool:
    if not isinstance(message, dict) or message.keys() != {"role", "content"}:
        return False
    return all(isinstance(text, str) for text in message.values())


def _check(found: Any, where: str) -> Check | None:
    if found is None:
        return None
    if not isinstance(found, dict) or not {"kind"} <= found.keys() <= {"kind", "value"}:
        raise ConfigError(f'{where}: check is {_kind(found)}; wanted {{"kind": ..., "value": ...}}')
    kind, value = found["kind"], found.get("value")
    if not isinstance(kind, str) or kind not in CHECKS:
        raise ConfigError(f"{where}: check kind is {kind!r}; wanted one of {', '.join(CHECKS)}")
    problem = _value_problem(kind, value)
    if problem:
        raise ConfigError(
            f"{where}: check {kind} {problem}, found {_kind(value)} {json.dumps(value)[:SHOWN_CHARACTERS]}"
        )
    return Check(kind, value)


def _value_problem(kind: str, value: Any) -> str:
    """What a kind wants of its value; empty when it has it."""
    is_text = isinstance(value, str) and bool(value.strip())
    if kind == "korean":
        return "" if value is None or isinstance(value, str) else "takes a reference text or nothing"
    if kind == "contains" and isinstance(value, list):
        return (
            "" if value and all(isinstance(part, str) and part for part in value) else "wants texts that are not empty"
        )
    if kind == "numeric":
        return "" if _is_number(value) else "wants a number"
    if kind == "regex":
        return "" if is_text and _compiles(value) else "wants a regular expression"
    return "" if kind == "json" or is_text else "wants a text that is not empty"


def _is_number(value: Any) -> bool:
    is_plain = isinstance(value, int | float) and not isinstance(value, bool)
    return is_plain or (isinstance(value, str) and NUMBER.fullmatch(value) is not None)


def _compiles(pattern: str) -> bool:
    try:
        re.compile(_nfc(pattern))
    except re.error:
        return False
    return True


def _kind(value: Any) -> str:
    return {type(None): "nothing", dict: "an object", list: "a list", str: "a text", bool: "true or false"}.get(
        type(value), "a number"
    )
