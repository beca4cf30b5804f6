"""Twin of campaign.gates.fused: states and counters of a fused step, rank by rank."""

import pytest

from campaign.evidence import Shown
from campaign.gates.fused import Fused
from tests.fakes.evidence import bracket
from verdict.words import Verdict

CLEAN = {"decode_steps": 2000.0, "fused_steps": 1990.0, "checks": 31.0, "clean": 31.0, "declined_prefill": 10.0}
SHADOW = {"decode_steps": 500.0, "fused_steps": 500.0, "checks": 500.0, "clean": 500.0, "check_us": 5e6}


def rank(grown: dict[str, float], state: str = "ARMED", number: int = 0, **told: str) -> Shown:
    return Shown("prep_fused", f"Worker {number}", grown, {"state": state, **told})


def check(*shown: Shown, **fields):
    return Fused().check(bracket(candidate={"shown": shown}, **fields))


def test_an_armed_window_passes_with_the_share_that_was_fused():
    found = check(rank(CLEAN))
    assert found.verdict is Verdict.PASS
    assert found.line.endswith("ARMED: 7960 of 8000 decode steps fused, 124 compared, 0 differ")
    assert found.numbers["fused_steps"] == 7960
    assert found.details[0].startswith("02-B Worker 0 ARMED: 1990 of 2000 steps fused, 31 of 31 checks clean")


@pytest.mark.parametrize(
    ("shown", "verdict", "words"),
    [
        ((), Verdict.INVALID, "not mounted in boot 02-B: no worker shows overlay prep_fused"),
        ((rank(CLEAN, "DISARMED", reason="drift in positions"),), Verdict.INVALID, "is DISARMED: drift in positions"),
        ((rank(CLEAN, "OFF"),), Verdict.INVALID, "Worker 0 of boot 02-B is OFF: no reason told"),
        ((rank(CLEAN, "INERT", reason="no plan"),), Verdict.INVALID, "is INERT: no plan"),
        ((rank({}),), Verdict.FAIL, "0 of 0 decode steps were fused"),
        (
            (rank({"decode_steps": 40.0, "declined_prefill": 3.0, "declined_drafts": 37.0}),), Verdict.FAIL,
            "0 of 40 decode steps were fused (left to the engine: drafts 37, prefill 3)",
        ),
        (
            (rank(CLEAN | {"fused_steps": 1899.0}),), Verdict.INVALID,
            "1899 of 2000 decode steps were fused (95.0 %), wanted 95 % (left to the engine: prefill 10)",
        ),
        ((rank(CLEAN | {"fused_steps": 1900.0}),), Verdict.PASS, "ARMED"),
        ((rank(CLEAN | {"checks": 0.0}),), Verdict.INCONCLUSIVE, "no self-check fell into the window"),
        (
            (rank(SHADOW | {"drift": 2.0}, "SHADOW", first_mismatch="step 7 positions[3]: wanted 12, found 13"),),
            Verdict.FAIL, "2 steps differ from the engine's own; the first: step 7 positions[3]: wanted 12, found 13",
        ),
        ((rank(SHADOW | {"metadata_drift": 1.0}, "SHADOW"),), Verdict.FAIL, "1 steps differ"),
        ((rank(SHADOW | {"checks": 99.0}, "SHADOW"),), Verdict.INCONCLUSIVE, "99 steps compared, wanted 100"),
        ((rank({"decode_steps": 50.0}, "SHADOW"),), Verdict.FAIL, "0 of 50 decode steps were fused"),
        ((rank(SHADOW, "SHADOW"),), Verdict.PASS, "SHADOW: 2000 of 2000 decode steps fused, 2000 compared, 0 differ"),
        (
            (rank(CLEAN), rank(CLEAN, "DISARMED", 1, reason="launch failed")), Verdict.INVALID,
            "Worker 1 of boot 02-B is DISARMED: launch failed",
        ),
    ],
    ids=[
        "not mounted", "disarmed", "off", "inert", "no step", "all declined", "too few fused", "just enough",
        "never checked",
        "drift", "metadata drift", "too few compared", "shadow without a step", "shadow clean", "one rank of two",
    ],
)  # fmt: skip
def test_what_the_ranks_show_is_judged_by_its_worst(shown, verdict, words):
    found = check(*shown)
    assert found.verdict is verdict
    assert words in found.line


def test_a_disarm_is_told_before_the_difference_that_led_to_it():
    found = check(rank(CLEAN | {"drift": 1.0}, "DISARMED", reason="drift in seq_lens"))
    assert found.verdict is Verdict.INVALID


def test_times_of_an_interpreter_carry_their_label():
    found = check(rank(SHADOW, "SHADOW"), logic_only="Triton's interpreter")
    assert "comparing 10000 us a step (logic only (Triton's interpreter))" in found.details[0]


def test_without_a_boot_of_the_candidate_nothing_is_judged():
    assert Fused().check(bracket(letters="AAA")).verdict is Verdict.INCONCLUSIVE
