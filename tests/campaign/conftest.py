"""The command line as a person types it, and the shipped experiment as it is composed."""

import copy
import socket
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from campaign import door
from campaign.config import Campaign
from tests.fakes.line import Line

# a busy machine makes a test slow, not wrong
settings.register_profile("house", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("house")


@pytest.fixture
def command(python) -> Callable[..., object]:
    """command("exp=exp8", ...): `python -m campaign ...` as a real process."""
    return lambda *arguments, **more: python("-m", "campaign", *arguments, **more)


@pytest.fixture(scope="session")
def stage_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Stages are content-addressed, so all tests share them."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture
def line(tmp_path: Path, stage_cache: Path) -> Iterator[Line]:
    """A command line on the fake engine; afterwards nothing of its runs may be left."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    made = Line(tmp_path / "runs", stage_cache, port)
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
    return campaign
