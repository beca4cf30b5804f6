"""A profiler's trace (Chrome JSON, of torch's profiler) as time per decode step. Pure, but for reading the file.

Evidence of a mechanism, never a datum: one boot, under a profiler that slows the engine. Clocks: host spans carry the
profiler's own host clock (microseconds), device spans the device's time as Kineto maps it to that clock.
"""

import gzip
import json
import re
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import pairwise
from pathlib import Path
from statistics import quantiles
from typing import Any

from campaign.errors import CampaignError

LARGEST_FILE_BYTES = 256 * 2**20  # compressed
FEWEST_STEPS = 3
LONGEST_US = 1e18  # no clock says more; NaN is not under it
MAIN_RANK = re.compile(r"rank[-_]?0(?!\d)")
ANNOTATION, RUNTIME = "user_annotation", ("cuda_runtime", "cuda_driver", "hip_runtime", "runtime")
DEVICE_WORK = ("kernel", "gpu_memcpy", "gpu_memset")
SYNCHRONISE = re.compile(r"(?:cuda|hip|cu)(?:Event|Stream|Device|Ctx)Synchronize")
HOST_CLOCK = "host, the profiler's clock"
DEVICE_CLOCK = "device, by Kineto"


class TraceError(CampaignError):
    """A trace of which nothing can be told."""


class Phase(StrEnum):
    """What the host does in a step. `other` is all that no range of the table covers."""

    SCHEDULE = "schedule"
    PREPARE = "prepare"
    SUBMIT = "submit"
    WAIT = "wait"
    OUTPUT = "output"
    OTHER = "other"


@dataclass(frozen=True)
class Ranges:
    """How one engine version names its ranges: the step's own, and by prefix those inside of it."""

    step: str
    schedule: str  # the scheduler names parts of its work only: it counts from the first to the last of them
    phases: tuple[tuple[str, Phase], ...]


RANGES = {  # read in the engine's sources; VLLM_CUSTOM_SCOPES_FOR_PROFILING=1 switches them on (V1 model runner only)
    "0.29.0": Ranges(
        step="execute_",
        schedule="schedule: ",
        phases=(
            ("gpu_model_runner: preprocess", Phase.PREPARE),
            ("gpu_model_runner: forward", Phase.SUBMIT),
            ("gpu_model_runner: postprocess", Phase.SUBMIT),
            ("gpu_model_runner: sample", Phase.SUBMIT),
            ("gpu_model_runner: draft", Phase.SUBMIT),
            ("gpu_model_runner: bookkeep", Phase.OUTPUT),
            ("gpu_model_runner: eplb", Phase.OUTPUT),
            ("gpu_model_runner: ModelRunnerOutput", Phase.OUTPUT),
            ("gpu_model_runner: AsyncGPUModelRunnerOutput", Phase.OUTPUT),
            ("gpu_model_runner: set_async_sampled_token_ids", Phase.OUTPUT),
        ),
    )
}


@dataclass(frozen=True)
class Span:
    """One stretch of time, microseconds of the trace's clock."""

    start_us: float
    end_us: float
    name: str = ""


@dataclass(frozen=True)
class PhaseTime:
    """A phase over the steps: its share of all host time, and the quartiles of a step's."""

    share_pct: float
    low_ms: float
    median_ms: float
    high_ms: float


@dataclass(frozen=True)
class Profile:
    """What a trace shows. `idle_pct` by device is the part of the steps' time in which it ran nothing."""

    steps: int
    step: PhaseTime
    phases: dict[str, PhaseTime]
    idle_pct: dict[str, float] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def of_folder(folder: Path, version: str) -> tuple[Path, Profile]:
    """The trace of the first rank in a profiler's folder, and its file. Raises TraceError."""
    found = sorted(path for path in folder.glob("*.json*") if path.is_file())
    if not found:
        raise TraceError(f"the profiler left no trace in {folder}")
    path = next((path for path in found if MAIN_RANK.search(path.name)), found[0])
    try:
        return path, profile(read(path), version)
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:  # evidence, and no datum
        raise TraceError(f"{path} cannot be read as steps: {type(error).__name__}: {error}") from error


def read(path: Path) -> list[dict[str, Any]]:
    """The events of a trace, gzipped or not. Raises TraceError for a file that is none."""
    if path.stat().st_size > LARGEST_FILE_BYTES:
        raise TraceError(f"{path} is larger than {LARGEST_FILE_BYTES} bytes; profile fewer steps")
    try:
        with gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb") as file:
            data = json.load(file)
        return [event for event in data["traceEvents"] if isinstance(event, dict)]
    except (OSError, EOFError, ValueError, KeyError, TypeError, RecursionError, zlib.error) as error:
        raise TraceError(f"{path} is no trace of torch's profiler: {type(error).__name__}: {error}") from error


def profile(events: Iterable[dict[str, Any]], version: str) -> Profile:
    """Host time of each step by phase, and what the devices did meanwhile.

    A step lasts from the start of its range to the start of the next one, on the thread that runs most of them.
    Raises TraceError where fewer than three steps are named, or the engine version has no table.
    """
    if version not in RANGES:
        raise TraceError(
            f"no names of ranges for vLLM {version}; wanted {', '.join(RANGES)} (campaign/trace.py, RANGES)"
        )
    ranges, timed = RANGES[version], [event for event in events if _is_timed(event)]
    thread, starts = _steps(timed, ranges)
    inner = _recognised([event for event in timed if _thread(event) == thread], ranges, starts)
    by_step = [_by_phase(inner, begin, end) for begin, end in pairwise(starts)]
    lengths = [end - begin for begin, end in pairwise(starts)]
    whole = sum(lengths)
    phases = {phase.value: _time([step[phase] for step in by_step], whole) for phase in Phase}
    idle = _idle(timed, starts[0], starts[-1])
    return Profile(len(lengths), _time(lengths, whole), phases, idle, _notes(phases, idle, timed))


