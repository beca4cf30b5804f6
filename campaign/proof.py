"""What an arm's engine must show to count as what was asked, and what it did show, in the words of the record."""

import json
from typing import Any

from campaign.arms import ResolvedArm
from campaign.engine import kv, local, witness
from campaign.engine.logs import worth_showing
from campaign.engine.reports import EVERY_ROLE, Place, Report
from campaign.engine.witness import KnobAsked
from campaign.errors import InvalidError
from campaign.evidence import KvFacts, WitnessRow
from overlays.stage import Stage

SHOWN = {  # serve argument -> its key in the report's resolved section
    "async_scheduling": "async_scheduling",
    "enable_prefix_caching": "prefix_caching",
    "max_model_len": "max_model_len",
    "max_num_seqs": "max_num_seqs",
}


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


def asked(arm: ResolvedArm) -> tuple[KnobAsked, ...]:
    """The knobs of an arm, and those of its serve arguments that the engine's report can show."""
    knobs = [
        KnobAsked(k.knob.name, k.value, k.knob.variable, None, k.witness.resolved, k.witness.behaved)
        if k.witness
        else KnobAsked(k.knob.name, k.value, k.knob.variable)
        for k in arm.knobs
    ]
    shown = [(name, value) for name, value in arm.serve if name in SHOWN]
    return (*knobs, *(_serve_asked(name, value) for name, value in shown))


def _serve_asked(name: str, value: Any) -> KnobAsked:
    text = str(value).lower() if isinstance(value, bool) else str(value)
    one_batch = {"batches_in_flight_max": {"max": 1.0}} if (name, value) == ("async_scheduling", False) else {}
    return KnobAsked(f"serve.{name}", text, None, name, {SHOWN[name]: value}, one_batch)


def require(rows: tuple[WitnessRow, ...]) -> None:
    """Raises InvalidError with the first layer that does not hold, and how many do not."""
    broken = witness.not_ok(rows)
    if broken:
        more = f"; {len(broken)} layers do not hold" if len(broken) > 1 else ""
        raise InvalidError(f"witness: {witness.sentence(broken[0])}{more}")


def facts(reports: tuple[Report, ...], engine: local.RunningEngine, stage: Stage) -> dict[str, str]:
    """What ran, as the engine itself reports it."""
    resolved: dict[str, Any] = {}
    for report in reports:
        resolved |= report.section("resolved")
        published = report.section("overlays")
        resolved |= {f"overlays.{name}.{k}": v for name in published for k, v in dict(published[name]).items()}
    return {
        "resolved": json.dumps(resolved, sort_keys=True, ensure_ascii=False),
        "stage": stage.digest,
        "pid": str(engine.pid),
        "nonce": engine.spec.nonce,
    }
