"""The bench without a GPU: it says what is not measured and measures the rest."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from kernels.prep_fused import bench
from kernels.prep_fused.dispatch import STUB_DEVICE, costs_us, stub_driver

ROOT = Path(__file__).resolve().parents[3]
ROW = re.compile(r"^  (.+?) +([\d.]+) us  \[([\d.]+), ([\d.]+)\]$", re.MULTILINE)


def bench_process(**variables):
    """The command in a process of its own."""
    command = [sys.executable, "-W", "ignore", "-m", "kernels.prep_fused.bench"]
    surroundings = os.environ | variables
    return subprocess.run(command, cwd=ROOT, env=surroundings, capture_output=True, text=True, check=False)


@pytest.mark.skipif(torch.cuda.is_available(), reason="says what a machine without a GPU is told")
def test_without_a_gpu_it_says_so_and_tells_what_a_launch_costs_the_host():
    done = bench_process()
    assert done.returncode == 0, done.stderr
    assert bench.NO_GPU in done.stdout
    assert bench.NOT_HERE in done.stdout
    rows = {name: (float(median), float(least), float(most)) for name, median, least, most in ROW.findall(done.stdout)}
    assert len(rows) == 6, done.stdout
    assert all(least <= median <= most for median, least, most in rows.values())


@pytest.mark.case("J7")
def test_in_the_interpreter_nothing_is_measured():
    done = bench_process(TRITON_INTERPRET="1")
    assert done.returncode == 0
    assert "nothing is measured" in done.stdout
    assert ROW.findall(done.stdout) == []


def test_a_number_that_cannot_be_is_a_wrong_command_line(capsys):
    with pytest.raises(SystemExit, match="2"):
        bench.main(["--requests", "0"])
    assert "--requests is 0, wanted at least 1" in capsys.readouterr().err


def test_costs_are_taken_round_after_round_through_all_calls():
    order = []
    costs = costs_us({"first": lambda: order.append(1), "second": lambda: order.append(2)}, rounds=2)
    assert set(costs) == {"first", "second"}
    changes = [kind for at, kind in enumerate(order) if at == 0 or order[at - 1] != kind]
    assert changes == [1, 2, 1, 2, 1, 2]


def test_the_stub_takes_the_place_of_no_real_device_and_leaves():
    config = __import__("triton").runtime.driver
    before = config._active
    with stub_driver() as driver:
        assert driver.get_current_device() == STUB_DEVICE
        assert config.active is driver
    assert config._active is before
