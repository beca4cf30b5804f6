"""What an arm's engine must show to count as what was asked, and what it did show, in the words of the record."""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from campaign.asked.arms import ResolvedArm, spelled
from campaign.asked.knobs import KnobValue
from campaign.config import Model
from campaign.engine import behaved, kv, local, witness
from campaign.engine.arguments import PREFIX
from campaign.engine.logs import worth_showing
from campaign.engine.reports import EVERY_ROLE, Place, Report
from campaign.engine.witness import KnobAsked
from campaign.errors import InvalidError
from campaign.evidence import BootRecord, KvFacts, WitnessRow
from overlays.stage import Stage

OFFLOADER = "UVAOffloader"  # the worker's own object that cpu_offload_gb makes
RUNNER = "VLLM_USE_V2_MODEL_RUNNER"  # three states: unset lets the engine choose, and says so in one log line


def remarks(found: KvFacts, engine: local.RunningEngine) -> dict[str, str]:
    """What a reader should know of this boot beside its numbers: KV figures that disagree, warnings that matter."""
    disagreeing = "; ".join(kv.contradictions(found, engine.kv))
    warnings = "; ".join(worth_showing(engine.log()))
    return {k: v for k, v in (("kv_contradiction", disagreeing), ("warnings", warnings)) if v}


def who_must_answer(arm: ResolvedArm) -> tuple[Place, ...]:
    """API server, engine core and every worker rank that the arm's arguments make."""
    serve = dict(arm.serve)
    ranks = int(serve.get("tensor_parallel_size", 1)) * int(serve.get("pipeline_parallel_size", 1))
    return (*EVERY_ROLE, *(("Worker", rank) for rank in range(1, ranks)))


def asked(arm: ResolvedArm, model: Model) -> tuple[KnobAsked, ...]:
    """What an arm's engine must show: its knobs, how it drafts, each serve argument, async off where it must be."""
    knobs = (_knob_asked(knob) for knob in arm.knobs)
    return (*knobs, *_drafting(model), *(_serve_asked(name, value) for name, value in arm.serve), *_async_off(arm))


def _knob_asked(k: KnobValue) -> KnobAsked:
    """A knob; one that travels as a serve argument is looked for there."""
    if k.witness is None:
        return KnobAsked(k.knob.name, k.value if k.asks else None, k.knob.variable)
    shown = (k.witness.resolved, k.witness.behaved)
    served = tuple(k.served.arguments.items()) if k.served and not k.knob.variable else ()
    if len(served) != 1:
        return KnobAsked(k.knob.name, k.value, k.knob.variable, None, *shown)
    ((argument, value),) = served
    return KnobAsked(k.knob.name, _text(value), None, argument, *shown)


def _drafting(model: Model) -> tuple[KnobAsked, ...]:
    """The method and the tokens as asked: a folder's name has decided the method before (cases C4, C5)."""
    if model.method is None:
        return (KnobAsked("model.method", None, resolved={"spec_method": "none"}, speculative_key="method"),)
    k = model.num_speculative_tokens
    return (
        KnobAsked("model.method", model.method, resolved={"spec_method": model.method}, speculative_key="method"),
        KnobAsked(
            "model.num_speculative_tokens",
            str(k),
            resolved={"spec_tokens": k},
            speculative_key="num_speculative_tokens",
        ),
    )


def _serve_asked(name: str, value: Any) -> KnobAsked:
    one_batch = {"batches_in_flight_max": {"max": 1.0}} if (name, value) == ("async_scheduling", False) else {}
    shown: dict[str, object] = {f"{PREFIX}{name}": value}
    if name == "cpu_offload_gb" and value:
        shown["offloader"] = OFFLOADER  # the configuration holds the number also where the runner leaves it alone (C9)
    return KnobAsked(f"{PREFIX}{name}", _text(value), None, name, shown, one_batch)


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False) if isinstance(value, bool | dict | list) else str(value)


