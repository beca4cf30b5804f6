"""What an engine version can be asked for: its serve arguments with their types, and the variables that it reads.

The lists are taken from the engine itself (`make serve-arguments`) and committed, so that a wrong name, a wrong type
and a wrong choice are refused without a boot. Pure.
"""

import json
import operator
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from campaign.asked.confidential import refuse_keys
from campaign.asked.origins import quoting
from campaign.errors import ConfigError
from campaign.limits import NOT_NULL, near

FOLDER = Path(__file__).parents[1] / "serve_arguments"
OURS = (  # the runner sets these itself, or they start no engine
    "host",
    "port",
    "model",
    "served_model_name",
    "speculative_config",
    "spec_method",
    "spec_model",
    "spec_tokens",
    "help",
)
PLAIN_HTTP = "moves the server from the plain HTTP that the runner speaks"
ONE_ENGINE = "makes several engines, whose ranks and counters the runner cannot tell apart"
TEXT = "takes away the texts that the prompts are"
REFUSED = {  # each would cost a boot, or go past what is checked here; and why
    "config": "brings in arguments that nobody checks; write them below engine.serve",
    "data_parallel_address": ONE_ENGINE,
    "data_parallel_external_lb": ONE_ENGINE,
    "data_parallel_hybrid_lb": ONE_ENGINE,
    "data_parallel_multi_port_external_lb": ONE_ENGINE,
    "data_parallel_rank": ONE_ENGINE,
    "data_parallel_rpc_port": ONE_ENGINE,
    "data_parallel_start_rank": ONE_ENGINE,
    "data_parallel_supervisor_port": ONE_ENGINE,
    "disable_log_stats": "takes away the counters that the gates read",
    "enable_elastic_ep": ONE_ENGINE,
    "enable_ssl_refresh": PLAIN_HTTP,
    "fail_on_environ_validation": "ends the engine at the runner's own variables",
    "grpc": PLAIN_HTTP,
    "headless": "starts no server that could be asked",
    "log_config_file": "takes away the log that the runner reads",
    "master_addr": ONE_ENGINE,
    "master_port": ONE_ENGINE,
    "middleware": "puts code that nobody pinned before the engine; that is what an overlay is for",
    "node_rank": ONE_ENGINE,
    "root_path": "moves the paths that the runner asks",
    "skip_tokenizer_init": TEXT,
    "ssl_ca_certs": PLAIN_HTTP,
    "ssl_cert_reqs": PLAIN_HTTP,
    "ssl_certfile": PLAIN_HTTP,
    "ssl_ciphers": PLAIN_HTTP,
    "ssl_keyfile": PLAIN_HTTP,
    "tokens_only": TEXT,
    "uds": "moves the server to a socket that the runner does not ask",
}
ONLY_ONE = (  # engine_report answers for one API server and one engine; more make ranks that nobody waits for
    "api_server_count",
    "data_parallel_size",
    "data_parallel_size_local",
    "nnodes",
    "prefill_context_parallel_size",
)
SYNTHETIC = "synthetic_acceptance_length"  # key of speculative_config by which an engine makes its acceptance up
SECRET = ("api_key", "hf_token")  # never in argv
INTEGER = re.compile(r"-?\d{1,40}")
HUMAN = re.compile(r"(\d{1,15}(?:\.\d{1,15})?)([kmgt])|(\d{1,15})([KMGT])")  # 1.5k is 1500; 2K is 2048
THOUSANDS = {letter: power for power, letter in enumerate("kmgt", start=1)}
AUTO = "auto"
BOUNDS = {  # as the engine's own fields name them
    "ge": (operator.ge, "at least"),
    "gt": (operator.gt, "more than"),
    "le": (operator.le, "at most"),
    "lt": (operator.lt, "less than"),
}
NUMBER = re.compile(r"-?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?")
SWITCH_WORDS = {"1": True, "true": True, "0": False, "false": False}


@dataclass(frozen=True)
class Argument:
    """One serve argument: switch, int, float, json, choice or text; `words` are texts it takes beside its type.

    Where it takes `several` values, a list becomes a tuple: its items are words of their own on the command line.
    A `human` number may be written 2k. `bounds` are those of BOUNDS; of an `only_one` the runner bears no more.
    """

    takes: str
    choices: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    several: bool = False
    human: bool = False
    bounds: tuple[tuple[str, float], ...] = ()
    only_one: bool = False

    def read(self, where: str, value: Any) -> Any:
        """The value in one spelling (a number as a number, JSON as data). Raises ConfigError; null stays null."""
        if value is None or (isinstance(value, str) and value in self.words):
            return value
        if isinstance(value, bool) and self.takes != "switch":
            raise ConfigError(f"{where}: found the truth value {str(value).lower()}, wanted {self.wanted}; quote text")
        if isinstance(value, str) and value.lower() in NOT_NULL and value not in self.choices:
            raise ConfigError(f"{where}: found the text {value!r}, wanted {self.wanted}; write null for nothing")
        if isinstance(value, list) and self.several and value:
            return tuple(replace(self, several=False).item(f"{where}[{i}]", each) for i, each in enumerate(value))
        found = READERS[self.takes](value, self)
        if found is None:
            raise ConfigError(f"{where}: found {value!r}, wanted {self.wanted}{self._hint(where, value)}")
        refuse_keys(where, found)
        self._check_bounds(where, found)
        return found

    def item(self, where: str, value: Any) -> Any:
        """One of several values: null and lists have no place among them."""
        if value is None or isinstance(value, dict | list):
            raise ConfigError(f"{where}: found {value!r}, wanted {self.wanted}")
        return self.read(where, value)

    def from_text(self, where: str, text: str) -> Any:
        """The value that a profile's text stands for. Raises ConfigError."""
        if self.takes == "switch":
            if text.lower() not in SWITCH_WORDS:
                raise ConfigError(f"{where}: found {text!r}, wanted 1, 0, true or false: it is a switch")
            return SWITCH_WORDS[text.lower()]
        return self.read(where, text)

    @property
    def wanted(self) -> str:
        """The type in words."""
        words = "".join(f' or "{word}"' for word in self.words)
        plain = {"int": "a whole number", "float": "a number", "text": "text", "json": "a map or a list"}
        return {
            **plain,
            "switch": "true, false or null",
            "choice": f"one of {', '.join(self.choices)}",
        }[self.takes] + words

    def _check_bounds(self, where: str, found: Any) -> None:
        if not isinstance(found, int | float):
            return
        wanted = [f"{BOUNDS[name][1]} {limit:g}" for name, limit in self.bounds if not BOUNDS[name][0](found, limit)]
        if self.only_one and found != 1:
            wanted.append("1: the runner asks one engine behind one API server")
        if wanted:
            raise ConfigError(f"{where}: found {found}, wanted {' and '.join(wanted)}")

    def _hint(self, where: str, value: Any) -> str:
        if self.takes == "choice":
            return near(str(value), self.choices)
        if self.takes == "text":
            return f"; {quoting(where, value)}"
        return ": it is a switch" if self.takes == "switch" else ""


