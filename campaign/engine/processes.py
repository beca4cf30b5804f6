"""The machine's processes as /proc shows them: who descends from whom, and who still lives."""

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

PROC = Path("/proc")
DEAD_STATES = "ZX"  # a zombie holds no memory and no port: it is dead


@dataclass(frozen=True)
class Proc:
    """One process. pid and start_ticks together name it for good: a pid alone is given out again."""

    pid: int
    ppid: int
    session: int
    state: str
    start_ticks: int
    name: str  # cut to 15 characters by the kernel

    @property
    def alive(self) -> bool:
        """Whether it can still hold anything."""
        return self.state not in DEAD_STATES

    def same(self, other: "Proc | None") -> bool:
        """Whether the other is this very process, later."""
        return other is not None and (self.pid, self.start_ticks) == (other.pid, other.start_ticks)

    def __str__(self) -> str:
        return f"pid {self.pid} ({self.name})"


def table() -> dict[int, Proc]:
    """Every process there is, by pid."""
    found = (read(int(entry)) for entry in os.listdir(PROC) if entry.isdigit())  # noqa: PTH208  (a third of iterdir's time)
    return {proc.pid: proc for proc in found if proc is not None}


def read(pid: int) -> Proc | None:
    """One process; None when it is gone. Fields: proc(5), /proc/pid/stat."""
    try:
        text = (PROC / str(pid) / "stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    name = text[text.index("(") + 1 : text.rindex(")")]
    fields = text[text.rindex(")") + 2 :].split()
    return Proc(pid, int(fields[1]), int(fields[3]), fields[0], int(fields[19]), name)


def carries(pid: int, variable: str, value: str) -> bool:
    """Whether the process was started with variable=value. False for one that we may not look into."""
    return f"{variable}={value}".encode() in environ(pid)


def environ(pid: int) -> tuple[bytes, ...]:
    """The environment that a process was started with, as NAME=value; empty when we may not look, or it is gone."""
    try:
        return tuple((PROC / str(pid) / "environ").read_bytes().split(b"\0"))
    except OSError:
        return ()


def cmdline(pid: int) -> tuple[str, ...]:
    """The argument list as the kernel holds it; empty for a zombie or one that is gone."""
    try:
        raw = (PROC / str(pid) / "cmdline").read_bytes()
    except OSError:
        return ()
    return tuple(os.fsdecode(word) for word in raw.split(b"\0")[:-1])


def descending(procs: dict[int, Proc], seeds: Iterable[int], sessions: Iterable[int] = ()) -> set[int]:
    """The seeds, whoever shares one of the sessions, and all their descendants."""
    wanted = set(sessions)
    members = set(seeds) | {proc.pid for proc in procs.values() if proc.session in wanted}
    while more := {proc.pid for proc in procs.values() if proc.ppid in members} - members:
        members |= more
    return members
