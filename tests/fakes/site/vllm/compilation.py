"""The compile cache: what an earlier boot left in VLLM_CACHE_ROOT is believed, as the engine believes it."""

import os
import tempfile
from pathlib import Path

from vllm import faults
from vllm.config.vllm import VllmConfig
from vllm.logger import ENGINE_CORE, log, write

HIDDEN = 5120


def load(config: VllmConfig) -> None:
    """Compile for K + 2 tokens a step, or take what is there; a cache made for another K kills the core."""
    file = root() / "compiled-shape"
    size = config.num_speculative_tokens + 2
    cold = not file.exists()
    if cold:
        file.write_text(str(size))
    if faults.on("cold_timeout") and (cold or faults.ACTIVE["cold_timeout"] == "always"):
        faults.engine_limit()
    built = int(file.read_text())
    if built != size:
        log(ENGINE_CORE, "core.py:1198", "EngineCore failed to start.", "ERROR")
        write(f"AssertionError: expected size {size}=={built}, stride {HIDDEN}=={HIDDEN} at dim=0")
        write("RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {'core': 1}")
        faults.die("")


def nth_boot() -> int:
    """Which boot on this cache it is, from 1."""
    file = root() / "boots"
    number = int(file.read_text()) + 1 if file.exists() else 1
    file.write_text(str(number))
    return number


def root() -> Path:
    """The cache's folder."""
    found = Path(os.environ.get("VLLM_CACHE_ROOT") or tempfile.mkdtemp())
    found.mkdir(parents=True, exist_ok=True)
    return found
