"""Whether the machine spoiled a boot, decided by the environment alone: nothing here reads a metric (house.md).

A tainted boot is void and keeps its readings, so that the result with it can be told beside the one without. A boot
that failed or was not what was asked stays what it is: a busy machine excuses neither.
"""

from collections.abc import Iterable
from dataclasses import replace

from campaign.evidence import BootRecord
from campaign.host.host_watch import Limits, Seen, clocks

SERIES = "environment.jsonl"  # of a boot's folder: one row a second
WINDOW = "window_"  # before the figures of the measured window
OTHERS = "others"  # the fact that names them
WORTH_TELLING = 0.5  # of what may be
Records = tuple[BootRecord, ...]
Window = tuple[int, int]  # time.monotonic_ns


def limits(foreign_cpu_cores: float, earlier: Iterable[BootRecord]) -> Limits:
    """What may be, given the boots that counted so far."""
    found: dict[str, tuple[float, ...]] = {}
    for record in earlier:
        for index, clock in clocks(record.environment, WINDOW).items() if record.status == "ok" else ():
            found[index] = (*found.get(index, ()), clock)
    return Limits(foreign_cpu_cores, found)


def judged(records: Records, windows: Iterable[Window | None], seen: Seen, may: Limits) -> Records:
    """The records of one datum with what was seen meanwhile; all of those that are ok are void where it was too much.

    `windows` are their measured windows; None where there was none.
    """
    parts = [None if window is None else seen.part(*window) for window in windows]
    why = (*seen.taints(may), *(text for part in parts if part is not None for text in part.taints(may)))
    reason = "; ".join(dict.fromkeys(why))
    return tuple(_told(record, seen, part, reason, may) for record, part in zip(records, parts, strict=True))


def _told(record: BootRecord, seen: Seen, part: Seen | None, reason: str, may: Limits) -> BootRecord:
    window = {} if part is None else {f"{WINDOW}{name}": value for name, value in part.summary().items()}
    facts = dict(record.facts)
    if seen.foreign_cores > WORTH_TELLING * may.foreign_cpu_cores:
        facts[OTHERS] = f"{seen.foreign_cores:.2f} cores: {', '.join(seen.top())}"
    found = replace(record, environment=seen.summary() | window, facts=facts)
    return replace(found, status="void", reason=reason) if reason and record.status == "ok" else found
