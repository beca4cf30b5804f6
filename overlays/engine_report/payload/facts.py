"""What a role knows about its engine: read from live objects when asked, so that a later change is seen."""

import os
import re
import sys
from typing import Any

SECRET = re.compile(r"KEY|TOKEN|SECRET|PASSWORD")
V2 = "vllm.v1.worker.gpu."
V1 = "vllm.v1.worker.gpu_model_runner"
OFFLOADING = "vllm.model_executor.offloader.base"  # the object in force: a runner has left the option alone before


def environment() -> dict[str, str]:
    """Every VLLM_ and TRITON_ variable as this process sees it; a secret's value is left out."""
    ours = {name: value for name, value in sorted(os.environ.items()) if name.startswith(("VLLM_", "TRITON_"))}
    return {name: "(set)" if SECRET.search(name) else value for name, value in ours.items()}


def of_config(config: Any) -> dict[str, Any]:
    """What every process's own copy of the configuration says."""
    speculative = config.speculative_config
    facts = {
        "async_scheduling": bool(config.scheduler_config.async_scheduling),
        "max_concurrent_batches": config.max_concurrent_batches,
        "prefix_caching": bool(config.cache_config.enable_prefix_caching),
        "spec_method": speculative.method if speculative else "none",
        "spec_tokens": config.num_speculative_tokens,
        "kv_blocks": config.cache_config.num_gpu_blocks,
        "kv_block_size": config.cache_config.block_size,
        "max_model_len": config.model_config.max_model_len,
        "max_num_seqs": config.scheduler_config.max_num_seqs,
        "max_num_batched_tokens": config.scheduler_config.max_num_batched_tokens,
        "dtype": str(config.model_config.dtype).removeprefix("torch."),
        "enforce_eager": config.model_config.enforce_eager,
        "world_size": config.parallel_config.world_size,
    }
    return {name: value for name, value in facts.items() if value is not None}


def of_engine(engine: Any) -> dict[str, Any]:
    """What EngineCore made of its configuration: the scheduler that exists, the batch queue that exists."""
    facts = of_config(engine.vllm_config)
    if getattr(engine, "scheduler", None) is None:
        return facts
    facts["scheduler_class"] = type(engine.scheduler).__name__
    facts["max_concurrent_batches"] = engine.batch_queue_size
    facts["kv_groups"] = engine.get_kv_cache_group_metadata()
    return facts


def of_worker(worker: Any) -> dict[str, Any]:
    """What a worker runs: the runner by its class (not by the flag that asked for it), and its own KV blocks."""
    facts = of_config(worker.vllm_config)
    runner = worker.model_runner
    if runner is not None:
        modules = [kind.__module__ for kind in type(runner).__mro__]
        facts["runner_class"] = f"{type(runner).__module__}.{type(runner).__qualname__}"
        if any(module.startswith(V2) for module in modules):
            facts["runner"] = "V2"
        elif V1 in modules:
            facts["runner"] = "V1"
        kv = getattr(runner, "kv_cache_config", None)
        if kv is not None:
            facts["kv_blocks"] = kv.num_blocks
    offloading = sys.modules.get(OFFLOADING)
    if offloading is not None:
        facts["offloader"] = type(offloading.get_offloader()).__name__
    return facts
