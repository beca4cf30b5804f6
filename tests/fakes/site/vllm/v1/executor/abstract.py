"""How many batches the executor takes at a time."""

from vllm.config.vllm import VllmConfig


def max_concurrent_batches(config: VllmConfig) -> int:
    """Two with async scheduling: the next batch is prepared while one runs."""
    return 2 if config.async_scheduling else 1
