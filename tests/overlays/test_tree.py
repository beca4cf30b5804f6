"""Bytecode is compiled by processes that end with whoever started them."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from overlays.tree import compile_bytecode

ROOT = Path(__file__).parents[2]
WAIT_S = 120.0
SOURCES = 40
COMPILING = """
import signal, sys
from pathlib import Path
from overlays.tree import compile_bytecode
def end(*_):
    raise KeyboardInterrupt
signal.signal(signal.SIGTERM, end)
tree = Path(sys.argv[1])
compile_bytecode(Path(sys.executable), tree, Path("/final"), [tree])
"""


def until(condition: Callable[[], bool]) -> None:
    """Wait; a deadline only ends a test that would hang."""
    deadline = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.02)


def tree(folder: Path, sources: int, length: int) -> Path:
    """A tree of sources, so long that compiling one takes a while."""
    made = folder / "tree" / "vllm"
    made.mkdir(parents=True)
    for number in range(sources):
        (made / f"m{number}.py").write_text("".join(f"def f{i}(x):\n    return x + {i}\n" for i in range(length)))
    return made.parent


def test_every_source_of_a_tree_is_compiled_with_its_final_path(tmp_path: Path) -> None:
    made = tree(tmp_path, 5, 2)
    compile_bytecode(Path(sys.executable), made, Path("/final"), [made])
    compiled = sorted((made / "vllm/__pycache__").iterdir())
    assert [file.name.split(".")[0] for file in compiled] == [f"m{number}" for number in range(5)]
    assert all(b"/final/vllm/m" in file.read_bytes() for file in compiled)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL], ids=lambda n: n.name)
def test_nobody_goes_on_compiling_once_the_runner_was_ended(tmp_path: Path, number: signal.Signals) -> None:
    """SIGKILL lets the compilers finish what they have; what must not be is a worker that waits for ever."""
    made = tree(tmp_path, SOURCES, 4000 if number is not signal.SIGKILL else 400)
    runner = subprocess.Popen(
        [sys.executable, "-c", COMPILING, str(made)], cwd=ROOT, env=os.environ | {"PYTHONPATH": str(ROOT)},
        stderr=subprocess.DEVNULL,
    )  # fmt: skip
    children: list[psutil.Process] = []

    def compiling() -> bool:
        children[:] = psutil.Process(runner.pid).children(recursive=True)
        return len(children) == 2 and (made / "vllm/__pycache__").is_dir()

    until(compiling)
    runner.send_signal(number)
    assert runner.wait(WAIT_S) != 0
    if number is signal.SIGKILL:
        until(lambda: not any(living(child) for child in children))
    assert not any(living(child) for child in children)
    if number is not signal.SIGKILL:
        assert len(list((made / "vllm/__pycache__").iterdir())) < SOURCES  # ended, not waited for


def living(process: psutil.Process) -> bool:
    """Whether it still runs."""
    return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
