"""One run of the planted bench as one row of bench/planted.jsonl: what was planted, recorded and estimated."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from bench.jobs import Job, result

TAKES = 0.557  # points of pos1 by one per cent of garbled drafts
JUDGED = ("step_rate", "no_difference", "acceptance")


@dataclass(frozen=True)
class Row:
    """A run that ended. Effects in `unit`: per cent of step/s, or percentage points of pos1."""

    job: str
    planted: str
    run: str
    exit_code: int
    verdict: str
    unit: str
    recorded: float | None
    effect: float | None
    lo: float | None
    hi: float | None
    boots_ok: int
    boots_void: int

    @property
    def covered(self) -> bool | None:
        """Whether the interval holds what the overlay recorded; None where one of them is missing."""
        if self.recorded is None or self.lo is None or self.hi is None:
            return None
        return self.lo <= self.recorded <= self.hi


def row_of(job: Job, run: Path) -> Row | None:
    """The run read from its folder, None while it has no result."""
    found = result(run)
    if found is None:
        return None
    numbers, unit = _judged(found)
    boots = _boots(run)
    effect, lo, hi = (numbers.get(f"{key}_{unit}") for key in ("effect", "lo", "hi"))
    return Row(
        job.name, job.planted, run.name, found["exit_code"], _word(found), unit, _recorded(job.name, run, boots),
        effect, lo, hi,
        sum(boot["status"] == "ok" for boot in boots), sum(boot["status"] == "void" for boot in boots),
    )  # fmt: skip


def _judged(found: Mapping[str, Any]) -> tuple[Mapping[str, float], str]:
    """The numbers of the claim that the job is about, and their unit."""
    for gate in found["gates"]:
        if gate["gate"] in ("step_rate", "no_difference"):
            names = {name.rpartition(".")[2]: value for name, value in gate["numbers"].items()}
            return names, "pct"
    numbers = next((gate["numbers"] for gate in found["gates"] if gate["gate"] == "acceptance"), {})
    return numbers, "pp"


def _word(found: Mapping[str, Any]) -> str:
    claims = [f"{gate['gate']} {gate['verdict']}" for gate in found["gates"] if gate["gate"] in JUDGED]
    return ", ".join(claims) or f"{found['verdict']}"


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
