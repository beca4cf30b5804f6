"""What a runner writes down of its living engine, so that `resume` finds its processes even if all are killed at once.

Descent, session and marker find a process as long as somebody lives who leads to it. An orphan in a session of its own
that wiped its environment leads nowhere once its parent and the runner are dead: only its name in /proc is left.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from campaign.engine import processes
from campaign.engine.processes import PROC, Proc
from campaign.engine.spec import TMP_PREFIX
from campaign.journal import write_json

FILE = "processes.json"  # of a boot's folder, while its engine lives
UNKNOWN = ""


@dataclass(frozen=True)
class Remembered:
    """The processes of one boot as they were last seen, and what they leave besides."""

    members: tuple[Proc, ...]
    shared_memory: frozenset[str]


def keep(file: Path, members: Iterable[Proc], shared_memory: Iterable[str]) -> None:
    """Write it down; start_ticks are counted from the machine's start, so that is written too."""
    found = [[proc.pid, proc.start_ticks] for proc in members]
    write_json(file, {"machine": _machine(), "shared_memory": sorted(shared_memory), "processes": found})


def recall(boots: Path) -> tuple[Remembered, ...]:
    """What dead runners left in the folders of their boots, as far as it still lives; nothing of before a restart."""
    found = (_read(file) for file in sorted(boots.glob(f"*/{FILE}")))
    return tuple(Remembered(_living(d["processes"]), frozenset(d["shared_memory"])) for d in found if d)


def tmp_dirs(boots: Path) -> set[Path]:
    """The TMPDIRs that are still there of those that were asked for before each boot was started."""
    asked = (_json(file).get("TMPDIR", "") for file in boots.glob("*/env.json"))
    return {folder for text in asked if (folder := Path(text)).name.startswith(TMP_PREFIX) and folder.is_dir()}


def forget(boot: Path) -> None:
    """Once all of a boot's processes are proven dead."""
    (boot / FILE).unlink(missing_ok=True)


def _read(file: Path) -> dict[str, Any] | None:
    told = _json(file)
    return told if told.get("machine") == _machine() != UNKNOWN else None


def _json(file: Path) -> dict[str, Any]:
    """What a file of ours holds; nothing for one that a kill has torn."""
    try:
        told: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return told


def _living(found: list[list[int]]) -> tuple[Proc, ...]:
    """A pid is given out again; with its start it names one process for good."""
    now = ((processes.read(pid), ticks) for pid, ticks in found)
    return tuple(proc for proc, ticks in now if proc is not None and proc.start_ticks == ticks)


def _machine() -> str:
    try:
        return (PROC / "sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return UNKNOWN
