"""nvidia-smi's rows, recorded; no GPU was asked for these tests."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from campaign.host.gpu_watch import Gpu, GpuWatch, gpu_row, holder_row, number, summary, throttled, used
from tests.fakes.line import until

COOL = "0, GPU-a, 3003, 3003, 0x0000000000000000, 310.50, 700.00, 61, 0"
HOT = "0, GPU-a, 2457, 3003, 0x0000000000000060, 698.10, 700.00, 88, 0"
MUTE = "0, GPU-a, [N/A], [N/A], [Not Supported], [N/A], ERR!, [Unknown Error], [N/A]"
Smi = Callable[[str, str], None]


def rows(*lines: str) -> list[Gpu]:
    return [row for at, line in enumerate(lines) if (row := gpu_row(line, at))]


@pytest.mark.parametrize(
    ("text", "figure"),
    [("1980", 1980), ("310.50", 310.5), ("0x0000000000000044", 0x44), ("[N/A]", None), ("[Not Supported]", None),
     ("ERR!", None), ("[Unknown Error]", None), ("", None), ("0", 0)],
)  # fmt: skip
def test_a_cell_is_a_figure_or_nothing(text: str, figure: float | None) -> None:
    assert number(text) == figure


@given(st.text())
def test_no_line_of_a_driver_breaks_the_watch(line: str) -> None:
    assert gpu_row(line, 0) is None or line.count(",") >= 8
    assert holder_row(line, 0) is None or line.count(",") >= 3


@pytest.mark.case("D13")
def test_a_hot_device_is_told_with_its_clock_and_what_held_it_back() -> None:
    found = summary(rows(HOT, HOT, COOL))
    assert found["gpu0_sm_median_mhz"] == 2457
    assert found["gpu0_sm_limit_mhz"] == 3003
    assert found["gpu0_power_max_w"] == 698.1
    assert found["gpu0_hottest_celsius"] == 88
    assert throttled(rows(HOT)) == "GPU 0: heat, heat (hardware)"
    assert throttled(rows(COOL)) == ""


@pytest.mark.case("D13")
def test_a_figure_that_the_driver_has_not_is_neither_zero_nor_a_crash() -> None:
    assert summary(rows(MUTE, MUTE)) == {}
    assert throttled(rows(MUTE)) == ""
    assert summary(rows(COOL, MUTE))["gpu0_sm_median_mhz"] == 3003


def test_an_idle_clock_is_no_throttling() -> None:
    assert throttled(rows(COOL.replace("0x0000000000000000", "0x0000000000000001"))) == ""


def test_ecc_errors_are_those_of_the_watch() -> None:
    assert summary(rows(COOL.replace(", 61, 0", ", 61, 7"), COOL.replace(", 61, 0", ", 61, 9")))["gpu0_ecc_errors"] == 2


@pytest.mark.parametrize(
    ("line", "words"),
    [("GPU-a, 4242, 1024, /usr/bin/python3", "python3 pid 4242 (1024 MiB)"),
     ("GPU-a, 4242, [N/A], [Not Found]", "[Not Found] pid 4242 (an unknown amount)")],
)  # fmt: skip
def test_a_process_on_a_device_is_named(line: str, words: str) -> None:
    assert str(holder_row(line, 0)) == words


@pytest.mark.parametrize(("visible", "seen"), [(None, True), ("0,1", True), ("GPU-a", True), ("1", False), ("", False)])
def test_a_device_that_the_engine_does_not_see_is_not_its_business(visible: str | None, seen: bool) -> None:
    assert used("0", "GPU-a7", visible) is seen


@pytest.fixture
def smi(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Smi:
    """smi(device row, holder row): an nvidia-smi of an older driver, which loops and refuses the newer column."""

    def made(device: str, holder: str) -> None:
        (tmp_path / "nvidia-smi").write_text(
            "#!/bin/sh\n"
            'case "$*" in *event_reasons*) echo Field is not a valid field to query.; exit 2;; esac\n'
            f'case "$*" in *compute-apps*) row="{holder}";; *) row="{device}";; esac\n'
            'while echo "$row"; do sleep 0.05; done\n'
        )
        (tmp_path / "nvidia-smi").chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")

    return made


def test_a_looping_tool_is_read_without_waiting_and_ended(smi: Smi) -> None:
    smi(HOT, "GPU-a, 4242, 1024, python3")
    watch = GpuWatch("0")

    def both() -> bool:
        watch.look(5)
        return bool(watch.rows and watch.holders)

    until(both)
    children = [loop.process for loop in (watch._devices, watch._apps)]
    watch.close()
    assert watch.rows[0].sm_mhz == 2457
    assert watch.holders[0].pid == 4242
    assert [child is not None and child.poll() is not None for child in children] == [True, True]


def test_a_tool_that_cannot_be_started_tells_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "nvidia-smi").write_bytes(b"\x7fELF, but no program")
    (tmp_path / "nvidia-smi").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    watch = GpuWatch(None)
    watch.look(1)
    watch.look(2)
    watch.close()
    assert watch.rows == []


def test_a_machine_without_the_tool_has_no_rows(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    watch = GpuWatch(None)
    watch.look(1)
    watch.close()
    assert (watch.rows, watch.holders) == ([], [])