def _switch(value: Any, _: Argument) -> bool | None:
    return value if isinstance(value, bool) else None


def _int(value: Any, argument: Argument) -> int | str | None:
    """A number; -1 is "auto" where the engine knows that word, and 2k a number where it reads it."""
    if isinstance(value, str) and value.isascii() and INTEGER.fullmatch(value):
        value = int(value)
    if isinstance(value, int):
        return AUTO if value == -1 and AUTO in argument.words else value
    found = HUMAN.fullmatch(value) if argument.human and isinstance(value, str) and value.isascii() else None
    return None if found is None else _counted(found)


def _counted(found: re.Match[str]) -> int:
    """As the engine counts: a small letter is a power of 1000, a capital one of 1024."""
    if found[2]:
        return int(float(found[1]) * 1000 ** THOUSANDS[found[2]])
    return int(int(found[3]) * 1024 ** THOUSANDS[found[4].lower()])


def _float(value: Any, _: Argument) -> int | float | None:
    if isinstance(value, int | float):
        return value if abs(value) < float("inf") else None  # a NaN is not below it either
    return float(value) if isinstance(value, str) and value.isascii() and NUMBER.fullmatch(value) else None


def _json(value: Any, _: Argument) -> Any:
    if isinstance(value, dict | list):
        return value
    try:
        found = json.loads(value) if isinstance(value, str) else None
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict | list) else None


def _choice(value: Any, argument: Argument) -> str | int | None:
    return value if isinstance(value, str | int) and str(value) in argument.choices else None


def _text(value: Any, argument: Argument) -> Any:
    """Text as it is written; a map or a list becomes JSON text. A number is not guessed to be one (0123 became 83)."""
    data = _json(value, argument)
    return data if data is not None else value if isinstance(value, str) else None


READERS = {"switch": _switch, "int": _int, "float": _float, "json": _json, "choice": _choice, "text": _text}


@dataclass(frozen=True)
class Pinned:
    """The pinned lists of one engine version."""

    version: str
    arguments: Mapping[str, Argument]
    variables: frozenset[str]
    methods: tuple[str, ...]  # of drafting
    speculation: frozenset[str] = frozenset()  # keys of speculative_config

    def argument(self, where: str, name: str) -> Argument:
        """The argument of that name, for a value found at `where`. Raises ConfigError when nobody may set it."""
        if name in OURS:
            raise ConfigError(f"{where}: the runner sets {name} itself (model.*, host.port); leave it out")
        if name in REFUSED:
            raise ConfigError(f"{where}: {name} {REFUSED[name]}; leave it out")
        if name in SECRET:
            raise ConfigError(f"{where}: a secret must not stand in an argument list; use engine.pass_env")
        if name not in self.arguments:
            hint = near(name, self.arguments)
            raise ConfigError(f"{where}: vLLM {self.version} has no serve argument {name!r}{hint}")
        return self.arguments[name]


@cache
def load(version: str) -> Pinned:
    """The lists of a version. Raises ConfigError for one that has none."""
    path = FOLDER / f"{version}.json"
    have = sorted(p.stem for p in FOLDER.glob("*.json"))
    if version not in have:
        raise ConfigError(
            f"no serve-argument list for engine version {version} (there is {', '.join(have)}): make serve-arguments"
        )
    plain = json.loads(path.read_text(encoding="utf-8"))
    arguments = {name: _argument(name, entry) for name, entry in plain["arguments"].items()}
    known = frozenset(plain.get("speculation", ()))
    return Pinned(version, arguments, frozenset(plain["variables"]), tuple(plain["methods"]), known)


def _argument(name: str, entry: dict[str, Any]) -> Argument:
    return Argument(
        entry["takes"],
        tuple(entry.get("choices", ())),
        tuple(entry.get("words", ())),
        several=bool(entry.get("list", False)),
        human=bool(entry.get("human", False)),
        bounds=tuple((bound, entry[bound]) for bound in BOUNDS if bound in entry),
        only_one=name in ONLY_ONE,
    )
