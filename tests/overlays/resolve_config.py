"""Run inside the engine's interpreter: resolve engine configurations, and write what came out as one JSON line.

argv: a JSON array of {"knob": text or null, "executor_without_async": bool, "arguments": {EngineArgs fields}}.
"""

import json
import logging
import os
import sys

VARIABLE = "VLLM_GLM53_ASYNC_DFLASH"


class Kept(logging.Handler):
    """Keeps the messages of one configuration."""

    def __init__(self):
        super().__init__()
        self.lines = []

    def emit(self, record):
        self.lines.append(record.getMessage())


def main():
    """One answer a case, in the same order; the last line of the output."""
    answers = [answer(case) for case in json.loads(sys.argv[1])]
    sys.stdout.write("\n" + json.dumps(answers) + "\n")


def answer(case):
    """What the engine resolves one case to: {"async_scheduling", ...} or {"refused"}, and the log lines."""
    from vllm import logger

    if case["knob"] is None:
        os.environ.pop(VARIABLE, None)
    else:
        os.environ[VARIABLE] = case["knob"]
    logger._print_warning_once.cache_clear()
    kept = Kept()
    logging.getLogger("vllm").addHandler(kept)
    try:
        return {**resolved(case), "lines": kept.lines}
    except ValueError as error:
        return {"refused": str(error), "lines": kept.lines}
    finally:
        logging.getLogger("vllm").removeHandler(kept)


def resolved(case):
    """The configuration of one case."""
    import vllm
    from vllm.engine.arg_utils import EngineArgs
    from vllm.v1.executor.uniproc_executor import UniProcExecutor

    class WithoutAsync(UniProcExecutor):
        @classmethod
        def supports_async_scheduling(cls):
            return False

    backend = {"distributed_executor_backend": WithoutAsync} if case["executor_without_async"] else {}
    config = EngineArgs(**case["arguments"], **backend).create_engine_config()
    speculative = config.speculative_config
    return {
        "package": vllm.__file__,
        "method": speculative.method if speculative else None,
        "decided": decided(),
        "serve": shown(config),
        "async_scheduling": config.scheduler_config.async_scheduling,
        "max_concurrent_batches": config.max_concurrent_batches,
        "scheduler": config.scheduler_config.get_scheduler_cls().__name__,
    }


def shown(config):
    """What engine_report shows of the configuration under each serve argument's name; None where it is not staged."""
    try:
        from campaign_engine_report.arguments import resolved
    except ImportError:
        return None
    return resolved(config)


def decided():
    """What the overlay published of the configurations made so far; None where nothing did, or nobody could hear it."""
    try:
        from campaign_engine_report.state import published
    except ImportError:
        return None
    return published().get("async_dflash", {}).get("decided")


main()
