"""Readings of memory: what counts as back, who is named, and what no other program can void."""

import os
import shlex
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from campaign.engine import memory, processes
from campaign.engine.memory import Device, Holder, Memory, Watch, _moved, still_missing
from campaign.errors import HostUnfitError

GIB = 1024
TOTAL = int(121.63 * GIB)
Smi = Callable[..., Path]


def free(gib: float) -> int:
    """MiB in use when so many GiB are free."""
    return int(TOTAL - gib * GIB)


@pytest.fixture
def smi(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Smi:
    """smi(lines of each reading, ...; holders): an nvidia-smi that prints recorded lines, the last ones for ever."""

    def made(*readings: str, holders: str = "", code: int = 0) -> Path:
        for number, lines in enumerate(readings, 1):
            (tmp_path / f"reading-{number}").write_text(f"{lines}\n")
        (tmp_path / "holders").write_text(holders)
        (tmp_path / "n").write_text("0")
        here = shlex.quote(str(tmp_path))
        (tmp_path / "nvidia-smi").write_text(
            "#!/bin/sh\n"
            f'case "$*" in *compute-apps*) cat {here}/holders; exit {code};; esac\n'
            f"n=$(($(cat {here}/n) + 1)); [ -f {here}/reading-$n ] || n={len(readings)}\n"
            f"echo $n > {here}/n; cat {here}/reading-$n; exit {code}\n"
        )
        (tmp_path / "nvidia-smi").chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
        return tmp_path

    return made


def one(used: object) -> str:
    """The line of a single device."""
    return f"0, GPU-a, {used}, {TOTAL}"


@pytest.mark.case("A10")
def test_five_readings_are_waited_for_when_the_fifth_is_the_first_that_is_free(smi: Smi) -> None:
    folder = smi(one(free(117)), *(one(free(gib)) for gib in (12, 12, 12, 40, 117)))
    watch = memory.watch(None, timeout_s=60.0)
    watch.wait_back(0)
    assert (folder / "n").read_text().strip() == "6"


@pytest.mark.case("A2", "A10")
def test_a_deadline_that_passes_names_the_device_and_each_holder_with_its_memory(smi: Smi) -> None:
    workers = [subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) for _ in range(2)]
    folder = smi(one(4741), one(26741))
    watch = memory.watch(None, timeout_s=0.1)
    (folder / "holders").write_text("".join(f"GPU-a, {worker.pid}, 11000\n" for worker in workers))
    with pytest.raises(HostUnfitError) as raised:
        watch.wait_back(0)
    for worker in workers:
        assert f"pid {worker.pid} (python" in str(raised.value)
        worker.communicate(b"\n")
    assert str(raised.value).count("11000 MiB") == 2
    assert f"device 0: 26741 MiB of {TOTAL} used, 4741 before the first boot, held by" in str(raised.value)


def test_a_device_of_somebody_else_is_not_our_business(smi: Smi) -> None:
    smi(f"{one(100)}\n1, GPU-b, 90000, {TOTAL}", holders="GPU-b, 4711, 90000\n")
    assert [d.index for d in memory.read("0").devices] == ["0"]
    assert [d.index for d in memory.read("GPU-b").devices] == ["1"]
    assert [d.index for d in memory.read(None).devices] == ["0", "1"]
    assert memory.read("").devices == ()
    assert memory.read("0").holders == ()


def test_figures_that_the_driver_does_not_have_are_unknown_and_not_zero(smi: Smi) -> None:
    smi("0, GPU-a, [N/A], [N/A]", holders="GPU-a, 4711, [N/A]\nGPU-a, [N/A], 5\n")
    found = memory.read()
    assert found.devices == (Device("0", "GPU-a", None, None),)
    assert found.holders == (Holder("GPU-a", 4711, None),)
    assert found.shared


def test_a_driver_that_fails_is_no_proof_that_memory_is_back(smi: Smi) -> None:
    smi(one(100))
    before = memory.read()
    smi("NVIDIA-SMI has failed because it could not communicate with the driver", code=9)
    assert "nvidia-smi gives no reading: exit 9" in still_missing(before, memory.read(), 0)[0]


@pytest.mark.parametrize("when", ["first", "later"])
def test_a_driver_that_fails_once_makes_no_process_a_new_one(smi: Smi, when: str) -> None:
    """What is on the devices cannot be compared with a reading that there was not."""
    neighbour = "GPU-a, 4711, 30000\n"
    smi(one(30000), holders=neighbour)
    good = memory.read()
    smi("NVIDIA-SMI has failed", code=9)
    bad = memory.read()
    assert still_missing(bad, good, 0) == () if when == "first" else still_missing(good, bad, 0) != ()


def test_a_device_that_gives_no_reading_is_not_at_rest(smi: Smi) -> None:
    smi(one(100))
    before = memory.read()
    smi("NVIDIA-SMI has failed", code=9)
    with pytest.raises(HostUnfitError, match=r"gives no reading: exit 9.* after 0\.1 s"):
        Watch(before, None, 0.1).wait_quiet()


