"""Is every knob really on? Asked, resolved, behaved, attested: what the engine's own processes show.

Pure. Each doubt is a row that is not ok, with what was found; nothing here raises because a knob is off.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from campaign.engine import arguments, attested, behaved, logs
from campaign.engine.attested import StagedModule
from campaign.engine.reports import Place, Report
from campaign.engine.spec import OURS_PREFIX, EngineSpec, argument
from campaign.evidence import WitnessRow

ENGINE = "engine"  # rows that belong to no knob
UNKNOWN = "unknown variables"  # a row that only counts; each of ours has a row of its own below it
ABSENT = "(absent)"
UNSET = "(unset)"
SPECULATION = "--speculative-config"
DECIDED = ".decided"  # overlays.NAME.decided: the overlay's own word that the stock engine would have decided otherwise


@dataclass(frozen=True)
class KnobAsked:
    """A knob with the value wanted (None: it must be unset), how it travels, and what the engine must show for it."""

    name: str
    value: str | None
    variable: str | None = None
    serve_argument: str | None = None
    resolved: Mapping[str, object] = field(default_factory=dict)
    behaved: Mapping[str, Mapping[str, float]] = field(
        default_factory=dict
    )  # counter -> {"min": x} and / or {"max": y}
    speculative_key: str | None = None  # its name in --speculative-config, for what the model's drafting is made of


def rows(
    knobs: Sequence[KnobAsked],
    before: Sequence[Report],
    after: Sequence[Report] | None,
    *,
    spec: EngineSpec,
    log: str,
    staged: Iterable[StagedModule] = (),
    expected: Sequence[Place] = (),
    usual: bool = True,
    wraps: Mapping[str, Sequence[str]] | None = None,
) -> tuple[WitnessRow, ...]:
    """The whole witness of a boot. Without `after` (before the window) nothing is said about behaviour.

    `expected` are the roles and ranks that must answer, beside the worker ranks that the engine itself counts. A
    behaviour that must reach something must do so in half of the steps (`usual`), or at least once: short prompts
    have many first steps, in which nothing can be ahead yet. `wraps` are the engine files, by overlay, whose functions
    a staged plugin declares to replace.
    """
    now = after if after is not None else before
    found = [*processes(before, after, expected), *faulty_reports(now), *variables(spec, log)]
    for knob in knobs:
        found += asked(knob, spec, now)
        found += _explained(resolved(knob, now), log)
        if after is not None:
            found += behaved.rows(knob.name, knob.behaved, before, after, usual=usual)
        if not knob.resolved and not knob.behaved and knob.value is not None:
            found.append(_unwitnessed(knob))
    return (*found, *attested.rows(staged, now, str(spec.stage_path), wraps))


def not_ok(found: Iterable[WitnessRow]) -> tuple[WitnessRow, ...]:
    """The rows that make the boot INVALID."""
    return tuple(row for row in found if not row.ok)


def sentence(row: WitnessRow) -> str:
    """A row that is not ok, in words."""
    source = f" ({row.source})" if row.source else ""
    return f"{row.knob}: {row.layer} {row.what} is {row.found}, wanted {row.wanted}{source}"


def processes(
    before: Sequence[Report], after: Sequence[Report] | None, expected: Sequence[Place] = ()
) -> list[WitnessRow]:
    """API server, core and every worker rank answer; after the window the same processes answer as before it."""
    there = ", ".join(map(str, before)) or "nobody"
    needed = dict.fromkeys([*expected, *(("Worker", rank) for rank in range(_world_size(before)))])
    wanted = ", ".join(f"{role} {rank}" for role, rank in needed) or "at least one"
    complete = bool(before) and needed.keys() <= {report.place for report in before}
    found = [WitnessRow(ENGINE, "attested", "processes answering", wanted, there, complete, "engine_report")]
    if after is None:
        return found
    pids = {report.place: report.pid for report in after}
    for report in before:
        pid = pids.get(report.place)
        words = "no answer" if pid is None else f"pid {pid}"
        what = f"{report.role} {report.rank} after the window"
        found.append(
            WitnessRow(ENGINE, "attested", what, f"pid {report.pid}", words, pid == report.pid, "engine_report")
        )
    return found


def _world_size(reports: Sequence[Report]) -> int:
    """The worker ranks that the engine's own processes count; 0 where none says."""
    return max((int(report.section("resolved").get("world_size", 0)) for report in reports), default=0)


def faulty_reports(reports: Sequence[Report]) -> list[WitnessRow]:
    """A section that a process could not fill holds an error instead: nothing is known of it, so it is not ok."""
    found = []
    for report in reports:
        for name in ("environment", "resolved", "serve", "arguments", "behaved"):
            if error := report.section(name).get("error"):
                found.append(WitnessRow(ENGINE, "attested", f"{name} report", "told", str(error), False, str(report)))
        for entry in report.raw.get("modules", ()):
            if "error" in entry:
                told = str(entry["error"])
                found.append(WitnessRow(ENGINE, "attested", "modules report", "told", told, False, str(report)))
    return found


