"""Why an engine is gone or never will be ready: log lines after which waiting is useless, exit codes in words."""

import re
import signal
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from campaign.engine.spec import READY_TIMEOUT
from campaign.errors import CampaignError, EngineFailedError, HostUnfitError, InvalidError

ILLEGAL = "on CPUs with AMX a bf16 engine dies so after a short first request: send a long one first, or use float32"
COLD_CACHE, CO_TENANT, STALE_CACHE = "cold cache", "co-tenant", "stale compile cache"  # what a second boot may mend
OUT_OF_MEMORY = re.compile(r"Out of memory: Killed process (\d+)|oom-kill:.*\bpid=(\d+)")  # the kernel's lines
WORKER_DIED = re.compile(r"died unexpectedly \(exit code: (-?\d+)\)")
SHELL_SIGNAL = 128  # a shell or a container reports death by signal n as 128 + n
LAST_SIGNAL = 64


@dataclass(frozen=True)
class Fatal:
    """A line after which the engine never becomes ready: whose fault, what it means, and whether it may pass."""

    error: type[CampaignError]
    sentence: str
    line: str
    transient: str = ""
    survivable: bool = False  # an engine that lives on has got over it: it is fatal only with its consequence


@dataclass(frozen=True)
class _Pattern:
    line: re.Pattern[str]
    error: type[CampaignError]
    say: Callable[[re.Match[str], Mapping[str, str]], str]
    transient: str = ""
    unless: str = ""  # a text of the log that gives the line another meaning
    survivable: bool = False


def _engine_limit(_: re.Match[str], env: Mapping[str, str]) -> str:
    limit = env.get(READY_TIMEOUT, "600")
    return f"engine-ready timeout: the engine's own limit fired ({READY_TIMEOUT}={limit}), not ours"


def _stale(found: re.Match[str], env: Mapping[str, str]) -> str:
    root = env.get("VLLM_CACHE_ROOT", "the engine's compile cache")
    return f"stale compile cache: a kernel that was built for size {found[2]} met size {found[1]} (cache {root})"


def _memory(found: re.Match[str], _: Mapping[str, str]) -> str:
    return (
        f"{found[1]} of the device's {found[2]} GiB are free, the engine wants {found[3]}; a retry would say the same"
    )


PATTERNS = (  # causes before consequences: one boot may print several
    _Pattern(
        re.compile(r"\[Errno 98\].*[Aa]ddress already in use"),
        InvalidError,
        lambda *_: "port in use: the engine could not bind it",
        survivable=True,  # some other port's, or it took the next one
    ),
    _Pattern(
        re.compile(r"Free memory on device \S+ \(([\d.]+)/([\d.]+) GiB\).*?\([\d.]+, ([\d.]+) GiB\)"),
        EngineFailedError,
        _memory,
    ),
    _Pattern(
        re.compile(r"Error in memory profiling\. Initial free memory"),
        HostUnfitError,
        lambda *_: "co-tenant activity: free memory grew while the engine profiled it; retry on a quiet machine",
        CO_TENANT,
    ),
    _Pattern(
        re.compile(r"AssertionError: expected size (\d+)==(\d+), stride"),
        EngineFailedError,
        _stale,
        STALE_CACHE,
    ),
    _Pattern(
        re.compile(r"Timed out waiting for engines? (?:to send initial message|core processes to start)"),
        EngineFailedError,
        _engine_limit,
        COLD_CACHE,
    ),
    _Pattern(
        re.compile(r"Engine core initialization failed\..*Failed core proc\(s\): \{\}"),
        EngineFailedError,
        _engine_limit,
        COLD_CACHE,
        unless="EngineCore failed to start",  # it died of an error, within seconds: no limit fired
    ),
    _Pattern(
        re.compile(r"Engine core initialization failed\."),
        EngineFailedError,
        lambda *_: "the engine core did not start; the cause stands above in its log",
    ),
)


def find(text: str, env: Mapping[str, str], *, survived: bool = False) -> Fatal | None:
    """The first fatal line of a log by the order of PATTERNS; `survived`: without those that an engine got over."""
    lines = text.splitlines()
    for pattern in (p for p in PATTERNS if not (p.unless and p.unless in text) and not (survived and p.survivable)):
        for line in lines:
            if found := pattern.line.search(line):
                told = pattern.say(found, env)
                return Fatal(pattern.error, told, line.strip(), pattern.transient, pattern.survivable)
    return None


def exit_words(code: int, text: str = "", *, by_us: bool = False, proof: str = "") -> str:
    """An exit code in words: `exited with 3`, `was killed by SIGKILL, sender unknown`; the log tells a worker's.

    The OOM killer is named only with a proof: the count of the cgroup that rose, or the kernel's own line in the log.
    """
    number = _signal_number(code)
    by_kernel = _out_of_memory(text, proof)
    words = f"exited with {code}" if number is None else f"was killed by {_signal_words(number, by_us, by_kernel)}"
    workers = sorted({int(found) for found in WORKER_DIED.findall(text)})
    of = [f"a worker {exit_words(worker)}" for worker in workers]
    return "; ".join([words, *of])


def _signal_number(code: int) -> int | None:
    if code < 0:
        return -code
    return code - SHELL_SIGNAL if SHELL_SIGNAL < code <= SHELL_SIGNAL + LAST_SIGNAL else None


def _out_of_memory(text: str, proof: str) -> str:
    found = OUT_OF_MEMORY.search(text)
    why = proof or (f"the kernel's line {found[0]!r}" if found else "")
    return f"by the kernel, out of memory ({why})" if why else ""


def _signal_words(number: int, by_us: bool, by_kernel: str) -> str:
    """The signal and what is known of it. SIGKILL alone is no proof of the OOM killer."""
    try:
        name = signal.Signals(number).name
    except ValueError:
        name = f"signal {number}"
    if by_us:
        return f"{name}, sent by this runner"
    notes = {"SIGKILL": by_kernel or "sender unknown", "SIGILL": ILLEGAL}
    return f"{name}, {notes[name]}" if name in notes else name
