"""What the GPUs did meanwhile, as nvidia-smi tells it in its loop mode: clocks, throttling, power, foreign processes.

One nvidia-smi lives through the watch: starting one costs far more than a row of its loop. `[N/A]`, `[Not Supported]`
and `ERR!` are no figures: neither 0 nor a crash. Read from recorded lines in tests; no GPU has run this yet.
"""

import contextlib
import os
import shutil
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass, field
from statistics import median

SMI = "nvidia-smi"
EVERY_MS = 1000
COLUMNS = (
    "index,uuid,clocks.sm,clocks.max.sm,{reasons},power.draw,power.limit,temperature.gpu,"
    "ecc.errors.uncorrected.volatile.total"
)
REASONS = ("clocks_event_reasons.active", "clocks_throttle_reasons.active")  # the newer name first
HOLDERS = "gpu_uuid,pid,used_memory,process_name"
THROTTLES = {  # bits of NVML's clocks event reasons that mean heat or power, not an idle or a chosen clock
    0x4: "power cap", 0x8: "hardware slowdown", 0x20: "heat", 0x40: "heat (hardware)", 0x80: "power brake",
}  # fmt: skip
STOP_S = 5.0


@dataclass(frozen=True)
class Gpu:
    """One row of one device; None where the driver has no figure."""

    time_ns: int
    index: str
    uuid: str
    sm_mhz: float | None
    sm_max_mhz: float | None
    reasons: int | None
    power_w: float | None
    limit_w: float | None
    celsius: float | None
    ecc: float | None


@dataclass(frozen=True)
class Holder:
    """A process that the driver shows on a device; mib is None where it does not say how much."""

    time_ns: int
    uuid: str
    pid: int
    mib: float | None
    name: str

    def __str__(self) -> str:
        held = "an unknown amount" if self.mib is None else f"{self.mib:g} MiB"
        return f"{self.name or 'a process'} pid {self.pid} ({held})"


def number(text: str) -> float | None:
    """A figure of a cell, hexadecimal too; None for whatever is none."""
    try:
        return float(int(text, 16)) if text.startswith("0x") else float(text)
    except ValueError:
        return None


def gpu_row(line: str, time_ns: int) -> Gpu | None:
    """A row of COLUMNS; None for a line that is none (a warning of the driver, half a line)."""
    cells = [cell.strip() for cell in line.split(",")]
    if len(cells) != len(COLUMNS.split(",")) or not cells[0].isdigit():
        return None
    sm, most, reasons, *rest = (number(cell) for cell in cells[2:])
    return Gpu(time_ns, cells[0], cells[1], sm, most, None if reasons is None else int(reasons), *rest)


def holder_row(line: str, time_ns: int) -> Holder | None:
    """A row of HOLDERS; None for a line that is none."""
    cells = [cell.strip() for cell in line.split(",", 3)]
    if len(cells) != len(HOLDERS.split(",")) or not cells[1].isdigit():
        return None
    return Holder(time_ns, cells[0], int(cells[1]), number(cells[2]), cells[3].rpartition("/")[2])


def used(index: str, uuid: str, visible: str | None) -> bool:
    """Whether an engine with this CUDA_VISIBLE_DEVICES sees the device; all are seen without one."""
    names = None if visible is None else [name.strip() for name in visible.split(",")]
    return names is None or any(name and (name == index or uuid.startswith(name)) for name in names)


