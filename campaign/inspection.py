"""`inspect FILE`: what this product reads in an engine's log or in a saved /metrics text, whoever started that engine.

Reading only: the same functions that judge a boot, over one file. The exit code is 0 when it was read, 1 when it shows
an engine that died or never started (whatever the cause), 5 when a variable that its boot was given does nothing (the
boot's env.json lies beside the log); a file that is neither log nor metrics is a ConfigError.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from campaign import metrics, scrape
from campaign.engine import fatal, last_words, logs, speculation
from campaign.errors import ConfigError, ExitCode, InvalidError
from overlays.errors import OverlayError
from overlays.manifest import known

T = TypeVar("T")
BOOTS = "boots"  # RUN/boots/01-A/engine.log
LARGEST_MB = 256
WIDTH = 12  # of the column that names what is told
SHOWN_NAMES = 5
LOG_LINE = re.compile(
    r"(?:DEBUG|INFO|WARNING|ERROR|CRITICAL) \d\d-\d\d [\d:.]+ \[|^(?:\(\w+ pid=\d+\) )?INFO:     ", re.MULTILINE
)
PAGES = (".md", ".html", ".json", ".jsonl", ".py", ".toml", ".yaml", ".yml")  # they may quote a log
PAGE = re.compile(
    r"\s*(?:# (?:PASS|FAIL|INCONCLUSIVE|VOID|INVALID): |<!doctype|<html|\{\s*\"(?!log\")|\[\s*[{\"])", re.I
)
METRICS_LINE = re.compile(r"^(?:# (?:HELP|TYPE) |vllm:\w+[{ ])", re.MULTILINE)
VERSION = re.compile(r"(?:LLM engine \(v|version )(\d[\w.+]*)")
DRAFTING = re.compile(r"SpeculativeConfig\(method='([^']*)', model=(?:'([^']*)'|None), num_spec_tokens=(\d+)")
PROFILING = re.compile(r"CUDA graph memory profiling is (?:enabled|disabled).*")
ERROR = re.compile(r"(?:^|\s)((?:[\w.]*\.)?[A-Z]\w*(?:Error|Exception)): (.*)", re.MULTILINE)
STARTED = "Application startup complete."
TOLD_TO = "as it was told to; what it says after that is not read as a failure"
TRACEBACK = "Traceback (most recent call last)"


@dataclass(frozen=True)
class Finding:
    """What was read in a file, line by line, and the exit code that says the worst of it."""

    lines: tuple[str, ...]
    code: ExitCode = ExitCode.PASS


def look_into(file: Path) -> Finding:
    """A log or a metrics text. Raises ConfigError for a file that is neither, too large, or no text."""
    text = _text(file)
    if not text.strip():
        raise ConfigError(f"{file} is empty: the engine wrote nothing, so nothing can be read in it")
    if file.suffix in PAGES or PAGE.match(text):
        raise ConfigError(
            f"{file} is neither an engine's log nor a /metrics text, though it may quote one; give an engine.log of a "
            "boot, or what GET /metrics answered, or the folder of a run"
        )
    if METRICS_LINE.search(text):
        return of_metrics(text, file.name)
    if not (LOG_LINE.search(text) or _known(text)):
        raise ConfigError(
            f"{file} is neither an engine's log nor a /metrics text: no line of it is one that is read here; "
            "give an engine.log of a boot, or what GET /metrics answered"
        )
    nothing: dict[str, str] = {}
    no_words: list[str] = []
    given, argv = _beside(file, "env.json", nothing), _beside(file, "argv.json", no_words)
    return of_log(text, file.name, given, argv, _declared(file))


def _text(file: Path) -> str:
    size_mb = file.stat().st_size / 2**20
    if size_mb > LARGEST_MB:
        raise ConfigError(
            f"{file} has {size_mb:.0f} MiB; inspect reads up to {LARGEST_MB}: cut out the part of one boot"
        )
    content = file.read_bytes()
    if b"\0" in content:
        raise ConfigError(f"{file} is no text; give an engine's log or a saved /metrics text")
    return content.decode("utf-8", "replace")


def _known(text: str) -> bool:
    """Lines that are read here, in a log whose prefixes somebody cut off."""
    return bool(
        logs.kv(text) or logs.unknown_variables(text) or logs.attention_backend(text) or logs.worth_showing(text)
        or speculation.lines(text) or fatal.find(text, {}) or logs.crash(text)
        or last_words.ARGUMENT.search(text)
    )  # fmt: skip


def _beside(file: Path, name: str, nothing: T) -> T:
    """What a boot of ours was given, where it lies beside its log; `nothing` where it does not."""
    beside = file.with_name(name)
    if not beside.is_file():
        return nothing
    try:
        found = json.loads(beside.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"{beside} beside the log cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{beside} beside the log is no JSON: {error}") from error
    if not isinstance(found, type(nothing)):
        raise ConfigError(f"{beside} beside the log holds {type(found).__name__}, wanted {type(nothing).__name__}")
    return found


def _declared(file: Path) -> frozenset[str]:
    """Variables that an overlay of ours or of the run's own reads: the engine does not know them, and that is right."""
    search = [Path(path) for path in _overlay_path(file.absolute())]
    try:
        overlays = known([path for path in search if path.is_dir()])
    except OverlayError as error:
        raise ConfigError(str(error)) from error
    return frozenset(name for overlay in overlays.values() for name in overlay.variables)


