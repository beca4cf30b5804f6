"""Whose CPU time it was: arithmetic on process tables, and on real processes where the kernel's own books matter."""

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from campaign.host.host_usage import TICKS, Ours, Table, Used, machine, members, others, table, throttled_s

RUNNER = 10
STAT = """cpu  100 0 0 0 0 0 0 0 0 0
cpu0 400 10 50 9000 77 5 35 20 8 0
cpu1 100 0 0 9000 0 0 0 300 0 0
cpu10 999 0 0 0 0 0 0 0 0 0
intr 1 2 3
"""


def used(own_s: float, children_s: float = 0.0, *, ppid: int = 1, start: int = 5, name: str = "python") -> Used:
    return Used(ppid, name, start, own_s, children_s)


def counted(*readings: Table) -> float:
    """Our seconds after these readings, of a runner with all its descendants."""
    ours, before = Ours(), readings[0]
    for now in readings:
        seconds = ours.add({pid: now[pid] for pid in members(now, {RUNNER})}, before)
        before = now
    return seconds


def test_only_the_cpus_that_we_may_use_are_counted() -> None:
    assert machine(STAT, [0]) == pytest.approx((500 / TICKS, 20 / TICKS))
    assert machine(STAT, [0, 1]) == pytest.approx((600 / TICKS, 320 / TICKS))


HISTORIES: dict[str, tuple[tuple[Table, ...], float]] = {
    "a child that works": (({10: used(1), 11: used(5, ppid=10)}, {10: used(2), 11: used(9, ppid=10)}), 5.0),
    "a child that is waited for is not counted twice": (
        ({10: used(1), 11: used(5, ppid=10)}, {10: used(1), 11: used(9, ppid=10)}, {10: used(1, children_s=9.5)}),
        4.5,
    ),
    "a child that was never seen": (({10: used(1)}, {10: used(1, children_s=3)}), 3.0),
    "a child that nobody waits for keeps what it was seen with": (
        ({10: used(1), 11: used(0, ppid=10)}, {10: used(1), 11: used(4, ppid=10)}, {10: used(1)}),
        4.0,
    ),
    "a grandchild whose parent ends with it": (
        (
            {10: used(1), 11: used(2, ppid=10), 12: used(3, ppid=11)},
            {10: used(1), 11: used(4, ppid=10), 12: used(6, ppid=11)},
            {10: used(1, children_s=12)},
        ),
        7.0,
    ),
    "a pid that is given out again": (
        ({10: used(1), 11: used(50, ppid=10)}, {10: used(1, children_s=50), 11: used(2, ppid=10, start=99)}),
        2.0,
    ),
    "one that joins late brings nothing of before": (
        tuple({10: used(1), 12: used(own_s, ppid=ppid)} for own_s, ppid in ((70, 1), (71, 10), (73, 10))),
        2.0,
    ),
}  # fmt: skip


@pytest.mark.parametrize(("readings", "seconds"), HISTORIES.values(), ids=HISTORIES.keys())
def test_our_time_is_counted_once_however_our_processes_end(readings: tuple[Table, ...], seconds: float) -> None:
    assert counted(*readings) == pytest.approx(seconds)


def test_others_are_all_but_our_family() -> None:
    procs = {10: used(1), 11: used(2, ppid=10), 30: used(7, start=8), 31: used(0)}
    assert others(procs, members(procs, {10})) == {(30, 8): 7}


def test_a_child_that_came_and_went_between_two_looks_is_ours_by_the_kernels_own_books() -> None:
    ours, mine = Ours(), os.getpid()
    before = table()
    ours.add({mine: before[mine]}, before)
    subprocess.run([sys.executable, "-c", "for _ in range(3_000_000): pass"], check=True)
    now = table()
    assert ours.add({mine: now[mine]}, before) >= 0.02


@pytest.mark.parametrize(
    ("line", "seconds"), [("throttled_usec 2500000", 2.5), ("throttled_time 1500000000", 1.5), ("nr_periods 4", 0.0)]
)
def test_a_quota_of_ours_is_told_apart_from_neighbours(tmp_path: Path, line: str, seconds: float) -> None:
    for folder in (tmp_path, tmp_path / "cpu"):
        folder.mkdir(exist_ok=True)
        (folder / "cpu.stat").write_text(f"nr_throttled 3\n{line}\n")
    assert throttled_s(tmp_path) == seconds


@given(st.lists(st.tuples(st.integers(0, 4), st.sampled_from(["work", "fork", "end", "look"])), max_size=60))
def test_whatever_a_family_does_its_time_is_counted_to_the_tick(steps: list[tuple[int, str]]) -> None:
    """Any order of working, forking, ending (waited for by the parent, orphans by the runner) and looking."""
    procs: Table = {RUNNER: used(0.0)}
    ours, before, truth, pid = Ours(), dict(procs), 0.0, RUNNER
    ours.add(dict(procs), before)
    for choice, what in [*steps, (0, "look")]:
        one = list(procs)[choice % len(procs)]
        if what == "work":
            procs[one], truth = replace(procs[one], own_s=procs[one].own_s + 1), truth + 1
        elif what == "fork":
            pid += 1
            procs[pid] = used(0.0, ppid=one, start=pid)
        elif what == "end" and one != RUNNER:
            gone = procs.pop(one)
            for child in [p for p, u in procs.items() if u.ppid == one]:
                procs[child] = replace(procs[child], ppid=RUNNER)
            parent = procs[gone.ppid]
            procs[gone.ppid] = replace(parent, children_s=parent.children_s + gone.own_s + gone.children_s)
        elif what == "look":
            assert ours.add(dict(procs), before) == pytest.approx(truth)
            before = dict(procs)
