"""Who used the machine's CPUs, as /proc counts it: ours, others, and what the hypervisor gave away (proc(5)).

What cannot be told: the last moments of a process that ended between two readings and that nobody waited for, and the
name of one that was born and ended between two readings. Both are time of others here, which is the safe side.
"""

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from campaign.engine.processes import PROC

TICKS = os.sysconf("SC_CLK_TCK")
BUSY = (0, 1, 2, 5, 6)  # user, nice, system, irq, softirq of a line of /proc/stat
STEAL = 7
CGROUP = Path("/sys/fs/cgroup")


@dataclass(frozen=True)
class Used:
    """CPU seconds of a process, and of the children that it has waited for."""

    ppid: int
    name: str
    start_ticks: int
    own_s: float
    children_s: float


Table = dict[int, Used]
Who = tuple[int, int]  # pid and start: a pid alone is given out again


def table() -> Table:
    """Every process that is to be seen from here, zombies too: their time is nobody's yet."""
    found = ((int(entry), _used(entry)) for entry in os.listdir(PROC) if entry.isdigit())  # noqa: PTH208  (a third of iterdir's time)
    return {pid: used for pid, used in found if used is not None}


def _used(pid: str) -> Used | None:
    try:
        text = (PROC / pid / "stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    first, last = text.index("("), text.rindex(")")
    fields = text[last + 2 :].split()
    own, children = int(fields[11]) + int(fields[12]), int(fields[13]) + int(fields[14])
    return Used(int(fields[1]), text[first + 1 : last], int(fields[19]), own / TICKS, children / TICKS)


def machine(text: str, cpus: Iterable[int]) -> tuple[float, float]:
    """Busy and stolen seconds of these CPUs, of a text of /proc/stat; what runs on other CPUs is not our business."""
    wanted = {f"cpu{number}" for number in cpus}
    rows = [line.split() for line in text.splitlines() if line.split(" ", 1)[0] in wanted]
    ticks = [[int(cell) for cell in row[1:]] for row in rows]
    return sum(row[i] for row in ticks for i in BUSY) / TICKS, sum(row[STEAL] for row in ticks) / TICKS


def members(procs: Mapping[int, Used], seeds: Iterable[int]) -> set[int]:
    """The seeds and all their descendants."""
    found = set(seeds) & procs.keys()
    while more := {pid for pid, used in procs.items() if used.ppid in found} - found:
        found |= more
    return found


@dataclass
class Ours:
    """CPU seconds of a set of processes since the first reading, also of those that ended meanwhile.

    A child that is waited for moves all its time into its parent's children_s; what was counted while it lived is
    taken off again there. One that nobody waits for keeps what it was last seen with.
    """

    seconds: float = 0.0
    known: Table | None = None

    def add(self, now: Table, before: Table) -> float:
        """One more reading: `now` are our processes, `before` is everybody of the reading before."""
        if self.known is not None:
            self.seconds += self._since(self.known, now, before)
        self.known = dict(now)
        return self.seconds

    @staticmethod
    def _since(known: Table, now: Table, before: Table) -> float:
        living = [pid for pid, used in now.items() if _same(known.get(pid), used)]
        born = [used for pid, used in now.items() if not _same(before.get(pid), used)]
        gone = sum(u.own_s + u.children_s for pid, u in known.items() if not _same(now.get(pid), u))
        own = sum(now[pid].own_s - known[pid].own_s for pid in living)
        waited_for = sum(now[pid].children_s - known[pid].children_s for pid in living)
        return own + sum(u.own_s + u.children_s for u in born) + max(0.0, waited_for - gone)


def _same(one: Used | None, other: Used) -> bool:
    return one is not None and one.start_ticks == other.start_ticks


def others(procs: Table, ours: set[int]) -> dict[Who, float]:
    """CPU seconds of each process that is not ours, since its birth."""
    return {(pid, u.start_ticks): u.own_s for pid, u in procs.items() if pid not in ours and u.own_s}


def names(procs: Table) -> dict[Who, str]:
    """What each process is called now; the kernel's workers change theirs with their work."""
    return {(pid, u.start_ticks): u.name for pid, u in procs.items()}


@dataclass(frozen=True)
class Waits:
    """What our processes' first threads had to wait for a CPU since their birth (seconds), and how often they lost one.

    The step loop of an engine's process is its first thread.
    """

    seconds: float = 0.0
    preemptions: int = 0


def waits(pids: Iterable[int]) -> dict[int, Waits]:
    """Of each living process; one that may not be looked into is left out."""
    found = {}
    for pid in pids:
        try:
            delay = (PROC / str(pid) / "schedstat").read_text(encoding="ascii").split()[1]
            status = (PROC / str(pid) / "status").read_text(encoding="utf-8", errors="replace")
        except (OSError, IndexError):
            continue
        lost = re.search(r"^nonvoluntary_ctxt_switches:\s+(\d+)", status, re.MULTILINE)
        found[pid] = Waits(int(delay) / 1e9, int(lost[1]) if lost else 0)
    return found


def pressure_s() -> float:
    """Seconds in which somebody waited for a CPU, of the whole machine (PSI); 0 where the kernel does not count it."""
    try:
        text = (PROC / "pressure/cpu").read_text(encoding="ascii")
    except OSError:
        return 0.0
    found = re.search(r"^some .*total=(\d+)", text, re.MULTILINE)
    return int(found[1]) / 1e6 if found else 0.0


def throttled_s(root: Path = CGROUP) -> float:
    """Seconds in which our own CPU quota held us back (cgroups(7), version 2 or 1); 0 without a quota."""
    for line in (PROC / "self/cgroup").read_text(encoding="utf-8").splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers and "cpu" not in controllers.split(","):
            continue
        folder = root if not controllers else root / controllers
        for place in (folder / path.lstrip("/"), folder):
            try:
                text = (place / "cpu.stat").read_text(encoding="ascii")
            except OSError:
                continue
            if found := re.search(r"^throttled_(usec|time) (\d+)", text, re.MULTILINE):
                return int(found[2]) / (1e6 if found[1] == "usec" else 1e9)
    return 0.0
