"""What the boots under the profiler showed, as it lies in a run folder, and as it is told. Never a datum."""

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from campaign.errors import ConfigError
from campaign.journal import read_json, write_json
from campaign.told.view import Table
from campaign.trace import DEVICE_CLOCK, HOST_CLOCK, Profile

FILE = "mechanism.json"
HEAD = ("arm", "what", "share of host time", "a step, ms: median [quartiles]", "clock")
NOTE = (
    "One boot an arm under the engine's profiler, which slows it; not measured, and no part of any verdict. It shows "
    "where a step's time goes; by how much the arms differ it cannot show."
)


def shown(profile: Profile, trace: str, wall_s: float) -> dict[str, Any]:
    """An arm's profile as JSON data. `wall_s` is what the profiled requests took, by the client's clock."""
    clocks = {"host": HOST_CLOCK, "device": DEVICE_CLOCK, "wall_s": "wall, time.monotonic of the client"}
    return {"status": "ok", **asdict(profile), "trace": trace, "wall_s": wall_s, "clocks": clocks}


def failed(reason: str) -> dict[str, Any]:
    """An arm of which nothing is shown, and why."""
    return {"status": "failed", "reason": reason}


def keep(run_dir: Path, arms: Mapping[str, Mapping[str, Any]], engine: str) -> None:
    """mechanism.json."""
    write_json(run_dir / FILE, {"schema": 1, "engine": engine, "is_a_datum": False, "arms": arms})


def read(run_dir: Path) -> dict[str, Any] | None:
    """What was kept; None where no boot was profiled, or the file is none of ours (a report is made without it)."""
    if not (run_dir / FILE).is_file():
        return None
    try:
        found = read_json(run_dir / FILE)
        table(found)
    except (ConfigError, KeyError, TypeError, AttributeError, ValueError):
        return None
    return dict(found)


def table(found: Mapping[str, Any]) -> Table:
    """The section of a report."""
    rows = [row for arm, one in found["arms"].items() for row in _rows(arm, one)]
    notes = dict.fromkeys(note for one in found["arms"].values() for note in one.get("notes", ()))
    return Table("Mechanism: where a step's time goes", HEAD, tuple(rows), " ".join([NOTE, *(f"{n}." for n in notes)]))


def lines(found: Mapping[str, Any]) -> list[str]:
    """The same for a terminal: one line an arm."""
    return [f"mechanism  {arm}: {_words(one)}" for arm, one in found["arms"].items()]


def _rows(arm: str, one: Mapping[str, Any]) -> list[tuple[str, ...]]:
    if one["status"] != "ok":
        return [(arm, f"nothing is shown: {one['reason']}", "-", "-", "-")]
    clock = one["clocks"]["host"]
    head = (arm, f"step, {one['steps']} of them", "100 %", _quartiles(one["step"]), clock)
    parts = [
        (arm, name, f"{time['share_pct']:.1f} %", _quartiles(time), clock)
        for name, time in one["phases"].items()
        if time["share_pct"]
    ]
    idle = [
        (arm, f"{device} idle", f"{pct:.1f} % of the steps", "-", one["clocks"]["device"])
        for device, pct in one["idle_pct"].items()
    ]
    return [head, *parts, *idle]


def _quartiles(time: Mapping[str, float]) -> str:
    return f"{time['median_ms']:.2f} [{time['low_ms']:.2f}, {time['high_ms']:.2f}]"


def _words(one: Mapping[str, Any]) -> str:
    if one["status"] != "ok":
        return f"nothing is shown: {one['reason']}"
    parts = [f"{name} {time['share_pct']:.0f} %" for name, time in one["phases"].items() if time["share_pct"]]
    idle = [f"{device} idle {pct:.0f} %" for device, pct in one["idle_pct"].items()] or list(one["notes"][:1])
    return f"of {one['steps']} steps' host time {', '.join(parts)}; {'; '.join(idle)} (under the profiler, no datum)"
