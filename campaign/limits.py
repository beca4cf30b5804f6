"""What a configuration's numbers and names may be; the schema only knows their types. Pure."""

import difflib
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from campaign.errors import ConfigError

NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,39}")  # an experiment's name becomes a folder, a tag, a served model name
NEVER_EMPTY = (  # `key=` on the command line is an empty text, which as a path would be the current folder
    "engine.profile", "engine.python", "host.runs_dir", "host.cache_dir", "workload.prompts", "model.target",
    "model.drafter", "tracking.uri", "gates.korean.sampled",
)  # fmt: skip
NOT_TYPED = {"true", "false", "yes", "no", "on", "off", "none", "null"}
NOT_NULL = {"none", "null", "nil", "~"}
RANGES: Mapping[str, tuple[float, float]] = {  # path -> smallest and largest, in the unit of its name
    "host.port": (1, 65535),
    "host.min_free_gb": (0, math.inf),
    "host.history_sd_pct": (0.001, 100),
    "host.history_df": (0, 10_000),
    "workload.max_tokens": (2, 1_000_000),
    "workload.repeats": (1, 10_000),
    "workload.warm_up_requests": (1, 10_000),
    "workload.max_warm_up_requests": (1, 10_000),
    "workload.prefix_rounds": (1, 100),
    "model.num_speculative_tokens": (0, 64),
    "model.synthetic_acceptance_length": (1, 65),
    "bracket.max_boots": (1, 1000),
    "bracket.max_minutes": (1, 100_000),
    "bracket.reruns_per_block": (0, 16),
    "bracket.reruns": (0, 100),
    "bracket.aa_pairs": (0, 16),
    "bracket.rest_s": (0, 60),
    "host.foreign_cpu_cores": (0.01, 1024),
    "gates.korean.claimed_below_pct": (0.01, 99.99),
    "gates.quality.claimed_above_pct": (0.01, 99.99),
    "gates.outputs.near_tie_nats": (0, 10),
    "gates.step_rate.drift_pct": (0.1, 99),
    "gates.step_rate.prefix_hits_pp": (0, 100),
    "engine.boot_timeout_s": (1, 86_400),
    "engine.request_timeout_s": (1, 86_400),
    "engine.stop_timeout_s": (1, 86_400),
    "engine.stall_timeout_s": (1, 86_400),
    "engine.boot_retries": (0, 3),
    "host.memory_timeout_s": (1, 86_400),
    "engine.minutes_per_boot": (0, 1440),
}


def check(campaign: Any) -> None:
    """Raises ConfigError for a name that cannot be a folder, a number out of its range, or the text "None"."""
    if not NAME.fullmatch(campaign.name):
        raise ConfigError(f"name: found {campaign.name!r}, wanted lower-case letters, digits, '_' and '-' (at most 40)")
    for path, (low, high) in RANGES.items():
        _check_range(path, _at(campaign, path), low, high)
    if campaign.host.history_sd_pct is not None and campaign.host.history_df < 1:
        raise ConfigError("host.history_df: found 0 beside a host.history_sd_pct, wanted its degrees of freedom (>= 1)")
    if campaign.workload.max_warm_up_requests < campaign.workload.warm_up_requests:
        raise ConfigError(
            f"workload.max_warm_up_requests: found {campaign.workload.max_warm_up_requests}, wanted at least "
            f"workload.warm_up_requests={campaign.workload.warm_up_requests}"
        )
    _check_texts(campaign, "")
    _check_chat_template(campaign.model.chat_template, "model.chat_template")


def _check_chat_template(arguments: Any, where: str) -> None:
    """A template tests truth, and every text is true to it: "false" would switch on what it is to switch off."""
    for key, value in arguments.items():
        if isinstance(value, dict):
            _check_chat_template(value, f"{where}.{key}")
        elif isinstance(value, str) and value.lower() in NOT_TYPED:
            raise ConfigError(
                f"{where}.{key}: found the text {value!r}, which a template reads as true; leave the quotes out"
            )


def _check_list(path: str, values: list[Any]) -> None:
    """OmegaConf lets a list stand where a text is wanted."""
    for number, value in enumerate(values):
        if not isinstance(value, str) or "\0" in value:
            raise ConfigError(f"{path}[{number}]: found {value!r}, wanted text")


def near(name: str, names: Iterable[str]) -> str:
    """Words that offer the nearest of the names; empty when none is near."""
    found = difflib.get_close_matches(name, list(names), n=1)
    return f" (did you mean {found[0]!r}?)" if found else ""


def _at(node: Any, path: str) -> Any:
    for part in path.split("."):
        node = None if node is None else getattr(node, part)  # a gate may be off
    return node


def _check_range(path: str, value: float | None, low: float, high: float) -> None:
    if value is not None and not low <= value <= high:  # a NaN is in no range
        reach = f"{low:g} to {high:g}" if math.isfinite(high) else f"at least {low:g}"
        raise ConfigError(f"{path}: found {value:g}, wanted {reach}")


def _check_texts(node: Any, where: str) -> None:
    """The text "None" is not null: YAML and the command line read it as four letters. A list of texts holds texts."""
    for field in fields(node):
        value, path = getattr(node, field.name), f"{where}{field.name}"
        if is_dataclass(value):
            _check_texts(value, f"{path}.")
        elif isinstance(value, dict):
            for key in [key for key, each in value.items() if is_dataclass(each)]:
                _check_texts(value[key], f"{path}.{key}.")
        elif field.type == list[str]:
            _check_list(path, value)
        elif value == "" and path in NEVER_EMPTY:
            raise ConfigError(f"{path}: found an empty text, wanted a value; write null for nothing where it may be")
        elif isinstance(value, str) and value.lower() in NOT_NULL:
            raise ConfigError(f"{path}: found the text {value!r}; write null for nothing")
