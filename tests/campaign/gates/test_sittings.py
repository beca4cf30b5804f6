"""Twin of campaign.gates.sittings: pauses and restarts between boots."""

from dataclasses import replace

import pytest

from campaign.evidence import Evidence
from campaign.gates.sittings import numbered, pause, stamp, told
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


@pytest.mark.parametrize(
    ("idle", "fitted", "words"),
    [
        ((0, 1, 1, 1, 95, 1, 1, 1), [0, 0, 0, 0, 1, 1, 1, 1], "it has a level and a drift of its own"),
        ((0, 1, 95, 1, 1, 1, 1, 1), [0] * 8, "the drift is fitted as if there were none"),
    ],
    ids=["between blocks", "inside of one"],
)
def test_a_sitting_between_blocks_has_a_level_and_a_drift_of_its_own(idle, fitted, words) -> None:
    found = sat(*idle)
    found = replace(found, boots=numbered(found.boots, (4, 8)))
    assert [boot.session for boot in found.boots] == fitted
    (sentence,) = told(found)
    assert sentence.endswith(words)


def test_a_machine_that_came_back_slower_leaves_the_effect_as_it_was() -> None:
    """One line over both sittings would put the jump of 20 % into the boots' variance."""
    found = sat(0, 1, 1, 1, 95, 1, 1, 1)
    slower = tuple(
        replace(boot, metrics={STEP_PER_S: boot.metrics[STEP_PER_S] * (0.8 if boot.index > 4 else 1)})
        for boot in found.boots
    )
    as_one = StepRate().check(replace(found, boots=slower))
    apart = StepRate().check(replace(found, boots=numbered(slower, (4, 8))))
    assert apart.numbers["effect_pct"] == pytest.approx(8.5, abs=0.5)
    assert apart.numbers["boot_sd_pct"] < 1 < as_one.numbers["boot_sd_pct"]


def test_the_pairs_of_a_duet_are_never_numbered() -> None:
    found = sat(0, -10, 95, -10)
    pairs = tuple(replace(boot, pair=1 + boot.index // 3) for boot in found.boots)
    assert [boot.session for boot in numbered(pairs, (2, 4))] == [0] * 4
    assert told(replace(found, boots=pairs))[0].endswith("each pair has its own level")


def test_what_is_not_known_of_a_machine_is_not_compared() -> None:
    (boot,) = sat(0).boots
    assert pause([replace(boot, facts={})], 60, "uptime 7") == pause([boot], 60, "") == pause([], 1e9, "x") == ""
