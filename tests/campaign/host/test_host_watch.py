"""The watch over a machine: taints by arithmetic on readings, and one look at real processes."""

import os
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from campaign.host.gpu_watch import Gpu, Holder
from campaign.host.host_watch import Limits, Reading, Seen, clocks, series, watch
from tests.fakes.line import until

S = 10**9
BURNER = (4242, 7)
GONE = 2**22 + 5  # no pid of Linux: over its largest


def reading(at_s: float, busy: float = 0.0, ours: float = 0.0, steal: float = 0.0, burner: float = 0.0) -> Reading:
    return Reading(round(at_s * S), busy, steal, ours, {BURNER: burner} if burner else {}, 0, 0, 9000, 0, 1, 0, 0)


def gpu(at_s: float, mhz: float | None = 1980.0, reasons: int = 0, ecc: float = 0) -> Gpu:
    return Gpu(round(at_s * S), "0", "GPU-a", mhz, 1980.0, reasons, 300.0, 700.0, 60.0, ecc)


def seen(*readings: Reading, **fields: object) -> Seen:
    return replace(Seen(list(readings), names={BURNER: "python3"}), **fields)  # type: ignore[arg-type]


def holder(pid: int, at_s: float = 10.0) -> Holder:
    return Holder(round(at_s * S), "GPU-a", pid, 512.0, "vllm")


QUIET = (reading(0), reading(10, busy=10.2, ours=10), reading(20, busy=20.4, ours=20))
BURNT = (reading(0), reading(10, busy=20, ours=10, burner=9.9), reading(20, busy=30, ours=20, burner=9.9))

TAINTS: dict[str, tuple[Seen, str]] = {
    "a quiet machine": (seen(*QUIET), ""),
    "a neighbour, who is named": (seen(*BURNT), r"took 0\.50 cores over the boot, .*python3 pid 4242 0\.49"),
    "the hypervisor": (seen(reading(0), reading(10, busy=9, ours=9, steal=4)), r"0\.40 cores.*stolen by the hyper"),
    "short-lived neighbours": (seen(reading(0), reading(10, busy=15, ours=9)), r"short-lived, small or unseen 0\.60"),
    "our own work, however much": (seen(reading(0), reading(10, busy=80, ours=80)), ""),
    "a foreign process on the GPU": (seen(*QUIET, holders=[holder(4242)]), r"a GPU of ours: vllm pid 4242 \(512 MiB\)"),
    "one that never was in a reading": (seen(*QUIET, holders=[holder(1), holder(GONE)], our_pids={1}), "pid 4194309 "),
    "its pid was given out again meanwhile": (seen(*QUIET, holders=[holder(os.getpid())]), ""),
    "our own process on the GPU": (seen(*QUIET, holders=[holder(1)], our_pids={1}), ""),
    "a pid of another namespace, maybe ours": (seen(*QUIET, holders=[holder(GONE)]), ""),
    "one that was there before any engine": (seen(*QUIET, holders=[holder(GONE, 0.5)]), "holds a GPU of ours"),
    "memory errors": (seen(*QUIET, gpus=[gpu(1), gpu(2, ecc=3)]), "gpu0 counted 3 uncorrectable ECC errors"),
    "a throttled GPU while it loads": (seen(*QUIET, gpus=[gpu(1, reasons=0x40)]), ""),
}


@pytest.mark.parametrize(("found", "words"), TAINTS.values(), ids=TAINTS.keys())
def test_what_taints_a_boot(found: Seen, words: str) -> None:
    told = "; ".join(found.taints(Limits(0.25)))
    assert bool(told) is bool(words)
    if words:
        assert re.search(words, told), told


@pytest.mark.case("D13")
@pytest.mark.parametrize(
    ("gpus", "words"),
    [([gpu(12)], ""), ([gpu(12, 1961)], ""), ([gpu(12, 1959)], "ran at 1959 MHz (median), in the boots before at 1980"),
     ([gpu(12, reasons=0x20)], "clock back in the measured window (GPU 0: heat)"), ([gpu(12, None)], ""),
     ([gpu(2, 900, 0x40)], "")],
    ids=["usual", "within 1 %", "over 1 % apart", "throttled", "[N/A]", "before the window"],
)  # fmt: skip
def test_what_taints_a_measured_window(gpus: list[Gpu], words: str) -> None:
    part = seen(*QUIET, gpus=gpus).part(10 * S, 20 * S)
    told = "; ".join(part.taints(Limits(0.25, {"0": (1980.0, 1980.0, 1900.0)})))
    assert words in told
    assert bool(told) is bool(words)


def test_a_part_has_only_what_happened_in_it() -> None:
    found = seen(*BURNT)
    assert found.part(0, 10 * S).foreign_cores == pytest.approx(1.0)
    assert found.part(10 * S, 20 * S).foreign_cores == 0
    assert "in the measured window" in found.part(0, 10 * S).taints(Limits(0.25))[0]
    assert found.part(11 * S, 12 * S).seconds == 10, "the readings around it are the nearest there are"


def test_figures_have_units_and_clocks_are_found_again() -> None:
    told = seen(*BURNT, gpus=[gpu(1), gpu(2, 1900)], watch_s=0.1).summary()
    assert (told["foreign_cpu_cores"], told["own_cpu_cores"], told["watch_cpu_cores"]) == (0.5, 1.0, 0.005)
    assert clocks({f"window_{name}": value for name, value in told.items()}, "window_") == {"0": 1940.0}
    assert [row["foreign_cpu_cores"] for row in series(seen(*BURNT))] == [1.0, 0.0]


def test_nothing_seen_says_nothing() -> None:
    assert (Seen().summary(), Seen().taints(Limits(0.25)), Seen().part(0, S).taints(Limits(0.25))) == ({}, (), ())


def test_our_children_are_ours_and_a_neighbour_is_not(tmp_path: Path) -> None:
    """By the books of real processes: on a busy machine others are there too, so only bounds can be asked."""
    burn: Callable[[], subprocess.Popen[bytes]] = lambda: subprocess.Popen([sys.executable, "-c", "while 1: pass"])  # noqa: E731
    file = tmp_path / "environment.jsonl"
    with watch(files=[file]) as found:
        child = burn()
        until(lambda: child.pid in found.our_pids and found.readings[-1].ours_s > 0.1)  # a busy machine looks seldom
        child.kill()
        child.wait()
    assert found.readings[-1].ours_s > 0.1
    assert child.pid in found.our_pids
    assert child.pid not in {pid for pid, _ in found.readings[-1].others}
    assert found.summary()["watch_cpu_cores"] < 0.2
    assert file.read_text().count("\n") == len(found.readings) - 1
