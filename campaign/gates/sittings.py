"""Whether the boots of a bracket ran in one sitting: no block is split over a long pause (statistics.md section 1.2).

What drifts is fitted as one straight line over the boots' places. A machine that stood for hours between two boots, or
was booted anew, need not have kept to that line, so that such a place is told beside what was fitted over it.
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from statistics import fmean

from campaign.evidence import BootRecord, Evidence
from campaign.gates.footing import boot_name
from campaign.names import BEGAN, MACHINE_BOOT

LONG_S = 1800.0
LONG_BOOTS = 2.0  # where boots take longer than that: a pause shorter than this many is none


def stamp(unix_s: float) -> str:
    """A moment as a fact of a boot: UTC, in seconds."""
    return datetime.fromtimestamp(unix_s, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def pause(boots: Sequence[BootRecord], idle_s: float, machine_boot: str) -> str:
    """Why what follows these boots after so many idle seconds is another sitting, in words; empty where it is none.

    `machine_boot` names the machine's present start; what is not known of one is not compared.
    """
    minutes = f"{idle_s / 60:.0f} minutes"
    before = boots[-1].facts.get(MACHINE_BOOT, "") if boots else ""
    if before and machine_boot and before != machine_boot:
        return f"the machine was booted anew, {minutes} later"
    usual_s = fmean(map(_took_s, boots)) if boots else 0.0
    return f"a pause of {minutes}" if boots and idle_s > max(LONG_S, LONG_BOOTS * usual_s) else ""


def told(evidence: Evidence) -> tuple[str, ...]:
    """A sentence for each place between boots at which another sitting began; none where no boot tells its time."""
    found = list(evidence.sittings)
    timed = [(began, boot) for boot in evidence.boots if (began := _began_s(boot.facts)) is not None]
    ran = [boot for _, boot in sorted(timed, key=lambda pair: pair[0])]
    ends_s = 0.0
    for place, (began_s, boot) in enumerate(sorted(timed, key=lambda pair: pair[0])):
        why = pause(ran[:place], began_s - ends_s, boot.facts.get(MACHINE_BOOT, ""))
        if why:
            where = f"between boots {boot_name(ran[place - 1])} and {boot_name(boot)}"
            found.append(f"another sitting {where}: {why}; the drift is fitted as if there were none")
        ends_s = max(ends_s, began_s + _took_s(boot))
    return tuple(found)


def _began_s(facts: Mapping[str, str]) -> float | None:
    try:
        return datetime.fromisoformat(facts.get(BEGAN, "")).timestamp()
    except ValueError:
        return None


def _took_s(boot: BootRecord) -> float:
    """From its start to the start of what follows; the two boots of a pair share the time that they were up at once."""
    return boot.seconds.get("total", 0.0) * (2 if boot.pair else 1) + boot.seconds.get("memory_back", 0.0)
