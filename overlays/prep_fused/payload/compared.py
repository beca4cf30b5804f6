"""Are two preparations of one step the same, bit for bit: buffers, fresh tensors, host words and metadata?"""

from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
import torch
from campaign_prep_fused.prep_fused.shadow import first_difference

OPAQUE = frozenset({"scheduler_metadata"})  # of the CPU backend: a blob with addresses in it, of what is compared here
DEEPEST = 6


def unlike_fields(ours: Mapping[str, Any], stock: Any) -> Iterator[str]:
    """Fields of the engine's batch that ours has otherwise. A field that only one side has differs too."""
    theirs = vars(stock)
    for name in sorted(ours.keys() | theirs.keys()):
        if name not in ours or name not in theirs:
            yield f"{name}: only {'ours' if name in ours else 'the engine'} has it"
        elif told := difference(ours[name], theirs[name]):
            yield f"{name}: {told}"


def difference(ours: Any, stock: Any, depth: int = 0) -> str:
    """The first place where two values differ, in words; empty where they are equal down to type and bit."""
    if ours is stock:
        return ""
    if type(ours) is not type(stock):
        return f"a {type(ours).__name__}, the engine has a {type(stock).__name__}"
    if isinstance(stock, torch.Tensor | np.ndarray):
        return first_difference(ours, stock) if isinstance(stock, torch.Tensor) else _of_arrays(ours, stock)
    if (parts := _parts(stock)) is not None:
        return _of_parts(_parts(ours) or {}, parts, depth)
    return "" if ours == stock else f"{ours!r}, the engine has {stock!r}"


def _of_arrays(ours: np.ndarray, stock: np.ndarray) -> str:
    if (ours.dtype, ours.shape) != (stock.dtype, stock.shape):
        return f"{ours.dtype} {ours.shape}, the engine has {stock.dtype} {stock.shape}"
    unlike = np.argwhere(ours != stock)
    if not len(unlike):
        return ""
    at = tuple(unlike[0].tolist())
    return f"{len(unlike)} differ, first at {at}: {ours[at]}, the engine has {stock[at]}"


def _of_parts(ours: Mapping[Any, Any], stock: Mapping[Any, Any], depth: int) -> str:
    if ours.keys() != stock.keys():
        return f"has {sorted(map(str, ours))}, the engine has {sorted(map(str, stock))}"
    if depth >= DEEPEST:
        return ""
    for name in stock:
        if name not in OPAQUE and (told := difference(ours[name], stock[name], depth + 1)):
            return f"{name}: {told}"
    return ""


def _parts(value: Any) -> dict[Any, Any] | None:
    """What a value is made of; None of one that is compared as a whole."""
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, list | tuple):
        return dict(enumerate(value))
    if is_dataclass(value):
        return {field.name: getattr(value, field.name, None) for field in fields(value)}
    return dict(vars(value)) if hasattr(value, "__dict__") else None


def opaque(metadata: Any, depth: int = 0) -> int:
    """How many fields of a step's metadata are passed over, each counted once a layer."""
    if isinstance(metadata, Mapping):
        return sum(opaque(value, depth + 1) for value in metadata.values())
    found = (_parts(metadata) or {}) if depth <= DEEPEST else {}
    return sum(1 for name, value in found.items() if name in OPAQUE and value is not None)
