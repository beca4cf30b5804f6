"""Stopping an engine, and proving that nothing of it is left."""

import contextlib
import os
import shutil
import signal
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

from campaign.engine import port as ports
from campaign.engine import processes, remembered, shared_memory, signals
from campaign.engine.family import Family, send
from campaign.engine.processes import Proc
from campaign.engine.spec import RUN_MARKER, TMP_PREFIX

POLL_S = 0.02
ORPHAN_GRACE_S = 3.0  # what outlives the first process of the engine is not going to end by itself
KILL_TIMEOUT_S = 10.0  # death by SIGKILL is not instant while the kernel frees much memory
PORT_TIMEOUT_S = 2.0


@dataclass(frozen=True)
class StopFacts:
    """How an engine ended. Anything in `leftovers` makes the machine unfit for the next boot."""

    seconds: float
    killed: bool  # SIGKILL was needed
    exit_code: int | None  # of the first process; negative is a signal
    leftovers: tuple[str, ...]  # processes, a port, shared memory that are still there
    swept: tuple[str, ...]  # shared memory that its dead processes left, and that was removed
    by_us: bool = True  # it still lived when the stop began: whatever signal ended it was ours
    held_mib: int = 0  # of the host, by all its processes: the most that was seen (Family.weigh)
    survivors: int = 0  # processes that not even SIGKILL ended


@dataclass(frozen=True)
class Remains:
    """What to look for after the engine is dead."""

    port: int
    shm_before: frozenset[str]  # there before it started
    shm_ours: frozenset[str]  # seen in its processes


def stop(process: subprocess.Popen[bytes], family: Family, timeout_s: float, remains: Remains) -> StopFacts:
    """SIGTERM to everything that descends from the engine, a deadline, SIGKILL, and the proof of death."""
    started = time.monotonic()
    members = family.look()
    ours = remains.shm_ours | shared_memory.held_by(proc.pid for proc in members)
    family.weigh()
    by_us = process.poll() is None
    _terminate(process, members)
    killed = not _died(process, family, timeout_s)
    alive = kill(family) if killed else ()
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(POLL_S)
    swept, left = shared_memory.sweep(ours, remains.shm_before)
    return StopFacts(
        seconds=time.monotonic() - started,
        killed=killed,
        exit_code=process.returncode,
        leftovers=(*(f"{proc} survived SIGKILL" for proc in alive), *_port_holder(remains.port), *left),
        swept=swept,
        by_us=by_us,
        held_mib=family.most_mib,
        survivors=len(alive),
    )


def sweep(run_marker: str, timeout_s: float, boots: Path | None = None) -> tuple[str, ...]:
    """End what a crashed run left: every process that carries its marker, their sessions and their descendants, and
    those that the run wrote down in the folders of its `boots`.

    Returns who was ended. For `resume`, before the first boot. What survives is seen at preflight. A request to end
    waits until all are ended, as in `stop`.
    """
    with signals.held():
        return _sweep(run_marker, timeout_s, boots)


def _sweep(run_marker: str, timeout_s: float, boots: Path | None) -> tuple[str, ...]:
    told = remembered.recall(boots) if boots else ()
    left = _Left(run_marker, {proc.pid: proc for boot in told for proc in boot.members})
    found = left.look()
    names = tuple(str(proc) for proc in found)
    tmp_dirs = {folder for proc in found if (folder := _tmp_dir(proc.pid))}
    tmp_dirs |= remembered.tmp_dirs(boots) if boots else set()
    segments = shared_memory.held_by(proc.pid for proc in found).union(*(boot.shared_memory for boot in told))
    send(found, signal.SIGTERM)
    left.end(time.monotonic() + timeout_s)
    for folder in tmp_dirs:
        shutil.rmtree(folder, ignore_errors=True)
    shared_memory.sweep(segments, frozenset())
    for boot in boots.glob("*") if boots and not left.look() else ():
        remembered.forget(boot)
    return names


@dataclass
class _Left:
    """The processes of a run whose runner is dead; who was found once stays known, whatever dies above it."""

    run_marker: str
    known: dict[int, Proc]

    def look(self) -> tuple[Proc, ...]:
        """Who still lives."""
        procs = processes.table()
        seeds = {pid for pid, proc in self.known.items() if proc.same(procs.get(pid))}
        seeds |= {pid for pid in procs if pid != os.getpid() and processes.carries(pid, RUN_MARKER, self.run_marker)}
        members = processes.descending(procs, seeds, {procs[pid].session for pid in seeds} - {os.getsid(0)})
        self.known = {pid: procs[pid] for pid in members - {os.getpid()}}
        return tuple(proc for _, proc in sorted(self.known.items()) if proc.alive)

    def end(self, deadline_s: float) -> None:
        """Wait until nobody lives; SIGKILL once the deadline (monotonic clock) has passed."""
        while self.look() and time.monotonic() < deadline_s:
            time.sleep(POLL_S)
        deadline_s = time.monotonic() + KILL_TIMEOUT_S
        while (found := self.look()) and time.monotonic() < deadline_s:
            send(found, signal.SIGKILL)
            time.sleep(POLL_S)


def _tmp_dir(pid: int) -> Path | None:
    """The TMPDIR that a marked process was given, when it is one that we make."""
    given = [Path(os.fsdecode(e[7:])) for e in processes.environ(pid) if e.startswith(b"TMPDIR=")]
    return next((folder for folder in given if folder.name.startswith(TMP_PREFIX)), None)


def _terminate(process: subprocess.Popen[bytes], members: tuple[Proc, ...]) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGTERM)
    send((proc for proc in members if proc.session != process.pid), signal.SIGTERM)


def _died(process: subprocess.Popen[bytes], family: Family, timeout_s: float) -> bool:
    """Whether the whole family is dead before the deadline; it comes sooner once the first process is gone."""
    deadline = time.monotonic() + timeout_s
    leader_gone = False
    while time.monotonic() < deadline:
        if process.poll() is not None and not leader_gone:
            leader_gone, deadline = True, min(deadline, time.monotonic() + ORPHAN_GRACE_S)
        if not family.look() and leader_gone:
            return True
        time.sleep(POLL_S)
    return False


def kill(family: Family) -> tuple[Proc, ...]:
    """SIGKILL until nobody lives; returns who does all the same (a process stuck in the kernel)."""
    deadline = time.monotonic() + KILL_TIMEOUT_S
    while alive := family.look():
        send(alive, signal.SIGKILL)
        if time.monotonic() > deadline:
            return alive
        time.sleep(POLL_S)
    return ()


def _port_holder(port: int) -> tuple[str, ...]:
    deadline = time.monotonic() + PORT_TIMEOUT_S
    while (holder := ports.listener(port)) and holder.pid is None and time.monotonic() < deadline:
        time.sleep(POLL_S)  # a holder with a pid lives, and ours are dead: it is not going to leave
    return (f"port {port} is held by {holder}",) if holder else ()
