"""Added by the test overlay slow_step: a synchronous step takes some per cent longer, and what it took is counted."""

import os
import time

from campaign_engine_report.state import count, publish

LONGER_PCT = float(os.environ.get("VLLM_PLANTED_SLOW_STEP_PCT", "0"))
SPIN_S = 0.0003  # a sleep is late by up to this, so the rest is waited for awake

counts = {"delayed_steps": 0, "own_us": 0, "added_us": 0}
stepping: list[bool] = []
now = time.perf_counter


def delay(started_s: float) -> None:
    """Take LONGER_PCT of the time since `started_s`, and count what was really taken."""
    done_s = now()
    if not stepping:  # other processes import the engine's core too; only one that steps has a behaviour to show
        stepping.append(True)
        count("slow_step", lambda: counts)
    until_s = done_s + LONGER_PCT / 100 * (done_s - started_s)
    if until_s == done_s:
        return
    time.sleep(max(0.0, until_s - done_s - SPIN_S))
    while now() < until_s:
        pass
    counts["delayed_steps"] += 1
    counts["own_us"] += round(1e6 * (done_s - started_s))
    counts["added_us"] += round(1e6 * (now() - done_s))


publish("slow_step", lambda: {"longer_pct": f"{LONGER_PCT:g}", **counts})