def variables(spec: EngineSpec, log: str) -> list[WitnessRow]:
    """A variable that we set and the engine does not know is a knob that silently does nothing; others' only count."""
    unknown = logs.unknown_variables(log)
    expected = {name for name in unknown if name in spec.declared or name.startswith(OURS_PREFIX)}
    wrong = [name for name in unknown if name in spec.env and name not in expected]
    others = len(unknown) - len(expected) - len(wrong)
    summary = f"{len(wrong)} of ours, {others} of others" if unknown else "none"
    found = [WitnessRow(ENGINE, "asked", UNKNOWN, "none of ours", summary, not wrong, "log")]
    for name in wrong:
        words = f"unknown to the engine{_instead(name, log)}"
        found.append(WitnessRow(ENGINE, "asked", name, f"{spec.env[name]}, read by the engine", words, False, "log"))
    return found


def asked(knob: KnobAsked, spec: EngineSpec, reports: Sequence[Report]) -> list[WitnessRow]:
    """The knob was really given, and the engine's processes see it in their own environment."""
    found = []
    if knob.variable:
        wanted = UNSET if knob.value is None else knob.value
        given = spec.env.get(knob.variable, UNSET)
        found.append(
            WitnessRow(knob.name, "asked", f"{knob.variable} given", wanted, given, given == wanted, "environment")
        )
        seen = {report: report.section("environment").get(knob.variable, UNSET) for report in reports}
        found.append(_agreed(knob.name, "asked", f"{knob.variable} seen", wanted, seen))
    if knob.serve_argument:
        forms = _words(knob.serve_argument, knob.value)
        ok = any(_contains(spec.argv, words) for words in forms)
        if not forms:
            ok = not _contains(spec.argv, (f"--{_flag(knob.serve_argument)}",))
        text = " ".join(forms[0]) if forms else UNSET
        found.append(WitnessRow(knob.name, "asked", knob.serve_argument, text, text if ok else ABSENT, ok, "arguments"))
    if knob.speculative_key:
        wanted = UNSET if knob.value is None else knob.value
        given = str(_speculation(spec.argv).get(knob.speculative_key, UNSET))
        what = f"--speculative-config {knob.speculative_key}"
        found.append(WitnessRow(knob.name, "asked", what, wanted, given, given == wanted, "arguments"))
    return found


def resolved(knob: KnobAsked, reports: Sequence[Report]) -> list[WitnessRow]:
    """What the engine made of it. Every rank of a role that shows the key must agree; nobody showing it is not ok."""
    found = []
    for key, wanted in knob.resolved.items():
        if key.startswith(arguments.PREFIX):
            found.append(arguments.row(knob.name, key.removeprefix(arguments.PREFIX), wanted, reports))
            continue
        seen = {report: lookup(report, "resolved", key) for report in reports}
        roles = {report.role for report, value in seen.items() if value is not None}
        shown = {report: value for report, value in seen.items() if report.role in roles}
        found.append(_agreed(knob.name, "resolved", key, wanted, shown))
    return found


def _explained(found: list[WitnessRow], log: str) -> list[WitnessRow]:
    """The rows; one that is not ok with what the log says of it, or that the engine did by itself what was asked."""
    others_hold = all(row.ok for row in found if not row.what.endswith(DECIDED))
    told = []
    for row in found:
        why = "" if row.ok else logs.reason(row.what, log)
        if why:
            row = replace(row, source=f"{row.source}; {why}")
        elif not row.ok and row.what.endswith(DECIDED) and others_hold:
            row = replace(row, found=f"{row.found} (already on in the stock engine: the overlay changed nothing)")
        told.append(row)
    return told


def lookup(report: Report, section: str, key: str) -> Any:
    """A key of a section; `overlays.NAME.key` is what an overlay's own code published. None when it is absent."""
    if not key.startswith("overlays."):
        return report.section(section).get(key)
    value: Any = report.raw
    for part in key.split("."):
        value = value.get(part) if isinstance(value, dict) else None
    return value


def _agreed(knob: str, layer: Any, what: str, wanted: object, seen: Mapping[Report, object]) -> WitnessRow:
    """One row over all processes. Types count: a 1 is not True."""
    wrong = {r: v for r, v in seen.items() if type(v) is not type(wanted) or v != wanted}
    shown = wrong or seen
    values = ", ".join(dict.fromkeys(ABSENT if v is None else str(v) for v in shown.values())) or ABSENT
    return WitnessRow(knob, layer, what, str(wanted), values, bool(seen) and not wrong, ", ".join(map(str, shown)))


def _unwitnessed(knob: KnobAsked) -> WitnessRow:
    wanted, found = "a witness", "not confirmed: nothing says what the engine shows for it"
    return WitnessRow(knob.name, "resolved", f"value {knob.value}", wanted, found, False, "manifest")


def _words(name: str, value: str | None) -> list[tuple[str, ...]]:
    """How an argument may stand in the list: true and false are a switch, or a text that is spelled so."""
    if value is None:
        return []
    switch = {"true": True, "false": False}.get(value)
    return [argument(name, v) for v in (switch, value) if v is not None]


def _speculation(argv: Sequence[str]) -> dict[str, Any]:
    """The --speculative-config of an argument list; empty where nothing is drafted."""
    at = argv.index(SPECULATION) if SPECULATION in argv else len(argv)
    return dict(json.loads(argv[at + 1])) if at + 1 < len(argv) else {}


def _flag(name: str) -> str:
    return name.replace("_", "-")


def _contains(argv: Sequence[str], words: Sequence[str]) -> bool:
    return any(tuple(argv[i : i + len(words)]) == tuple(words) for i in range(len(argv)))


def _instead(name: str, log: str) -> str:
    actual = logs.attention_backend(log) if "ATTENTION_BACKEND" in name else None
    return f"; it uses the attention backend {actual}" if actual else ""
