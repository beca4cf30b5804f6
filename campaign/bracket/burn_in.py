"""A boot of an arm before a datum, not measured: it fills a cold compile cache (house.md; statistics.md 1.2).

An engine whose caches are cold compiles while it serves, which would be read as a slow candidate or a slow first boot.
A cache is looked at before every datum: what was warm may be gone, put aside or another one when a run is resumed.
An eager engine of a CPU build compiles nothing, however empty its caches are: it is measured at once.
"""

import time
from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

from campaign.bracket.bench import Bench
from campaign.bracket.draft import ENDINGS
from campaign.bracket.live import asked_of, client, specify, start
from campaign.brackets import BurnIn
from campaign.engine import local
from campaign.engine.memory import Watch
from campaign.names import DECODE_SET
from campaign.planning.plan import PlannedBoot
from campaign.traffic.warm_up import warm_up

BURN_IN = "burn_in"  # an event of the journal
PREFIX = "burn-in-"  # of its folder
WARM = "warm"


def before_the_first(bench: Bench, machine: Watch) -> None:
    """A burn-in of each arm that wants one. Raises HostUnfitError as a boot's wait does."""
    before(bench, bench.plan.one_of_each, machine)


def before(bench: Bench, boots: Iterable[PlannedBoot], machine: Watch) -> None:
    """A burn-in of each of these boots' arms that wants one now. Raises HostUnfitError as a boot's wait does.

    One that fails says nothing about its arm: the boots that count will.
    """
    for boot in {boot.arm: boot for boot in boots}.values():
        made = [e for e in bench.folder.events() if e["event"] == BURN_IN and e["arm"] == boot.arm]
        if why := _wanted(bench, boot, made):
            bench.say(f"burn-in       arm {boot.arm}, not measured ({why})")
            of = f"{boot.named}-" if boot.named else ""  # of several arms, more than one is a B
            _make(bench, replace(boot, index=len(made) + 1, pair=0, prefix=f"{PREFIX}{of}"), machine)


def _wanted(bench: Bench, boot: PlannedBoot, made: list[dict[str, Any]]) -> str:
    """Why an arm gets a burn-in, in words; empty where it gets none. Of those `made` a failed one counts as none."""
    asked, ok = bench.plan.campaign.bracket.burn_in, [event for event in made if event["outcome"] == "ok"]
    if asked is BurnIn.always and not ok:
        return "bracket.burn_in=always"
    eager = bench.plan.campaign.engine.build == "cpu" and dict(bench.plan.arms[boot.arm].serve).get("enforce_eager")
    if asked is BurnIn.never or eager or local.compile_cache(specify(bench, boot)) == WARM:
        return ""
    if any(event.get("cache", WARM) != WARM for event in ok):  # this engine keeps nothing that could be warm
        return ""
    return "its compile cache is cold"


def _make(bench: Bench, boot: PlannedBoot, machine: Watch) -> None:
    """Ready, warmed up, stopped, in the journal; and the memory back."""
    live, started, outcome = asked_of(bench, boot), time.monotonic(), "ok"
    workload, draft_tokens = bench.plan.campaign.workload, bench.plan.campaign.model.num_speculative_tokens
    try:
        with ExitStack() as engines:
            start(live, engines)
            warm_up(
                client(live), bench.prompts[DECODE_SET], workload, bench.longest_silence_s,
                at_least=workload.warm_up_requests, draft_tokens=draft_tokens,
            )  # fmt: skip
    except ENDINGS as error:
        outcome = str(error)
    took_s = time.monotonic() - started
    told = {"arm": boot.arm, "seconds": took_s, "outcome": outcome, "cache": local.compile_cache(live.spec)}
    bench.folder.append({"event": BURN_IN, "time_unix_s": time.time(), **told})
    bench.say(f"burn-in       arm {boot.arm} {'done' if outcome == 'ok' else f'failed: {outcome}'} ({took_s:.0f} s)")
    machine.wait_back(int(live.draft.ended.get("memory_held_mib", "0")))
