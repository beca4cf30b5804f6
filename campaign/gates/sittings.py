"""Whether the boots of a bracket ran in one sitting: no block is split over a long pause (statistics.md section 1.2).

What drifts is fitted as a straight line over the boots' places. A machine that stood for hours between two boots, or
was booted anew, need not have kept to that line: between two blocks another sitting gets a level and a line of its own,
elsewhere such a place is told beside what was fitted over it.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
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


def numbered(boots: Sequence[BootRecord], block_ends: Sequence[int]) -> tuple[BootRecord, ...]:
    """The boots, each with its sitting where that began after a whole block: it has a level and a drift of its own.

    A sitting that began inside of a block is not split off, and no pair of a duet is: it has its own level anyway.
    """
    sitting, of = 0, dict[int, int]()
    for ran, boot, why in _in_time(boots):
        ended = sum(earlier.status == "ok" for earlier in ran) in block_ends
        sitting += bool(why) and ended and not boot.pair
        of[id(boot)] = sitting
    return tuple(replace(boot, session=of[id(boot)]) if of.get(id(boot)) else boot for boot in boots)


def told(evidence: Evidence) -> tuple[str, ...]:
    """A sentence for each place between boots at which another sitting began; none where no boot tells its time."""
    found = list(evidence.sittings)
    for ran, boot, why in _in_time(evidence.boots):
        if why:
            where = f"between boots {boot_name(ran[-1])} and {boot_name(boot)}"
            found.append(f"another sitting {where}: {why}; {_fitted(ran[-1], boot)}")
    return tuple(found)


def _fitted(before: BootRecord, after: BootRecord) -> str:
    if after.pair:
        return "each pair has its own level"
    if before.session != after.session:
        return "it has a level and a drift of its own"
    return "the drift is fitted as if there were none"


def _in_time(boots: Sequence[BootRecord]) -> Iterator[tuple[list[BootRecord], BootRecord, str]]:
    """(what ran before, the boot, why it began another sitting or nothing), as they began, if they tell it."""
    timed = [(began, boot) for boot in boots if (began := _began_s(boot.facts)) is not None]
    ran, ends_s = list[BootRecord](), 0.0
    for began_s, boot in sorted(timed, key=lambda pair: pair[0]):
        yield list(ran), boot, pause(ran, began_s - ends_s, boot.facts.get(MACHINE_BOOT, ""))
        ran.append(boot)
        ends_s = max(ends_s, began_s + _took_s(boot))


def _began_s(facts: Mapping[str, str]) -> float | None:
    try:
        return datetime.fromisoformat(facts.get(BEGAN, "")).timestamp()
    except ValueError:
        return None


def _took_s(boot: BootRecord) -> float:
    """From its start to the start of what follows; the two boots of a pair share the time that they were up at once."""
    return boot.seconds.get("total", 0.0) * (2 if boot.pair else 1) + boot.seconds.get("memory_back", 0.0)
