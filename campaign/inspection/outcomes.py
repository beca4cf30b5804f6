"""What somebody already concluded: a run's result.json, or the JSON that a benchmark tool wrote (cases D7)."""

from typing import Any

from campaign import typed
from campaign.errors import ConfigError, ExitCode
from campaign.inspection.finding import Finding, Row, code_of
from campaign.inspection.recognised import Kind, Source
from verdict.words import Verdict

ASKED = ("num_prompts", "num_requests", "total_requests")
SPEEDS = ("output_throughput", "total_token_throughput", "request_throughput", "tok_per_s")
MOST_TOLD = 12


def look(source: Source) -> Finding:
    """A result as it was told, or a benchmark after its success share. Raises ConfigError for a value of no use."""
    return _result(source) if source.kind is Kind.RESULT else _benchmark(source)


def _result(source: Source) -> Finding:
    data = source.data[0]
    verdict = typed.word(data, "verdict", Verdict, source.name)
    gates = typed.items(data, "gates", source.name) or []
    if not all(isinstance(gate, dict) and isinstance(gate.get("line"), str) for gate in gates):
        raise ConfigError(f"{source.name}: gates holds something without a line; it is no result of a run")
    for gate in gates:
        typed.items(gate, "details", f"{source.name}: {gate['line']}")
    rows: list[Row] = [("", line) for gate in gates for line in (gate["line"], *_details(gate))]
    boots = ", ".join(map(str, typed.items(data, "boots", source.name) or []))
    rows += [("", f"boots: {boots}")] if boots else []
    head = f"result       {source.name}: {data['run_id']}, verdict {verdict.value}"
    return Finding("result", (source.name,), head, tuple(rows), code_of(verdict), True, width=0)


def _details(gate: dict[str, Any]) -> list[str]:
    found = gate.get("details") or []
    return [f"  {detail}" for detail in found[:MOST_TOLD]]


def _benchmark(source: Source) -> Finding:
    """Success first: a rate over the answers that happened to come is no speed."""
    data = source.data[0]
    completed = typed.number(data, "completed", source.name)
    asked = next((typed.number(data, key, source.name) for key in ASKED if key in data), None)
    head = f"benchmark    {source.name}: JSON of a benchmark tool"
    if completed is None or asked is None or not 0 <= completed <= asked or not asked:
        why = f"{completed} completed of {asked} asked: without both there is no success share"
        return _finding(source, head, [("", f"INCONCLUSIVE  {why}")], ExitCode.INCONCLUSIVE)
    share = f"{completed:g} of {asked:g} requests completed"
    if completed < asked:
        why = f"FAIL          {share} ({100 * completed / asked:.0f} %): no rate of lost answers"
        return _finding(source, head, [("", why)], ExitCode.FAIL)
    speeds = ", ".join(f"{key} {data[key]}" for key in SPEEDS if key in data) or "no rate"
    rows = [
        ("", share),
        ("", f"INCONCLUSIVE  one run of one arm ({speeds}): no interval, so no verdict about a difference"),
    ]
    return _finding(source, head, rows, ExitCode.INCONCLUSIVE)


def _finding(source: Source, head: str, rows: list[Row], code: ExitCode) -> Finding:
    return Finding("benchmark", (source.name,), head, tuple(rows), code, True, width=0)
