"""When an arm gets a boot that is not measured: whenever its cache is cold, and not only before the first datum."""

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from campaign.bracket import burn_in
from campaign.bracket.bench import Bench
from campaign.brackets import BurnIn
from campaign.config import Campaign
from campaign.engine.memory import Memory, Watch
from campaign.journal import RunFolder
from campaign.planning.plan import PlannedBoot, make

NO_WATCH = Watch(Memory(0, 0, 0), None, 0.0)
A, B = PlannedBoot(1, "A"), PlannedBoot(2, "B")
Datum = Callable[..., list[str]]


@pytest.fixture
def datum(exp8: Campaign, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Datum:
    """`datum(boots, cache=..., outcome=..., leaves=...)`: the burn-ins before it. The engine is a stand-in."""
    exp8.engine.build = "cuda"
    bench = Bench(make(exp8, "exp8-1"), RunFolder.create(tmp_path / "runs", "exp8-1"), {}, {}, lambda _: None)

    def before(*boots: PlannedBoot, cache: str, outcome: str = "ok", leaves: str = "warm") -> list[str]:
        made: list[str] = []
        state = {boot.arm: cache for boot in boots}

        def burned(_bench: Bench, boot: PlannedBoot, _machine: Watch) -> None:
            made.append(boot.name)
            state[boot.arm] = leaves
            event = {"event": "burn_in", "time_unix_s": time.time(), "arm": boot.arm, "seconds": 1.0}
            bench.folder.append(event | {"outcome": outcome, "cache": leaves})

        monkeypatch.setattr(burn_in, "_make", burned)
        monkeypatch.setattr(burn_in, "specify", lambda _, boot: boot)
        monkeypatch.setattr(burn_in.local, "compile_cache", lambda boot: state[boot.arm])
        burn_in.before(bench, boots, NO_WATCH)
        return made

    before.campaign = exp8  # type: ignore[attr-defined]
    return before


def test_a_cache_that_is_cold_again_is_warmed_again_in_a_folder_of_its_own(datum: Datum) -> None:
    assert datum(A, B, cache="cold") == ["burn-in-01-A", "burn-in-01-B"]
    assert datum(A, cache="warm") == []
    assert datum(B, cache="cold") == ["burn-in-02-B"]


def test_a_burn_in_that_failed_is_not_counted_as_made(datum: Datum) -> None:
    datum.campaign.bracket.burn_in = BurnIn.always  # type: ignore[attr-defined]
    assert datum(A, cache="warm", outcome="the engine died") == ["burn-in-01-A"]
    assert datum(A, cache="warm") == ["burn-in-02-A"]
    assert datum(A, cache="warm") == []


def test_an_engine_whose_cache_no_boot_ever_fills_is_burned_in_once(datum: Datum) -> None:
    assert datum(A, cache="cold", leaves="cold") == ["burn-in-01-A"]
    assert datum(A, cache="cold") == []


def test_the_two_boots_of_one_arm_in_a_pair_get_one_burn_in(datum: Datum) -> None:
    assert datum(A, PlannedBoot(2, "A"), cache="cold") == ["burn-in-01-A"]
