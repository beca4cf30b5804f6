"""The boots of one datum: a start that fails for a passing reason is made again, and told; a measurement never is.

Only what readiness has classed as passing is tried again, and only before the engine was ready: a cold compile cache
that outlasted the engine's own limit, a neighbour who let go of memory, a compile cache made for another engine.
"""

import itertools
from dataclasses import replace
from pathlib import Path

from campaign.engine import memory
from campaign.engine.fatal import CO_TENANT, COLD_CACHE, STALE_CACHE
from campaign.engine.memory import Watch
from campaign.errors import HostUnfitError
from campaign.evidence import BootRecord
from campaign.plan import PlannedBoot
from campaign.trial import Bench, run_boot, specify

STALE_SUFFIX = ".stale-"


def watch(bench: Bench, boot: PlannedBoot) -> Watch:
    """The machine's memory before the first boot of a run, which is waited for after each one."""
    visible = specify(bench, boot).env.get("CUDA_VISIBLE_DEVICES")
    return memory.watch(visible, bench.plan.campaign.host.memory_timeout_s)


def run(bench: Bench, boot: PlannedBoot, machine: Watch) -> BootRecord:
    """One boot, made again at most engine.boot_retries times; every attempt that failed is kept in its folder."""
    failed: list[BootRecord] = []
    while True:
        record = _memory_back(run_boot(bench, boot), machine)
        why = _may_pass(record)
        if not why or len(failed) >= bench.plan.campaign.engine.boot_retries:
            return _with(record, failed)
        try:
            _prepare(bench, boot, why, machine)
        except HostUnfitError as error:
            return _with(replace(record, status="void", reason=f"{record.reason}; {error}"), failed)
        failed.append(_set_aside(bench, boot, record))
        bench.say(f"boot {boot.name} attempt {len(failed)} failed before it was ready, once more ({why}): ")
        bench.say(f"              {failed[-1].reason}")


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


def _prepare(bench: Bench, boot: PlannedBoot, why: str, machine: Watch) -> None:
    """What the next attempt needs to be another one. Raises HostUnfitError when the machine does not come to rest."""
    if why == CO_TENANT:
        machine.wait_quiet()
    if why == STALE_CACHE:
        root = Path(specify(bench, boot).env["VLLM_CACHE_ROOT"]).parent
        root.rename(root.with_name(f"{root.name}{STALE_SUFFIX}{bench.plan.run_id}-{boot.name}"))


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
    """The record, with the attempts before it in its facts."""
    if not failed:
        return record
    told = {f"attempt_{n}": f"{r.facts['transient']}: {r.reason}" for n, r in enumerate(failed, 1)}
    causes = ", ".join(dict.fromkeys(r.facts["transient"].replace(" ", "-") for r in failed))
    facts = record.facts | told | {"attempts": str(len(failed) + 1), "retried": causes}
    reason = f"attempt {len(failed) + 1}: {record.reason}" if record.reason else ""
    return replace(record, reason=reason, facts=facts)
