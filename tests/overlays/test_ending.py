"""What `python -m overlays` leaves when it is asked to end, or killed: no process, no folder, one sentence."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from overlays.making import making
from tests.fakes.overlay import PYTHON, Change, write_overlay

ROOT = Path(__file__).parents[2]
WAIT_S = 120.0
MAKING = """
import sys, time
from pathlib import Path
from overlays.ending import ending_cleanly
from overlays.making import making
with ending_cleanly(), making(Path(sys.argv[1])) as aside:
    (aside / "half").write_text("half")
    (aside / "half").chmod(0o444)
    aside.chmod(0o555)
    print(aside, flush=True)
    time.sleep(600)
"""


def until(condition: Callable[[], bool]) -> None:
    """Wait; a deadline only ends a test that would hang."""
    deadline = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.02)


def running(pid: int) -> bool:
    """Whether there is such a process, and it is no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT], ids=lambda number: number.name)
def test_a_verb_that_is_asked_to_end_leaves_nothing_and_says_so_in_a_sentence(tmp_path, number):
    mark, scratch = tmp_path / "importing", tmp_path / "scratch"
    scratch.mkdir()
    waits = f"import os\nimport time\nopen({str(mark)!r}, 'w').write(str(os.getpid()))\ntime.sleep(600)\n"
    write_overlay(tmp_path / "mine", "slow_import", Change("vllm/envs.py", "import os\n", waits))
    words = ["verify", "slow_import", "--import", "--python", str(PYTHON), "--overlay-path", str(tmp_path / "mine")]
    verb = subprocess.Popen(
        [sys.executable, "-m", "overlays", *words, "--stages", str(tmp_path / "stages")], cwd=ROOT,
        env=os.environ | {"TMPDIR": str(scratch)}, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        start_new_session=True,
    )  # fmt: skip
    until(lambda: mark.is_file() and mark.read_text() != "")
    verb.send_signal(number)
    _, told = verb.communicate(timeout=WAIT_S)
    assert (verb.returncode, told.splitlines()) == (
        130,
        [f"overlays: interrupted ({number.name}); what was started is ended, nothing is left half made"],
    )
    until(lambda: not running(int(mark.read_text())))
    assert list(scratch.iterdir()) == []


def maker(folder: Path) -> "tuple[subprocess.Popen[str], Path]":
    """A process that makes a folder in `folder` and does not finish."""
    process = subprocess.Popen([sys.executable, "-c", MAKING, str(folder)], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    return process, Path(process.stdout.readline().strip())


def test_a_folder_in_the_making_goes_with_its_maker(tmp_path):
    process, aside = maker(tmp_path)
    assert aside.is_dir()
    process.terminate()
    process.communicate(timeout=WAIT_S)
    assert list(tmp_path.iterdir()) == []


def test_the_folder_of_a_maker_that_was_killed_is_removed_by_the_next_one_and_a_living_ones_is_not(tmp_path):
    (dead, left), (alive, kept) = maker(tmp_path), maker(tmp_path)
    try:
        dead.kill()
        dead.communicate(timeout=WAIT_S)
        assert left.is_dir()
        with making(tmp_path) as mine:
            assert set(tmp_path.iterdir()) == {kept, mine}
        assert set(tmp_path.iterdir()) == {kept}
    finally:
        alive.terminate()
        alive.communicate(timeout=WAIT_S)


def test_makers_that_sweep_while_others_begin_all_get_a_folder_of_their_own(tmp_path):
    """A folder that was just made and not locked yet looks like a dead maker's to a sweeper."""

    def begin(_: int) -> str:
        with making(tmp_path) as mine:
            return mine.name

    with ThreadPoolExecutor(8) as pool:
        names = list(pool.map(begin, range(400)))
    assert len(set(names)) == 400
    assert list(tmp_path.iterdir()) == []
