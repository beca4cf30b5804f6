"""One process and all that it starts, ended together: its group, and whoever carries its mark in the environment."""

import contextlib
import os
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

PROC = Path("/proc")
ROUNDS = 20  # a process that forks while it is being ended is found in the next one


@contextmanager
def running(
    command: Sequence[str], home: Path, environment: Mapping[str, str], output: Path
) -> Iterator["subprocess.Popen[bytes]"]:
    """The command in a session of its own, in `home` (also its HOME, which marks its descendants), writing `output`.

    On leaving, it and its descendants are killed: also one that left the session, unless it also changed HOME.
    """
    with output.open("wb") as told:
        process = subprocess.Popen(
            command, cwd=home, env={**environment, "HOME": str(home)}, start_new_session=True,
            stdin=subprocess.DEVNULL, stdout=told, stderr=subprocess.STDOUT,
        )  # fmt: skip
    try:
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)  # before the wait: until then the number is nobody else's
        process.wait()
        _end_marked(f"HOME={home}")


def _end_marked(mark: str) -> None:
    for _ in range(ROUNDS):
        found = [pid for pid in _pids() if mark.encode() in _environment(pid)]
        if not found:
            return
        for pid in found:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def _pids() -> list[int]:
    return [int(entry.name) for entry in PROC.glob("[0-9]*")]


def _environment(pid: int) -> list[bytes]:
    """What the process was started with; nothing for one that is dead, or not ours."""
    try:
        return (PROC / str(pid) / "environ").read_bytes().split(b"\0")
    except OSError:
        return []
