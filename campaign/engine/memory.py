"""Memory as the machine shows it: the host's, and each device's with who holds it (nvidia-smi, where there is one).

A stopped engine's memory is back when it is measured to be back. Of the host only that is asked which an engine can
have kept: other programs take and give memory as they like, and their own growth is taken off first.
"""

import os
import re
import shutil
import subprocess
import time
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from campaign.engine import processes
from campaign.engine.processes import PROC, Proc
from campaign.errors import HostUnfitError

SMI = "nvidia-smi"
SMI_TIMEOUT_S = 30
DEVICE_COLUMNS = "--query-gpu=index,uuid,memory.used,memory.total"
HOLDER_COLUMNS = "--query-compute-apps=gpu_uuid,pid,used_memory"
SHARE = 0.01  # of all memory: below it a difference is a machine's ordinary breathing
HOST_BREATHES = 0.05  # the same for the host's memory over QUIET_S: every program on it moves that
POLL_S = 0.5
QUIET_S = 2.0  # a machine is quiet when two readings this far apart agree
MIB = 1024 * 1024
PAGE = os.sysconf("SC_PAGE_SIZE")
CGROUP = Path("/sys/fs/cgroup")


@dataclass(frozen=True)
class Device:
    """One device. used_mib is None where the driver has no figure of its own ([N/A]: memory shared with the host)."""

    index: str
    uuid: str
    used_mib: int | None
    total_mib: int | None


@dataclass(frozen=True)
class Holder:
    """A process that holds memory of a device; mib is None where the driver does not say how much."""

    uuid: str
    pid: int
    mib: int | None

    def __str__(self) -> str:
        proc = processes.read(self.pid)
        who = str(proc) if proc else f"pid {self.pid} (not to be seen from here)"
        return f"{who} {'an unknown amount' if self.mib is None else f'{self.mib} MiB'}"


@dataclass(frozen=True)
class Memory:
    """One reading."""

    available_mib: int
    total_mib: int
    processes_mib: int  # what the living processes have for themselves alone
    devices: tuple[Device, ...] = ()
    holders: tuple[Holder, ...] = ()
    problem: str = ""  # why there is no reading of the devices although they are there
    shmem_mib: int = 0  # files in memory (/dev/shm, other tmpfs), of the whole machine
    anon_mib: int = 0  # what processes have for themselves, of the whole machine: other containers' too

    @property
    def shared(self) -> bool:
        """Whether a device takes its memory from the host's."""
        return any(device.used_mib is None for device in self.devices)


@dataclass(frozen=True)
class Watch:
    """The memory before the first boot of a run, and how to read it again."""

    before: Memory
    visible: str | None  # CUDA_VISIBLE_DEVICES of the engine: others' devices are not our business
    timeout_s: float

    def wait_back(self, held_mib: int) -> float:
        """Wait on measured memory; returns the seconds it took. Raises HostUnfitError naming who holds what."""
        started = time.monotonic()
        while missing := still_missing(self.before, read(self.visible), held_mib):
            if time.monotonic() - started > self.timeout_s:
                raise HostUnfitError(
                    f"memory is not back {self.timeout_s:g} s after the stop (host.memory_timeout_s): "
                    f"{'; '.join(missing)}; free it before the next boot"
                )
            time.sleep(POLL_S)
        return time.monotonic() - started

    def wait_quiet(self) -> None:
        """Wait until nobody takes or gives memory. Raises HostUnfitError at the deadline."""
        deadline = time.monotonic() + self.timeout_s
        last = read(self.visible)
        while time.monotonic() < deadline:
            time.sleep(QUIET_S)
            now = read(self.visible)
            if not self._unseen(last) and not self._unseen(now) and not _moved(last, now):
                return
            last = now
        seen = self._unseen(last) or "memory still comes and goes"
        raise HostUnfitError(
            f"{seen} after {self.timeout_s:g} s (host.memory_timeout_s); wait for the machine's other users"
        )

    def _unseen(self, now: Memory) -> str:
        """Why the devices cannot be told to be at rest: they had a reading at first, and have none now."""
        return now.problem if self.before.devices else ""


def watch(visible: str | None, timeout_s: float) -> Watch:
    """Measure now, to wait for it later."""
    return Watch(read(visible), visible, timeout_s)


