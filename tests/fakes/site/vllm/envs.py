"""The environment variables that the fake knows, and the engine's warning about all others."""

import math
import os
import re
import time

from vllm.logger import API_SERVER, log

SWING_S = 23.0  # the period of FAKE_HOST_SWING
KNOWN = {
    "VLLM_CACHE_ROOT",
    "VLLM_NO_USAGE_STATS",
    "VLLM_SERVER_DEV_MODE",
    "VLLM_ENGINE_READY_TIMEOUT_S",
    "VLLM_API_KEY",
    "VLLM_USE_V2_MODEL_RUNNER",
    "VLLM_CUSTOM_SCOPES_FOR_PROFILING",
}


def validate_environ() -> None:
    """Warn, as the engine does, of every VLLM_ name that is not known."""
    for name in os.environ:
        if name.startswith("VLLM_") and name not in KNOWN:
            log(API_SERVER, "envs.py:2248", f"Unknown vLLM environment variable detected: {name}", "WARNING")


def number(name: str, default: float) -> float:
    """A FAKE_ variable as a number; of a list, with commas, the boot's own one, in run order."""
    values = os.environ.get(name, str(default)).split(",")
    place = re.search(r"-(\d\d)-[AB]-", os.environ.get("CAMPAIGN_BOOT_ID", ""))
    return float(values[min(int(place[1]), len(values)) - 1 if place else 0])


def host_now() -> float:
    """How much longer everything takes on this machine at this moment: the same for every engine on it."""
    return 1 + number("FAKE_HOST_SWING", 0.0) * math.sin(2 * math.pi * time.time() / SWING_S)
