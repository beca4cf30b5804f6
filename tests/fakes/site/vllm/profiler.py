"""The profiler's two routes and the trace that it leaves: ranges with the engine's names, made up, a step 2 ms."""

import json
import os
from pathlib import Path
from typing import Any

from vllm import faults

STEPS, STEP_US = 6, 2000.0
INSIDE = {  # from and to, as shares of a step
    "gpu_model_runner: preprocess": (0.0, 0.25),
    "gpu_model_runner: forward": (0.25, 0.75),
    "gpu_model_runner: bookkeep": (0.75, 0.8),
}


class Profiler:
    """What `--profiler-config` asks for; without it the routes are not there."""

    def __init__(self, config: str | None, model: str) -> None:
        found = json.loads(config) if config else {}
        self.folder = Path(found["torch_profiler_dir"]) if found.get("profiler") == "torch" else None
        scopes = os.environ.get("VLLM_CUSTOM_SCOPES_FOR_PROFILING") == "1"
        self.inside = INSIDE if scopes else {}
        self.dies = faults.on("die_in_profile") and f"-{faults.ACTIVE['die_in_profile']}-" in model

    def answer(self, path: str) -> bool:
        """Whether a route is known; the end writes the trace."""
        if self.folder is None or path not in ("/start_profile", "/stop_profile"):
            return False
        if self.dies:
            os._exit(1)
        if path == "/stop_profile":
            trace = {"traceEvents": [event for number in range(STEPS) for event in self._step(number * STEP_US)]}
            (self.folder / "fake-rank-0.pt.trace.json").write_text(json.dumps(trace), encoding="utf-8")
        return True

    def _step(self, start_us: float) -> list[dict[str, Any]]:
        named = {"execute_context_0(0)_generation_1(6)": (0.0, 0.7), **self.inside}
        return [
            {
                "ph": "X", "cat": "user_annotation", "name": name, "pid": 1, "tid": 1,
                "ts": start_us + begin * STEP_US, "dur": (end - begin) * STEP_US,
            }
            for name, (begin, end) in named.items()
        ]  # fmt: skip
