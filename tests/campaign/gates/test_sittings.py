"""Twin of campaign.gates.sittings: pauses and restarts between boots."""

from dataclasses import replace

import pytest

from campaign.evidence import Evidence
from campaign.gates.sittings import pause, stamp, told
from campaign.gates.step_rate import StepRate
from campaign.names import BEGAN, MACHINE_BOOT, STEP_PER_S
from tests.fakes.evidence import STEADY, bracket, step_rate

NOON_S = 1_796_040_000.0


def sat(*idle_minutes: float, took_s: float = 600.0, anew: tuple[int, ...] = ()) -> Evidence:
    """Boots with these idle minutes before each; before those of `anew` (from 1) the machine was booted anew."""
    at_s, fields = NOON_S, {}
    for index, idle in enumerate(idle_minutes, 1):
        at_s += 60 * idle
        uptime = f"uptime {sum(n <= index for n in anew)}"
        fields[index] = {"facts": {BEGAN: stamp(at_s), MACHINE_BOOT: uptime}, "seconds": {"total": took_s}}
        at_s += took_s
    letters, rates = "ABBABAAB"[: len(idle_minutes)], STEADY[: len(idle_minutes)]
    return bracket(letters, at=fields, metrics={STEP_PER_S: rates}, claims=(step_rate(),))


@pytest.mark.parametrize(
    ("evidence", "words"),
    [
        (sat(0, 1, 1, 20), ()),
        (sat(0, 1, 1, 1, 95), ("another sitting between boots 04-A and 05-B: a pause of 95 minutes",)),
        (sat(0, 1, 1, 95, took_s=7200), ()),
        (sat(0, 1, 5, anew=(3,)), ("between boots 02-B and 03-B: the machine was booted anew, 5 minutes later",)),
        (sat(0, 60, 60), ("boots 01-A and 02-B", "boots 02-B and 03-B")),
        (bracket("ABBA"), ()),
    ],
    ids=["one sitting", "a pause", "short for such boots", "a reboot", "two pauses", "no times"],
)
def test_another_sitting_is_told_with_its_place(evidence: Evidence, words: tuple[str, ...]) -> None:
    found = told(evidence)
    assert len(found) == len(words)
    assert all(word in line for word, line in zip(words, found, strict=True)), found


def test_a_pair_of_a_duet_is_up_at_once_and_takes_the_time_of_both() -> None:
    """Each of them holds half of the pair's time."""
    pairs = sat(0, -10, 12, -10)
    assert told(replace(pairs, boots=tuple(replace(boot, pair=1 + boot.index // 3) for boot in pairs.boots))) == ()


def test_the_line_of_a_claim_says_that_it_was_fitted_over_sittings() -> None:
    found = StepRate().check(sat(0, 1, 1, 1, 95, 1, 1, 1))
    assert found.line.endswith(", 2 sittings")
    assert any(line.startswith("another sitting between boots 04-A and 05-B") for line in found.details)
    assert "sitting" not in StepRate().check(sat(*[1] * 8)).line


def test_what_is_not_known_of_a_machine_is_not_compared() -> None:
    (boot,) = sat(0).boots
    assert pause([replace(boot, facts={})], 60, "uptime 7") == pause([boot], 60, "") == pause([], 1e9, "x") == ""
