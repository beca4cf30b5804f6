"""Print what the installed engine can be asked for, as JSON: its serve arguments by type, and the variables it reads.

Run by the engine's python (`make serve-arguments`); the output is committed, so that a misspelt or mistyped argument
is refused without a boot. An argument's type is found by trying the engine's own converter on a few words, because
the converters themselves are closures that say nothing.

"takes" is switch (no value, has a --no- form), int, float, json, choice (with its "choices") or text; "list" says
that several values may follow; "words" are the texts that a number or JSON may be instead.
"""

import contextlib
import json
import re
import sys
from argparse import Action
from typing import Any

with contextlib.redirect_stdout(sys.stderr):
    from vllm import envs
    from vllm.entrypoints.launchers.cli_args import make_arg_parser
    from vllm.utils.argparse_utils import FlexibleArgumentParser
    from vllm.version import __version__

    parser = make_arg_parser(FlexibleArgumentParser())

NO_TYPE = "no-such-word"
TRIED = (("text", NO_TYPE), ("json", "{}"), ("float", "0.5"), ("int", "7"))  # what takes the first, takes all after it
WORDS = ("auto",)
VARIABLE = re.compile(r"[A-Z][A-Z0-9_]*")


def accepts(action: Action, word: str) -> bool:
    """Whether the argument's own converter takes a word."""
    try:
        action.type(word) if callable(action.type) else None
    except Exception:  # noqa: BLE001 - whatever the engine's converter raises, it did not take the word
        return False
    return True


def described(action: Action) -> dict[str, Any]:
    """One argument: what it takes, and its choices."""
    if action.nargs == 0:
        return {"takes": "switch"}
    several = {"list": True} if action.nargs in ("+", "*") or isinstance(action.nargs, int) else {}
    if action.choices is not None:
        return {"takes": "choice", "choices": sorted(map(str, {*action.choices} - {None, "None"}))} | several
    takes = next((name for name, word in TRIED if accepts(action, word)), "text")
    words = [word for word in WORDS if takes != "text" and accepts(action, word)]
    return {"takes": takes} | several | ({"words": words} if words else {})


arguments = {
    option[2:].replace("-", "_"): described(action)
    for action in parser._actions
    for option in action.option_strings
    if option.startswith("--") and not option.startswith("--no-")
}
found = {
    "engine": "vllm",
    "version": __version__,
    "arguments": dict(sorted(arguments.items())),
    "variables": sorted(name for name in envs.environment_variables if VARIABLE.fullmatch(name)),
}
rows = [f"  {json.dumps(name)}: {json.dumps(value)}" for name, value in found["arguments"].items()]
head = {key: found[key] for key in ("engine", "version")}
sys.stdout.write(
    "{\n"
    + "".join(f" {json.dumps(key)}: {json.dumps(value)},\n" for key, value in head.items())
    + ' "arguments": {\n'
    + ",\n".join(rows)
    + "\n },\n"
    + ' "variables": [\n'
    + ",\n".join(f"  {json.dumps(name)}" for name in found["variables"])
    + "\n ]\n}\n"
)
