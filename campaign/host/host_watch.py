"""What else the machine did while an engine ran: a thread of the runner that looks once a second (statistics.md 1.6).

It sees no metric. Its own cost is told in its summary; where a look is dear (very many processes) it looks less often.
"""

import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import fmean, median

from campaign.engine.processes import PROC
from campaign.host import gpu_watch, host_usage
from campaign.host.gpu_watch import Gpu, GpuWatch, Holder
from campaign.host.host_usage import Ours, Table, Waits, Who
from campaign.journal import dumps

EVERY_S = 1.0
COST_SHARE = 0.005  # of one core
BEFORE_THE_ENGINE_S = 3.0  # no engine has a GPU so soon after its boot began
ECC = "_ecc_errors"
LEAST_CLAIM_S = 1.0  # a shorter part has too few ticks of the kernel's clock to tell a share of a core by
CLOCKS_APART = 0.01  # of the median SM clock of the boots before
TOP = 4  # others who are named
WORTH_NAMING = 0.02  # of a core
Pids = Callable[[], Iterable[int]]


@dataclass(frozen=True)
class Reading:
    """The machine at one moment. Seconds are cumulative, memory in MiB."""

    time_ns: int
    busy_s: float
    steal_s: float
    ours_s: float
    others: dict[Who, float]
    waited_s: float
    preemptions: int
    available_mib: float
    swap_used_mib: float
    load: float
    pressure_s: float
    throttled_s: float


@dataclass(frozen=True)
class Limits:
    """What the environment may do. `clocks_mhz`: the median SM clocks of the boots so far, by GPU index."""

    foreign_cpu_cores: float
    clocks_mhz: Mapping[str, tuple[float, ...]] = field(default_factory=dict)


