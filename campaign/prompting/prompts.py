"""Prompt files, the project's and a team's own: JSON lines, one prompt each (docs/prompt_files.md)."""

import json
import re
from pathlib import Path
from typing import Any

from campaign.errors import ConfigError
from campaign.prompting.checks import CHECKS, SHOWN_CHARACTERS, Check, Prompt, Sampling, value_problem

ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,79}")  # ids become keys, metric names and file names
TURN = re.compile(r"\.turn\d+$")
LONE_SURROGATE = re.compile("[\ud800-\udfff]")
KEYS = {"id", "messages", "prompt", "max_tokens", "check", "sampling"}
SAMPLING_KEYS = {"temperature", "top_p", "seed", "repeats"}
MOST_REPEATS = 64


def load_prompts(path: Path, set_name: str, *, sampled: bool = False) -> tuple[Prompt, ...]:
    """The prompts of a file, in its order; of a sampled lane, each as often as it repeats, `id.2` with the next seed.

    Raises ConfigError with file and line, what was found and is wanted.
    """
    try:
        if path.exists() and not path.is_file():  # a pipe would be waited for
            raise ConfigError(f"{path}: is no file; wanted JSON lines, one prompt each")
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read ({error.strerror}); wanted a prompt file") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: is no UTF-8 text ({error}); wanted JSON lines, one prompt each") from error
    lines = {number: line for number, line in enumerate(text.split("\n"), start=1) if line.strip()}
    found = [(n, p) for n, line in lines.items() for p in _parsed(line, f"{path}:{n}", set_name, sampled=sampled)]
    if not found:
        raise ConfigError(f"{path}: holds no prompt; wanted JSON lines, one prompt each")
    _require_unique(found, path)
    return tuple(prompt for _, prompt in found)


def _require_unique(found: list[tuple[int, Prompt]], path: Path) -> None:
    first: dict[str, int] = {}
    for number, prompt in found:
        if first.setdefault(prompt.id, number) != number:
            raise ConfigError(f"{path}:{number}: id {prompt.id!r} is already on line {first[prompt.id]}; rename one")


def _parsed(line: str, where: str, set_name: str, *, sampled: bool) -> list[Prompt]:
    try:
        found = json.loads(line, object_pairs_hook=_each_key_once)
    except (ValueError, RecursionError) as error:
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
    name, limit, check = _id(found, where), _max_tokens(found, where), read_check(found.get("check"), where)
    draws = _draws(found.get("sampling"), where, sampled=sampled)
    ids = [name if number == 1 else f"{name}.{number}" for number in range(1, len(draws) + 1)]
    told = messages, prompt, limit, check
    return [Prompt(name, set_name, *told, draw, where=where) for name, draw in zip(ids, draws, strict=True)]


def _each_key_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Two values under one key: JSON keeps the last, and nobody would see which check was dropped."""
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise ValueError(f"key {twice!r} stands there twice")
    return found


def _id(found: dict[str, Any], where: str) -> str:
    name = found.get("id")
    if not isinstance(name, str) or not ID.fullmatch(name):
        raise ConfigError(f"{where}: id is {name!r}; wanted letters, digits, '_', '-' and '.' (it becomes a key)")
    if TURN.search(name):
        raise ConfigError(f"{where}: id {name!r} ends as those of a window's later turns do; wanted no '.turn' number")
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


def _draws(found: Any, where: str, *, sampled: bool) -> list[Sampling | None]:
    """How the prompt is drawn, once a repeat; greedy prompts once. A prompt stands in the one lane or the other."""
    if found is None and not sampled:
        return [None]
    if found is None:
        raise ConfigError(f'{where}: sampling is missing; wanted {{"temperature": 0.8}} or more in a sampled lane')
    if not sampled:
        raise ConfigError(f"{where}: this lane is greedy; put a prompt with sampling into gates.korean.sampled")
    if not isinstance(found, dict) or not {"temperature"} <= found.keys() <= SAMPLING_KEYS:
        wanted = ", ".join(sorted(SAMPLING_KEYS))
        raise ConfigError(f"{where}: sampling is {_kind(found)}; wanted temperature, and of {wanted} what is needed")
    temperature = _number(found, "temperature", 0.01, 2.0, where)
    top_p = _number({"top_p": 1.0} | found, "top_p", 0.01, 1.0, where)
    seed = _whole({"seed": 0} | found, "seed", 0, 2**31, where)
    repeats = _whole({"repeats": 1} | found, "repeats", 1, MOST_REPEATS, where)
    return [Sampling(temperature, top_p, seed + number) for number in range(repeats)]


def _number(found: dict[str, Any], key: str, low: float, high: float, where: str) -> float:
    value = found[key]
    if not isinstance(value, int | float) or isinstance(value, bool) or not low <= value <= high:
        raise ConfigError(f"{where}: {key} is {value!r}; wanted a number from {low:g} to {high:g}")
    return float(value)


def _whole(found: dict[str, Any], key: str, low: int, high: int, where: str) -> int:
    value = found[key]
    if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
        raise ConfigError(f"{where}: {key} is {value!r}; wanted a whole number from {low} to {high}")
    return value


def read_check(found: Any, where: str) -> Check | None:
    """A checker as a prompt file states it. Raises ConfigError for one that cannot judge."""
    if found is None:
        return None
    if not isinstance(found, dict) or not {"kind"} <= found.keys() <= {"kind", "value", "tolerance"}:
        raise ConfigError(f'{where}: check is {_kind(found)}; wanted {{"kind": ..., "value": ...}}')
    kind, value = found["kind"], found.get("value")
    if not isinstance(kind, str) or kind not in CHECKS:
        raise ConfigError(f"{where}: check kind is {kind!r}; wanted one of {', '.join(CHECKS)}")
    problem = value_problem(kind, value)
    if problem:
        raise ConfigError(
            f"{where}: check {kind} {problem}, found {_kind(value)} {json.dumps(value)[:SHOWN_CHARACTERS]}"
        )
    return Check(kind, value, _tolerance(found, where))


def _tolerance(found: dict[str, Any], where: str) -> float:
    if "tolerance" in found and found["kind"] != "numeric":
        raise ConfigError(f"{where}: check {found['kind']} takes no tolerance; only a number has one, leave it out")
    return _number({"tolerance": 0.0} | found, "tolerance", 0.0, 1e300, where)


def _kind(value: Any) -> str:
    return {type(None): "nothing", dict: "an object", list: "a list", str: "a text", bool: "true or false"}.get(
        type(value), "a number"
    )