def read(visible: str | None = None) -> Memory:
    """One reading of host and devices."""
    lines = (PROC / "meminfo").read_text(encoding="ascii").splitlines()
    mib = {line.split(":")[0]: int(line.split()[1]) // 1024 for line in lines}
    host = Memory(
        mib["MemAvailable"], mib["MemTotal"], _own_of_all(),
        shmem_mib=mib.get("Shmem", 0), anon_mib=mib.get("AnonPages", 0),
    )  # fmt: skip
    smi = shutil.which(SMI)
    if smi is None:
        return host
    try:
        found = _devices(_asked(smi, DEVICE_COLUMNS), visible)
        uuids = {device.uuid for device in found}
        holders = tuple(h for h in _holders(_asked(smi, HOLDER_COLUMNS)) if h.uuid in uuids)
        return replace(host, devices=found, holders=holders)
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        return replace(host, problem=f"{smi} gives no reading: {error}")


def still_missing(before: Memory, now: Memory, held_mib: int) -> tuple[str, ...]:
    """What has not come back since `before`, a sentence each; empty when all has. held_mib: what our engine had."""
    if before.devices and now.problem:
        return (now.problem,)
    return (*_of_devices(before, now), *_of_host(before, now, held_mib))


def held_mib(members: Iterable[Proc]) -> int:
    """What these processes hold of the host, pages that they share counted once."""
    return sum(_proportional_kib(proc.pid) for proc in members) // 1024


def oom_kills(cgroups: str | None = None, root: Path = CGROUP) -> int | None:
    """How often the kernel has killed in our own cgroup because memory ran out; None where it does not say.

    `cgroups` is the text of /proc/self/cgroup, read when it is not given.
    """
    told = (PROC / "self/cgroup").read_text(encoding="utf-8") if cgroups is None else cgroups
    for file in _oom_files(told, root):
        try:
            found = re.search(r"^oom_kill (\d+)$", file.read_text(encoding="ascii"), re.MULTILINE)
        except OSError:
            continue
        if found:
            return int(found[1])
    return None


def _oom_files(cgroups: str, root: Path) -> list[Path]:
    """Where the count may stand (cgroups(7)): version 2 first, then 1; our own, then the root's."""
    paths = {controllers: path.lstrip("/") for _, controllers, path in (c.split(":", 2) for c in cgroups.splitlines())}
    unified = [root / paths[""] / "memory.events", root / "memory.events"] if "" in paths else []
    old = root / "memory"
    first = [old / paths["memory"] / "memory.oom_control", old / "memory.oom_control"] if "memory" in paths else []
    return [*unified, *first]


def _of_devices(before: Memory, now: Memory) -> list[str]:
    """The devices'. One without a reading of before the first boot cannot tell what came since: it is left out."""
    known = {(holder.uuid, holder.pid) for holder in before.holders}
    first = {device.uuid: device for device in before.devices}
    sentences = []
    for device in (d for d in now.devices if d.uuid in first):
        new = [str(h) for h in now.holders if h.uuid == device.uuid and (h.uuid, h.pid) not in known]
        grown = _grown(first[device.uuid], device)
        if new or grown:
            figures = grown or f"{_mib(device.used_mib)} of {_mib(device.total_mib)} used"
            by = f", held by {', '.join(new)}" if new else ", by nobody that the driver names"
            sentences.append(f"device {device.index}: {figures}{by}")
    return sentences


def _grown(old: Device, new: Device) -> str:
    """The figures of a device that has more in use than before; empty when it has not, or has no figures."""
    if old.used_mib is None or new.used_mib is None or new.total_mib is None:
        return ""
    if new.used_mib - old.used_mib <= SHARE * new.total_mib:
        return ""
    return f"{new.used_mib} MiB of {new.total_mib} used, {old.used_mib} before the first boot"


def _of_host(before: Memory, now: Memory, held: int) -> list[str]:
    """The host's, as far as our engine can have kept it. Its processes are dead and its segments swept, so that what
    grew in living processes, here or in other containers, and in files in memory is others'.

    Half of what the engine held is the bound, so that a neighbour whom we cannot see does not void a boot; an engine
    that held less than SHARE of the machine is not worth the question.
    """
    floor = SHARE * before.total_mib
    if held <= floor and not before.shared:
        return []
    others = max(0, now.processes_mib - before.processes_mib, now.anon_mib - before.anon_mib)
    others += max(0, now.shmem_mib - before.shmem_mib)
    lost = before.available_mib - now.available_mib - others
    if lost <= max(floor, held / 2):
        return []
    return [
        f"host: {now.available_mib} MiB available, {before.available_mib} before the first boot; living processes and "
        f"files in memory explain {others} MiB of it (the engine held {held} MiB)"
    ]


def _moved(last: Memory, now: Memory) -> bool:
    """Whether two readings differ. A device that only one of them has says nothing about itself."""
    used = {device.uuid: device.used_mib or 0 for device in last.devices}
    devices = any(
        abs((d.used_mib or 0) - used[d.uuid]) > SHARE * (d.total_mib or now.total_mib)
        for d in now.devices
        if d.uuid in used
    )
    return devices or abs(now.available_mib - last.available_mib) > HOST_BREATHES * now.total_mib


def _asked(smi: str, columns: str) -> list[list[str]]:
    """The rows of one question to nvidia-smi."""
    command = [smi, columns, "--format=csv,noheader,nounits"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=SMI_TIMEOUT_S, check=False)
    if done.returncode:
        raise ValueError(f"exit {done.returncode}: {(done.stdout + done.stderr).strip()[:200]}")
    return [[cell.strip() for cell in line.split(",")] for line in done.stdout.splitlines() if line.strip()]


def _devices(rows: list[list[str]], visible: str | None) -> tuple[Device, ...]:
    found = tuple(Device(index, uuid, _figure(used), _figure(total)) for index, uuid, used, total in rows)
    names = [name.strip() for name in visible.split(",")] if visible is not None else None
    if names is None:
        return found
    return tuple(d for d in found if any(name and (name == d.index or d.uuid.startswith(name)) for name in names))


def _holders(rows: list[list[str]]) -> tuple[Holder, ...]:
    return tuple(Holder(uuid, int(pid), _figure(mib)) for uuid, pid, mib in rows if pid.isdigit())


def _figure(text: str) -> int | None:
    """A number of MiB; None for [N/A], [Not Supported] and the like."""
    return int(text) if text.isdigit() else None


def _mib(figure: int | None) -> str:
    return "an unknown amount" if figure is None else f"{figure} MiB"


def _own_of_all() -> int:
    """MiB that the living processes have for themselves: resident less shared (proc(5), /proc/pid/statm)."""
    pages = 0
    for pid in processes.table():
        try:
            _, resident, shared, *_ = (PROC / str(pid) / "statm").read_text(encoding="ascii").split()
        except (OSError, ValueError):
            continue
        pages += int(resident) - int(shared)
    return pages * PAGE // MIB


def _proportional_kib(pid: int) -> int:
    try:
        text = (PROC / str(pid) / "smaps_rollup").read_text(encoding="ascii", errors="replace")
    except OSError:
        return 0
    found = re.search(r"^Pss:\s+(\d+) kB", text, re.MULTILINE)
    return int(found[1]) if found else 0
