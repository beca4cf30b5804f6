"""The boots of one datum: a start that fails for a passing reason is made again, and told; a measurement never is.

Only what readiness has classed as passing is tried again, and only before the engine was ready: a cold compile cache
that outlasted the engine's own limit, a neighbour who let go of memory, a compile cache made for another engine.

Every outcome is in the journal before the machine's memory is waited for: as a boot, or, where it will be made again,
as an attempt, which a resumed run counts and goes on from.
"""

import itertools
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from campaign.engine import memory
from campaign.engine.fatal import CO_TENANT, COLD_CACHE, STALE_CACHE
from campaign.engine.memory import Watch
from campaign.errors import HostUnfitError
from campaign.evidence import BootRecord
from campaign.journal import plain
from campaign.journal import record as from_plain
from campaign.plan import PlannedBoot
from campaign.trial import Bench, run_boot, specify

Keep = Callable[[BootRecord], BootRecord]
STALE_SUFFIX = ".stale-"
ATTEMPT = "attempt"  # an event of the journal


def watch(bench: Bench, boot: PlannedBoot) -> Watch:
    """The machine's memory before the first boot of a runner, which is waited for after each one.

    That of a run's earlier boot may still be on its way back when the run is resumed: it is not measured against.
    Raises HostUnfitError when it does not come to rest.
    """
    visible = specify(bench, boot).env.get("CUDA_VISIBLE_DEVICES")
    timeout_s = bench.plan.campaign.host.memory_timeout_s
    if any(bench.folder.boot(earlier.name).exists() for earlier in bench.plan.boots):
        memory.watch(visible, timeout_s).wait_quiet()
    return memory.watch(visible, timeout_s)


def run(bench: Bench, boot: PlannedBoot, machine: Watch, keep: Keep) -> BootRecord:
    """One boot, made again at most engine.boot_retries times; every attempt that failed is kept in its folder.

    `keep` journals a record and returns it as it counts. It is called as soon as an outcome is known that ends the
    boot, and again with what the wait for the memory adds.
    """
    failed = _earlier(bench, boot)
    while True:
        try:
            _prepare(bench, boot, failed, machine)
        except HostUnfitError as error:
            last = failed.pop()
            return keep(_with(replace(last, status="void", reason=f"{last.reason}; {error}"), failed))
        record = run_boot(bench, boot, lambda found: _settled(bench, boot, found, failed, keep))
        record = _memory_back(record, machine)
        if not _again(bench, record, failed):
            return keep(_with(record, failed))
        failed.append(record)


def _settled(bench: Bench, boot: PlannedBoot, record: BootRecord, failed: list[BootRecord], keep: Keep) -> BootRecord:
    """An outcome in the journal, the files of one that will be made again set aside."""
    if not _again(bench, record, failed):
        return keep(_with(record, failed))
    aside = _set_aside(bench, boot, record)
    bench.folder.append({"event": ATTEMPT, "time_unix_s": time.time(), "boot": plain(aside)})
    return aside


def _earlier(bench: Bench, boot: PlannedBoot) -> list[BootRecord]:
    """The attempts at this boot of a runner that was ended between two of them; none of before a finished boot."""
    found: list[BootRecord] = []
    for event in bench.folder.events():
        if event["event"] in ("boot", ATTEMPT) and event["boot"]["index"] == boot.index:
            found = [*found, from_plain(event["boot"])] if event["event"] == ATTEMPT else []
    return found


def _again(bench: Bench, record: BootRecord, failed: list[BootRecord]) -> bool:
    return bool(_may_pass(record)) and len(failed) < bench.plan.campaign.engine.boot_retries


def _memory_back(record: BootRecord, machine: Watch) -> BootRecord:
    """The record, once the memory is as free as before the first boot; void, or saying so, when it is not."""
    try:
        waited_s = machine.wait_back(int(record.facts.get("memory_held_mib", "0")))
    except HostUnfitError as error:
        facts = {name: text for name, text in record.facts.items() if name != "transient"}
        if record.status in ("failed", "invalid"):
            return replace(record, reason=f"{record.reason}; {error}", facts=facts)
        told = f"{record.reason}; {error}" if record.reason else str(error)
        return replace(record, status="void", reason=told, facts=facts)
    return replace(record, seconds=record.seconds | {"memory_back": waited_s})


def _may_pass(record: BootRecord) -> str:
    """Why the same boot may well succeed now; empty where it would fail alike."""
    why = record.facts.get("transient", "")
    warm = record.facts.get("compile_cache") != "cold"
    return "" if why == COLD_CACHE and warm else why


def _prepare(bench: Bench, boot: PlannedBoot, failed: list[BootRecord], machine: Watch) -> None:
    """What the next attempt needs to be another one. Raises HostUnfitError when the machine does not come to rest."""
    if not failed:
        return
    why = failed[-1].facts["transient"]
    if why == CO_TENANT:
        machine.wait_quiet()
    if why == STALE_CACHE:
        _retire(Path(specify(bench, boot).env["VLLM_CACHE_ROOT"]).parent, f"{bench.plan.run_id}-{boot.name}")
    bench.say(f"boot {boot.name} attempt {len(failed)} failed before it was ready, once more ({why}): ")
    bench.say(f"              {failed[-1].reason}")


def _retire(cache: Path, by: str) -> None:
    """The compile cache out of the way, under a name that is free; it may be gone already in a run that is resumed."""
    names = itertools.chain([""], (f"-{n}" for n in itertools.count(2)))
    aside = (cache.with_name(f"{cache.name}{STALE_SUFFIX}{by}{more}") for more in names)
    if cache.exists():
        cache.rename(next(path for path in aside if not path.exists()))


def _set_aside(bench: Bench, boot: PlannedBoot, record: BootRecord) -> BootRecord:
    """The files of a failed attempt in `attempt-N` of the boot's folder, and its record with the new path."""
    folder = bench.folder.boot(boot.name)
    kept = next(path for n in itertools.count(1) if not (path := folder / f"attempt-{n}").exists())
    aside = folder.with_name(f".{kept.name}-{folder.name}")
    folder.rename(aside)
    for earlier in sorted(aside.glob("attempt-*")):
        folder.mkdir(exist_ok=True)
        earlier.rename(folder / earlier.name)
    folder.mkdir(exist_ok=True)
    aside.rename(kept)
    return replace(record, reason=record.reason.replace(str(folder), str(kept)))


def _with(record: BootRecord, failed: list[BootRecord]) -> BootRecord:
    """The record, with the attempts before it in its facts; unchanged where they are there already."""
    if not failed or "attempts" in record.facts:
        return record
    told = {f"attempt_{n}": f"{r.facts['transient']}: {r.reason}" for n, r in enumerate(failed, 1)}
    causes = ", ".join(dict.fromkeys(r.facts["transient"].replace(" ", "-") for r in failed))
    facts = record.facts | told | {"attempts": str(len(failed) + 1), "retried": causes}
    reason = f"attempt {len(failed) + 1}: {record.reason}" if record.reason else ""
    return replace(record, reason=reason, facts=facts)
