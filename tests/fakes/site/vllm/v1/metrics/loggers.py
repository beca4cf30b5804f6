"""The counters of /metrics, with the engine's names."""

import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager

from vllm import faults
from vllm.config.vllm import VllmConfig
from vllm.logger import API_SERVER, log
from vllm.v1.core.kv_cache_utils import KvCache

FINISHED = ("stop", "length", "abort", "error", "repetition")
HISTOGRAMS = (
    "time_to_first_token_seconds",
    "inter_token_latency_seconds",
    "request_time_per_output_token_seconds",
    "e2e_request_latency_seconds",
    "request_queue_time_seconds",
    "request_inference_time_seconds",
    "request_prefill_time_seconds",
    "request_decode_time_seconds",
    "request_prompt_tokens",
    "request_generation_tokens",
    "iteration_tokens_total",
)
COUNTERS = (
    "spec_decode_num_drafts",
    "spec_decode_num_draft_tokens",
    "spec_decode_num_accepted_tokens",
    "prefix_cache_queries",
    "prefix_cache_hits",
    "num_preemptions",
    "prompt_tokens",
    "prompt_tokens_cached",
    "generation_tokens",
)


class Metrics:
    """All counters of one engine."""

    def __init__(self, config: VllmConfig, cache: KvCache) -> None:
        self.config, self.cache = config, cache
        self.lock = threading.Lock()
        self.reset()

    def reset(self) -> None:
        """As after a restart."""
        self.created = time.time()
        self.counters: dict[str, float] = dict.fromkeys(COUNTERS, 0.0)
        self.per_position = [0.0] * self.config.num_speculative_tokens
        self.sums: dict[str, float] = defaultdict(float)
        self.counts: dict[str, int] = defaultdict(int)
        self.success = dict.fromkeys(FINISHED, 0.0)
        self.requests = {"running": 0, "waiting": 0}
        self.blocks_seen: set[str] = set()

    @contextmanager
    def running(self) -> Iterator[None]:
        """A request that runs."""
        with self._gauge("running"):
            faults.in_prefill()
            yield

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """A request that waits."""
        with self._gauge("waiting"):
            yield

    @contextmanager
    def _gauge(self, name: str) -> Iterator[None]:
        with self.lock:
            self.requests[name] += 1
        try:
            yield
        finally:
            with self.lock:
                self.requests[name] -= 1

    def observe(self, **values: float) -> None:
        """One observation of each histogram."""
        for name, value in values.items():
            self.sums[name] += value
            self.counts[name] += 1

    def prefill(self, prompt: str, seconds: float) -> None:
        """The prompt was computed, less what the prefix cache held."""
        with self.lock:
            self.counters["prompt_tokens"] += len(prompt)
            if self.config.enable_prefix_caching:
                hits = self._cached(prompt)
                self.counters["prefix_cache_queries"] += len(prompt)
                self.counters["prefix_cache_hits"] += hits
                self.counters["prompt_tokens_cached"] += hits
            self.counters["generation_tokens"] += 1
            self.observe(
                time_to_first_token_seconds=seconds,
                request_prompt_tokens=len(prompt),
                iteration_tokens_total=len(prompt) + 1,
            )

    def _cached(self, prompt: str) -> int:
        size = self.cache.block_size
        whole = [prompt[: end * size] for end in range(1, len(prompt) // size + 1)]
        hits = sum(size for start in whole if start in self.blocks_seen)
        self.blocks_seen.update(whole)
        return hits

    def drafted(self, drafted: int, accepted: int) -> None:
        """One draft."""
        if faults.on("drafts_not_counted"):
            self._only_logged(drafted, accepted)
            return
        with self.lock:
            self.counters["spec_decode_num_drafts"] += 1
            self.counters["spec_decode_num_draft_tokens"] += drafted
            self.counters["spec_decode_num_accepted_tokens"] += accepted
            for position in range(accepted):
                self.per_position[position] += 1

    def _only_logged(self, drafted: int, accepted: int) -> None:
        """The log tells of drafts that no counter shows: a path that nobody wired."""
        rates = ", ".join(f"{float(position < accepted):.3f}" for position in range(drafted))
        words = f"Mean acceptance length: {1 + accepted:.2f}, Accepted throughput: 0.10 tokens/s, "
        words += f"Drafted throughput: 0.50 tokens/s, Accepted: {accepted} tokens, Drafted: {drafted} tokens, "
        words += f"Per-position acceptance rate: {rates}, Avg Draft acceptance rate: {100 * accepted / drafted:.1f}%"
        log(API_SERVER, "metrics.py:120", f"SpecDecoding metrics: {words}")

    def decode_step(self, tokens: int) -> None:
        """One step gave tokens."""
        with self.lock:
            self.counters["generation_tokens"] += tokens
            self.observe(iteration_tokens_total=tokens)

    def finished(self, reason: str, tokens: int, decode_s: float, prefill_s: float) -> None:
        """A request ended."""
        with self.lock:
            self.success[reason] += 1
            self.observe(
                request_generation_tokens=tokens,
                request_decode_time_seconds=decode_s,
                inter_token_latency_seconds=decode_s,
                request_inference_time_seconds=decode_s + prefill_s,
                request_prefill_time_seconds=prefill_s,
                request_queue_time_seconds=0.0,
                e2e_request_latency_seconds=decode_s + prefill_s,
                request_time_per_output_token_seconds=decode_s / max(1, tokens - 1),
            )

    def render(self) -> str:
        """The text of /metrics."""
        with self.lock:
            lines = [line for name, value in self.counters.items() for line in self._counter(name, {"": value})]
            if self.per_position:
                positions = {f',position="{p}"': value for p, value in enumerate(self.per_position)}
                lines += self._counter("spec_decode_num_accepted_tokens_per_pos", positions)
            lines += self._counter("request_success", {f',finished_reason="{r}"': v for r, v in self.success.items()})
            lines += [line for name in HISTOGRAMS for line in self._histogram(name)]
            lines += [
                line for name, value in self.requests.items() for line in self._info(f"num_requests_{name}", value)
            ]
            lines += self._info("kv_cache_usage_perc", 0.0)
            lines += self._info("cache_config_info", 1.0, self._cache_labels())
        return "\n".join(lines) + "\n"

    def _labels(self, more: str = "") -> str:
        return f'{{engine="0",model_name="{self.config.served_model_name}"{more}}}'

    def _counter(self, name: str, values: dict[str, float]) -> list[str]:
        rows = [f"vllm:{name}_total{self._labels(more)} {value}" for more, value in values.items()]
        created = [f"vllm:{name}_created{self._labels(more)} {self.created}" for more in values]
        kinds = (f"# TYPE vllm:{name}_total counter", f"# TYPE vllm:{name}_created gauge")
        return [kinds[0], *rows, kinds[1], *created]

    def _histogram(self, name: str) -> list[str]:
        bucket = self._labels(',le="+Inf"')
        return [
            f"# TYPE vllm:{name} histogram",
            f"vllm:{name}_bucket{bucket} {float(self.counts[name])}",
            f"vllm:{name}_count{self._labels()} {float(self.counts[name])}",
            f"vllm:{name}_sum{self._labels()} {self.sums[name]}",
        ]

    def _info(self, name: str, value: float, more: str = "") -> list[str]:
        return [f"# TYPE vllm:{name} gauge", f"vllm:{name}{self._labels(more)} {float(value)}"]

    def _cache_labels(self) -> str:
        tokens = self.cache.tokens
        labels = {
            "block_size": self.cache.block_size,
            "num_gpu_blocks": self.cache.blocks,
            "kv_cache_size_tokens": tokens,
            "kv_cache_max_concurrency": tokens / self.config.max_model_len,
            "enable_prefix_caching": self.config.enable_prefix_caching,
        }
        return "".join(f',{name}="{value}"' for name, value in labels.items())
