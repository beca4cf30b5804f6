"""What a runner writes down of its engine is enough to end it later, and never names anybody else."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from campaign.engine import processes, remembered, stop
from campaign.engine.family import Family
from campaign.engine.processes import Proc

SLEEP = "print(flush=True); import time; time.sleep(600)"
DETACHED = f"""
import subprocess, sys
child = subprocess.Popen([sys.executable, "-S", "-E", "-c", "{SLEEP}"], start_new_session=True, env={{}})
print(child.pid, flush=True)
input()
"""


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    """A process of nobody's run: no marker, a session of its own."""
    child = subprocess.Popen(
        [sys.executable, "-S", "-E", "-c", SLEEP], stdout=subprocess.PIPE, start_new_session=True, env={}
    )
    assert child.stdout is not None
    child.stdout.readline()
    yield child
    child.kill()
    child.communicate()


def proc_of(pid: int) -> Proc:
    """A living process."""
    found = processes.read(pid)
    assert found is not None
    return found


def kept(tmp_path: Path, *members: Proc) -> Path:
    """The boots of a run whose one boot remembers these."""
    file = tmp_path / "boots/01-A" / remembered.FILE
    remembered.keep(file, members, ["psm_x"])
    return tmp_path / "boots"


def test_what_was_kept_is_recalled_as_long_as_it_lives(tmp_path: Path, sleeper: subprocess.Popen[bytes]) -> None:
    boots = kept(tmp_path, proc_of(sleeper.pid))
    (found,) = remembered.recall(boots)
    assert ([proc.pid for proc in found.members], found.shared_memory) == ([sleeper.pid], {"psm_x"})
    sleeper.kill()
    sleeper.wait()
    assert remembered.recall(boots)[0].members == ()
    remembered.forget(boots / "01-A")
    assert remembered.recall(boots) == ()


@pytest.mark.case("A1")
def test_a_remembered_process_without_marker_or_parent_is_ended_with_its_tmpdir(
    tmp_path: Path, sleeper: subprocess.Popen[bytes]
) -> None:
    boots = kept(tmp_path, proc_of(sleeper.pid))
    (tmp_path / "campaign-x").mkdir()
    (boots / "01-A/env.json").write_text(json.dumps({"TMPDIR": str(tmp_path / "campaign-x")}))
    ended = stop.sweep("no-such-run", 5.0, boots)
    assert [name.split(" (")[0] for name in ended] == [f"pid {sleeper.pid}"]
    assert sleeper.wait() == -15
    assert not (tmp_path / "campaign-x").exists()
    assert not (boots / "01-A" / remembered.FILE).exists()


@pytest.mark.case("A1")
def test_the_tmpdir_of_a_boot_that_was_killed_before_its_engine_began_is_removed(tmp_path: Path) -> None:
    """And no folder that is not one that we make."""
    for name in ("campaign-x", "somebodys"):
        (tmp_path / name).mkdir()
        (tmp_path / "boots" / name).mkdir(parents=True)
        (tmp_path / "boots" / name / "env.json").write_text(json.dumps({"TMPDIR": str(tmp_path / name)}))
    assert stop.sweep("no-such-run", 1.0, tmp_path / "boots") == ()
    assert not (tmp_path / "campaign-x").exists()
    assert (tmp_path / "somebodys").exists()


@pytest.mark.case("A1")
@pytest.mark.parametrize("wrong", ["another start", "another machine start", "no JSON"])
def test_a_pid_that_may_be_somebody_elses_by_now_is_left_alone(
    tmp_path: Path, sleeper: subprocess.Popen[bytes], wrong: str
) -> None:
    boots = kept(tmp_path, proc_of(sleeper.pid))
    file = boots / "01-A" / remembered.FILE
    told = json.loads(file.read_text())
    told |= {"another start": {"processes": [[sleeper.pid, 1]]}, "another machine start": {"machine": "x"}}.get(
        wrong, {}
    )
    file.write_text("{" if wrong == "no JSON" else json.dumps(told))
    assert stop.sweep("no-such-run", 1.0, boots) == ()
    assert sleeper.poll() is None


def test_a_family_tells_of_its_members_only_when_they_are_others() -> None:
    seen: list[set[int]] = []
    leader = subprocess.Popen(
        [sys.executable, "-c", DETACHED], stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
    )
    family = Family(leader.pid, "nonce", lambda members: seen.append({proc.pid for proc in members}))
    assert leader.stdout is not None
    child = int(leader.stdout.readline())
    family.look()
    family.look()
    assert seen == [{leader.pid}, {leader.pid, child}]
    stop.kill(family)
    leader.communicate()
