"""Shared by all rooms, in both environments (tests/testbed runs in the engine's): nothing of ours is imported here."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
TIMEOUT_S = 300  # ends what would hang; a busy machine is slow

# Started by nohup, or in the background of a script, we ignore signals that our children are tested to obey.
signal.signal(signal.SIGHUP, signal.SIG_DFL)
signal.signal(signal.SIGINT, signal.default_int_handler)

Python = Callable[..., "subprocess.CompletedProcess[str]"]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The real engine first: side by side with the rest, the longest test must not be the last to begin."""
    items.sort(key=lambda item: item.get_closest_marker("engine") is None)


@pytest.fixture
def python(tmp_path: Path) -> Python:
    """python(*arguments, env=...): a real process of this interpreter, in an empty working directory."""

    def run(*arguments: str, env: dict[str, str] | None = None) -> "subprocess.CompletedProcess[str]":
        folder = tmp_path / "cwd"
        folder.mkdir(exist_ok=True)
        surroundings = os.environ | {"PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"} | (env or {})
        return subprocess.run(
            [sys.executable, *arguments],
            cwd=folder, env=surroundings, capture_output=True, text=True, timeout=TIMEOUT_S, check=False,
        )  # fmt: skip

    return run
