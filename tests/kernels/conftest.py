"""The kernels' tests run in the engine's environment, twice: in Triton's interpreter, and with its compiler (no GPU).

Which of the two is Triton's own choice at import, by TRITON_INTERPRET; a file belongs to one of them. Where there is no
torch (the runner's environment) there is nothing to collect.
"""

import importlib.util
import os
from pathlib import Path

import pytest

COMPILED = {"test_aot.py", "test_bench.py", "test_launch.py"}
HAS_TORCH = importlib.util.find_spec("torch") is not None


def pytest_configure(config: pytest.Config) -> None:
    """The marker of the bug bank, which the runner's environment knows from pyproject.toml."""
    config.addinivalue_line("markers", "case(id, ...): the cases of the bug bank that this test holds")


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Only the files of this process's half."""
    if not collection_path.name.startswith("test_"):
        return None
    interpreted = os.environ.get("TRITON_INTERPRET") == "1"
    return True if not HAS_TORCH or (collection_path.name in COMPILED) == interpreted else None
