"""One boot of an arm before its first datum, not measured: it fills a cold compile cache (house.md; statistics.md 1.2).

An engine whose caches are cold compiles while it serves, which would be read as a slow candidate or a slow first boot.
An eager engine of a CPU build compiles nothing, however empty its caches are: it is measured at once.
"""

import time
from contextlib import ExitStack

from campaign.bracket.draft import ENDINGS
from campaign.bracket.live import Bench, asked_of, client, longest_silence_s, specify, start
from campaign.brackets import BurnIn
from campaign.engine import local
from campaign.engine.memory import Watch
from campaign.planning.plan import PlannedBoot
from campaign.traffic.warm_up import warm_up

BURN_IN = "burn_in"  # an event of the journal
PREFIX = "burn-in-"  # of its folder


def before_the_first(bench: Bench, machine: Watch) -> None:
    """A burn-in of each arm that wants one and has had none in this run. Raises HostUnfitError as a boot's wait does.

    One that fails says nothing about its arm: the boots that count will.
    """
    made = {event["arm"] for event in bench.folder.events() if event["event"] == BURN_IN}
    for boot in (PlannedBoot(1, "A", prefix=PREFIX), PlannedBoot(1, "B", prefix=PREFIX)):
        why = "" if boot.arm in made else _wanted(bench, boot)
        if why:
            bench.say(f"burn-in       arm {boot.arm}, not measured ({why})")
            _make(bench, boot, machine)


def _wanted(bench: Bench, boot: PlannedBoot) -> str:
    """Why an arm gets a burn-in, in words; empty where it gets none."""
    asked = bench.plan.campaign.bracket.burn_in
    if asked is BurnIn.always:
        return "bracket.burn_in=always"
    eager = bench.plan.campaign.engine.build == "cpu" and dict(bench.plan.arms[boot.arm].serve).get("enforce_eager")
    if asked is BurnIn.never or eager or local.compile_cache(specify(bench, boot)) == "warm":
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
                client(live), bench.prompts["decode"], workload, longest_silence_s(bench),
                at_least=workload.warm_up_requests, draft_tokens=draft_tokens,
            )  # fmt: skip
    except ENDINGS as error:
        outcome = str(error)
    took_s = time.monotonic() - started
    bench.folder.append(
        {"event": BURN_IN, "time_unix_s": time.time(), "arm": boot.arm, "seconds": took_s, "outcome": outcome}
    )
    bench.say(f"burn-in       arm {boot.arm} {'done' if outcome == 'ok' else f'failed: {outcome}'} ({took_s:.0f} s)")
    machine.wait_back(int(live.draft.ended.get("memory_held_mib", "0")))
