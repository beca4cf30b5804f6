"""Prompts and the checkers of their answers. Pure: no file, no engine, no clock (prompts.py reads the files).

Texts are compared in NFC. The content is scored first; the finish reason decides nothing by itself (cases H5, H12).
"""

import json
import math
import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from campaign.prompting import bounded, literals, schemas
from campaign.prompting.corruption import corruption, counted_scripts, damage, uncut, without_hangul

NUMBER = re.compile(r"(?:(?<!\w)[-+])?\d[\d,]*(?:\.\d+)?(?:[eE][-+]?\d+)?")
MINUS = re.compile(r"(?<!\d)\u2212(?=\d)")
RAISED = ("<super>", "<sub>", "<square>")  # the 2 of m\u00b2, CO\u2082 and \u33a1
POWER = re.compile(r"(?<![A-Za-z])[kcdm]?m\^?[23](?![0-9A-Za-z_]|\.\d)")  # m2 and m^2
OPENING = re.compile(r"[{\[]")
SHOWN_CHARACTERS = 80
MOST_OPENINGS = 50  # brackets at which a JSON answer is looked for


@dataclass(frozen=True)
class Check:
    """How an answer is scored; the value is what its kind wants, the tolerance what a number may differ by."""

    kind: str
    value: Any = None
    tolerance: float = 0.0


@dataclass(frozen=True)
class Sampling:
    """How a prompt of the sampled lane is drawn; the seed makes it the same draw in every boot, if anything does."""

    temperature: float
    top_p: float = 1.0
    seed: int = 0


@dataclass(frozen=True)
class Prompt:
    """One prompt of a set: chat messages or a plain text, with a limit in tokens; greedy unless it says how to draw."""

    id: str
    prompt_set: str
    messages: tuple[dict[str, str], ...] | None
    prompt: str | None
    max_tokens: int
    check: Check | None = None
    sampling: Sampling | None = None
    where: str = field(default="", repr=False, compare=False)  # its file and line; no part of what is registered

    @property
    def said(self) -> str:
        """All that the engine is told, as one text."""
        return self.prompt or "\n".join(message["content"] for message in self.messages or ())


def check_answer(prompt: Prompt, text: str, finish_reason: str) -> tuple[bool | None, str]:
    """Whether an answer is right, and why not; None where the prompt has no checker or the budget hid the answer.

    A right answer may carry a remark (decomposed Hangul, damage outside of what is scored). Source: cases H5, H6, H8,
    H12; house.md.
    """
    if prompt.check is None:
        return None, ""
    is_cut = finish_reason == "length"
    is_empty = not uncut(text, cut_off=is_cut).strip()
    if is_empty and is_cut:
        return None, "budget: nothing to see at the token limit"
    if is_empty:
        return False, f"empty answer ({finish_reason})"
    try:
        reason = CHECKS[prompt.check.kind](prompt.check, text, finish_reason, prompt.said)
    except bounded.TooLongError as error:  # of the prompt file, not of the answer
        return None, f"cannot be judged: {error}"
    except Exception as error:  # noqa: BLE001 - an answer may be anything, and must not end a campaign
        reason = f"cannot be judged ({type(error).__name__}: {str(error)[:SHOWN_CHARACTERS]}), got {_shown(text)}"
    is_korean = prompt.check.kind == "korean"
    sign = "" if is_korean else damage(text, known=_known(prompt), cut_off=is_cut)
    if reason:
        return False, "; ".join(part for part in (reason, sign) if part)
    decomposed = "" if unicodedata.is_normalized("NFC", text) else "its Hangul is decomposed (NFD): compared in NFC"
    bare = without_hangul(text, prompt.said) if is_korean else ""
    remarks = "; ".join(part for part in (decomposed, sign, bare) if part)
    return True, f"right, but {remarks}" if remarks else ""


def scripts(prompt: Prompt, text: str) -> tuple[int, int]:
    """Characters of an answer in foreign script (Han and kana that nothing explains) and in Hangul (case H4).

    Of prompts with the korean checker; (0, 0) of others.
    """
    if prompt.check is None or prompt.check.kind != "korean":
        return 0, 0
    return counted_scripts(_nfc(text), known=_nfc(_known(prompt)))


def _known(prompt: Prompt) -> str:
    """What may stand in an answer without being damage: the prompt's own text, and the text that is looked for."""
    value = prompt.check.value if prompt.check else None
    return f"{prompt.said}\n{value if isinstance(value, str) else ''}"


def _exact(check: Check, text: str, finish_reason: str, _said: str) -> str:
    same = _nfc(text).strip() == _nfc(check.value).strip()
    return "" if same else _wanted(check.value, text, finish_reason)


def _contains(check: Check, text: str, finish_reason: str, _said: str) -> str:
    parts = [check.value] if isinstance(check.value, str) else list(check.value)
    missing = [part for part in parts if _nfc(part) not in _nfc(text)]
    return _wanted(missing[0], text, finish_reason) if missing else ""


