"""Print what the installed engine can be asked for, as JSON: its serve arguments by type, and the variables it reads.

Run by the engine's python (`make serve-arguments`); the output is committed, so that a misspelt or mistyped argument
is refused without a boot. An argument's type is found by trying the engine's own converter on a few words, because
the converters themselves are closures that say nothing.

"takes" is switch (no value, has a --no- form), int, float, json, choice (with its "choices") or text; "list" says
that several values may follow; "words" are the texts that a number or JSON may be instead; "human" says that the engine
also reads 2k and 1M there; "ge", "gt", "le" and "lt" are the limits of the engine's own field. "methods" are the ways
of drafting that it knows, "speculation" the keys of its speculative_config.
"""

import contextlib
import json
import re
import sys
from argparse import Action
from typing import Any, get_args

with contextlib.redirect_stdout(sys.stderr):
    from vllm import config, envs
    from vllm.config.speculative import SpeculativeConfig, SpeculativeMethod
    from vllm.entrypoints.launchers.cli_args import make_arg_parser
    from vllm.utils.argparse_utils import FlexibleArgumentParser
    from vllm.version import __version__

    parser = make_arg_parser(FlexibleArgumentParser())

NO_TYPE = "no-such-word"
TRIED = (("text", NO_TYPE), ("json", "{}"), ("float", "0.5"), ("int", "7"))  # what takes the first, takes all after it
WORDS = ("auto",)
HUMAN = "2k"
LIMITS = ("ge", "gt", "le", "lt")
OWNERS = (  # whose fields are serve arguments of the same name; a drafter's max_model_len is not the engine's
    "ModelConfig",
    "CacheConfig",
    "ParallelConfig",
    "SchedulerConfig",
    "OffloadConfig",
    "UVAOffloadConfig",
    "PrefetchOffloadConfig",
    "LoadConfig",
    "LoRAConfig",
    "MultiModalConfig",
    "ObservabilityConfig",
    "VllmConfig",
)
VARIABLE = re.compile(r"[A-Z][A-Z0-9_]*")


def accepts(action: Action, word: str) -> bool:
    """Whether the argument's own converter takes a word."""
    try:
        action.type(word) if callable(action.type) else None
    except Exception:  # noqa: BLE001 - whatever the engine's converter raises, it did not take the word
        return False
    return True


def limits(name: str) -> dict[str, Any]:
    """The limits of a number, from the field of the engine's configuration that it becomes."""
    owned = (getattr(getattr(config, owner, None), "__pydantic_fields__", {}) for owner in OWNERS)
    field = next((fields[name] for fields in owned if name in fields), None)
    rules = getattr(field, "metadata", [])
    return {limit: getattr(rule, limit) for rule in rules for limit in LIMITS if hasattr(rule, limit)}


def described(action: Action) -> dict[str, Any]:
    """One argument: what it takes, and its choices."""
    if action.nargs == 0:
        return {"takes": "switch"}
    several = {"list": True} if action.nargs in ("+", "*") or isinstance(action.nargs, int) else {}
    if action.choices is not None:
        return {"takes": "choice", "choices": sorted(map(str, {*action.choices} - {None, "None"}))} | several
    takes = next((name for name, word in TRIED if accepts(action, word)), "text")
    words = [word for word in WORDS if takes != "text" and accepts(action, word)]
    human = {"human": True} if takes == "int" and accepts(action, HUMAN) else {}
    bounds = limits(action.dest) if takes in ("int", "float") else {}
    return {"takes": takes} | several | human | bounds | ({"words": words} if words else {})


def flat(literal: object) -> list[str]:
    """The texts of a Literal, also of the Literals in it."""
    return [text for part in get_args(literal) for text in ([part] if isinstance(part, str) else flat(part))]


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
    "methods": sorted(set(flat(SpeculativeMethod))),
    "speculation": sorted(SpeculativeConfig.__pydantic_fields__),
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
    + f' "methods": {json.dumps(found["methods"])},\n'
    + f' "speculation": {json.dumps(found["speculation"])},\n'
    + ' "variables": [\n'
    + ",\n".join(f"  {json.dumps(name)}" for name in found["variables"])
    + "\n ]\n}\n"
)
