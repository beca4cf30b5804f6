"""The entry point that the engine calls in every process: find out which role the process has, and answer for it.

The engine loads plugins in three places: EngineArgs (API server), the first line of EngineCore.__init__, and a worker's
init_worker before the worker object is made. So what is wrapped is what runs after that, in each.
"""

import functools
import logging
import os
import sys
from collections.abc import Callable
from typing import Any

from campaign_engine_report import arguments, facts
from campaign_engine_report.answer import DIRECTORY, Answering, Role
from campaign_engine_report.state import Counters, State, guarded

ENGINE_CORE = "vllm.v1.engine.core"
WORKER_BASE = "vllm.v1.worker.worker_base"
ARG_UTILS = "vllm.engine.arg_utils"

answering = Answering()
logger = logging.getLogger("vllm.campaign_engine_report")


def register() -> None:
    """Wrap what tells a role, where its module is loaded. Without a report directory the engine is left as it is."""
    if DIRECTORY not in os.environ:
        logger.info("[engine_report] %s is not set: no reports", DIRECTORY)
        return
    for module, kind, method, noted, told in (
        (ARG_UTILS, "EngineArgs", "create_engine_config", arguments.parsed, _config_made),
        (ENGINE_CORE, "EngineCore", "_initialize_kv_caches", _nothing, _engine_made),
        (WORKER_BASE, "WorkerBase", "__init__", _nothing, _worker_made),
    ):
        if module in sys.modules:
            _tell_after(getattr(sys.modules[module], kind), method, noted, told)


def _tell_after(
    kind: type, method: str, noted: Callable[[Any], State], told: Callable[[Any, Any, State], None]
) -> None:
    """Wrap a method: what is `noted` of its object before the call goes to `told` after it, with what it returned."""
    original = getattr(kind, method)

    @functools.wraps(original)
    def wrapped(self: Any, *args: Any, **kwargs: Any) -> Any:
        before = guarded(lambda: noted(self))
        result = original(self, *args, **kwargs)
        try:
            told(self, result, before)
        except Exception:
            logger.exception("[engine_report] %s.%s was not understood: no report", kind.__name__, method)
        return result

    setattr(kind, method, wrapped)


def _nothing(_object: Any) -> State:
    return {}


def _config_made(_arguments: Any, config: Any, parsed: State) -> None:
    answering.take(
        Role(
            "APIServer",
            lambda: 0,
            lambda: facts.of_config(config),
            serve=lambda: arguments.resolved(config),
            arguments=parsed,
        )
    )


def _engine_made(engine: Any, _kv_cache_config: Any, _noted: State) -> None:
    counters = Counters()
    count_submissions(engine, counters)
    answering.take(
        Role(
            "EngineCore",
            lambda: engine.vllm_config.parallel_config.data_parallel_rank,
            lambda: facts.of_engine(engine),
            counters.read,
            lambda: arguments.resolved(engine.vllm_config),
        )
    )


def _worker_made(worker: Any, _none: Any, _noted: State) -> None:
    answering.take(
        Role(
            "Worker",
            lambda: worker.rank,
            lambda: facts.of_worker(worker),
            serve=lambda: arguments.resolved(worker.vllm_config),
        )
    )


def count_submissions(engine: Any, counters: Counters) -> None:
    """Count when a batch has gone to the workers; those before it are still in EngineCore's queue (if it has one).

    Batches without tokens are not steps: under async scheduling the scheduler also sends empty ones.
    """
    execute = engine.model_executor.execute_model

    @functools.wraps(execute)
    def counted(scheduler_output: Any, *args: Any, **kwargs: Any) -> Any:
        result = execute(scheduler_output, *args, **kwargs)
        tokens = scheduler_output.total_num_scheduled_tokens
        if tokens:
            queue = getattr(engine, "batch_queue", None) or ()
            before = [entry[1].total_num_scheduled_tokens for entry in queue]
            in_flight = 1 + sum(1 for n in before if n)
            counters.submitted(in_flight, tokens + sum(before), tokens)
        return result

    engine.model_executor.execute_model = counted
