"""What an engine's log says: the KV budget, unknown variables, lines after which waiting is useless, its last lines."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

TAIL_LINES = 40
TAIL_BYTES = 64 * 1024
KV_SIZE = re.compile(r"KV cache size: ([\d,]+) tokens")
KV_CONCURRENCY = re.compile(r"Maximum concurrency for ([\d,]+) tokens per request: ([\d.,]+)x")
PARTING_NOISE = re.compile(
    r"^\s*- (?:leaked |\.\.\. skipped)|^nanobind: |nanobind\.readthedocs"
    r"|resource_tracker: There appear|warn\('resource_tracker"
)
ENGINE_LINE = re.compile(r"\bEngine (\d{3}): Avg ")
UNKNOWN_VARIABLE = re.compile(r"Unknown vLLM environment variable detected: (\w+)")
ATTENTION_BACKEND = re.compile(r"Using (?:AttentionBackendEnum\.)?(\w+) (?:attention )?backend", re.IGNORECASE)
PREFIX = re.compile(
    r"^(?:\(\w+(?: pid=\d+)?\) )?(?:(?:DEBUG|INFO|WARNING|ERROR|CRITICAL) \d\d-\d\d [\d:.]+ \[[^\]]*\] )?"
)
ASYNC_OFF = r"Async scheduling (?:not supported|is not compatible|will be disabled|is disabled)|vetoed: "
RUNNER = r"using the V1 model runner instead|Model Runner V2 (?:requires|does not support)"
PREFIX_CACHE = r"[Pp]refix caching (?:is |was )?(?:not supported|disabled)|(?:Disabling|do not support) prefix caching"
REASONS = {  # what a witness's row is about -> the log lines that explain it
    "async_scheduling": re.compile(ASYNC_OFF),
    "max_concurrent_batches": re.compile(ASYNC_OFF),
    "runner": re.compile(RUNNER),
    "prefix_caching": re.compile(PREFIX_CACHE),
    "enable_prefix_caching": re.compile(PREFIX_CACHE),
}
OUT_OF_MEMORY = re.compile(
    r"out of memory|OutOfMemoryError|No available memory for the cache|Free memory on device", re.I
)
OFFLOAD_ARGUMENTS = ("--cpu-offload-gb", "--kv-offloading-size", "--offload-group-size")
OFFLOADING = re.compile(r"Offloader set to (?!NoopOffloader)")
DEATHS = "Segmentation fault|Illegal instruction|Bus error|Floating point exception|Aborted"  # a shell's words
CRASH = re.compile(  # the last words of a dead engine, whoever wrote them: the engine, Python, torch, libc, a shell
    r"EngineDeadError|died unexpectedly|Engine core initialization failed|Application startup failed"
    r"|EngineCore encountered a fatal error|(?:EngineCore|WorkerProc) failed to start"
    r"|!{3,} *Segfault encountered|Fatal Python error: [^\n]*|\*{3} SIG[A-Z]+ "
    rf"|(?:{DEATHS}) +\(core dumped\)|^(?:{DEATHS}|Killed)$"
    rf"|(?:{PREFIX.pattern}|Error: )CUDA error: [^\n]*"
    r"|an illegal memory access was encountered|device-side assert triggered"
    r"|^(?:terminate called |double free or corruption|free\(\): |malloc\(\): |munmap_chunk\(\): |corrupted \w)"
    r"|Out of memory: Killed process \d+",
    re.MULTILINE,
)
STOPPING = re.compile(rf"{PREFIX.pattern}\[shutdown\] ", re.MULTILINE)  # it was told to end
OTHERS_WORDS = re.compile(
    r"\b(?:Received request|Generated response) \S+(?: \([^)]*\))?(?: details)?: |\bRequest \S+ details: "
)
WORTH_SHOWING = re.compile(rf"{ASYNC_OFF}|{RUNNER}|{PREFIX_CACHE}|died unexpectedly|EngineDeadError")


@dataclass(frozen=True)
class KvLog:
    """The KV budget as printed, the smallest of all ranks. `contradiction` is a sentence when two numbers disagree."""

    capacity_tokens: int
    request_tokens: int | None  # what the concurrency was computed for
    concurrency: float | None
    ranks: int  # how many lines said so
    contradiction: str = ""


def read(log_file: Path) -> str:
    """The whole log. What is not UTF-8 is replaced; a log that does not exist yet is empty."""
    return log_file.read_text(encoding="utf-8", errors="replace") if log_file.exists() else ""


def tail(log_file: Path, lines: int = TAIL_LINES) -> tuple[str, ...]:
    """The last lines, read from the end so that a huge log costs nothing.

    Blank lines are left out, and what interpreters say of leaks as they end: it buries the reason of a death.
    """
    if not log_file.exists():
        return ()
    with log_file.open("rb") as file:
        file.seek(max(0, log_file.stat().st_size - TAIL_BYTES))
        found = file.read().decode("utf-8", "replace").splitlines()
    return tuple(line.rstrip() for line in found if line.strip() and not PARTING_NOISE.search(line))[-lines:]


def engines_own(text: str) -> str:
    """A log without the lines in which it repeats a request or an answer: they may hold any words."""
    return "".join(line for line in text.splitlines(keepends=True) if not OTHERS_WORDS.search(line))


def lived(text: str) -> str:
    """A log up to where the engine was told to end: from there on its parts complain of each other."""
    stopping = STOPPING.search(text)
    return text if stopping is None else text[: stopping.start()]


def crash(text: str) -> str:
    """The first words that an engine does not survive; empty where there are none."""
    found = CRASH.search(text)
    return message(found[0]) if found else ""


def kv(text: str) -> KvLog | None:
    """The KV lines of a log; None when it has none. Several workers print: the minimum counts."""
    sizes = [_number(found) for found in KV_SIZE.findall(text)]
    if not sizes:
        return None
    pairs = [(_number(tokens), float(times.replace(",", ""))) for tokens, times in KV_CONCURRENCY.findall(text)]
    least = min(pairs, key=lambda pair: pair[1], default=None)
    capacity = min(sizes)
    if least is None:
        return KvLog(capacity, None, None, len(sizes))
    return KvLog(capacity, *least, len(sizes), _contradiction(capacity, *least))


def _contradiction(capacity: int, request_tokens: int, concurrency: float) -> str:
    """The product of the printed, rounded concurrency must be the capacity; on hybrid models it has not been."""
    product = request_tokens * concurrency
    rounding = 0.005 * request_tokens + 1
    if abs(product - capacity) <= rounding:
        return ""
    return (
        f"the log says {capacity:,} KV tokens, but {concurrency:g} requests of {request_tokens:,} tokens "
        f"({product:,.0f} in all); groups of different layers share the cache, so neither number alone is its size"
    )


def engines(text: str) -> frozenset[str]:
    """The data-parallel engines of which the log prints statistics, by the labels of /metrics (cases B7)."""
    return frozenset(str(int(found)) for found in ENGINE_LINE.findall(text))


def unknown_variables(text: str) -> tuple[str, ...]:
    """Names that the engine does not know, each once, in the order of the log."""
    return tuple(dict.fromkeys(UNKNOWN_VARIABLE.findall(text)))


def attention_backend(text: str) -> str | None:
    """The attention backend that the engine says it uses."""
    found = ATTENTION_BACKEND.search(text)
    return found[1] if found else None


def worth_showing(text: str) -> tuple[str, ...]:
    """Warnings that change what was measured: async scheduling or the runner decided otherwise, a worker that died.

    Each once, whichever process said it and when.
    """
    lines = engines_own(text).splitlines()
    return tuple(dict.fromkeys(message(line) for line in lines if WORTH_SHOWING.search(line)))


def reason(what: str, text: str) -> str:
    """The log line that explains why a resolved value is not the one asked for; empty where there is none."""
    wanted = REASONS.get(what)
    lines = (message(line) for line in text.splitlines() if wanted and wanted.search(line))
    found = next(lines, "")
    return f"the log says: {found}" if found else ""


def unconfirmed(argv: Sequence[str], text: str) -> str:
    """What a death for want of memory must say beside it: offloading was asked for, and nothing shows it (cases C9)."""
    asked = [f"{a} {b}" for a, b in pairwise(argv) if a in OFFLOAD_ARGUMENTS and b not in ("0", "0.0")]
    if not asked or not OUT_OF_MEMORY.search(text) or OFFLOADING.search(text):
        return ""
    return f"not confirmed: {', '.join(asked)} was asked for, and no line of the log says that anything is offloaded"


def message(line: str) -> str:
    """A log line without its process, level, time and place."""
    return PREFIX.sub("", line.strip()).strip()


def _number(text: str) -> int:
    return int(text.replace(",", ""))
