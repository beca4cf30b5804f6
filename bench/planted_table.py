"""The table of bench/planted.md: what was planted, what the overlay recorded, what the verdict saw."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

EQUAL_MAY_DIFFER = 3
TAKES = 0.557  # points of pos1 by one per cent of garbled drafts
HEAD = """# Planted effects on the real engine

Reference engine: vLLM 0.29.0, CPU build, float32, eager, toy models, two shared cores. Nothing here is a figure for a
GPU. Written by `python -m bench.planted`. *Recorded* is what the planted overlay itself wrote down: the time that it
added to a step over the window's own time for one (the engine's decode seconds, wall clock), or the share of first
draft tokens that it garbled, by 0.557 points for one per cent. That rate was seen once, with 3.38 % garbled (-1.88 pp,
5,736 of 8,280 against 5,686 of 8,437 drafts, run planted_shift-20261201-010649-a099): a garbled draft loses its token,
and the drafts that then fill the gap are accepted more often than others. *Covered*: the recorded effect lies in the
interval.

| job | planted | recorded | estimated | interval | verdict | covered | boots | voids | run |
|---|---|---|---|---|---|---|---|---|---|
"""
Run = tuple[Path, Mapping[str, Any] | None]


@dataclass(frozen=True)
class Row:
    """A job and its runs, oldest first; a run without a result has not ended."""

    name: str
    planted: str
    runs: tuple[Run, ...]


def render(rows: Sequence[Row]) -> str:
    """The page: every run that ended is a line, void ones too."""
    lines = [line for row in rows for line in _lines(row)]
    return HEAD + "\n".join(lines) + "\n\n" + _summary(rows) + "\n"


def _lines(row: Row) -> Iterator[str]:
    ended = [(run, result) for run, result in row.runs if result is not None]
    if not ended:
        yield f"| {row.name} | {row.planted} | not run yet |  |  |  |  |  |  |  |"
    for run, result in ended:
        yield _line(row, run, result)


def _line(row: Row, run: Path, result: Mapping[str, Any]) -> str:
    numbers, unit = _judged(result)
    boots = _boots(run)
    true = _recorded(row.name, run, boots)
    estimate, low, high = (numbers.get(f"{key}_{unit}") for key in ("effect", "lo", "hi"))
    bar = f"[{low:+.2f}, {high:+.2f}] {unit}" if low is not None and high is not None else "none"
    covered = "" if true is None or low is None or high is None else ("yes" if low <= true <= high else "**no**")
    voids = sum(boot["status"] == "void" for boot in boots)
    cells = (
        row.name, row.planted, "" if true is None else f"{true:+.2f} {unit}",
        "" if estimate is None or low is None else f"{estimate:+.2f} {unit}", bar, _word(result), covered,
        str(sum(boot["status"] == "ok" for boot in boots)), str(voids), run.name,
    )  # fmt: skip
    return f"| {' | '.join(cells)} |"


def _judged(result: Mapping[str, Any]) -> tuple[Mapping[str, float], str]:
    """The numbers of the claim that the job is about, and their unit."""
    for gate in result["gates"]:
        if gate["gate"] in ("step_rate", "no_difference"):
            names = {name.rpartition(".")[2]: value for name, value in gate["numbers"].items()}
            return names, "pct"
    numbers = next((gate["numbers"] for gate in result["gates"] if gate["gate"] == "acceptance"), {})
    return numbers, "pp"


def _word(result: Mapping[str, Any]) -> str:
    told = {gate["gate"]: gate["verdict"] for gate in result["gates"]}
    claims = [f"{gate} {word}" for gate, word in told.items() if gate in ("step_rate", "no_difference", "acceptance")]
    return ", ".join(claims) or f"{result['verdict']}"


def _boots(run: Path) -> list[dict[str, Any]]:
    """Every boot that the journal holds, of two records of one the later; those of an A/A start left out."""
    events = [json.loads(line) for line in (run / "journal.jsonl").read_text(encoding="utf-8").splitlines() if line]
    found = [event["boot"] for event in events if event["event"] == "boot"]
    return list({(boot["index"], boot["status"] == "void"): boot for boot in found}.values())


def _recorded(job: str, run: Path, boots: Sequence[Mapping[str, Any]]) -> float | None:
    if job.startswith("equal"):
        return 0.0
    measure = _slower_pct if job.startswith("slower") else _shift_pp
    found = [measure(run, boot) for boot in boots if boot["letter"] == "B" and boot["status"] == "ok"]
    return fmean(found) if found and None not in found else None


def _slower_pct(run: Path, boot: Mapping[str, Any]) -> float | None:
    """Of step/s, negative: what the overlay added to a step, over the window's own time for one."""
    found = _published(run, boot, "slow_step")
    if found is None:
        return None
    return -100 * 1e-6 * found["added_us"] / found["delayed_steps"] * float(boot["metrics"]["step_per_s"])


def _shift_pp(run: Path, boot: Mapping[str, Any]) -> float | None:
    """Points of pos1, negative: the share of first draft tokens that were garbled, by what one takes away."""
    found = _published(run, boot, "acceptance_shift")
    if found is None:
        return None
    return -100 * TAKES * found["garbled"] / found["drafts"]


def _published(run: Path, boot: Mapping[str, Any], overlay: str) -> Mapping[str, float] | None:
    """What the overlay had published where it did its work, when the boot was asked for the last time."""
    folder = run / "boots" / f"{boot['index']:02d}-{boot['letter']}" / "reports"
    reports = [json.loads(file.read_text(encoding="utf-8")) for file in sorted(folder.glob("report-*.json"))]
    told = [found for report in reports if (found := report.get("overlays", {}).get(overlay))]
    worked = [found for found in told if found.get("delayed_steps") or found.get("drafts")]
    return dict(worked[0]) if worked else None


def _summary(rows: Sequence[Row]) -> str:
    words = [_word(result) for row in rows if row.name.startswith("equal") for _, result in row.runs if result]
    judged = [word for word in words if "no_difference" in word]
    differing = sum("no_difference FAIL" in word for word in judged)
    return (
        f"Equal arms: {differing} of {len(judged)} duets differ (nominal 5 %; {EQUAL_MAY_DIFFER} of 10 may, 4 ask for "
        "a new calibration of the pipeline)."
    )
