"""The environment variables that the fake knows, and the engine's warning about all others."""

import os

from vllm.logger import API_SERVER, log

KNOWN = {
    "VLLM_CACHE_ROOT",
    "VLLM_NO_USAGE_STATS",
    "VLLM_SERVER_DEV_MODE",
    "VLLM_ENGINE_READY_TIMEOUT_S",
    "VLLM_API_KEY",
    "VLLM_USE_V2_MODEL_RUNNER",
}


def validate_environ() -> None:
    """Warn, as the engine does, of every VLLM_ name that is not known."""
    for name in os.environ:
        if name.startswith("VLLM_") and name not in KNOWN:
            log(API_SERVER, "envs.py:2248", f"Unknown vLLM environment variable detected: {name}", "WARNING")


def number(name: str, default: float) -> float:
    """A FAKE_ variable as a number."""
    return float(os.environ.get(name, default))
