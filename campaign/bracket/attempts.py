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

from campaign.boot_records import plain
from campaign.boot_records import record as from_plain
from campaign.bracket import burn_in
from campaign.bracket.bench import Bench
from campaign.bracket.live import specify
from campaign.bracket.reruns import HOST_UNFIT
from campaign.bracket.trial import Keep, Records, run_trial
from campaign.engine import memory
from campaign.engine.fatal import CO_TENANT, COLD_CACHE, STALE_CACHE
from campaign.engine.memory import Watch
from campaign.errors import HostUnfitError
from campaign.evidence import BootRecord
from campaign.journal import RunFolder
from campaign.planning.plan import PlannedBoot

Boots = tuple[PlannedBoot, ...]  # of one datum: one, or the two of a pair
STALE_SUFFIX = ".stale-"
ATTEMPT = "attempt"  # an event of the journal
VOID = "void"


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


def run(bench: Bench, boot: PlannedBoot, machine: Watch, keep: Callable[[BootRecord], BootRecord]) -> BootRecord:
    """`run_datum` of one boot alone."""
    (record,) = run_datum(bench, (boot,), machine, lambda found: (keep(found[0]),))
    return record


def run_datum(bench: Bench, boots: Boots, machine: Watch, keep: Keep) -> Records:
    """One boot or one pair, made again at most engine.boot_retries times; every attempt that failed is kept.

    `keep` journals records and returns them as they count. It is called as soon as an outcome is known that ends the
    boots, and again with what the wait for the memory adds.
    """
    failed = earlier(bench, boots)
    while True:
        try:
            _prepare(bench, boots, failed, machine)
        except HostUnfitError as error:
            last = failed.pop()
            return keep(_with(tuple(_unfit(r, f"{r.reason}; {error}") for r in last), failed))
        burn_in.before(bench, boots, machine)
        records = run_trial(bench, boots, lambda found: _settled(bench, boots, found, failed, keep))
        records = _memory_back(records, machine)
        if not _again(bench, records, failed):
            return keep(_with(records, failed))
        failed.append(records)


def _settled(bench: Bench, boots: Boots, records: Records, failed: list[Records], keep: Keep) -> Records:
    """An outcome in the journal, the files of one that will be made again set aside."""
    if not _again(bench, records, failed):
        return keep(_with(records, failed))
    aside = tuple(_set_aside(bench, boot, record) for boot, record in zip(boots, records, strict=True))
    kind = f"{boots[0].prefix}{ATTEMPT}"
    bench.folder.append(*({"event": kind, "time_unix_s": time.time(), "boot": plain(record)} for record in aside))
    return aside


def earlier(bench: Bench, boots: Boots) -> list[Records]:
    """The attempts at these boots of a runner that was ended between two of them; none of before a finished boot."""
    ended, attempt = (f"{boots[0].prefix}{kind}" for kind in ("boot", ATTEMPT))
    found: list[BootRecord] = []
    for event in bench.folder.events():
        if event["event"] in (ended, attempt) and event["boot"]["index"] in [boot.index for boot in boots]:
            found = [*found, from_plain(event["boot"])] if event["event"] == attempt else []
    whole = len(found) // len(boots)  # a kill may have cut off the last record of a pair
    return [tuple(found[n * len(boots) : (n + 1) * len(boots)]) for n in range(whole)]


def besides_s(folder: RunFolder) -> float:
    """Seconds of what was no boot of the bracket: burn-ins, attempts that failed, base beside base."""
    # an outcome may be there twice: as soon as it was known, and once the memory was back
    took: set[tuple[int, str, int, float]] = set()
    for number, event in enumerate(folder.events()):
        if event["event"] != "boot" and "boot" in event:
            took.add((0, event["event"], event["boot"]["index"], event["boot"]["seconds"].get("total", 0.0)))
        elif event["event"] == burn_in.BURN_IN and isinstance(event.get("seconds"), float):
            took.add((number, event["event"], 0, event["seconds"]))
    return sum(seconds for *_, seconds in took)


def _again(bench: Bench, records: Records, failed: list[Records]) -> bool:
    return any(map(_may_pass, records)) and len(failed) < bench.plan.campaign.engine.boot_retries


def _memory_back(records: Records, machine: Watch) -> Records:
    """The records, once the memory is as free as before the first boot; void, or saying so, when it is not."""
    try:
        waited_s = machine.wait_back(sum(int(record.facts.get("memory_held_mib", "0")) for record in records))
    except HostUnfitError as error:
        return tuple(_kept_memory(record, error) for record in records)
    return tuple(replace(record, seconds=record.seconds | {"memory_back": waited_s}) for record in records)