@dataclass
class Seen:
    """All readings of a watch, or of a part of it."""

    readings: list[Reading] = field(default_factory=list)
    gpus: list[Gpu] = field(default_factory=list)
    holders: list[Holder] = field(default_factory=list)
    our_pids: set[int] = field(default_factory=set)
    names: dict[Who, str] = field(default_factory=dict)
    watch_s: float = 0.0  # CPU seconds of the watch itself
    whole: bool = True

    @property
    def seconds(self) -> float:
        """From the first reading to the last."""
        return (self.readings[-1].time_ns - self.readings[0].time_ns) / 1e9 if self.readings else 0.0

    def part(self, start_ns: int, end_ns: int) -> "Seen":
        """What lies between two moments (time.monotonic_ns), with the readings around it; empty where none does."""
        first = max((i for i, r in enumerate(self.readings) if r.time_ns <= start_ns), default=0)
        last = min((i for i, r in enumerate(self.readings) if r.time_ns >= end_ns), default=len(self.readings) - 1)
        gpus = [row for row in self.gpus if start_ns <= row.time_ns <= end_ns]
        return replace(self, readings=self.readings[first : last + 1], gpus=gpus, whole=False)

    @property
    def foreign_cores(self) -> float:
        """CPU of others and steal, in cores: total less ours (house.md, busy machine); never below 0."""
        if self.seconds <= 0:
            return 0.0
        first, last = self.readings[0], self.readings[-1]
        total = last.busy_s - first.busy_s + last.steal_s - first.steal_s
        return max(0.0, total - (last.ours_s - first.ours_s)) / self.seconds

    def taints(self, limits: Limits) -> tuple[str, ...]:
        """A sentence for each thing that spoils what was measured meanwhile; empty on a quiet machine.

        Clocks and throttling are asked of a part, the measured window: a GPU that loads a model runs otherwise.
        """
        more = self._of_the_boot() if self.whole else self._of_the_window(limits.clocks_mhz)
        return tuple(text for text in (self._busy(limits.foreign_cpu_cores), *more) if text)

    def summary(self) -> dict[str, float]:
        """The figures of the watch, by name with their unit."""
        if self.seconds <= 0:
            return {}
        first, last = self.readings[0], self.readings[-1]
        rate = {
            "foreign_cpu_cores": self.foreign_cores,
            "steal_cores": (last.steal_s - first.steal_s) / self.seconds,
            "own_cpu_cores": (last.ours_s - first.ours_s) / self.seconds,
            "cpu_pressure_share": (last.pressure_s - first.pressure_s) / self.seconds,
        }
        found = {
            **rate,
            "watched_s": self.seconds,
            "load_mean": fmean(r.load for r in self.readings),
            "memory_available_least_mib": min(r.available_mib for r in self.readings),
            "swap_used_most_mib": max(r.swap_used_mib for r in self.readings),
            "engine_waited_for_cpu_s": last.waited_s - first.waited_s,
            "engine_preemptions": float(last.preemptions - first.preemptions),
            "cpu_quota_throttled_s": last.throttled_s - first.throttled_s,
            **gpu_watch.summary(self.gpus),
        }
        if self.whole:
            found |= {"readings": float(len(self.readings)), "watch_cpu_cores": self.watch_s / self.seconds}
        return {name: round(value, 4) for name, value in found.items()}

    def top(self) -> tuple[str, ...]:
        """Who the others were, the busiest first, each with its cores; what has no name is told as such."""
        if self.seconds <= 0:
            return ()
        cores = {who: used / self.seconds for who, used in self._others().items() if used / self.seconds > WORTH_NAMING}
        named = sorted(cores.items(), key=lambda pair: -pair[1])[:TOP]
        stolen = (self.readings[-1].steal_s - self.readings[0].steal_s) / self.seconds
        rest = self.foreign_cores - sum(cores for _, cores in named) - stolen
        told = [f"{self.names[who]} pid {who[0]} {cores:.2f}" for who, cores in named]
        told += [f"stolen by the hypervisor {stolen:.2f}"] if stolen > WORTH_NAMING else []
        return (*told, *([f"short-lived, small or unseen {rest:.2f}"] if rest > WORTH_NAMING else []))

    def _others(self) -> dict[Who, float]:
        """CPU seconds of each other process meanwhile; one that is new was born meanwhile."""
        last: dict[Who, float] = {}
        for reading in self.readings:
            last |= reading.others
        first = self.readings[0].others
        return {who: used - first.get(who, 0.0) for who, used in last.items()}

    def _busy(self, limit: float) -> str:
        if self.seconds < LEAST_CLAIM_S or self.foreign_cores <= limit:
            return ""
        when = "over the boot" if self.whole else "in the measured window"
        return (
            f"other programs took {self.foreign_cores:.2f} cores {when}, at most {limit:g} may be "
            f"(host.foreign_cpu_cores): {', '.join(self.top())}; end them, or measure later"
        )

    def _of_the_boot(self) -> Iterator[str]:
        for holder in {(h.uuid, h.pid): h for h in reversed(self.holders)}.values():
            if self._is_foreign(holder):
                yield f"another process holds a GPU of ours: {holder}, wanted nobody beside the engine; end it"
        for name, count in gpu_watch.summary(self.gpus).items():
            if name.endswith(ECC) and count:
                yield f"{name.removesuffix(ECC)} counted {count:g} uncorrectable ECC errors, wanted none; reset the GPU"

    def _is_foreign(self, first_seen: Holder) -> bool:
        """Also of a process that has ended since: by what was seen meanwhile, never by what lives now.

        Where none of our pids is shown the driver may count in another namespace (a container shows the host's pids):
        there a pid that we never saw may be our own engine's, and only who came before the engine is told.
        """
        early = first_seen.time_ns - self.readings[0].time_ns < BEFORE_THE_ENGINE_S * 1e9
        one_namespace = any(holder.pid in self.our_pids for holder in self.holders)
        seen_here = any(pid == first_seen.pid for pid, _ in self.names)
        return first_seen.pid not in self.our_pids and (early or one_namespace or seen_here)

    def _of_the_window(self, before: Mapping[str, tuple[float, ...]]) -> Iterator[str]:
        if held_back := gpu_watch.throttled(self.gpus):
            yield f"the driver held the clock back in the measured window ({held_back}), wanted no throttling; cool it"
        for index, clock in clocks(gpu_watch.summary(self.gpus)).items():
            usual = median(before[index]) if before.get(index) else clock
            if abs(clock - usual) > CLOCKS_APART * usual:
                yield (
                    f"GPU {index} ran at {clock:g} MHz (median), in the boots before at {usual:g}, wanted at most 1 % "
                    "apart; fix its clock (nvidia-smi -lgc) or let it cool"
                )


def clocks(environment: Mapping[str, float], prefix: str = "") -> dict[str, float]:
    """The median SM clocks of a summary, by GPU index."""
    found = {name.removeprefix(prefix): value for name, value in environment.items() if name.startswith(f"{prefix}gpu")}
    end = "_sm_median_mhz"
    return {name[3:].removesuffix(end): value for name, value in found.items() if name.endswith(end)}