def _regex(check: Check, text: str, finish_reason: str, _said: str) -> str:
    return "" if bounded.is_in(_nfc(check.value), _nfc(text)) else _wanted(check.value, text, finish_reason)


def _numeric(check: Check, text: str, finish_reason: str, _said: str) -> str:
    """The last number of the answer is the answer; full-width digits and thousands commas are read, no exponents."""
    found = NUMBER.findall(_digits(text))
    wanted = _number(str(check.value))
    if found and math.isclose(_number(found[-1]), wanted, rel_tol=1e-12, abs_tol=check.tolerance):
        return ""
    within = f" (+-{check.tolerance:g})" if check.tolerance else ""
    return _wanted(f"{check.value}{within}" if within else check.value, text, finish_reason)


def _json(check: Check, text: str, finish_reason: str, _said: str) -> str:
    """The first JSON value of the answer that can be read, wherever it stands."""
    found = _first_json(text)
    same = found is not None and _spelled(found[0]) == _spelled(check.value)
    return "" if same else _wanted(check.value, text, finish_reason)


def _json_schema(check: Check, text: str, finish_reason: str, _said: str) -> str:
    """The answer as a whole, or its first JSON value that can be read, fits the schema."""
    try:
        found: tuple[Any] | None = (json.loads(text),)
    except (ValueError, RecursionError):
        found = _first_json(text)
    if found is None:
        return f"wanted JSON that fits the schema, got {_shown(text)} ({finish_reason})"
    misfit = bounded.misfit(_plain(check.value), _plain(found[0]))
    return f"wanted JSON that fits the schema ({misfit}), got {_shown(text)} ({finish_reason})" if misfit else ""


def _first_json(text: str) -> tuple[Any] | None:
    decoder = json.JSONDecoder()
    for opening in islice(OPENING.finditer(text), MOST_OPENINGS):
        try:
            return (decoder.raw_decode(text, opening.start())[0],)
        except (ValueError, RecursionError):
            continue
    return None


def _python_literal(check: Check, text: str, finish_reason: str, _said: str) -> str:
    """The first Python literal of the answer that can be read has the value of the wanted one; types count."""
    wanted = literals.read(check.value)
    return "" if wanted == literals.first(text, like=wanted) else _wanted(check.value, text, finish_reason)


def _korean(check: Check, text: str, finish_reason: str, said: str) -> str:
    """Free of corruption; what the prompt or the reference text says is never corruption."""
    return corruption(_nfc(text), known=_nfc(f"{said}\n{check.value or ''}"), cut_off=finish_reason == "length")


CHECKS: dict[str, Callable[[Check, str, str, str], str]] = {
    "exact": _exact,
    "contains": _contains,
    "regex": _regex,
    "numeric": _numeric,
    "json": _json,
    "json_schema": _json_schema,
    "python_literal": _python_literal,
    "korean": _korean,
}


def value_problem(kind: str, value: Any) -> str:
    """What a kind wants of its value; empty when it has it."""
    if kind == "korean":
        return "" if value is None or isinstance(value, str) else "takes a reference text or nothing"
    if kind == "contains" and isinstance(value, list):
        texts = value and all(isinstance(part, str) and part for part in value)
        return "" if texts else "wants texts that are not empty"
    is_text = isinstance(value, str) and bool(value.strip())
    wants: dict[str, Callable[[], str]] = {
        "numeric": lambda: "" if _is_number(value) else "wants a number",
        "regex": lambda: "" if is_text and _compiles(value) else "wants a regular expression",
        "json": lambda: "" if isinstance(value, dict | list) else "wants an object or a list",
        "json_schema": lambda: schemas.problem(value),
        "python_literal": lambda: "" if is_text and literals.read(value) else "wants a Python literal, as a text",
    }
    return wants.get(kind, lambda: "" if is_text else "wants a text that is not empty")()


def _is_number(value: Any) -> bool:
    is_plain = isinstance(value, int | float) and not isinstance(value, bool)
    return is_plain or (isinstance(value, str) and NUMBER.fullmatch(value) is not None)


def _compiles(pattern: str) -> bool:
    try:
        re.compile(_nfc(pattern))
    except (re.error, OverflowError, RecursionError):
        return False
    return True


def _nfc(text: str) -> str:
    return unicodedata.normalize("NFC", text)


def _digits(text: str) -> str:
    """A text as its numbers are read: minus signs as hyphens, without the 2 of a square metre in any spelling."""
    signed = MINUS.sub(" -", text)
    low = "".join(" " if unicodedata.decomposition(c).startswith(RAISED) else c for c in signed)
    return POWER.sub(" ", unicodedata.normalize("NFKC", low))


def _number(text: str) -> float:
    return float(text.replace(",", ""))


def _spelled(value: Any) -> str:
    return json.dumps(_plain(value), sort_keys=True)


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