def _kept_memory(record: BootRecord, error: HostUnfitError) -> BootRecord:
    facts = {name: text for name, text in record.facts.items() if name != "transient"}
    told = f"{record.reason}; {error}" if record.reason else str(error)
    if record.status in ("failed", "invalid"):
        return replace(record, reason=told, facts=facts)
    return _unfit(replace(record, facts=facts), told)


def _unfit(record: BootRecord, reason: str) -> BootRecord:
    """The record of a boot after which nothing can be started on this machine as it is."""
    return replace(record, status="void", reason=reason, facts=record.facts | {HOST_UNFIT: "true"})


def _may_pass(record: BootRecord) -> str:
    """Why the same boot may well succeed now; empty where it would fail alike."""
    why = record.facts.get("transient", "")
    warm = record.facts.get("compile_cache") != "cold"
    return "" if why == COLD_CACHE and warm else why


def _prepare(bench: Bench, boots: Boots, failed: list[Records], machine: Watch) -> None:
    """What the next attempt needs to be another one. Raises HostUnfitError when the machine does not come to rest."""
    if not failed:
        return
    blamed = _blamed(failed[-1])
    boot = next(boot for boot in boots if boot.index == blamed.index)
    why = blamed.facts["transient"]
    if why == CO_TENANT:
        machine.wait_quiet()
    if why == STALE_CACHE:
        _retire(Path(specify(bench, boot).env["VLLM_CACHE_ROOT"]).parent, f"{bench.plan.run_id}-{boot.name}")
    bench.say(f"boot {boot.name} attempt {len(failed)} failed before it was ready, once more ({why}): ")
    bench.say(f"              {blamed.reason}")


def _blamed(records: Records) -> BootRecord:
    """Of an attempt that may pass, the boot that failed."""
    return next(record for record in records if "transient" in record.facts)


def _retire(cache: Path, by: str) -> None:
    """The compile cache out of the way, under a name that is free; it may be gone already in a run that is resumed."""
    names = itertools.chain([""], (f"-{n}" for n in itertools.count(2)))
    aside = (cache.with_name(f"{cache.name}{STALE_SUFFIX}{by}{more}") for more in names)
    if cache.exists():
        cache.rename(next(path for path in aside if not path.exists()))


def keep_aside(bench: Bench, boot: PlannedBoot, voided: int) -> None:
    """The files of a boot that was voided so many times, in `void-N` of its folder, before it is run again."""
    folder = bench.folder.boot(boot.name)
    if voided and folder.exists() and not (folder / f"{VOID}-{voided}").exists():
        _into(folder, f"{VOID}-{voided}", VOID)


def _set_aside(bench: Bench, boot: PlannedBoot, record: BootRecord) -> BootRecord:
    """The files of a failed attempt in `attempt-N` of the boot's folder, and its record with the new path."""
    folder = bench.folder.boot(boot.name)
    kept = next(path for n in itertools.count(1) if not (path := folder / f"{ATTEMPT}-{n}").exists())
    _into(folder, kept.name, ATTEMPT, VOID)
    return replace(record, reason=record.reason.replace(str(folder), str(kept)))


def _into(folder: Path, name: str, *staying: str) -> None:
    """All that a folder holds into a new folder in it, but for what was so set aside before."""
    aside = folder.with_name(f".{name}-{folder.name}")
    folder.rename(aside)
    folder.mkdir()
    for earlier in sorted(path for kind in staying for path in aside.glob(f"{kind}-*")):
        earlier.rename(folder / earlier.name)
    aside.rename(folder / name)


def _with(records: Records, failed: list[Records]) -> Records:
    """The records, with the attempts before them in their facts; unchanged where they are there already."""
    if not failed or all("attempts" in record.facts for record in records):
        return records
    blamed = [_blamed(attempt) for attempt in failed]
    told = {f"attempt_{n}": f"{r.facts['transient']}: {r.reason}" for n, r in enumerate(blamed, 1)}
    causes = ", ".join(dict.fromkeys(r.facts["transient"].replace(" ", "-") for r in blamed))
    facts = told | {"attempts": str(len(failed) + 1), "retried": causes}
    head = f"attempt {len(failed) + 1}: "
    return tuple(
        replace(record, reason=f"{head}{record.reason}" if record.reason else "", facts=record.facts | facts)
        for record in records
    )
