"""The faults that are planted in a chosen size: they do what their knob says, they count it, and off is off."""

import json
import os
import subprocess
import sys

import pytest

from overlays.manifest import BUILT_IN

GARBLING = """
import json, numpy, acceptance_shift as shift
drafts = numpy.tile(numpy.arange(5), (10_000, 1))
drafts[::2, 0] = 7
before = drafts.copy()
for row in range(len(drafts)):
    shift.garble(drafts[row : row + 1])
changed = [int(row) for row in numpy.flatnonzero((drafts != before).any(axis=1))]
only_first = bool((drafts[:, 1:] == before[:, 1:]).all())
print(json.dumps({"changed": changed, "only_first": only_first, **shift.counts}))
"""
STEPPING = """
import json, time, slow_step
for _ in range(20):
    began = slow_step.now()
    time.sleep(0.005)
    slow_step.delay(began)
print(json.dumps(slow_step.counts))
"""


@pytest.fixture
def run(tmp_path, faulty):
    """run(overlay, code, variable=...): what the code printed, with the overlay's payload beside engine_report's."""
    (tmp_path / "campaign_engine_report").symlink_to(BUILT_IN / "engine_report" / "payload")

    def ran(overlay: str, code: str, **variables: str) -> dict:
        path = f"{tmp_path}{os.pathsep}{faulty / overlay / '0.29.0' / 'payload'}"
        environment = {"PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1", **variables}
        done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
        return json.loads(done.stdout)

    return ran


@pytest.mark.parametrize(("points", "garbled"), [("0", 0), ("0.5", 90), ("3", 539)])
def test_an_acceptance_shift_garbles_its_share_of_the_first_tokens_and_nothing_else(run, points, garbled):
    found = run("acceptance_shift", GARBLING, VLLM_PLANTED_ACCEPTANCE_SHIFT_PP=points)
    assert found["drafts"] == 10_000
    assert found["garbled"] == len(found["changed"]) == pytest.approx(garbled, abs=1)
    assert found["only_first"]


def test_the_garbled_drafts_are_spread_evenly_and_the_same_in_every_process(run):
    first, again = (run("acceptance_shift", GARBLING, VLLM_PLANTED_ACCEPTANCE_SHIFT_PP="3") for _ in range(2))
    assert first == again
    gaps = [late - early for early, late in zip(first["changed"], first["changed"][1:], strict=False)]
    assert max(gaps) < 2 * 10_000 / len(first["changed"])


@pytest.mark.parametrize("percent", ["2", "8"])
def test_a_slower_step_takes_at_least_its_share_and_counts_what_it_took(run, percent):
    found = run("slow_step", STEPPING, VLLM_PLANTED_SLOW_STEP_PCT=percent)
    assert found["delayed_steps"] == 20
    assert found["added_us"] >= 0.99 * found["own_us"] * int(percent) / 100  # not over some limit: the machine is busy


def test_a_slower_step_that_is_off_adds_nothing(run):
    assert run("slow_step", STEPPING) == {"delayed_steps": 0, "own_us": 0, "added_us": 0}


IMPORTED = """
import json, slow_step
from campaign_engine_report.state import counted
first = counted()
slow_step.delay(slow_step.now())
print(json.dumps([first, counted()]))
"""


@pytest.mark.parametrize("percent", ["0", "8"])
def test_a_process_that_only_imports_the_slower_step_shows_no_behaviour_of_it(run, percent):
    first, stepped = run("slow_step", IMPORTED, VLLM_PLANTED_SLOW_STEP_PCT=percent)
    assert first == {}  # an API server imports the engine's core too, and delays nothing
    assert stepped["slow_step.delayed_steps"] == (1 if percent == "8" else 0)
