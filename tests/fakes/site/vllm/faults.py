"""Planted faults: FAKE_FAULT="name[:parameter],name[:parameter]" (tests/fakes/README.md lists them).

A number as parameter counts the requests that are still answered well after the first one, which is the runner's own
readiness request.
"""

import ctypes
import mmap
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import NoReturn

from vllm.logger import API_SERVER, ENGINE_CORE, log, write

ACTIVE = dict((*entry.split(":", 1), "")[:2] for entry in os.environ.get("FAKE_FAULT", "").split(",") if entry)
FOREVER_S = 3600
SLOW_TURN_S = 1.5
SLOW_PREFILL_S = 2.5
NO_MEMORY = (
    "Free memory on device cuda:0 (36.75/121.63 GiB) on startup is less than desired GPU memory utilization "
    "(0.85, 103.38 GiB)."
)
TAKEN = "[Errno 98] Address already in use"
PR_SET_NAME = 15
HELD: list[object] = []  # what must live as long as the process
_seen = {"requests": 0}
_lock = threading.Lock()

ORPHAN = """
import ctypes, signal, sys, time
for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
    signal.signal(number, signal.SIG_IGN)
ctypes.CDLL(None).prctl(15, b"VLLM::EngineCore", 0, 0, 0)
held = open(sys.argv[1], "w"); held.write("device memory"); held.flush()
print("ready", flush=True)
time.sleep(3600)
"""


def on(name: str) -> bool:
    """Whether a fault is planted."""
    return name in ACTIVE


def due(name: str) -> bool:
    """Whether a planted fault's time has come: more requests began than it lets pass."""
    return on(name) and _seen["requests"] > 1 + int(ACTIVE[name] or 0)


def count_request() -> None:
    """A generation begins."""
    with _lock:
        _seen["requests"] += 1


def at_boot() -> None:
    """Faults of the process itself, before anything is served."""
    if on("ignore_sigterm"):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if on("orphan_child"):
        start_orphan()
    if on("leak_shm"):
        leak_shared_memory()
    stuck_or_dead()


def stuck_or_dead() -> None:
    """A boot that never gets further."""
    if on("die_at_boot"):
        log(ENGINE_CORE, "core.py:1198", "ValueError: No available memory for the cache blocks.", "ERROR")
        die(ACTIVE["die_at_boot"])
    if on("engine_timeout"):
        write("TimeoutError: Timed out waiting for engines to send initial message on input socket.")
    if on("core_timeout"):
        engine_limit()
    if on("another_port"):
        write(f"WARNING metrics exporter: OSError: {TAKEN}, trying the next one")
    if on("no_memory"):
        write(f"ValueError: {NO_MEMORY}")
        die("")
    if on("engine_timeout") or on("slow_boot"):
        block()


def engine_limit() -> NoReturn:
    """The engine's own ready limit fires, with no core to blame."""
    write("RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}")
    die("")


def while_loading(nth_boot: int) -> None:
    """Faults of a core that loads its model."""
    if on("loads_forever"):
        block()
    if on("co_tenant") and nth_boot <= int(ACTIVE["co_tenant"] or 1):
        write("AssertionError: Error in memory profiling. Initial free memory 60.0 GiB, current free memory 68.0 GiB.")
        die("")
    if on("kernel_line"):
        write(f"Out of memory: Killed process {os.getpid()} (VLLM::EngineCor) total-vm:9999kB")
        die("SIGKILL")


def start_orphan() -> None:
    """A child in its own session, with an empty environment, deaf to polite signals, named like the engine's."""
    command = [sys.executable, "-S", "-E", "-c", ORPHAN, os.environ["FAKE_MARKER_FILE"]]
    child = subprocess.Popen(command, start_new_session=True, env={}, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    assert child.stdout is not None
    child.stdout.readline()
    HELD.append(child)


def leak_shared_memory() -> None:
    """A segment that nobody unlinks."""
    path = Path(f"/dev/shm/psm_fake_{os.environ['CAMPAIGN_RUN_ID']}_{os.getpid()}")
    path.write_bytes(bytes(mmap.PAGESIZE))
    with path.open("r+b") as file:
        HELD.append(mmap.mmap(file.fileno(), 0))


def on_request() -> None:
    """Faults of a generation that begins."""
    if on("die_on_first_request"):
        die(ACTIVE["die_on_first_request"])
    if due("stalls") or on("stalls_at_boot"):
        block()
    if due("late_orphan"):
        start_orphan()
    if on("slow_turns") and 1 < _seen["requests"] <= 1 + int(ACTIVE["slow_turns"]):
        time.sleep(SLOW_TURN_S)


def in_prefill() -> None:
    """Faults of a generation that is being computed and has given no token."""
    if on("slow_prefill") and 1 < _seen["requests"] <= 1 + int(ACTIVE["slow_prefill"]):
        time.sleep(SLOW_PREFILL_S)


def in_stream(tokens: int) -> None:
    """Faults of a generation that has given some tokens."""
    if due("die_in_window") and tokens > 1:
        log(API_SERVER, "async_llm.py:819", "vllm.v1.engine.exceptions.EngineDeadError: EngineCore died", "ERROR")
        os._exit(1)


def slower() -> float:
    """How much longer a step takes by now: a machine that throttles, request by request."""
    return 1 + float(ACTIVE.get("throttles") or 0) / 100 * _seen["requests"]


def die(how: str) -> NoReturn:
    """End at once: by a signal's name, or with an exit code (1)."""
    if how.startswith("SIG"):
        os.kill(os.getpid(), signal.Signals[how])
        block()
    os._exit(int(how or 1))


def block() -> NoReturn:
    """Never return (a SIGTERM to the main thread still ends it)."""
    while True:
        time.sleep(FOREVER_S)


def title(name: str) -> None:
    """The process title, as the kernel cuts it."""
    ctypes.CDLL(None).prctl(PR_SET_NAME, name.encode(), 0, 0, 0)
