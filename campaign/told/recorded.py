"""The bracket records that a run leaves: one for each claim that was judged, runs/ID/records/CLAIM.json.

Written from what the gates saw; `python -m campaign inspect` judges them again (campaign/told/rejudge.py).
"""

from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from campaign.bracket.looks import Outcome
from campaign.evidence import BootRecord, Evidence
from campaign.gates.acceptance import paired_differences
from campaign.gates.base import GateResult
from campaign.gates.footing import sound
from campaign.journal import write_json
from campaign.names import UNLIKE
from campaign.planning.plan import Plan
from campaign.told.record import LIMITS, Record, plain
from verdict.claims import Claim, ClaimKind

FOLDER = "records"
DISTRIBUTION = "engine-campaign"


def write(folder: Path, plan: Plan, outcome: Outcome) -> None:
    """A file a judged claim. A claim of which no number may be told has none."""
    for result, claim, evidence in _judged(outcome):
        write_json(folder / FOLDER / f"{claim.name}.json", plain(_record(plan, result, claim, evidence)))


def _judged(outcome: Outcome) -> Iterator[tuple[GateResult, Claim, Evidence]]:
    """Each claim with the gate that judged it and the boots of the look at which it was."""
    for result in outcome.results:
        if result.judgement is None:
            continue
        looked = outcome.looks[result.look - 1 : result.look] if result.look else ()
        evidence = looked[0].evidence if looked else outcome.evidence
        first = result.judgement.claim
        others = [claim for claim in evidence.claims.values() if claim.kind is ClaimKind.no_difference]
        for claim in others if first.kind is ClaimKind.no_difference else [first]:
            if evidence.values(claim.metric) is not None:
                yield result, claim, evidence


def _record(plan: Plan, result: GateResult, claim: Claim, evidence: Evidence) -> Record:
    boots = sound(evidence)
    common = set.intersection(*(set(boot.metrics) for boot in boots)) - {claim.metric}
    apart = paired_differences(evidence, claim) if claim.kind is not ClaimKind.no_difference else []
    judged = {"judged": {"verdict": result.verdict.value, "line": result.line}} if _speaks_for(result, claim) else {}
    return Record(
        claim=claim,
        letters="".join(boot.letter for boot in boots),
        readings=tuple(boot.metrics[claim.metric] for boot in boots),
        pairs=tuple(boot.pair for boot in boots) if any(boot.pair for boot in boots) else None,
        history=evidence.history,
        paired_differences=tuple(apart) if len(apart) > 1 else None,
        looks=evidence.looks.boots if evidence.looks else (),
        look=evidence.look if evidence.looks else 0,
        metrics={name: tuple(boot.metrics[name] for boot in boots) for name in sorted(common)},
        limits=_limits(plan, claim),
        void=tuple(_void(evidence)),
        logic_only=evidence.logic_only,
        unlike=next((boot.facts[UNLIKE] for boot in boots if UNLIKE in boot.facts), ""),
        told=judged | {"registered": _registered(plan), "boots": [_boot(boot) for boot in evidence.boots]},
    )


def _void(evidence: Evidence) -> Iterator[tuple[int, BootRecord]]:
    """The void boots, each with how many sound ones ran before it."""
    ran = 0
    for boot in evidence.boots:
        ran += boot.status == "ok"
        if boot.status == "void":
            yield ran, boot


def _speaks_for(result: GateResult, claim: Claim) -> bool:
    return result.judgement is not None and result.judgement.claim == claim


def _limits(plan: Plan, claim: Claim) -> dict[str, float]:
    """The gate's own limits, where they can change the claim's verdict."""
    gate = next((g for g in plan.campaign.gates.switched_on().values() if vars(g).get("claim") == claim.name), None)
    found = vars(gate) if gate is not None else {}
    return {name: float(found[name]) for name in LIMITS if found.get(name) is not None}


def _registered(plan: Plan) -> dict[str, Any]:
    return {
        "run_id": plan.run_id,
        "experiment": plan.campaign.name,
        "claims_digest": plan.claims_digest,
        "schedule": plan.schedule.letters,
        "coin": plan.flipped,
        "code": _code(),
    }


def _code() -> str:
    try:
        return f"{DISTRIBUTION} {version(DISTRIBUTION)}"
    except PackageNotFoundError:
        return f"{DISTRIBUTION}, not installed"


def _boot(boot: BootRecord) -> dict[str, Any]:
    return {"pos": boot.index, "letter": boot.letter, "arm": boot.arm, "status": boot.status, "reason": boot.reason}
