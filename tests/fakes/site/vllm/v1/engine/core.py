"""The engine core: paces a generation step by step on the monotonic clock, and counts it."""

import itertools
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace

from vllm import envs, faults
from vllm.config.vllm import VllmConfig
from vllm.v1.core import kv_cache_utils
from vllm.v1.core.sched.async_scheduler import AsyncScheduler
from vllm.v1.core.sched.scheduler import Scheduler
from vllm.v1.executor.abstract import max_concurrent_batches
from vllm.v1.metrics.loggers import Metrics
from vllm.v1.spec_decode.dflash import accepted, draw
from vllm.v1.worker.model_runner import ANSWERS, EOS, Manner, tokens

STEP_FACTOR = 1.0
SPIN_S = 0.0003  # sleep() wakes late by about this much


@dataclass(frozen=True)
class Request:
    """One generation."""

    prompt: str
    max_tokens: int
    ignore_eos: bool
    drawn: bool = False
    streamed: bool = True


@dataclass(frozen=True)
class Step:
    """What one step gave; the last one says why it ended."""

    ids: list[int]
    finish_reason: str | None


class EngineCore:
    """One engine: a scheduler, a KV cache, counters."""

    def __init__(self, config: VllmConfig) -> None:
        self.config = config
        self.cache = kv_cache_utils.make(config)
        self.max_batches = max_concurrent_batches(config)
        kind = AsyncScheduler if config.async_scheduling else Scheduler
        self.scheduler = kind(self.max_batches)
        self.metrics = Metrics(config, self.cache)
        self.answered: set[str] = set()
        noise = envs.number("FAKE_BOOT_NOISE", 0.0) * (2 * draw(config.served_model_name) - 1)
        self.step_s = envs.number("FAKE_STEP_MS", 2.0) / 1000 * (1 + noise) * STEP_FACTOR
        self.prefill_s = envs.number("FAKE_PREFILL_MS", 2.0) / 1000
        self.warm_prefill_s = envs.number("FAKE_WARM_PREFILL_MS", 1000 * self.prefill_s) / 1000
        self.async_gain = envs.number("FAKE_ASYNC_GAIN_PCT", 5.0) / 100

    def forget(self) -> None:
        """The prefix cache is emptied."""
        self.metrics.blocks_seen.clear()
        self.answered.clear()

    def generate(self, request: Request) -> Iterator[Step]:
        """The steps of one request, each at its time. The first token is the prefill's; no draft speaks for it."""
        if faults.due("restart_counters"):
            self.metrics.reset()
            self.scheduler.reset()
        if faults.on("ends_early") and request.ignore_eos:
            request = replace(request, max_tokens=request.max_tokens - 7)
        queued = time.monotonic()
        with self.metrics.waiting():
            faults.on_request()
        with self.metrics.running():
            yield from self._steps(request, queued)

    def _steps(self, request: Request, queued: float) -> Iterator[Step]:
        warm = self.config.enable_prefix_caching and request.prompt in self.answered
        self.answered.add(request.prompt)
        manner = Manner(request.drawn, request.streamed, warm, self.config.served_model_name)
        stream = tokens(request.prompt, manner, ignore_eos=request.ignore_eos)
        wait_until(queued + (self.warm_prefill_s if warm else self.prefill_s))
        first_at = due = time.monotonic()
        self.metrics.prefill(request.prompt, first_at - queued)
        step = self._step(list(itertools.islice(stream, 1)), 0, request)
        given = 1
        yield step
        for number in itertools.count():
            if step.finish_reason:
                break
            due += self._pace(number)
            grown = self._draft(request, number, warm)
            wait_until(due)
            step = self._step(list(itertools.islice(stream, grown)), given, request)
            given += len(step.ids)
            self.metrics.decode_step(len(step.ids))
            if step.finish_reason:
                self.metrics.finished(step.finish_reason, given, time.monotonic() - first_at, first_at - queued)
            faults.in_stream(given)
            yield step
        if given == 1:
            self.metrics.finished(step.finish_reason, 1, 0.0, first_at - queued)

    def _pace(self, number: int) -> float:
        batches = self.scheduler.note(number, 1 + self.config.num_speculative_tokens)
        return self.step_s * faults.slower() * envs.host_now() * (1 - self.async_gain if batches > 1 else 1)

    def _draft(self, request: Request, number: int, warm: bool) -> int:
        """Tokens of this step: one, and the accepted ones of what was drafted."""
        drafted = self.config.num_speculative_tokens
        if not drafted:
            return 1
        taken = 0 if ANSWERS.get(request.prompt, {}).get("accepts") == 0 else accepted(request.prompt, number, drafted)
        if warm and faults.on("starved_hits"):
            taken = taken if number % 5 == 0 else 0
        self.metrics.drafted(drafted, taken)
        return 1 + taken

    def _step(self, ids: list[int], given: int, request: Request) -> Step:
        """Cut what goes past the end token or the length limit, as the engine does after it has counted."""
        if not request.ignore_eos and EOS in ids:
            ids = ids[: ids.index(EOS) + 1]
        cut = ids[: request.max_tokens - given]
        if given + len(cut) >= request.max_tokens:
            return Step(cut, "stop" if cut[-1:] == [EOS] and not request.ignore_eos else "length")
        return Step(cut, "stop" if cut[-1:] == [EOS] and not request.ignore_eos else None)


def wait_until(due: float) -> None:
    """Until a moment of the monotonic clock, to a few microseconds: sleep most of it, spin the rest."""
    while (left := due - time.monotonic()) > 0:
        if left > SPIN_S:
            time.sleep(left - SPIN_S)
