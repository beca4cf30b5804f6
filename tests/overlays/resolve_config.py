"""Run inside the engine's interpreter: resolve one engine configuration and print what came out, as one JSON line.

argv: a JSON object of EngineArgs fields; "executor_without_async" puts in an executor that cannot schedule asynchronously.
"""

import contextlib
import json
import sys


def main() -> None:
    """Print {"resolved": ...} or {"refused": message}."""
    from vllm.engine.arg_utils import EngineArgs
    from vllm.v1.executor.uniproc_executor import UniProcExecutor

    class WithoutAsync(UniProcExecutor):
        @classmethod
        def supports_async_scheduling(cls) -> bool:
            return False

    asked = json.loads(sys.argv[1])
    if asked.pop("executor_without_async", False):
        asked["distributed_executor_backend"] = WithoutAsync
    with contextlib.redirect_stdout(sys.stderr):
        answer = resolve(EngineArgs, asked)
    print(json.dumps(answer))


def resolve(engine_args: type, asked: dict) -> dict:
    """What the engine resolves these arguments to, or the message it refuses them with."""
    import vllm

    try:
        config = engine_args(**asked).create_engine_config()
    except ValueError as error:
        return {"refused": str(error), "vllm": vllm.__file__}
    scheduler = config.scheduler_config
    return {
        "vllm": vllm.__file__,
        "async_scheduling": scheduler.async_scheduling,
        "max_concurrent_batches": config.max_concurrent_batches,
        "scheduler": scheduler.get_scheduler_cls().__name__,
    }


main()
