"""The entry point that the engine calls in every process: wait for the V2 runner, where it is loaded at all.

Nothing else is imported here: an API server needs no kernel.
"""

import importlib
from types import ModuleType

from campaign_prep_fused.importing import after_import

MODEL_RUNNER = "vllm.v1.worker.gpu.model_runner"


def register() -> None:
    """A process that never loads the runner's module shows nothing: there this is not mounted."""
    after_import(MODEL_RUNNER, _mount)


def _mount(module: ModuleType) -> None:
    importlib.import_module("campaign_prep_fused.mounting").mount(module)