def _async_off(arm: ResolvedArm) -> list[KnobAsked]:
    """An overlay that is not async_safe in an engine that resolved async scheduling by itself reads placeholders."""
    unsafe = [overlay.name for overlay in arm.overlays if not overlay.async_safe]
    return [
        KnobAsked(f"overlay {name} (async_safe = false)", None, resolved={"async_scheduling": False}) for name in unsafe
    ]


def wraps(arm: ResolvedArm) -> dict[str, tuple[str, ...]]:
    """The engine files, by overlay, whose functions a plugin of the arm declares to replace."""
    return {overlay.name: overlay.plugin.wraps for overlay in arm.overlays if overlay.plugin}


def unproven(arms: Mapping[str, ResolvedArm], records: Sequence[BootRecord]) -> tuple[str, ...]:
    """The serve arguments by which the arms differ although nothing resolved or behaved shows them in every boot."""
    asked_by = {name: {key: spelled(value) for key, value in arm.serve} for name, arm in arms.items()}
    every = sorted({key for found in asked_by.values() for key in found})
    differing = [key for key in every if len({found.get(key) for found in asked_by.values()}) > 1]
    setting = {key: [r for r in records if key in asked_by[r.arm]] for key in differing}
    return tuple(key for key, found in setting.items() if not all(_shown(record, key) for record in found))


def _shown(record: BootRecord, argument: str) -> bool:
    layers = {row.layer for row in record.witness if row.knob == f"{PREFIX}{argument}" and row.ok}
    return bool(layers & {"resolved", "behaved"})


def as_the_other_arm_must(
    arms: Mapping[str, ResolvedArm], arm: str, before: tuple[Report, ...], after: tuple[Report, ...]
) -> dict[str, str]:
    """For the record: what the other arm's knobs must make an engine do, and whether this one does it too.

    Of several others that want something else of one counter, whether it does what any of them wants.
    """
    asked_there = [
        (value.knob.name, value.witness.behaved)
        for name, other in arms.items()
        for value in other.knobs
        if name != arm and value.witness is not None
    ]
    rows = [row for knob, bounds in asked_there for row in behaved.rows(knob, bounds, before, after)]
    holds: dict[str, bool] = {}
    for row in rows:
        holds[f"{row.knob}.{row.what}"] = row.ok or holds.get(f"{row.knob}.{row.what}", False)
    return {"other_arms_behaviour": json.dumps(holds, sort_keys=True)} if holds else {}


def require(rows: tuple[WitnessRow, ...]) -> None:
    """Raises InvalidError with the first layer that does not hold, what was asked for it, and how many do not."""
    broken = witness.not_ok(rows)
    named = [row for row in broken if row.what != witness.UNKNOWN]  # its count stands beside a row for each name
    broken = tuple(named) or broken
    if broken:
        asked_for = next((r.found for r in rows if r.knob == broken[0].knob and r.layer == "asked" and r.ok), "")
        given = f" (asked: {asked_for})" if asked_for and broken[0].layer != "asked" else ""
        more = f"; {len(broken)} layers do not hold" if len(broken) > 1 else ""
        raise InvalidError(f"witness: {witness.sentence(broken[0])}{given}{more}")


def facts(
    reports: tuple[Report, ...], engine: local.RunningEngine, stage: Stage, arms: Iterable[ResolvedArm] = ()
) -> dict[str, str]:
    """What ran, as the engine itself reports it: also the serve arguments that any of the arms sets."""
    resolved: dict[str, Any] = {}
    arguments = {name for arm in arms for name, _ in arm.serve}
    for report in reports:
        resolved |= report.section("resolved")
        resolved |= {f"{PREFIX}{k}": v for k, v in report.section("serve").items() if k in arguments}
        published = report.section("overlays")
        resolved |= {f"overlays.{name}.{k}": v for name in published for k, v in dict(published[name]).items()}
    return {
        "resolved": json.dumps(resolved, sort_keys=True, ensure_ascii=False),
        "runner": str(resolved.get("runner", "(not told)")),
        "runner_asked": engine.spec.env.get(RUNNER, "(unset)"),
        "stage": stage.digest,
        "pid": str(engine.pid),
        "nonce": engine.spec.nonce,
    }
