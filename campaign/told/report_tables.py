"""The tables of a report: evidence as rows of text. A value that is not there is a dash, never a zero."""

import re
from collections.abc import Mapping
from itertools import pairwise

from campaign.asked.arms import ResolvedArm
from campaign.config import Campaign
from campaign.console import format_settings
from campaign.evidence import BootRecord, DraftCounts, Evidence, pooled
from campaign.gates.base import GateResult
from campaign.gates.footing import ARM_OF, boot_name, sound
from campaign.names import (
    ACCEPTANCE_LENGTH,
    BOOT_SECONDS,
    STEP_PER_S,
    TOK_PER_S,
    WINDOW_FIRST_STEP_PER_S,
    WINDOW_LAST_STEP_PER_S,
    clock_of,
    logic_only_label,
)
from campaign.told.view import Listing, Statements, Table
from verdict.errors import VerdictError
from verdict.power import costly

ABSENT = "-"
CLOCKED = {"step/s and tok/s": STEP_PER_S, "first and last part of the window": WINDOW_FIRST_STEP_PER_S}
GAPS = re.compile(r"\s{2,}")


def gates(results: tuple[GateResult, ...]) -> Statements:
    """Each gate's line, its remarks below."""
    entries = tuple((as_words(result.line), result.details) for result in results)
    return Statements("Gates", entries or (("no gate was judged", ()),))


def as_words(line: str) -> str:
    """A line of the console for a page that wraps: dots in place of its columns."""
    return GAPS.sub(" · ", line.strip())


def failures(evidence: Evidence) -> Listing | None:
    """Why boots gave no data, with the end of their logs."""
    lines = [line for boot in evidence.boots if boot.status != "ok" for line in _failure(boot)]
    return Listing("What went wrong", tuple(lines)) if lines else None


def _failure(boot: BootRecord) -> list[str]:
    head = f"boot {boot_name(boot)} ({boot.arm}) {boot.status}: {boot.reason or 'no reason given'}"
    return [head, *(f"  | {line}" for line in boot.log_tail)]


def boots(evidence: Evidence, has_readings: bool) -> Table:
    """One row a boot; tok/s never without the acceptance length that it was made with."""
    phases = list(dict.fromkeys(phase for boot in evidence.boots for phase in boot.seconds))
    mark = f", {logic_only_label(evidence.logic_only)}" if evidence.logic_only else ""
    made_up = f", {evidence.synthetic}" if evidence.synthetic else ""
    rates = (f"step/s{mark}", f"step/s first, last part{mark}", f"tok/s at tokens a step{mark}{made_up}")
    readings = (*rates, "KV blocks") if has_readings else ()
    head = ("boot", "arm", "status", *readings, *(f"{phase} s" for phase in phases))
    rows = tuple(
        (
            boot_name(boot),
            boot.arm,
            boot.status,
            *(_readings(boot) if has_readings else ()),
            *(_number(boot.seconds.get(phase), 1) for phase in phases),
        )
        for boot in evidence.boots
    )
    note = "One boot is one datum. Readings of single boots say nothing about the effect."
    by = [f"{label} by the {clock_of(name)}" for label, name in CLOCKED.items() if has_readings]
    return Table("Boots", head, rows, f"{note} Clocks: {', '.join([*by, f'phases by the {clock_of(BOOT_SECONDS)}'])}.")


def pairs(evidence: Evidence) -> Table | None:
    """One row a pair of a duet, in the order they ran: step/s of both boots and their ratio."""
    boots = [boot for boot in sound(evidence) if boot.pair]
    both = [(a, b) for a, b in pairwise(boots) if a.pair == b.pair]
    rows = tuple((f"{a.pair}", f"{boot_name(a)} {boot_name(b)}", *_ratio({a.letter: a, b.letter: b})) for a, b in both)
    head = ("pair", "boots, the first started first", "base step/s", "candidate step/s", "candidate over base")
    note = "A pair is one datum: its ratio alone says nothing about the effect."
    return Table("Pairs", head, rows, note) if rows else None


def _ratio(pair: Mapping[str, BootRecord]) -> tuple[str, str, str]:
    base, candidate = (pair[letter].metrics.get(STEP_PER_S) if letter in pair else None for letter in "AB")
    return _number(base, 1), _number(candidate, 1), _number(candidate / base if base and candidate else None, 4)


def _readings(boot: BootRecord) -> tuple[str, str, str, str]:
    length = _number(boot.metrics.get(ACCEPTANCE_LENGTH), 3)
    blocks = f"{boot.kv.blocks} (needs {boot.kv.needed_blocks})" if boot.kv else ABSENT
    rate, tokens = _number(boot.metrics.get(STEP_PER_S), 1), _number(boot.metrics.get(TOK_PER_S), 1)
    parts = [_number(boot.metrics.get(name), 1) for name in (WINDOW_FIRST_STEP_PER_S, WINDOW_LAST_STEP_PER_S)]
    return rate, ", ".join(parts), f"{tokens} at {length}", blocks


