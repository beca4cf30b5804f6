"""An engine's log: identity, decisions, KV budget, variables that do nothing, intervals of drafting, a death."""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from campaign.engine import fatal, last_words, logs, speculation
from campaign.errors import ExitCode
from campaign.inspection import beside
from campaign.inspection.finding import Finding, Rows
from verdict.words import number_of

SHOWN_NAMES = 5
LINE = re.compile(
    r"(?:DEBUG|INFO|WARNING|ERROR|CRITICAL) \d\d-\d\d [\d:.]+ \[|^(?:\(\w+ pid=\d+\) )?INFO:     ", re.MULTILINE
)
VERSION = re.compile(r"(?:LLM engine \(v|version )(\d[\w.+]*)")
DRAFTING = re.compile(r"SpeculativeConfig\(method='([^']*)', model=(?:'([^']*)'|None), num_spec_tokens=(\d+)")
PROFILING = re.compile(r"CUDA graph memory profiling is (?:enabled|disabled).*")
ERROR = re.compile(r"(?:^|\s)((?:[\w.]*\.)?[A-Z]\w*(?:Error|Exception)): (.*)", re.MULTILINE)
STARTED = "Application startup complete."
TOLD_TO = "as it was told to; what it says after that is not read as a failure"
TRACEBACK = "Traceback (most recent call last)"


def is_one(text: str) -> bool:
    """Whether a text is an engine's log: by its prefixes, or by lines that are read here where those were cut off."""
    return bool(
        LINE.search(text)
        or logs.kv(text) or logs.unknown_variables(text) or logs.attention_backend(text) or logs.worth_showing(text)
        or speculation.lines(text) or fatal.find(text, {}) or logs.crash(text)
        or last_words.ARGUMENT.search(text) or logs.engines(text)
    )  # fmt: skip


def version(text: str) -> str:
    """The engine's version as its log tells it; empty where it does not."""
    found = VERSION.search(text)
    return found[1] if found else ""


def profiling(text: str) -> str:
    """What the log says of how memory was profiled; empty where it says nothing."""
    return "; ".join(dict.fromkeys(found[0] for found in PROFILING.finditer(text)))


def look(file: Path, text: str) -> Finding:
    """A log with what lies beside it. Raises ConfigError for something beside it that cannot be read."""
    nothing: dict[str, str] = {}
    no_words: list[str] = []
    env, argv = beside.given(file, "env.json", nothing), beside.given(file, "argv.json", no_words)
    return of_log(text, file.name, env, argv, beside.declared(file))


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
    return Finding("log", (name,), f"engine log   {name}: {number_of(lines, 'line')}", tuple(rows), code)


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
    at_most = (
        "" if found.concurrency is None else f", {number_of(found.concurrency, 'request')} of {found.request_tokens:,}"
    )
    yield "KV", f"{found.capacity_tokens:,} tokens{at_most} (smallest of {number_of(found.ranks, 'line')})"
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
        nothing = "" if line.drafted else f": {speculation.shape(line)}"
        yield f"interval {number}", f"{_interval(line)}{nothing}"  # ten seconds are no run: their chain is not judged
        for sentence in speculation.contradictions(line):
            yield "", f"contradicts itself: {sentence}"
    together = speculation.pooled(found)
    if together is not None:
        whose = f"{number_of(len(found), 'interval')} that the log printed, not a run's total"
        yield "together", f"{_interval(together)}: {speculation.shape(together)} ({whose})"
    elif len({len(line.rates) for line in found}) > 1:
        yield "together", "the intervals draft different lengths: no total of them is judged"


def _interval(line: speculation.SpecLine) -> str:
    plain = ", ".join(f"{rate:.3f}" for rate in line.rates)
    given = ", ".join(f"{rate:.2f}" for rate in line.conditional[1:])
    conditional = f"; each given the one before: {given}" if given else ""
    return (
        f"{line.mean_length:.2f} tokens a step, {line.accepted}/{line.drafted} accepted ({line.average_pct:.1f} %); "
        f"pos1.. {plain}{conditional}"
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
