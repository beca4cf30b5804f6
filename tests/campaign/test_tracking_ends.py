"""How runs end in the tracker when their writer does: signals in the middle, owners that are gone. Real processes."""

import os
import signal
import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from mlflow.entities import ViewType
from mlflow.tracking import MlflowClient

from campaign.engine.signals import interruptible
from campaign.gates.base import GateResult
from campaign.tracking import owner, publish, ready
from campaign.tracking.projection import common_tags
from tests.fakes.campaign import campaign, run_folder
from tests.fakes.evidence import bracket
from verdict.words import Verdict

pytestmark = pytest.mark.filterwarnings("ignore::sqlalchemy.exc.SADeprecationWarning")

EMPTY = bracket("AB", metrics={"step_per_s": [100.0, 104.0]})
RESULTS = (GateResult("kv", Verdict.PASS, "PASS  KV", (), {"base_blocks": 100.0}),)
STARTERS = 8


def forked(work: Callable[[], object]) -> int:
    """A process that does the work and ends with 0, or with 1 if it raises. It opens stores that we have not opened."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            work()
            code = 0
        finally:
            os._exit(code)
    return pid


def exit_code(pid: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


class StuckReadings(dict):
    """A boot's readings that tell a pipe when they are asked for, and then never come."""

    def __init__(self, pipe: int) -> None:
        super().__init__(step_per_s=1.0)
        self.pipe = pipe

    def items(self):
        """Reached when two runs of the campaign are open."""
        os.write(self.pipe, b"x")
        while True:
            signal.pause()


def interrupted_publish(uri: str, folder: Path, number: signal.Signals) -> int:
    """A process that writes a campaign and gets the signal in the middle of it; how it ended."""
    reached, tell = os.pipe()
    stuck = replace(EMPTY, boots=(EMPTY.boots[0], replace(EMPTY.boots[1], metrics=StuckReadings(tell))))

    def work() -> None:
        with interruptible():
            publish(folder, campaign(), stuck, RESULTS, Verdict.INCONCLUSIVE, uri)

    pid = forked(work)
    assert os.read(reached, 1) == b"x"
    os.kill(pid, number)
    return exit_code(pid)


def statuses(uri: str, view: int = ViewType.ACTIVE_ONLY) -> list[str]:
    client = MlflowClient(uri)
    everywhere = [found.experiment_id for found in client.search_experiments()]
    return sorted(run.info.status for run in client.search_runs(everywhere, run_view_type=view))


@pytest.mark.case("G4")
def test_a_writer_that_is_killed_leaves_runs_that_the_next_one_ends_and_replaces(uri: str, tmp_path: Path) -> None:
    folder = run_folder(tmp_path)
    assert interrupted_publish(uri, folder, signal.SIGKILL) == -signal.SIGKILL
    assert "RUNNING" in statuses(uri)
    ready(uri)
    left = statuses(uri)
    assert set(left) == {"KILLED"}
    publish(folder, campaign(), EMPTY, RESULTS, Verdict.PASS, uri)
    assert statuses(uri) == ["FINISHED"] * 4
    assert statuses(uri, ViewType.DELETED_ONLY) == left  # never made better (case G3)


@pytest.mark.case("G4")
def test_a_writer_that_is_told_to_end_takes_back_what_is_half_written(uri: str, tmp_path: Path) -> None:
    assert interrupted_publish(uri, run_folder(tmp_path), signal.SIGTERM) == 1
    assert statuses(uri) == []
    assert set(statuses(uri, ViewType.DELETED_ONLY)) == {"KILLED"}


@pytest.mark.case("G3")
@pytest.mark.parametrize("before", ["KILLED", "FAILED"])
def test_a_terminal_status_is_never_made_better(uri: str, before: owner.Status) -> None:
    client = MlflowClient(uri)
    run_id = client.create_run("0", tags=common_tags("c1", "exp8")).info.run_id
    seen = []
    for status in ("FINISHED", before, "FINISHED", "KILLED"):
        owner.end(client, run_id, status)
        seen.append(client.get_run(run_id).info.status)
    assert seen == ["FINISHED", before, before, before]


@pytest.mark.case("G4")
def test_only_an_open_run_of_ours_with_a_dead_owner_is_closed(uri: str) -> None:
    client, mine = MlflowClient(uri), common_tags("c1", "exp8")
    tags = {
        "living": mine,
        "dead": mine | {owner.OWNER_START: "1"},
        "another host": mine | {owner.OWNER_START: "1", owner.OWNER_HOST: "elsewhere"},
        "not ours": {},
    }
    made = {name: client.create_run("0", tags=each).info.run_id for name, each in tags.items()}
    ready(uri)
    found = {name: client.get_run(run_id).info.status for name, run_id in made.items()}
    assert [name for name, status in found.items() if status != "RUNNING"] == ["dead"]
    assert found["dead"] == "KILLED"


@pytest.mark.case("G4")
@pytest.mark.parametrize(
    ("other", "dead"),
    [
        ({}, False),
        ({owner.OWNER_START: "1"}, True),
        ({owner.OWNER_PID: str(2**22 + 1)}, True),
        ({owner.OWNER_PID: ""}, False),
        ({owner.OWNER_HOST: "elsewhere", owner.OWNER_START: "1"}, False),
        ({owner.OWNER_SPACE: "pid:[1]", owner.OWNER_START: "1"}, False),
        ({owner.OWNER_BOOT: ""}, False),
        ({owner.OWNER_BOOT: "before", owner.OWNER_MACHINE: "another of the same name"}, False),
    ],
    ids=["we", "pid given again", "no such pid", "no pid", "host", "container", "old tags", "twin machine"],
)
def test_an_owner_is_dead_only_where_that_is_known(other: dict[str, str], dead: bool) -> None:
    assert owner.is_dead(owner.tags() | other) is dead


@pytest.mark.case("G7")
def test_eight_processes_start_on_a_missing_database_and_lose_nothing(tmp_path: Path) -> None:
    uri = f"sqlite:///{tmp_path / 'deep' / 'new.db'}"

    def work(number: int) -> None:
        ready(uri)
        publish(run_folder(tmp_path, f"run-{number}"), campaign(), EMPTY, RESULTS, Verdict.PASS, uri)

    started = [forked(lambda number=number: work(number)) for number in range(STARTERS)]
    assert [exit_code(pid) for pid in started] == [0] * STARTERS
    assert statuses(uri) == ["FINISHED"] * 4 * STARTERS
    with closing(sqlite3.connect(tmp_path / "deep" / "new.db")) as database:
        assert database.execute("PRAGMA journal_mode").fetchone() == ("wal",)