def _is_timed(event: dict[str, Any]) -> bool:
    return (
        event.get("ph") == "X"
        and isinstance(event.get("name"), str)
        and all(_is_time(event.get(key)) for key in ("ts", "dur"))
        and event["dur"] >= 0
    )


def _is_time(found: object) -> bool:
    return isinstance(found, int | float) and abs(found) < LONGEST_US


def _thread(event: dict[str, Any]) -> tuple[str, str]:
    return str(event.get("pid")), str(event.get("tid"))


def _span(event: dict[str, Any]) -> Span:
    return Span(event["ts"], event["ts"] + event["dur"], event["name"])


def _steps(timed: Sequence[dict[str, Any]], ranges: Ranges) -> tuple[tuple[str, str], list[float]]:
    found: dict[tuple[str, str], list[float]] = {}
    for event in timed:
        if event.get("cat") == ANNOTATION and event["name"].startswith(ranges.step):
            found.setdefault(_thread(event), []).append(event["ts"])
    thread, starts = max(found.items(), key=lambda item: len(item[1]), default=(("", ""), []))
    if len(starts) <= FEWEST_STEPS:
        raise TraceError(f"the trace names {len(starts)} steps, wanted more than {FEWEST_STEPS}")
    if min(starts) == max(starts):
        raise TraceError(f"the trace's {len(starts)} steps all start at {starts[0]:g} us: its clock does not go on")
    return thread, sorted(starts)


def _recognised(events: Sequence[dict[str, Any]], ranges: Ranges, starts: Sequence[float]) -> list[tuple[Span, Phase]]:
    """The spans of a thread that stand for a phase, by their start."""
    found = [(_span(event), phase) for event in events if (phase := _phase(event, ranges))]
    scheduled = [_span(e) for e in events if e.get("cat") == ANNOTATION and e["name"].startswith(ranges.schedule)]
    for begin, end in pairwise(starts):
        inside = [span for span in scheduled if begin <= span.start_us < end]
        if inside:
            last = max(span.end_us for span in inside)
            found.append((Span(min(span.start_us for span in inside), last), Phase.SCHEDULE))
    return sorted(found, key=lambda item: item[0].start_us)


def _phase(event: dict[str, Any], ranges: Ranges) -> Phase | None:
    if event.get("cat") in RUNTIME:
        return Phase.WAIT if SYNCHRONISE.match(event["name"]) else None
    if event.get("cat") != ANNOTATION:
        return None
    return next((phase for prefix, phase in ranges.phases if event["name"].startswith(prefix)), None)


def _by_phase(spans: Sequence[tuple[Span, Phase]], begin: float, end: float) -> dict[Phase, float]:
    """Microseconds of one step: each moment belongs to the innermost span that covers it."""
    inside = [(span, phase) for span, phase in spans if span.start_us < end and span.end_us > begin]
    edges = sorted({begin, end, *(min(max(t, begin), end) for s, _ in inside for t in (s.start_us, s.end_us))})
    found = dict.fromkeys(Phase, 0.0)
    for left, right in pairwise(edges):
        covering = [(span, phase) for span, phase in inside if span.start_us <= left and span.end_us >= right]
        innermost = max(covering, key=lambda item: (item[0].start_us, -item[0].end_us), default=None)
        found[innermost[1] if innermost else Phase.OTHER] += right - left
    return found


def _time(each_us: Sequence[float], whole_us: float) -> PhaseTime:
    low, median, high = quantiles(each_us, n=4, method="inclusive")
    share = 100 * sum(each_us) / whole_us if whole_us else 0.0
    return PhaseTime(share, low / 1000, median / 1000, high / 1000)


def _idle(timed: Sequence[dict[str, Any]], begin: float, end: float) -> dict[str, float]:
    """By device: per cent of the time in which no kernel, copy or fill ran, on any of its streams."""
    found: dict[str, list[Span]] = {}
    for event in timed:
        if event.get("cat") in DEVICE_WORK:
            found.setdefault(f"device {_device(event)}", []).append(_span(event))
    return {device: 100 * (1 - _busy_us(spans, begin, end) / (end - begin)) for device, spans in sorted(found.items())}


def _device(event: dict[str, Any]) -> object:
    args = event.get("args")
    return args.get("device", event.get("pid")) if isinstance(args, dict) else event.get("pid")


def _busy_us(spans: Sequence[Span], begin: float, end: float) -> float:
    """The time that their union covers."""
    busy, reached = 0.0, begin
    for span in sorted(spans, key=lambda span: span.start_us):
        left, right = max(span.start_us, reached), min(span.end_us, end)
        if right > left:
            busy, reached = busy + right - left, right
    return busy


def _notes(phases: dict[str, PhaseTime], idle: dict[str, float], timed: Sequence[dict[str, Any]]) -> tuple[str, ...]:
    has_runtime = any(event.get("cat") in RUNTIME for event in timed)
    blind = "The profiler saw calls to a device and none of its work: no device idle share"
    host_only = "CPU: host only, no device idle share; submit is the computing itself"
    device = "" if idle else (blind if has_runtime else host_only)
    apart = "" if phases[Phase.SCHEDULE].share_pct else "No scheduling is named in this process: its time is in other"
    return tuple(note for note in (device, apart) if note)
