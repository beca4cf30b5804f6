"""The engine's serve arguments: as it parsed them, and what its configuration made of each.

A configuration is a tree of dataclasses whose fields are called as the arguments are, but for the few in RENAMED. A
name that stands in several places with several values is not shown: nothing says which of them the argument set.
"""

from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any

RENAMED = {
    "kv_cache_dtype": "cache_config.cache_dtype",
    "scheduling_policy": "scheduler_config.policy",
    "attention_backend": "attention_config.backend",
    "mamba_backend": "mamba_config.backend",
    "mamba_ssu_algorithm": "mamba_config.ssu_algorithm",
    "enable_mamba_cache_stochastic_rounding": "mamba_config.enable_stochastic_rounding",
    "mamba_cache_philox_rounds": "mamba_config.stochastic_rounding_philox_rounds",
    "data_parallel_address": "parallel_config.data_parallel_master_ip",
    "lora_target_modules": "lora_config.target_modules",
    "device_ids": "parallel_config.assigned_physical_gpu_ids",
    "max_model_len": "model_config.max_model_len",
}
OTHERS = (  # settings of a drafter, or of the checkpoint, under the same names
    "speculative_config",
    "diffusion_config",
    "hf_config",
    "hf_text_config",
    "hf_image_processor_config",
)
SECRET = ("api_key", "hf_token", "token")
DEPTH = 3  # the deepest argument: offload_config.uva.cpu_offload_gb
NOTHING = object()


def parsed(arguments: Any) -> dict[str, Any]:
    """The arguments as the engine's own parser left them, before any of them was resolved."""
    found = {field.name: plain(getattr(arguments, field.name, None)) for field in fields(arguments)}
    return {name: value for name, value in found.items() if value is not NOTHING and name not in SECRET}


def resolved(config: Any) -> dict[str, Any]:
    """What the configuration holds now under each argument's name."""
    found: dict[str, Any] = {}
    doubtful = set()
    for name, value in _walk(config, DEPTH):
        if name in found and found[name] != value:
            doubtful.add(name)
        found[name] = value
    shown = {name: value for name, value in found.items() if name not in doubtful and name not in SECRET}
    return shown | {name: value for name, path in RENAMED.items() if (value := _at(config, path)) is not NOTHING}


def _walk(node: Any, depth: int) -> Iterator[tuple[str, Any]]:
    for field in fields(node):
        value = getattr(node, field.name, None)
        if field.name in OTHERS:
            continue
        if is_dataclass(value) and depth > 1:
            yield from _walk(value, depth - 1)
        if (shown := plain(value)) is not NOTHING:
            yield field.name, shown


def _at(node: Any, path: str) -> Any:
    for name in path.split("."):
        node = getattr(node, name, None)
    return plain(node)


def plain(value: Any, depth: int = DEPTH) -> Any:
    """A value as JSON can hold it; NOTHING where it cannot. Enums by name, a configuration as a map."""
    if isinstance(value, Enum):
        return value.name
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if f"{type(value).__module__}.{type(value).__name__}" == "torch.dtype":
        return str(value).removeprefix("torch.")
    return _plain_many(value, depth) if depth else NOTHING


def _plain_many(value: Any, depth: int) -> Any:
    if isinstance(value, list | tuple | set | frozenset):
        return _plain_list(value, depth)
    if isinstance(value, Mapping):
        return _plain_map(value.items(), depth)
    if is_dataclass(value) and not isinstance(value, type):
        return _plain_map(((f.name, getattr(value, f.name, None)) for f in fields(value)), depth)
    return NOTHING


def _plain_list(values: Any, depth: int) -> Any:
    found = [plain(item, depth - 1) for item in values]
    if any(item is NOTHING for item in found):
        return NOTHING
    return found if isinstance(values, list | tuple) else sorted(found, key=str)


def _plain_map(items: Any, depth: int) -> dict[str, Any]:
    found = {str(name): plain(item, depth - 1) for name, item in items if name not in SECRET}
    return {name: item for name, item in found.items() if item is not NOTHING}