def test_a_machine_whose_driver_never_answers_is_judged_by_its_host(smi: Smi) -> None:
    smi("NVIDIA-SMI has failed", code=9)
    memory.watch(None, 600.0).wait_quiet()
    assert _moved(Memory(2_000, 24_000, 0, problem="x"), Memory(22_000, 24_000, 0, problem="x"))


def test_a_machine_without_a_device_has_a_reading_of_its_host(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    found = memory.read()
    assert 0 < found.available_mib <= found.total_mib
    assert found.processes_mib > 0
    assert (found.devices, found.problem) == ((), "")


# the host's


def host(available: int, others: int = 5000, devices: tuple[Device, ...] = ()) -> Memory:
    """A reading of a host of 100,000 MiB."""
    return Memory(available, 100_000, others, devices)


UNIFIED = (Device("0", "GPU-a", None, None),)


@pytest.mark.parametrize(
    ("before", "now", "held", "back"),
    [
        (host(80_000), host(79_500), 4000, True),
        (host(80_000), host(76_500), 4000, False),
        (host(80_000), host(76_500, others=8_000), 4000, True),
        (host(80_000), host(40_000), 500, True),
        (host(80_000), host(90_000), 4000, True),
        (host(80_000, devices=UNIFIED), host(40_000, devices=UNIFIED), 500, False),
    ],
    ids=[
        "little is missing",
        "nearly all that the engine held is missing",
        "another process took it",
        "the engine never held so much",
        "more is free",
        "a device that shares the host's memory may hold it",
    ],
)
def test_of_the_host_only_that_is_asked_which_the_engine_can_have_kept(
    before: Memory, now: Memory, held: int, back: bool
) -> None:
    assert (still_missing(before, now, held) == ()) is back


@pytest.mark.parametrize(
    "grown", [{"processes_mib": 8_500}, {"anon_mib": 3_500}, {"shmem_mib": 3_500}], ids=["process", "container", "file"]
)
def test_what_neighbours_took_is_not_asked_of_our_engine(grown: dict[str, int]) -> None:
    """In a process of this machine, in one of another container, or as a file in /dev/shm."""
    before, now = host(80_000), replace(host(76_500), **grown)
    assert still_missing(before, now, 4000) == ()
    assert still_missing(before, host(76_500), 4000) != ()


def test_memory_that_files_take_is_read() -> None:
    before = memory.read().shmem_mib
    file = Path(f"/dev/shm/psm_test_{os.getpid()}")
    try:
        file.write_bytes(bytes(64 * 2**20))
        assert memory.read().shmem_mib >= before + 32
    finally:
        file.unlink(missing_ok=True)


@given(held=st.integers(0, 50_000), leaked=st.integers(0, 50_000), others=st.integers(0, 30_000))
def test_what_is_missing_is_told_exactly_from_half_of_what_was_held(held: int, leaked: int, others: int) -> None:
    """Whatever living processes take besides, and never for an engine that held less than a hundredth of the host."""
    now = host(100_000 - 5000 - leaked - others, others=5000 + others)
    told = still_missing(host(95_000), now, held) != ()
    assert told is (held > 1000 and leaked > max(1000, held / 2))


def test_a_machine_at_rest_is_quiet_and_a_restless_one_is_not(smi: Smi) -> None:
    smi(one(100), one(100))
    memory.watch(None, 600.0).wait_quiet()
    smi(*(one(gib * GIB) for gib in range(10, 40, 3)))
    with pytest.raises(HostUnfitError, match="still comes and goes after 3 s"):
        Watch(memory.read(), None, 3.0).wait_quiet()


def test_what_processes_hold_is_counted_with_shared_pages_once() -> None:
    taken = "import sys; held = bytearray(200 * 2**20); print(flush=True); input()"
    process = subprocess.Popen([sys.executable, "-c", taken], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.readline()
    proc = processes.read(process.pid)
    assert proc is not None
    assert 200 <= memory.held_mib([proc]) < 260
    process.communicate(b"\n")
    assert memory.held_mib([proc]) == 0


# the OOM killer


@pytest.mark.case("A13")
@pytest.mark.parametrize(
    ("cgroups", "file"),
    [
        ("0::/runs/one", "runs/one/memory.events"),
        ("0::/runs/one", "memory.events"),
        ("4:memory:/runs\n0::/", "memory/runs/memory.oom_control"),
        ("4:memory:/runs", "memory/memory.oom_control"),
    ],
    ids=["version 2", "version 2 in a container", "version 1", "version 1 in a container"],
)
def test_the_count_of_oom_kills_is_read_where_the_cgroup_keeps_it(tmp_path: Path, cgroups: str, file: str) -> None:
    assert memory.oom_kills(cgroups, tmp_path) is None
    (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / file).write_text("low 0\noom_kill_disable 0\noom 4\noom_kill 3\n")
    assert memory.oom_kills(cgroups, tmp_path) == 3
