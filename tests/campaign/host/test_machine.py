from pathlib import Path

import pytest

from campaign.host.machine import Machine, this

H100 = "Model: \t\t NVIDIA H100 80GB HBM3\nIRQ:   \t\t 17\nGPU UUID: \t GPU-1\n"
DRIVER = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  570.124.06  Wed Feb 26 02:14:22 UTC 2026\nGCC version:  13\n"


def written(root: Path, **files: str) -> Path:
    for name, text in files.items():
        path = root / name.replace("__", "/").replace("machine_id", "machine-id")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


@pytest.mark.case("D13")
def test_a_host_is_known_by_its_id_its_gpus_and_their_driver(tmp_path: Path) -> None:
    cpu = "processor\t: 0\nmodel name\t: Xeon 8480\n\nprocessor\t: 1\nmodel name\t: Xeon 8480\n"
    gpus = {f"proc__driver__nvidia__gpus__000{n}__information": H100 for n in (1, 2)}
    root = written(tmp_path, etc__machine_id="abc\n", proc__cpuinfo=cpu, proc__driver__nvidia__version=DRIVER, **gpus)
    found = this(root)
    assert (found.cpu, found.gpu, found.driver) == ("Xeon 8480 x2", "NVIDIA H100 80GB HBM3 x2", "570.124.06")
    assert found.host != this(written(tmp_path / "other", etc__machine_id="abd\n")).host
    assert "abc" not in found.host


def test_a_machine_without_a_driver_has_no_gpu(tmp_path: Path) -> None:
    assert this(tmp_path).gpu == "none"
    assert str(Machine("h", "Xeon x2", "none", "none")) == "h, Xeon x2, no GPU"