def _overlay_path(log: Path) -> list[str]:
    """host.overlay_path of the run that a boot's log belongs to; empty for a log of somebody else's."""
    run = next((folder.parent for folder in log.parents if folder.name == BOOTS), None)
    if run is None:
        return []
    plan = run / "plan.json"
    nothing: dict[str, Any] = {}
    found: Any = _beside(plan, plan.name, nothing)
    for key in ("config", "host", "overlay_path"):
        if not isinstance(found, dict):
            raise ConfigError(f"{plan}: what holds {key} is {type(found).__name__}, wanted a map")
        found = found.get(key, [] if key == "overlay_path" else nothing)
    if not isinstance(found, list) or not all(isinstance(path, str) for path in found):
        raise ConfigError(f"{plan}: config.host.overlay_path is {found!r}, wanted a list of folders")
    return found


def of_log(
    text: str,
    name: str,
    given: Mapping[str, str],
    argv: Sequence[str],
    declared: frozenset[str],
) -> Finding:
    """A log's lines. `given` and `argv` are what the engine was started with, where it is known.

    `declared` are variables that overlays read, so that the engine's warning about them is expected.
    """
    lines, text = len(text.splitlines()), logs.engines_own(text)
    lived = logs.lived(text)
    death = tuple(_death(lived, given, argv))
    useless = tuple(_useless(text, given, declared))
    code = ExitCode.FAIL if death else ExitCode.INVALID if useless else ExitCode.PASS
    rows = [
        *_identity(text),
        *([("stopped", TOLD_TO)] if lived != text else []),
        *_decisions(lived),
        *_kv(text),
        *useless,
        *_unknown(text, given, declared),
        *_speculation(text),
        *death,
    ]
    head = f"engine log   {name}: {lines} lines"
    return Finding((head, *(f"  {what:<{WIDTH}}{told}" for what, told in rows)), code)


Rows = Iterator[tuple[str, str]]


def _identity(text: str) -> Rows:
    if version := VERSION.search(text):
        yield "version", version[1]
    if drafting := DRAFTING.search(text):
        yield "drafting", f"method {drafting[1]}, K={drafting[3]}, model {drafting[2] or 'none'}"
    yield "started", "yes" if STARTED in text else "the log does not say so"


def _decisions(text: str) -> Rows:
    yield "attention", logs.attention_backend(text) or "the log names no backend"
    for line in logs.worth_showing(text) or (
        "nothing of async scheduling, runner or prefix caching was decided otherwise",
    ):
        yield "decided", line
    for line in dict.fromkeys(found[0] for found in PROFILING.finditer(text)):
        yield "KV moves", f"{line} (capacities of versions that profile differently are not comparable)"


def _kv(text: str) -> Rows:
    found = logs.kv(text)
    if found is None:
        yield "KV", "the log has no KV line"
        return
    at_most = "" if found.concurrency is None else f", {found.concurrency:g} requests of {found.request_tokens:,}"
    yield "KV", f"{found.capacity_tokens:,} tokens{at_most} (smallest of {found.ranks} lines)"
    if found.contradiction:
        yield "", found.contradiction