@dataclass
class Loop:
    """One nvidia-smi in its loop mode, read without waiting. Tries the next question where a driver refuses one."""

    questions: list[str]
    process: "subprocess.Popen[bytes] | None" = None
    half: bytes = b""

    def lines(self) -> list[str]:
        """What it has printed since the last look."""
        if self.process is None or (self.process.poll() and self.questions):
            self._begin()
        if self.process is None or self.process.stdout is None:
            return []
        with contextlib.suppress(BlockingIOError):
            self.half += os.read(self.process.stdout.fileno(), 1 << 20)
        *whole, self.half = self.half.split(b"\n")
        return [line.decode("utf-8", "replace") for line in whole]

    def _begin(self) -> None:
        smi = shutil.which(SMI)
        if smi is None or not self.questions:
            return
        self.close()
        command = [smi, self.questions.pop(0), "--format=csv,noheader,nounits", f"--loop-ms={EVERY_MS}"]
        try:
            self.process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
            )
        except OSError:  # a tool that cannot be started tells nothing
            self.questions.clear()
            return
        assert self.process.stdout is not None
        os.set_blocking(self.process.stdout.fileno(), False)

    def close(self) -> None:
        """End it."""
        if self.process is None:
            return
        self.process.terminate()
        try:
            self.process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()
        self.process = None


@dataclass
class GpuWatch:
    """Both loops, and what they said of the devices that the engine sees. Nothing where there is no nvidia-smi."""

    visible: str | None
    rows: list[Gpu] = field(default_factory=list)
    holders: list[Holder] = field(default_factory=list)
    _devices: Loop = field(
        default_factory=lambda: Loop([f"--query-gpu={COLUMNS.format(reasons=name)}" for name in REASONS])
    )
    _apps: Loop = field(default_factory=lambda: Loop([f"--query-compute-apps={HOLDERS}"]))

    def look(self, time_ns: int) -> None:
        """Take what was printed since the last look, as of now."""
        if shutil.which(SMI) is None:
            return
        found = [row for line in self._devices.lines() if (row := gpu_row(line, time_ns))]
        self.rows += [row for row in found if used(row.index, row.uuid, self.visible)]
        seen = {row.uuid for row in self.rows}
        held = [holder for line in self._apps.lines() if (holder := holder_row(line, time_ns))]
        self.holders += [holder for holder in held if holder.uuid in seen]

    def close(self) -> None:
        """End both loops."""
        self._devices.close()
        self._apps.close()


def throttled(rows: Iterable[Gpu]) -> str:
    """Which devices were held back, by what, in words; empty where none was, or none says it."""
    seen: dict[str, int] = {}
    for row in rows:
        seen[row.index] = seen.get(row.index, 0) | (row.reasons or 0)
    told = {index: [word for bit, word in THROTTLES.items() if bits & bit] for index, bits in seen.items()}
    return "; ".join(f"GPU {index}: {', '.join(words)}" for index, words in told.items() if words)


def summary(rows: Iterable[Gpu]) -> dict[str, float]:
    """Figures of each device, by name with their unit; what the driver has no figure for is left out."""
    by_index: dict[str, list[Gpu]] = {}
    for row in rows:
        by_index.setdefault(row.index, []).append(row)
    found: dict[str, float | None] = {}
    for index, of in by_index.items():
        name = f"gpu{index}"
        sm = [row.sm_mhz for row in of if row.sm_mhz is not None]
        found[f"{name}_sm_median_mhz"] = median(sm) if sm else None
        found[f"{name}_sm_limit_mhz"] = of[-1].sm_max_mhz
        found[f"{name}_power_max_w"] = _most(row.power_w for row in of)
        found[f"{name}_power_limit_w"] = of[-1].limit_w
        found[f"{name}_hottest_celsius"] = _most(row.celsius for row in of)
        ecc = [row.ecc for row in of if row.ecc is not None]
        found[f"{name}_ecc_errors"] = ecc[-1] - ecc[0] if ecc else None
        reasons = [row.reasons for row in of if row.reasons is not None]
        bits = sum(bit for bit in THROTTLES if any(reason & bit for reason in reasons))
        found[f"{name}_throttle_bits"] = float(bits) if reasons else None
    return {name: value for name, value in found.items() if value is not None}


def _most(figures: Iterable[float | None]) -> float | None:
    known = [figure for figure in figures if figure is not None]
    return max(known) if known else None
