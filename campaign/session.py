"""The bracket: its boots in order, each journaled before the next, then the gates. Reads as the run does."""

import json
from dataclasses import dataclass

from campaign import attempts
from campaign.console import format_boot
from campaign.disclosure import shown
from campaign.errors import DriftError, ExitCode, InvalidError, worst
from campaign.evidence import BootRecord, Evidence
from campaign.gates.base import GateResult
from campaign.names import BASE, CANDIDATE
from campaign.plan import Plan
from campaign.preflight import model_stamp
from campaign.proof import unproven
from campaign.trial import Bench
from verdict.claims import ClaimKind
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
    left = bench.plan.boots[len(records) :]
    machine = attempts.watch(bench, left[0]) if left else None
    for boot in left:
        if records and records[-1].status != "ok":
            break
        _check_models(bench.plan, records)
        assert machine is not None
        record = _proven_unlike(bench.plan, records, attempts.run(bench, boot, machine))
        records.append(record)
        bench.folder.keep(record)
        for line in format_boot(record, len(bench.plan.boots), _left_s(bench.plan, records)):
            bench.say(line)
    return judge(bench.plan, tuple(records))


def _left_s(plan: Plan, records: list[BootRecord]) -> float | None:
    left = len(plan.boots) - len(records)
    if not left or records[-1].status != "ok":
        return None
    return left * sum(r.seconds["total"] for r in records) / len(records)


def _check_unchanged(bench: Bench, records: list[BootRecord]) -> None:
    """A resumed run must go on with the engine and the models it began with. Raises DriftError."""
    _check_models(bench.plan, records)
    for record in records:
        now = bench.stages[record.arm].digest
        if record.facts.get("stage", now) != now:
            raise DriftError(
                f"boot {record.index:02d}-{record.letter} ran on stage {record.facts['stage'][:12]}, the engine and "
                f"overlays of arm {record.arm} now make {now[:12]}; start a new run"
            )


def _check_models(plan: Plan, records: list[BootRecord]) -> None:
    now = model_stamp(plan)
    changed = [r for r in records if r.facts.get("model", now) != now]
    if changed:
        raise DriftError(
            f"files of the model changed since boot {changed[0].index:02d}-{changed[0].letter} "
            f"({plan.campaign.model.target}, {plan.campaign.model.drafter}); boots of two models make no bracket"
        )


def _proven_unlike(plan: Plan, records: list[BootRecord], record: BootRecord) -> BootRecord:
    """The record; invalid when the other arm already showed all that the candidate's knobs are to change."""
    if any(c.kind is ClaimKind.no_difference for c in plan.claims.values()) or record.status != "ok":
        return record
    both = {r.arm: json.loads(r.facts["resolved"]) for r in [*records, record] if r.status == "ok"}
    if both.keys() != {BASE, CANDIDATE}:
        return record
    try:
        _require_unlike(plan, both, {r.arm: r.facts["stage"] for r in [*records, record] if r.status == "ok"})
    except InvalidError as error:
        return BootRecord(record.index, record.letter, record.arm, "invalid", str(error), facts=record.facts)
    return record


def _require_unlike(plan: Plan, resolved: dict[str, dict[str, object]], stages: dict[str, str]) -> None:
    if stages[BASE] == stages[CANDIDATE] and _lasting(resolved[BASE]) == _lasting(resolved[CANDIDATE]):
        raise InvalidError(
            "arms identical: both engines run the same files and, as far as they show, resolved the same configuration"
        )
    base = {k.knob.name: k.value for k in plan.arms[BASE].knobs}
    for value in plan.arms[CANDIDATE].knobs:
        wanted = [key for key in (value.witness.resolved if value.witness else {}) if not key.startswith("overlays.")]
        if not wanted or base.get(value.knob.name) == value.value:
            continue
        if all(resolved[BASE].get(key) == resolved[CANDIDATE].get(key) for key in wanted):
            shown = ", ".join(f"{key}={resolved[BASE].get(key)}" for key in wanted)
            raise InvalidError(f"arms identical: knob {value.knob.name} changes nothing, both engines resolved {shown}")


def _lasting(resolved: dict[str, object]) -> dict[str, object]:
    """Without what a memory profile makes anew at each boot."""
    return {key: value for key, value in resolved.items() if key not in ("kv_blocks", "kv_groups")}


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
    """An overlay of an arm that declares no knob is attested by its loaded bytes only: never enough for a PASS."""
    base_set = set(plan.campaign.engine.overlays)
    bare = [o.name for arm in plan.arms.values() for o in arm.overlays if o.name not in base_set and not o.knobs]
    if not bare:
        return ()
    why = f"{', '.join(dict.fromkeys(bare))}: no knob with a witness; loaded as staged, but nothing shows that it works"
    word = Verdict.INCONCLUSIVE
    return (GateResult("witness", word, f"{word.value:<{WORD_WIDTH}}witness     overlay {why}"),)


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
