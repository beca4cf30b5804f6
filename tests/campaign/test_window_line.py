"""What goes wrong in a window, through a whole run on the fake engine: drift, drafts that nobody counts, early ends."""

import json
import re

import pytest

from tests.fakes.line import Line, gates

FEW = ("bracket.schedule=ABA", "workload.max_tokens=64", "bracket.burn_in=never")


def fault(name: str) -> str:
    """The override that plants it in both arms."""
    return f"+engine.env.FAKE_FAULT='{name}'"


@pytest.mark.alone
@pytest.mark.case("D14", "D8")
def test_a_machine_that_throttles_within_every_boot_makes_no_verdict_and_says_where(line: Line):
    done = line.run("fake8", *FEW, "workload.repeats=2", "workload.max_tokens=32", fault("throttles:25"))
    assert done.returncode == 3, done.stdout + done.stderr
    (words,) = [row for row in done.stdout.splitlines() if row.startswith("INCONCLUSIVE  step/s")]
    assert "drift within the window: -" in words
    assert "step/s from first part to last, in all 3 boots" in words
    result = json.loads((line.only_run() / "result.json").read_text(encoding="utf-8"))
    assert result["clocks"]["step_per_s"] == "engine's own decode seconds"
    assert result["clocks"]["window_last_step_per_s"] == "client's perf_counter"
    told = [boot["facts"] for boot in line.boots()]
    assert all(3 <= int(facts["warm_up_requests"]) <= 6 for facts in told)
    assert all(float(facts["cold_request_s"]) > 0 for facts in told)


@pytest.mark.case("B11", "B9")
def test_drafts_that_no_counter_shows_are_not_an_acceptance_of_zero(line: Line):
    done = line.run("fake8", *FEW, fault("drafts_not_counted"))
    assert done.returncode == 3, done.stdout + done.stderr
    assert {gates(done.stdout)[label] for label in ("step/s",)} == {"INCONCLUSIVE"}
    (told,) = [row for row in done.stdout.splitlines() if row.startswith("INCONCLUSIVE  acceptance")]
    where = r"counters not wired in boot 01-[AB] \(\w+\): "
    assert re.search(where + r"the counters show 0 drafts, but \d+ engine steps gave \d+ tokens", told)
    assert "SpecDecoding lines of its log count" in told
    assert not any(name.startswith("acceptance") for boot in line.boots() for name in boot["metrics"])


@pytest.mark.case("D6")
def test_answers_that_end_early_are_invalid_with_the_request_that_was_sent(line: Line):
    done = line.run("fake8", *FEW, fault("ends_early"))
    assert done.returncode == 5, done.stdout + done.stderr
    assert "gave 57 tokens of 64 asked with ignore_eos" in done.stdout
    assert '"max_tokens": 64, "ignore_eos": true' in done.stdout


@pytest.mark.case("D1", "D4")
def test_an_arm_that_reads_the_prefix_cache_gives_no_rate_and_bursts_are_timed_by_the_engine(line: Line):
    warm = ("arms.candidate.knobs.prefix_cache=1", "engine.serve.block_size=16")
    done = line.run("fake8", *FEW, "workload.repeats=2", *warm, fault("bursts"))
    assert done.returncode == 5, done.stdout + done.stderr
    (told,) = [row for row in done.stdout.splitlines() if row.startswith("INVALID       step/s")]
    assert re.search(r"prefix-cache hits differ: 0\.0 % of the window's tokens in boot 0\d-A, [6-9]\d\.\d % in", told)
    boots = line.boots()
    assert all("its times are INVALID" in boot["facts"]["stream_timing"] for boot in boots)
    assert not any("ttft_median_s" in boot["metrics"] for boot in boots)
    assert all(boot["metrics"]["step_per_s"] > 0 for boot in boots)
