"""Shared by all rooms: the command line as a person types it, and the experiments as they are composed."""

import copy
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from campaign import door
from campaign.config import Campaign

ROOT = Path(__file__).resolve().parent.parent
TIMEOUT_S = 60

Python = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def python(tmp_path: Path) -> Python:
    """python(*arguments, env=...): a real interpreter of the runner, in an empty working directory."""

    def run(*arguments: str, env: dict[str, str] | None = None) -> "subprocess.CompletedProcess[str]":
        folder = tmp_path / "cwd"
        folder.mkdir(exist_ok=True)
        surroundings = os.environ | {"PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"} | (env or {})
        return subprocess.run(
            [sys.executable, *arguments],
            cwd=folder, env=surroundings, capture_output=True, text=True, timeout=TIMEOUT_S, check=False,
        )  # fmt: skip

    return run


@pytest.fixture
def command(python: Python) -> Python:
    """command("exp=exp8", ...): `python -m campaign ...` as a real process."""
    return lambda *arguments, **more: python("-m", "campaign", *arguments, **more)


@pytest.fixture
def compose(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Campaign]:
    """compose("exp=exp8", ...): the same composition in this process."""
    monkeypatch.setattr(sys, "argv", list(sys.argv))
    monkeypatch.setenv("HYDRA_FULL_ERROR", "1")

    def composed(*overrides: str) -> Campaign:
        campaign = door.compose(list(overrides))
        assert campaign is not None
        return campaign

    return composed


@pytest.fixture(scope="session")
def _composed_exp8() -> Campaign:
    before = sys.argv
    campaign = door.compose(["exp=exp8"])
    sys.argv = before
    assert campaign is not None
    return campaign


@pytest.fixture
def exp8(_composed_exp8: Campaign, tmp_path: Path) -> Campaign:
    """The shipped experiment, free to be changed; its runs would go below tmp_path."""
    campaign = copy.deepcopy(_composed_exp8)
    campaign.host.runs_dir, campaign.host.cache_dir = str(tmp_path / "runs"), str(tmp_path / "cache")
    return campaign
