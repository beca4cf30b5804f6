"""A fake engine ready to boot: a plan for it, a free port, and the proof that nothing is left of it."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from campaign.config import Arm, Campaign, Engine, Host, Model
from campaign.engine import processes, shared_memory, spec
from campaign.engine.port import listener
from campaign.engine.spec import EngineSpec
from tests.fakes.ports import free_port

FAKES = Path(__file__).resolve().parents[2] / "fakes"
MODULE = "vllm.entrypoints.openai.api_server"


def campaign_of(tmp_path: Path, port: int, **engine: Any) -> Campaign:
    """An experiment on the fake engine; keywords are fields of conf/engine."""
    defaults = {"name": "fake", "python": str(FAKES / "python"), "module": MODULE, "boot_timeout_s": 60.0}
    return Campaign(
        name="t",
        arms={"base": Arm(), "candidate": Arm()},
        engine=Engine(**(defaults | {"request_timeout_s": 20.0, "stop_timeout_s": 10.0} | engine)),
        model=Model(
            name="m", target="/models/target", drafter="/models/draft", method="dflash", num_speculative_tokens=5
        ),
        host=Host(port=port, cache_dir=str(tmp_path / "cache")),
    )


@pytest.fixture
def port() -> int:
    """A port that nobody holds."""
    return free_port()


@pytest.fixture
def marker_file(tmp_path: Path) -> Path:
    """What the orphan child of the fake holds, in place of device memory."""
    return tmp_path / "device-memory"


@pytest.fixture
def make(tmp_path: Path, port: int, marker_file: Path) -> Callable[..., EngineSpec]:
    """make(fault, **fields of conf/engine): the spec of one boot of the fake engine."""

    def made(fault: str = "", *, env: dict[str, Any] | None = None, **engine: Any) -> EngineSpec:
        planted = {"FAKE_FAULT": fault, "FAKE_MARKER_FILE": str(marker_file)} | (env or {})
        boot = tmp_path / "boots" / "01-A"
        campaign = campaign_of(tmp_path, port, **engine)
        return spec.build(
            campaign,
            serve=campaign.engine.serve,
            variables=planted,
            passed=campaign.engine.pass_env,
            stage_path=FAKES / "site",
            stage_modules=["vllm.platforms.cpu"],
            declared=frozenset(),
            boot_dir=boot,
            nonce=f"t-{port}-01A",
            run_marker=f"run-{port}",
        )

    return made


@pytest.fixture
def orphans(marker_file: Path) -> Callable[[], list[int]]:
    """orphans(): the processes that hold the marker file."""
    return lambda: holders(marker_file)


@pytest.fixture(autouse=True)
def _nothing_is_left(port: int, marker_file: Path) -> Iterator[None]:
    """Every test ends with no process of its run, a free port and no shared memory of the fake."""
    yield
    marked = [pid for pid in processes.table() if processes.carries(pid, "CAMPAIGN_RUN_ID", f"run-{port}")]
    assert [pid for pid in marked if (found := processes.read(pid)) and found.alive] == []
    assert holders(marker_file) == []
    assert listener(port) is None
    assert [name for name in shared_memory.names() if name.startswith(f"psm_fake_run-{port}")] == []


def holders(file: Path) -> list[int]:
    """The processes that have a file open."""
    found = []
    for pid in processes.table():
        folder = processes.PROC / str(pid) / "fd"
        try:
            links = [str(entry.readlink()) for entry in folder.iterdir()]
        except OSError:
            continue
        if str(file) in links:
            found.append(pid)
    return found
