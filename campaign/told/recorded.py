"""The bracket records that a run leaves: one for each claim that was judged, runs/ID/records/CLAIM.json.

Written from what the gates saw; `python -m campaign inspect` judges them again (campaign/told/rejudge.py).
"""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, version
from math import expm1
from pathlib import Path
from statistics import fmean
from typing import Any

from campaign.bracket import several
from campaign.bracket.looks import Outcome
from campaign.errors import ConfigError
from campaign.evidence import BootRecord, Evidence
from campaign.gates import sittings, synthetic
from campaign.gates.base import GateResult
from campaign.gates.footing import sound
from campaign.gates.paired import paired_differences
from campaign.gates.step_rate import decode_tokens
from campaign.gates.within import drift_limit_ln
from campaign.journal import write_json
from campaign.names import DECODE_ANSWER_TOKENS, STEP_PER_S, UNLIKE
from campaign.planning.plan import Plan
from campaign.told.record import DRIFT_PCT, LIMITS, Record, plain
from campaign.told.rejudge import rejudged
from verdict.claims import Claim, ClaimKind
from verdict.words import Verdict

FOLDER = "records"
OPEN = (Verdict.INCONCLUSIVE, Verdict.VOID)
DISTRIBUTION = "engine-campaign"


def write(folder: Path, plan: Plan, outcome: Outcome) -> None:
    """A file a judged claim. A claim of which no number may be told has none.

    Of several candidates a file a candidate, ARM.CLAIM.json; a claim that was judged for all in one fit is in
    result.json with its readings.
    """
    if not plan.candidates:
        _write(folder / FOLDER, "", plan, outcome)
    for arm in plan.candidates:
        _write(folder / FOLDER, f"{arm}.", plan.view(arm), _of_one(plan, outcome, arm))


def _of_one(plan: Plan, outcome: Outcome, arm: str) -> Outcome:
    """What two arms alone say: base and one candidate."""
    shared = [claim.name for claim in several.speed_claims(outcome.evidence)]
    own = [several.alone(plan, arm, r) for r in outcome.results if r.gate.startswith(f"{arm} ")]
    seen = several.seen_by(plan, outcome.evidence, arm)
    seen = replace(seen, claims={name: claim for name, claim in seen.claims.items() if name not in shared})
    results = tuple(r for r in own if r.judgement is None or r.judgement.claim.name not in shared)
    return replace(outcome, evidence=seen, results=results, looks=())


def _write(records: Path, prefix: str, plan: Plan, outcome: Outcome) -> None:
    for result, claim, evidence in _judged(outcome):
        write_json(records / f"{prefix}{claim.name}.json", plain(_record(plan, result, claim, evidence)))
    for result, claim in _without_an_effect(plan, outcome):
        kept = _record(plan, result, claim, outcome.evidence)
        if _told_again(kept, result):
            write_json(records / f"{prefix}{claim.name}.json", plain(kept))


def _without_an_effect(plan: Plan, outcome: Outcome) -> Iterator[tuple[GateResult, Claim]]:
    """The claims that every boot gave its reading for, and of which no effect is told: outer boots that do not agree.

    The readings are what somebody needs who wants to know why.
    """
    gates, evidence = plan.campaign.gates.switched_on(), outcome.evidence
    for result in outcome.results:
        made_up = bool(evidence.synthetic) and result.gate in synthetic.MADE_UP
        if result.judgement is not None or result.verdict not in OPEN or made_up:
            continue
        judged = vars(gates[result.gate]).get("claim") if result.gate in gates else None
        alike = result.gate == "no_difference"
        for claim in evidence.claims.values():
            asked = claim.kind is ClaimKind.no_difference if alike else claim.name == judged
            if asked and evidence.values(claim.metric) is not None:
                yield result, claim


def _told_again(record: Record, result: GateResult) -> bool:
    """Whether the readings alone say what the run said; a gate may have seen what no record holds."""
    with suppress(ConfigError):
        return _line_of(rejudged(record)) == _line_of(result)
    return False


def _line_of(result: GateResult) -> tuple[Verdict, str]:
    return result.verdict, result.line


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
    told = result.judgement is None or _speaks_for(result, claim)
    judged = {"judged": {"verdict": result.verdict.value, "line": result.line}} if told else {}
    return Record(
        claim=claim,
        letters="".join(boot.letter for boot in boots),
        readings=tuple(boot.metrics[claim.metric] for boot in boots),
        sessions=tuple(boot.session for boot in boots) if any(boot.session for boot in boots) else None,
        pairs=tuple(boot.pair for boot in boots) if any(boot.pair for boot in boots) else None,
        history=evidence.history if claim.metric == STEP_PER_S else None,  # it is the sd of a step/s in ln
        paired_differences=tuple(apart) if len(apart) > 1 else None,
        looks=evidence.looks.boots if evidence.looks else (),
        look=evidence.look if evidence.looks else 0,
        metrics={name: tuple(boot.metrics[name] for boot in boots) for name in sorted(common)} | _decoded(boots),
        limits=_limits(plan, claim, evidence),
        void=tuple(_void(evidence)),
        logic_only=evidence.logic_only,
        synthetic=evidence.synthetic,
        unlike=next((boot.facts[UNLIKE] for boot in boots if UNLIKE in boot.facts), ""),
        sittings=sittings.told(evidence),
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


def _decoded(boots: tuple[BootRecord, ...]) -> dict[str, tuple[float, ...]]:
    """How long the window's answers were, which says what the length limit may cut; nothing where a boot has none."""
    found = [decode_tokens(boot) for boot in boots]
    return {DECODE_ANSWER_TOKENS: tuple(map(fmean, found))} if all(found) else {}


def _limits(plan: Plan, claim: Claim, evidence: Evidence) -> dict[str, float | None]:
    """The gate's own limits, where they can change the claim's verdict; None for a check that is switched off.

    What the history of step/s allows stands in the drift's limit where the record does not keep that history.
    """
    gate = next((g for g in plan.campaign.gates.switched_on().values() if vars(g).get("claim") == claim.name), None)
    found = {name: vars(gate)[name] for name in LIMITS if name in vars(gate)} if gate is not None else {}
    if claim.metric != STEP_PER_S and evidence.history is not None and found.get(DRIFT_PCT) is not None:
        found[DRIFT_PCT] = -100 * expm1(-drift_limit_ln(evidence, found[DRIFT_PCT]))
    return {name: None if limit is None else float(limit) for name, limit in found.items()}


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
