"""The bracket: its boots in order, each journaled once its outcome is known, then the gates. Reads as the run does."""

import os
from dataclasses import dataclass, replace
from typing import Any

from campaign import attempts, contrast, stamps
from campaign.console import format_boot
from campaign.disclosure import shown
from campaign.errors import DriftError, ExitCode, InvalidError, worst
from campaign.evidence import BootRecord, Evidence
from campaign.gates.base import GateResult
from campaign.names import BASE, CANDIDATE
from campaign.plan import Plan
from campaign.proof import unproven
from campaign.trial import Bench
from verdict.words import Verdict

CODES = {
    Verdict.PASS: ExitCode.PASS,
    Verdict.FAIL: ExitCode.FAIL,
    Verdict.INCONCLUSIVE: ExitCode.INCONCLUSIVE,
    Verdict.VOID: ExitCode.VOID,
    Verdict.INVALID: ExitCode.INVALID,
}
WORDS = {code: word for word, code in CODES.items()}
WORD_WIDTH = 14
NO_DATA: dict[str, Any] = {  # of a boot that was not what was asked: no number may be made of it
    "metrics": {}, "natural": None, "by_prompt": {}, "window": None, "answers": (),
}  # fmt: skip


@dataclass(frozen=True)
class Outcome:
    """The experiment's verdict and what it rests on."""

    evidence: Evidence
    results: tuple[GateResult, ...]
    verdict: Verdict
    code: ExitCode


def run_bracket(bench: Bench) -> Outcome:
    """All boots that the journal does not hold yet, then the verdict. Stops at the first boot that is not ok."""
    records = [record for record in bench.folder.records() if record.status != "void"]  # a void boot is run again
    _check_unchanged(bench, records)
    ended = bool(records) and records[-1].status != "ok"
    left = () if ended else bench.plan.boots[len(records) :]
    machine = attempts.watch(bench, left[0]) if left else None
    for boot in left:
        if records and records[-1].status != "ok":
            break
        _check_stamps(bench, records)
        assert machine is not None
        record = attempts.run(bench, boot, machine, lambda found: _kept(bench, records, found))
        records.append(record)
        for line in format_boot(record, len(bench.plan.boots), _left_s(bench.plan, records)):
            bench.say(line)
    return judge(bench.plan, tuple(records))


def _kept(bench: Bench, records: list[BootRecord], record: BootRecord) -> BootRecord:
    """The record as it counts, in the journal: from here on neither a kill nor an interruption can lose it."""
    record = _proven_unlike(bench.plan, records, record)
    bench.folder.keep(record)
    return record


def _left_s(plan: Plan, records: list[BootRecord]) -> float | None:
    left = len(plan.boots) - len(records)
    if not left or records[-1].status != "ok":
        return None
    return left * sum(r.seconds["total"] for r in records) / len(records)


def _check_unchanged(bench: Bench, records: list[BootRecord]) -> None:
    """A resumed run must go on with the engine and the surroundings it began with. Raises DriftError."""
    _check_stamps(bench, records)
    for record in records:
        now = bench.stages[record.arm].digest
        if record.facts.get("stage", now) != now:
            raise DriftError(
                f"boot {record.index:02d}-{record.letter} ran on stage {record.facts['stage'][:12]}, the engine and "
                f"overlays of arm {record.arm} now make {now[:12]}; start a new run"
            )


def _check_stamps(bench: Bench, records: list[BootRecord]) -> None:
    now = {arm: stamps.take(bench.plan, arm, bench.site, os.environ) for arm in {r.arm for r in records}}
    for record in records:
        why = stamps.changed(bench.plan, record.facts, now[record.arm], bench.site)
        if why:
            raise DriftError(f"since boot {record.index:02d}-{record.letter}: {why}, or start a new run")


def _proven_unlike(plan: Plan, records: list[BootRecord], record: BootRecord) -> BootRecord:
    """The record; invalid when the other arm already showed all that a knob of its arm was to change."""
    if contrast.sameness_claimed(plan.claims) or record.status != "ok":
        return record
    shown = {r.arm: contrast.Shown.of(r.facts) for r in [*records, record] if r.status == "ok"}
    try:
        if shown.keys() == {BASE, CANDIDATE}:
            contrast.require_shown(plan.arms, shown)
    except InvalidError as error:
        return replace(record, status="invalid", reason=str(error), **NO_DATA)
    return record


def judge(plan: Plan, records: tuple[BootRecord, ...]) -> Outcome:
    """The verdict of what there is. No number is given for an arm that failed or was not what was asked."""
    evidence = plan.evidence(records)
    broken = next((r for r in records if r.status != "ok"), None)
    if broken is not None:
        result = _broken(broken)
        return Outcome(evidence, (result,), result.verdict, CODES[result.verdict])
    results = tuple(gate.check(evidence) for gate in plan.campaign.gates.switched_on().values())
    results += _without_a_knob(plan)
    results += _asked_only(plan, records)
    code = worst([CODES[r.verdict] for r in results])
    if code is ExitCode.PASS and plan.schedule.is_screen:
        code = ExitCode.INCONCLUSIVE
    return Outcome(evidence, shown(results, WORDS[code], evidence), WORDS[code], code)


def _without_a_knob(plan: Plan) -> tuple[GateResult, ...]:
    """An overlay by which the arms differ, and of which nothing but its own word can show that it works."""
    bare = contrast.bare(plan.arms)
    if not bare:
        return ()
    why = ", ".join(f"{name}: {reason}" for name, reason in bare.items())
    told = f"overlay {why}; loaded as staged, but nothing shows that it works"
    word = Verdict.INCONCLUSIVE
    return (GateResult("witness", word, f"{word.value:<{WORD_WIDTH}}witness     {told}"),)


def _asked_only(plan: Plan, records: tuple[BootRecord, ...]) -> tuple[GateResult, ...]:
    """An argument by which the arms differ, and of which no process shows what became: never enough for a PASS."""
    bare = unproven(plan.arms, records)
    if not bare:
        return ()
    why = f"{', '.join(bare)}: the arms differ by it, and no process of the engine shows what became of it"
    word = Verdict.INCONCLUSIVE
    return (GateResult("witness", word, f"{word.value:<{WORD_WIDTH}}witness     serve argument {why}"),)


def _broken(record: BootRecord) -> GateResult:
    word = {"failed": Verdict.FAIL, "invalid": Verdict.INVALID, "void": Verdict.VOID}[record.status]
    where = f"arm {record.arm}, boot {record.index:02d}-{record.letter}"
    return GateResult("engine", word, f"{word.value:<{WORD_WIDTH}}engine      {where}: {record.reason}")
