"""Who descends from whom, read from /proc; and the family of one boot."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator

import pytest

from campaign.engine import processes
from campaign.engine.family import Family, become_subreaper
from campaign.engine.processes import Proc

Start = Callable[..., subprocess.Popen[bytes]]
SLEEP = "import time; time.sleep(600)"


@pytest.fixture
def start() -> Iterator[Start]:
    """start(program, **popen): a Python child that is gone after the test."""
    started: list[subprocess.Popen[bytes]] = []

    def begin(program: str = SLEEP, **more: object) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-S", "-E", "-c", program]
        started.append(subprocess.Popen(command, stdout=subprocess.PIPE, **more))  # type: ignore[call-overload]
        return started[-1]

    yield begin
    for process in started:
        process.kill()
        process.communicate()


def until(condition: Callable[[], object]) -> None:
    """Wait for something that is about to happen."""
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.01)


def test_a_process_is_read_with_its_parent_and_session(start: Start) -> None:
    child = start(start_new_session=True)
    found = processes.read(child.pid)
    assert found is not None
    assert (found.ppid, found.session, found.alive) == (os.getpid(), child.pid, True)


def test_a_zombie_is_dead(start: Start) -> None:
    child = start("pass")
    until(lambda: (found := processes.read(child.pid)) is not None and found.state == "Z")
    found = processes.read(child.pid)
    assert found is not None
    assert not found.alive


def test_a_process_that_is_gone_is_none(start: Start) -> None:
    child = start("pass")
    child.wait()
    assert processes.read(child.pid) is None
    assert processes.cmdline(child.pid) == ()
    assert not processes.carries(child.pid, "A", "b")


def test_a_name_with_brackets_and_blanks_is_read_whole(start: Start) -> None:
    program = (
        "import ctypes, time; ctypes.CDLL(None).prctl(15, b'a) R (b c', 0, 0, 0); print(flush=True); time.sleep(600)"
    )
    child = start(program)
    assert child.stdout is not None
    child.stdout.readline()
    found = processes.read(child.pid)
    assert found is not None
    assert (found.name, found.ppid) == ("a) R (b c", os.getpid())


def test_a_marker_is_found_in_the_environment_it_was_started_with(start: Start) -> None:
    child = start(env={"CAMPAIGN_RUN_ID": "exp8-x"})
    until(lambda: processes.environ(child.pid) != () and processes.carries(child.pid, "CAMPAIGN_RUN_ID", "exp8-x"))
    assert not processes.carries(child.pid, "CAMPAIGN_RUN_ID", "exp8")


def proc(pid: int, ppid: int, session: int = 0) -> Proc:
    """A process of a table written by hand."""
    return Proc(pid, ppid, session, "S", 1, "x")


def test_descent_goes_over_all_generations_and_sessions() -> None:
    table = {p.pid: p for p in (proc(1, 0), proc(10, 1), proc(11, 10, 99), proc(12, 11), proc(13, 1, 99), proc(14, 1))}
    assert processes.descending(table, {10}) == {10, 11, 12}
    assert processes.descending(table, {10}, {99}) == {10, 11, 12, 13}


def test_a_pid_that_was_given_out_again_is_not_the_same_process() -> None:
    assert not proc(7, 1).same(Proc(7, 1, 0, "S", 2, "x"))
    assert not proc(7, 1).same(None)


GRANDCHILD = f"""
import subprocess, sys, time
subprocess.Popen([sys.executable, "-S", "-E", "-c", "{SLEEP}"], start_new_session=True)
print(flush=True)
"""


def test_a_family_keeps_a_grandchild_whose_parent_died_before_anybody_looked(start: Start) -> None:
    become_subreaper()
    leader = start(GRANDCHILD, start_new_session=True)
    assert leader.stdout is not None
    family = Family(leader.pid, "nonce")
    leader.stdout.readline()
    leader.wait()
    (grandchild,) = family.look()
    assert grandchild.ppid == os.getpid()
    os.kill(grandchild.pid, 9)
    until(lambda: family.look() == () and processes.read(grandchild.pid) is None)


def test_a_family_leaves_the_runners_other_children_alone(start: Start) -> None:
    leader = start(start_new_session=True)
    other = start()
    assert {member.pid for member in Family(leader.pid, "nonce").look()} == {leader.pid}
    assert other.poll() is None
