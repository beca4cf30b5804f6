"""The KV budget, and the two lines that the engine prints of it."""

from dataclasses import dataclass

from vllm.config.vllm import VllmConfig
from vllm.logger import ENGINE_CORE, log

BYTES_PER_TOKEN = 1536


@dataclass(frozen=True)
class KvCache:
    """Blocks of block_size tokens."""

    blocks: int
    block_size: int

    @property
    def tokens(self) -> int:
        """Capacity."""
        return self.blocks * self.block_size


def make(config: VllmConfig) -> KvCache:
    """The cache that the configured bytes hold."""
    cache = KvCache(config.kv_cache_memory_bytes // (BYTES_PER_TOKEN * config.block_size), config.block_size)
    line = (
        f"GPU KV cache size: {cache.tokens:,} tokens, Maximum concurrency for {config.max_model_len:,} tokens per "
        f"request: {cache.tokens / config.max_model_len:.2f}x"
    )
    log(ENGINE_CORE, "kv_cache_utils.py:2032", line)
    return cache
