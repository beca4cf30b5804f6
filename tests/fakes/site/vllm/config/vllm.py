"""The engine's configuration and what it resolves to."""

import argparse
from dataclasses import dataclass

from vllm import faults
from vllm.config.speculative import EagleModelTypes, SpeculativeConfig, parse
from vllm.logger import API_SERVER, log
from vllm.platforms import cpu


@dataclass
class VllmConfig:
    """One engine. async_scheduling None is "as the engine likes", until it is resolved."""

    model: str
    served_model_name: str
    max_model_len: int
    max_num_seqs: int
    block_size: int
    kv_cache_memory_bytes: int
    enable_prefix_caching: bool
    dtype: str
    async_scheduling: bool | None
    speculative_config: SpeculativeConfig | None
    runner: str = "V1"

    @property
    def num_speculative_tokens(self) -> int:
        """K; 0 when nothing is drafted."""
        return self.speculative_config.num_speculative_tokens if self.speculative_config else 0


def resolve(args: argparse.Namespace) -> VllmConfig:
    """The configuration of these arguments, with every decision made."""
    config = VllmConfig(
        model=args.model,
        served_model_name=args.served_model_name or args.model,
        max_model_len=args.max_model_len,
        max_num_seqs=args.max_num_seqs,
        block_size=args.block_size,
        kv_cache_memory_bytes=args.kv_cache_memory_bytes,
        enable_prefix_caching=args.enable_prefix_caching,
        dtype=args.dtype,
        async_scheduling=args.async_scheduling,
        speculative_config=parse(args.speculative_config),
    )
    decide_async_scheduling(config)
    if faults.on("no_prefix_cache") and config.enable_prefix_caching:
        config.enable_prefix_caching = False
        log(API_SERVER, "vllm.py:1773", "Disabling prefix caching: the model has recurrent layers.", "WARNING")
    cpu.check_and_update_config(config)
    return config


def decide_async_scheduling(config: VllmConfig) -> None:
    """The allow-list. What it decides is not final: the platform has the last word."""
    method = config.speculative_config.method if config.speculative_config else None
    admitted = method is None or method in EagleModelTypes
    if config.async_scheduling and not admitted:
        raise ValueError("Currently, async scheduling is only supported with EAGLE/MTP kind of speculative decoding")
    if config.async_scheduling is None and not admitted:
        warning = f"Async scheduling not supported with {method}-based speculative decoding and will be disabled."
        log(API_SERVER, "vllm.py:1282", warning, "WARNING")
    if config.async_scheduling is None:
        config.async_scheduling = admitted
