"""Added by the test overlay slow_step: 30 % more time for every synchronous step, written down as it is spent."""

import time

from campaign_engine_report.state import publish

SHARE = 0.30

spent = {"added_s": 0.0, "delayed_steps": 0}
now = time.perf_counter


def delay(started_s: float) -> None:
    """Sleep for SHARE of the time since `started_s`, and add what was really slept."""
    before_s = now()
    time.sleep(SHARE * (before_s - started_s))
    spent["added_s"] += now() - before_s
    spent["delayed_steps"] += 1


publish("slow_step", lambda: {**spent, "share": SHARE})
