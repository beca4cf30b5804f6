"""What the CPU platform makes of a configuration."""

import os
from typing import TYPE_CHECKING

from vllm.logger import API_SERVER, log

if TYPE_CHECKING:
    from vllm.config.vllm import VllmConfig


def check_and_update_config(config: "VllmConfig") -> None:
    """The platform's last word."""
    # async scheduling is not required on CPU
    config.async_scheduling = False
    choose_runner(config)


def choose_runner(config: "VllmConfig") -> None:
    """There is no Triton here: unset falls back with one line, 1 is refused, 0 is V1 as asked."""
    asked = os.environ.get("VLLM_USE_V2_MODEL_RUNNER")
    if asked == "1":
        raise ValueError("VLLM_USE_V2_MODEL_RUNNER=1, but Model Runner V2 requires Triton")
    if asked is None:
        line = "Model Runner V2 requires Triton; using the V1 model runner instead."
        log(API_SERVER, "vllm.py:663", line, "WARNING")
    config.runner = "V1"