def _number(value: float | None, places: int) -> str:
    return ABSENT if value is None else f"{value:.{places}f}"


def acceptance(evidence: Evidence) -> Table | None:
    """Both arms by draft position, with counts: of all drafts, and given the position before."""
    arms = {ARM_OF[letter]: pooled(boot.natural for boot in sound(evidence, letter) if boot.natural) for letter in "AB"}
    found = {arm: counts for arm, counts in arms.items() if counts is not None and counts.drafts}
    if not found:
        return None
    positions = max(len(counts.accepted) for counts in found.values())
    head = ("position", *(f"{arm} {what}" for arm in found for what in ("of drafts", "given the one before")))
    rows = tuple(
        (f"pos{i + 1}", *(cell for counts in found.values() for cell in _position(counts, i))) for i in range(positions)
    )
    lengths = ", ".join(f"{arm} {counts.acceptance_length:.3f}" for arm, counts in found.items())
    note = f"Natural-length answers, all boots of an arm together; acceptance length in tokens a step: {lengths}."
    note += f" It is {evidence.synthetic}." if evidence.synthetic else ""
    return Table("Acceptance by position", head, rows, note)


def _position(counts: DraftCounts, place: int) -> tuple[str, str]:
    if place >= len(counts.accepted):
        return ABSENT, ABSENT
    before = counts.accepted[place - 1] if place else counts.drafts
    return _share(counts.accepted[place], counts.drafts), _share(counts.accepted[place], before)


def _share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f} % ({part}/{whole})" if whole else ABSENT


def arms(resolved: Mapping[str, ResolvedArm]) -> list[Listing]:
    """What was asked of each arm, who wrote it and what it goes over; a passed variable is its name alone."""
    return [
        Listing(
            f"Arm {name}",
            (f"overlays {', '.join(o.name for o in arm.overlays) or 'none'}", *format_settings(arm)),
            "; ".join(arm.notes),
        )
        for name, arm in resolved.items()
    ]


def witnesses(evidence: Evidence) -> list[Table]:
    """What each knob's witness showed; boots that showed the same share a table."""
    groups: dict[tuple[tuple[str, ...], ...], list[str]] = {}
    for boot in evidence.boots:
        rows = tuple(
            (row.knob, row.layer, row.what, row.wanted, row.found, "ok" if row.ok else "NOT OK", row.source)
            for row in boot.witness
        )
        groups.setdefault(rows, []).append(boot_name(boot))
    head = ("knob", "layer", "what", "wanted", "found", "", "shown by")
    return [Table(f"Witness of {', '.join(names)}", head, rows) for rows, names in groups.items() if rows]


def facts(campaign: Campaign, evidence: Evidence) -> Table:
    """What was run, and what the boots say of themselves: once where they agree, else by boot."""
    engine, model = campaign.engine, campaign.model
    mark = logic_only_label(evidence.logic_only)
    speed = [("speed", f"{mark}: says nothing of a device")] if mark else []
    speed += [("acceptance", evidence.synthetic)] if evidence.synthetic else []
    claims = [(c.name, f"{c.kind} of {c.metric}, bound {c.bound:g}") for c in evidence.claims.values()]
    rows = [
        ("engine", f"{engine.name}: vLLM {engine.version}, {engine.build} build"),
        ("model", f"{model.name}, drafting {model.method or 'off'} with K={model.num_speculative_tokens}"),
        ("workload", f"{campaign.workload.name}, {campaign.workload.max_tokens} tokens a request"),
        ("schedule", _schedule(evidence)),
        *speed,
        *((f"claim {name}", text) for name, text in claims),
    ]
    names = dict.fromkeys(name for boot in evidence.boots for name in boot.facts)
    return Table("Facts", ("what", "value"), tuple(rows + [(name, _fact(evidence, name)) for name in names]))


def _schedule(evidence: Evidence) -> str:
    """The order of the boots, and what it costs where it costs much."""
    pairs = (
        [place // 2 for place in range(len(evidence.letters))] if any(boot.pair for boot in evidence.boots) else None
    )
    try:
        cost = costly(evidence.letters, pairs)
    except VerdictError:  # of a few boots only
        cost = ""
    return "; ".join(text for text in (f"{evidence.letters} (A is base)", cost) if text)


def _fact(evidence: Evidence, name: str) -> str:
    by_value: dict[str, list[str]] = {}
    for boot in evidence.boots:
        by_value.setdefault(boot.facts.get(name, ABSENT), []).append(boot_name(boot))
    if len(by_value) == 1:
        return next(iter(by_value))
    return "; ".join(f"{value} ({', '.join(names)})" for value, names in by_value.items())