@contextmanager
def watch(
    ours: Pids = tuple, *, files: Iterable[Path] = (), visible: str | None = None, into: Seen | None = None
) -> Iterator[Seen]:
    """Look once a second until the end of the block. Ours are this process, its descendants, and the pids of `ours`.

    `visible` is the engine's CUDA_VISIBLE_DEVICES. The series goes to `files` (JSON lines) when the block ends. What is
    seen is put into `into`, where it is there also after an interruption.
    """
    watcher = _Watcher(ours, GpuWatch(visible), Seen() if into is None else into)
    watcher.look()
    thread = threading.Thread(target=watcher.run, name="host-watch", daemon=True)
    thread.start()
    try:
        yield watcher.seen
    finally:
        watcher.ending.set()
        try:
            thread.join()
            watcher.look()
        finally:  # also when an interruption comes meanwhile: nothing of the watch may outlive it
            watcher.gpu.close()
        rows = "".join(dumps(row) + "\n" for row in series(watcher.seen))
        for file in files:
            with suppress(OSError):
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(rows, encoding="utf-8")


def series(seen: Seen) -> Iterator[dict[str, object]]:
    """A row for each reading after the first: cores since the one before, memory, and the GPUs' rows in between."""
    start = seen.readings[0].time_ns if seen.readings else 0
    for before, after in zip(seen.readings, seen.readings[1:], strict=False):
        between = replace(seen, readings=[before, after], whole=False)
        rows = [vars(row) for row in seen.gpus if before.time_ns < row.time_ns <= after.time_ns]
        yield {
            "t_s": round((after.time_ns - start) / 1e9, 3),
            **{k: v for k, v in between.summary().items() if not k.startswith("gpu")},
            "others": list(between.top()),
            **({"gpus": rows} if rows else {}),
        }


@dataclass
class _Watcher:
    """The thread's side: takes readings into `seen`."""

    ours: Pids
    gpu: GpuWatch
    seen: Seen
    ending: threading.Event = field(default_factory=threading.Event)
    account: Ours = field(default_factory=Ours)
    procs: Table = field(default_factory=dict)
    waits: dict[int, Waits] = field(default_factory=dict)
    cost_s: float = 0.0

    def __post_init__(self) -> None:
        self.seen.gpus, self.seen.holders = self.gpu.rows, self.gpu.holders

    def run(self) -> None:
        """Look until the end. A look that fails (a file of /proc that is gone) is left out."""
        while not self.ending.wait(max(EVERY_S, self.cost_s / COST_SHARE)):
            with suppress(OSError, ValueError):
                self.look()

    def look(self) -> None:
        """One reading."""
        started_s = time.thread_time()
        now_ns = time.monotonic_ns()
        busy, steal = host_usage.machine((PROC / "stat").read_text(encoding="ascii"), os.sched_getaffinity(0))
        procs = host_usage.table()
        ours = host_usage.members(procs, {os.getpid(), *self.ours()})
        ours_s = self.account.add({pid: procs[pid] for pid in ours}, self.procs or procs)
        self.procs = procs
        self.waits |= host_usage.waits(ours - {os.getpid()})
        self.gpu.look(now_ns)
        self.seen.our_pids |= ours
        self.seen.names |= host_usage.names(procs)
        self.seen.readings.append(self._reading(now_ns, busy, steal, ours_s, host_usage.others(procs, ours)))
        self.cost_s = time.thread_time() - started_s
        self.seen.watch_s += self.cost_s

    def _reading(self, now_ns: int, busy: float, steal: float, ours_s: float, others: dict[Who, float]) -> Reading:
        mib = {key: int(rest.split()[0]) / 1024 for key, _, rest in _meminfo()}
        return Reading(
            time_ns=now_ns,
            busy_s=busy,
            steal_s=steal,
            ours_s=ours_s,
            others=others,
            waited_s=sum(w.seconds for w in self.waits.values()),
            preemptions=sum(w.preemptions for w in self.waits.values()),
            available_mib=mib["MemAvailable"],
            swap_used_mib=mib.get("SwapTotal", 0.0) - mib.get("SwapFree", 0.0),
            load=float((PROC / "loadavg").read_text(encoding="ascii").split()[0]),
            pressure_s=host_usage.pressure_s(),
            throttled_s=host_usage.throttled_s(),
        )


def _meminfo() -> Iterator[tuple[str, str, str]]:
    for line in (PROC / "meminfo").read_text(encoding="ascii").splitlines():
        yield line.partition(":")
