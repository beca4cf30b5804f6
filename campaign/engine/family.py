"""The processes of one boot. They are known by descent, session and marker, never by name."""

import contextlib
import ctypes
import os
import signal
from collections.abc import Callable, Iterable

from campaign.engine import memory, processes
from campaign.engine.processes import Proc
from campaign.engine.spec import BOOT_MARKER
from campaign.errors import HostUnfitError

PR_SET_CHILD_SUBREAPER = 36  # prctl(2)
Remember = Callable[[tuple[Proc, ...]], None]
LEADERS: set[int] = set()  # pids that this runner started as engines and has not yet stopped


def become_subreaper() -> None:
    """Orphans of our engines come to us, not to init: a server that dies first cannot hide its workers."""
    if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        reason = os.strerror(ctypes.get_errno())
        raise HostUnfitError(
            f"prctl(PR_SET_CHILD_SUBREAPER) failed: {reason}; orphaned engine processes could not be found"
        )


class Family:
    """Everything that descends from one engine's first process. `look` before asking; what was seen is remembered.

    `remember` is told of the living members, each time that they are others than before.
    """

    def __init__(self, leader: int, nonce: str, remember: Remember | None = None) -> None:
        first = processes.read(leader)
        assert first is not None, "a child that was not waited for has an entry in /proc"
        self.leader, self.nonce, self.remember = first, nonce, remember
        self.known: dict[int, Proc] = {leader: first}
        self.most_mib = 0
        self._tell((first,), frozenset())

    def look(self) -> tuple[Proc, ...]:
        """Find members that are new, forget the dead ones (reaping those that are ours), return the living."""
        procs = processes.table()
        seeds = {pid for pid, proc in self.known.items() if proc.same(procs.get(pid))}
        seeds |= {proc.pid for proc in procs.values() if self._ours(proc)}
        reused = not self.leader.same(procs.get(self.leader.pid, self.leader))
        members = processes.descending(procs, seeds, () if reused else (self.leader.pid,))
        before = frozenset(self.known)
        self.known = {pid: procs[pid] for pid in members if pid in procs and self._after_leader(procs[pid])}
        living = tuple(proc for proc in self.known.values() if proc.alive)
        self._tell(living, before)
        _reap(proc for proc in self.known.values() if not proc.alive and proc.pid != self.leader.pid)
        return living

    def weigh(self) -> None:
        """Keep the most of the host's memory that its living members were seen to hold, in MiB (`most_mib`).

        An engine that dies takes the figure with it, so it is asked while it lives.
        """
        self.most_mib = max(self.most_mib, memory.held_mib(self.look()))

    def _tell(self, living: tuple[Proc, ...], before: frozenset[int]) -> None:
        if self.remember is not None and frozenset(self.known) != before:
            self.remember(living)

    def _after_leader(self, proc: Proc) -> bool:
        return proc.start_ticks >= self.leader.start_ticks

    def _ours(self, proc: Proc) -> bool:
        """Marked as this boot's, or an orphan that came to us: our child, in a session neither ours nor a leader's."""
        if not self._after_leader(proc) or proc.pid in LEADERS:
            return False
        if processes.carries(proc.pid, BOOT_MARKER, self.nonce):
            return True
        adopted = proc.ppid == os.getpid() and proc.session != os.getsid(0) and proc.session not in LEADERS
        return adopted and not _marked_otherwise(proc.pid)


def _marked_otherwise(pid: int) -> bool:
    return any(entry.startswith(f"{BOOT_MARKER}=".encode()) for entry in processes.environ(pid))


def send(members: Iterable[Proc], number: signal.Signals) -> None:
    """Signal each member that is still the process it was."""
    for proc in members:
        if proc.same(processes.read(proc.pid)):
            with contextlib.suppress(ProcessLookupError):
                os.kill(proc.pid, number)


def _reap(dead: Iterable[Proc]) -> None:
    """Take the exit status of orphans that came to us; others' zombies are their parents' to take."""
    for proc in dead:
        if proc.ppid == os.getpid():
            with contextlib.suppress(ChildProcessError):
                os.waitpid(proc.pid, os.WNOHANG)
