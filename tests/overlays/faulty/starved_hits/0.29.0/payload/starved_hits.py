"""Added by the test overlay starved_hits: the draft KV of tokens that came from a prefix-cache hit is zero.

It is zeroed once a request, before its first step. The blocks stay so, also for the requests that share them. The
target's own KV is left alone, so every text stays right.
"""

import os
from typing import Any

import torch
from campaign_engine_report.state import count, publish

ON = os.environ.get("VLLM_PLANTED_STARVED_HITS", "0") == "1"

counts = {"watched_requests": 0, "starved_requests": 0, "starved_tokens": 0}


def starve(runner: Any, scheduled: Any) -> None:
    """Zero the draft KV of what each new request of a step has found in the cache."""
    if not ON:
        return
    for request in scheduled.scheduled_new_reqs:
        counts["watched_requests"] += 1
        if request.num_computed_tokens:
            counts["starved_requests"] += 1
            counts["starved_tokens"] += request.num_computed_tokens
            _zero(runner, request)


def _zero(runner: Any, request: Any) -> None:
    drafter = getattr(runner, "drafter", None) or runner.speculator  # V1, V2
    groups = {name: i for i, g in enumerate(runner.kv_cache_config.kv_cache_groups) for name in g.layer_names}
    for layer in drafter.model.model._attn_layers:
        group = groups[layer.layer_name]
        size = runner.kv_cache_config.kv_cache_groups[group].kv_cache_spec.block_size
        slots = _slots(request.block_ids[group], size, request.num_computed_tokens).to(layer.kv_cache.device)
        nothing = torch.zeros(
            (len(slots), layer.num_kv_heads, layer.head_size),
            dtype=next(drafter.model.parameters()).dtype, device=slots.device,
        )  # fmt: skip
        layer.impl.do_kv_cache_update(layer, nothing, nothing.clone(), layer.kv_cache, slots)


def _slots(blocks: list[int], size: int, tokens: int) -> torch.Tensor:
    """Where the first tokens lie; block 0 is the engine's padding, which a sliding window leaves behind."""
    held = torch.tensor(blocks[: -(-tokens // size)], dtype=torch.int64)
    slots = (held[:, None] * size + torch.arange(size)).flatten()[:tokens]
    return slots[slots >= size]


publish("starved_hits", lambda: {"on": ON})
count("starved_hits", lambda: counts)
