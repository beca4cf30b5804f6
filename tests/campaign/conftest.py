"""The command line as a person types it, and the shipped experiment as it is composed."""

import copy
import io
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, redirect_stderr, redirect_stdout
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from campaign import door
from campaign.__main__ import main
from campaign.config import Campaign
from tests.fakes.line import Line
from tests.fakes.ports import free_port

# a busy machine makes a test slow, not wrong
settings.register_profile("house", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("house")


@pytest.fixture
def command(python) -> Callable[..., object]:
    """command("exp=exp8", ...): `python -m campaign ...` as a real process."""
    return lambda *arguments, **more: python("-m", "campaign", *arguments, **more)


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., "subprocess.CompletedProcess[str]"]:
    """asked("exp=exp8", ...): the same door within this process; what `command` returns, a second sooner."""
    (tmp_path / "cwd").mkdir()
    monkeypatch.chdir(tmp_path / "cwd")
    monkeypatch.setattr(sys, "argv", list(sys.argv))
    monkeypatch.setenv("HYDRA_FULL_ERROR", "1")

    def done(*arguments: str) -> "subprocess.CompletedProcess[str]":
        with redirect_stdout(io.StringIO()) as out, redirect_stderr(io.StringIO()) as err:
            code = main(list(arguments))
        return subprocess.CompletedProcess(arguments, code, out.getvalue(), err.getvalue())

    return done


@pytest.fixture(scope="session")
def stage_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Stages are content-addressed, so all tests share them."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture
def line(tmp_path: Path, stage_cache: Path) -> Iterator[Line]:
    """A command line on the fake engine; afterwards nothing of its runs may be left."""
    made = Line(tmp_path / "runs", stage_cache, free_port())
    yield made
    assert made.left_behind() == []


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
    campaign.host.registry = None
    return campaign


@pytest.fixture(scope="session")
def prepared_tracker(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An MLflow database with its tables, made once: the migrations take seconds."""
    from campaign.tracking import ready

    folder = tmp_path_factory.mktemp("mlflow")
    ready(f"sqlite:///{folder / 'first.db'}")
    with closing(sqlite3.connect(folder / "first.db")) as made, closing(sqlite3.connect(folder / "copy.db")) as copy:
        made.backup(copy)
    return folder / "copy.db"


@pytest.fixture
def uri(prepared_tracker: Path, tmp_path: Path) -> str:
    """The address of an empty tracker of this test's own."""
    shutil.copy(prepared_tracker, tmp_path / "mlflow.db")
    return f"sqlite:///{tmp_path / 'mlflow.db'}"
