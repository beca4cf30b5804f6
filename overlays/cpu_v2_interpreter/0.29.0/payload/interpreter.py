"""Added by the overlay cpu_v2_interpreter: whether Triton's interpreter runs the kernels here, and how many it has run.

The stock check asks for a GPU driver, which the interpreter does not need. What it decides is read from Triton itself,
not from the variable, and is published to engine_report where that is staged.
"""

import functools
import importlib
from typing import Any

from vllm.logger import init_logger

try:
    import triton
except ImportError:
    triton = None
try:
    from campaign_engine_report import state
except ImportError:
    state = None

OVERLAY = "cpu_v2_interpreter"

logger = init_logger(__name__)
_launches = {"launches": 0}


def interprets() -> bool:
    """Whether Triton was told to interpret its kernels (TRITON_INTERPRET=1); then every launch is counted."""
    if triton is None:
        return False
    on = bool(triton.knobs.runtime.interpret)
    _publish(on, triton.__version__)
    if on:
        _count_launches()
        logger.info("[%s] Triton %s interprets its kernels: right, and slow", OVERLAY, triton.__version__)
    return on


def _count_launches() -> None:
    interpreted = importlib.import_module("triton.runtime.interpreter").InterpretedFunction
    original = interpreted.run

    @functools.wraps(original)
    def counted(self: Any, *args: Any, **kwargs: Any) -> Any:
        _launches["launches"] += 1
        return original(self, *args, **kwargs)

    interpreted.run = counted


def _publish(on: bool, version: str) -> None:
    """Show it in the reports of this process. Only a process that has launched a kernel shows a count."""
    if state is not None:
        state.publish(OVERLAY, lambda: {"interpreter": on, "triton": version})
        state.count(OVERLAY, lambda: {name: n for name, n in _launches.items() if n})
