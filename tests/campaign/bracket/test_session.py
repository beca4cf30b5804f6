"""What the session takes out between two boots: a block whose own ends disagree more than this host may."""

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from campaign.boot_records import plain
from campaign.bracket.attempts import besides_s
from campaign.bracket.bench import Bench
from campaign.bracket.reruns import spent
from campaign.bracket.session import Progress, has_ended, void_the_broken_off, void_the_tainted
from campaign.config import Campaign
from campaign.evidence import BootRecord
from campaign.journal import RunFolder
from campaign.names import MACHINE_BOOT, STEP_PER_S
from campaign.planning.plan import make
from tests.fakes.evidence import boot
from verdict.words import Verdict

FIRST = (100.0, 105.0, 105.2, 100.4)
APART = (100.0, 105.0, 105.2, 93.0)


def boots(rates: Sequence[float], start: int = 1) -> list[BootRecord]:
    """Boots of ABBA BAAB with these speeds."""
    letters = "ABBABAAB"[start - 1 :]
    rows = enumerate(zip(letters, rates, strict=False), start)
    return [boot(i, letter, metrics={STEP_PER_S: rate}, seconds={"total": 60.0}) for i, (letter, rate) in rows]


@pytest.fixture
def bench(exp8: Campaign, tmp_path: Path) -> Bench:
    """A run of a host that is known for a boot sd of 1 %, so that a pair may be 5 % apart."""
    exp8.bracket.mirror, exp8.host.history_sd_pct, exp8.host.history_df = False, 1.0, 20
    folder = RunFolder.create(tmp_path / "runs", "exp8-1")
    return Bench(make(exp8, "exp8-1"), folder, {}, {}, lambda _: None)


def after(bench: Bench, *kept: BootRecord) -> Progress:
    """The run once these boots are in its journal, and what is spoiled is out."""
    bench.folder.keep(*kept)
    run = Progress.of(bench.plan, bench.folder)
    void_the_tainted(bench, run)
    return run


def test_a_block_whose_ends_agree_is_kept(bench: Bench) -> None:
    assert len(after(bench, *boots(FIRST)).records) == 4


def test_a_block_is_not_looked_at_before_it_is_whole(bench: Bench) -> None:
    assert len(after(bench, *boots((100.0, 105.0, 80.0))).records) == 3


def test_a_block_whose_ends_are_too_far_apart_is_run_again_as_a_block(bench: Bench) -> None:
    run = after(bench, *boots(FIRST), *boots((105.0, 100.0, 100.0, 90.0), 5))
    assert [r.index for r in run.records] == [1, 2, 3, 4]
    ((first, *_),) = run.voided
    assert (first.index, first.status) == (5, "void")
    assert first.reason == "the ends of BAAB are 15.4 % apart, of one arm (limit 4.9 %)"
    assert not has_ended(bench.plan, bench.folder)


def test_a_block_that_is_apart_again_makes_the_host_unfit(bench: Bench) -> None:
    after(bench, *boots(APART))
    run = after(bench, *boots(APART))
    assert [r.status for r in run.records] == ["void"] * 4
    found = run.outcome()
    assert found.verdict is Verdict.VOID
    assert "HOST-UNFIT, 1 of 1 re-run of block 1 is used" in found.results[0].line
    assert has_ended(bench.plan, bench.folder)


def test_without_a_history_no_block_is_apart(exp8: Campaign, tmp_path: Path) -> None:
    exp8.bracket.mirror, exp8.host.registry = False, None
    plain = Bench(make(exp8, "exp8-1"), RunFolder.create(tmp_path / "runs", "exp8-1"), {}, {}, lambda _: None)
    assert len(after(plain, *boots(APART)).records) == 4


def test_a_boot_that_failed_is_never_excused_by_what_else_was_void(bench: Bench) -> None:
    kept = boots(FIRST)[:2]
    run = after(bench, *kept, boot(3, "B", status="failed", reason="engine died"))
    assert [r.status for r in run.records] == ["ok", "ok", "failed"]
    assert has_ended(bench.plan, bench.folder)


@pytest.mark.parametrize(
    ("ran", "idle_s", "uptime", "left"),
    [(6, 60, "one", 6), (6, 7200, "one", 4), (6, 60, "another", 4), (4, 7200, "another", 4)],
    ids=["resumed at once", "after a pause", "after a reboot", "between two blocks"],
)
def test_a_block_is_not_gone_on_with_after_a_pause(
    bench: Bench, ran: int, idle_s: float, uptime: str, left: int
) -> None:
    said: list[str] = []
    known = [replace(record, facts={MACHINE_BOOT: "one"}) for record in boots((*FIRST, 105.0, 100.0))[:ran]]
    run, bench = after(bench, *known), replace(bench, say=said.append)
    void_the_broken_off(bench, run, uptime, time.time() + idle_s)
    assert len(run.records) == len(bench.folder.records()) == left
    assert [line[:26] for line in said] == ["void          05-B, 06-A: "] * (ran - left > 0)
    if said:
        assert spent(run.plan, run.voided[0][0], run.voided) == ""
        assert not run.ended()


def test_what_a_run_spent_besides_its_boots_is_counted_once_each(tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path, "r")
    folder.append({"event": "burn_in", "seconds": 20.0}, {"event": "burn_in", "seconds": 20.0})
    beside = boot(1, "A", pair=1, seconds={"total": 3.0}), boot(2, "A", pair=1, seconds={"total": 3.0})
    for _ in range(2):  # known, and then with the wait for the memory
        folder.keep(*beside, prefix="aa-")
    folder.void([1, 2], "busy", "aa-")
    folder.keep(*(replace(record, seconds={"total": 4.0}) for record in beside), prefix="aa-")
    folder.append({"event": "attempt", "boot": plain(boot(1, "A", seconds={"total": 100.0}))})
    folder.keep(boot(1, "A", seconds={"total": 1000.0}))
    assert besides_s(folder) == 2 * 20 + 2 * 3 + 2 * 4 + 100