def _useless(text: str, given: Mapping[str, str], declared: frozenset[str]) -> Rows:
    """Variables that the boot was given, that no overlay reads and that the engine does not know."""
    for name in logs.unknown_variables(text):
        if name not in given or name in declared:
            continue
        backend = logs.attention_backend(text) if "ATTENTION_BACKEND" in name else None
        uses = f"; it uses {backend}" if backend else ""
        yield "variable", f"{name}={given[name]} was given and is unknown to the engine: it does nothing{uses}"


def _unknown(text: str, given: Mapping[str, str], declared: frozenset[str]) -> Rows:
    unknown = logs.unknown_variables(text)
    others = [name for name in unknown if name not in given and name not in declared]
    if expected := declared.intersection(unknown):
        yield "variables", f"{len(expected)} unknown to the engine and read by overlays: expected"
    if others:
        more = f", ... {len(others) - SHOWN_NAMES} more" if len(others) > SHOWN_NAMES else ""
        whose = "of others" if given else "set by whom is not known: no env.json lies beside the log"
        yield "variables", f"{len(others)} unknown, {whose}: {', '.join(others[:SHOWN_NAMES])}{more}"


def _speculation(text: str) -> Rows:
    found = speculation.lines(text)
    for number, line in enumerate(found, 1):
        yield f"interval {number}", _interval(line)
        for sentence in speculation.contradictions(line):
            yield "", f"contradicts itself: {sentence}"
    together = speculation.pooled(found)
    if together is not None:
        yield "together", f"{_interval(together)}; {len(found)} intervals that the log printed, not a run's total"


def _interval(line: speculation.SpecLine) -> str:
    plain = ", ".join(f"{rate:.3f}" for rate in line.rates)
    given = ", ".join(f"{rate:.2f}" for rate in line.conditional[1:])
    conditional = f"; each given the one before: {given}" if given else ""
    return (
        f"{line.mean_length:.2f} tokens a step, {line.accepted}/{line.drafted} accepted ({line.average_pct:.1f} %); "
        f"pos1.. {plain}{conditional}: {speculation.shape(line)}"
    )


def _death(text: str, given: Mapping[str, str], argv: Sequence[str]) -> Rows:
    """Why the engine failed: the fatal line in its class, the errors above it, how a worker ended."""
    if refused := last_words.ARGUMENT.search(text):
        yield "failed", f"the engine refused its arguments: {refused[1]} (EngineFailedError, exit 1)"
    found = fatal.find(text, given)
    if found is not None:
        yield "failed", f"{found.sentence} ({_class_of(found)}): {logs.message(found.line)}"
    dead = logs.crash(text)
    broken_start = STARTED not in text and TRACEBACK in text and ERROR.search(text) is not None
    if found is None and (dead or broken_start):
        yield "failed", f"{dead or 'an error before the start was complete'} (EngineFailedError, exit 1)"
    if found is None and not dead and not broken_start:
        return
    for told in list(dict.fromkeys(_errors(text)))[:3]:
        yield "error", told
    if doubt := logs.unconfirmed(argv, text):
        yield "", doubt
    if workers := fatal.WORKER_DIED.findall(text):
        yield "worker", "; ".join(fatal.exit_words(int(code)) for code in dict.fromkeys(workers))


def _errors(text: str) -> Iterator[str]:
    """What the tracebacks end with; a validation error with the reason that stands below it."""
    for error in ERROR.finditer(text):
        yield f"{error[1]}: {error[2].strip()}{last_words.reason_below(text, error.end())}"


def _class_of(found: fatal.Fatal) -> str:
    return f"{found.error.__name__}, exit {int(found.error.exit_code)}"


def of_metrics(text: str, name: str) -> Finding:
    """A scrape's counters under our names. Raises ConfigError where it is no Prometheus text."""
    try:
        counters = metrics.parse(text)
    except InvalidError as error:
        raise ConfigError(f"{name}: {error}") from error
    rows = scrape.rows(counters, text)
    engines = ", ".join(sorted(counters.by_engine)) or "none"
    return Finding((f"/metrics     {name}: engines {engines}", *(f"  {what:<20}{told}" for what, told in rows)))
