"""result.json: the verdict of a run, how every look went, and what was voided. Pure."""

from typing import Any

from campaign.bracket import several
from campaign.bracket.looks import Look, Outcome
from campaign.disclosure import may_show_effect
from campaign.evidence import BootRecord
from campaign.gates.base import GateResult
from campaign.names import BASE, BESIDE, clock_of
from campaign.planning.plan import Plan
from verdict.claims import Judgement

CORRECTION = "none: every gate must pass, each at its own level (intersection-union, statistics.md 1.11)"
CORRECTION_OF_SEVERAL = "Holm over the candidates of a claim on a speed, one fit; none over gates (statistics.md 1.11)"


def result_of(plan: Plan, outcome: Outcome) -> dict[str, Any]:
    """All that result.json holds. Of a look no effect is told where the verdict may tell none."""
    told = may_show_effect(outcome.verdict, outcome.evidence)
    return {
        "schema": 1,
        "run_id": plan.run_id,
        "experiment": plan.campaign.name,
        "verdict": outcome.verdict.value,
        "exit_code": int(outcome.code),
        "claims_digest": plan.claims_digest,
        "logic_only": outcome.evidence.logic_only,  # why the speeds below say nothing; empty where they count
        "synthetic": outcome.evidence.synthetic,  # why acceptance and texts say nothing; empty where they count
        "clocks": {name: clock for name in _metrics(outcome) if (clock := clock_of(name))},
        "correction": CORRECTION_OF_SEVERAL if plan.candidates else CORRECTION,
        "gates": [result.plain() for result in outcome.results],
        "kind": plan.campaign.bracket.kind.value,
        "beside": next((r.facts[BESIDE] for r in outcome.evidence.boots if BESIDE in r.facts), ""),  # of a duet
        "boots": [f"{_name(plan, r)} {r.status}" for r in outcome.evidence.boots],
        "voided": [f"{_name(plan, r)}: {r.reason}" for r in outcome.evidence.boots if r.status == "void"],
        "planned_looks": vars(plan.looks) | {"boots": list(plan.looks.boots)},
        "looks": [_look(look) for look in outcome.looks] if told else [],
        "ends": outcome.ends,
        **(_several(plan, outcome) if plan.candidates and told else {}),
    }


def _several(plan: Plan, outcome: Outcome) -> dict[str, Any]:
    """Of several candidates, what their claims in one fit can be made again from: order, letters, readings."""
    claims = several.speed_claims(outcome.evidence)
    boots = [boot for boot in outcome.evidence.boots if boot.status == "ok"]
    return {
        "order": several.letters_of(plan, boots),
        "arms": {"A": BASE} | {letter: arm for arm, letter in plan.candidates.items()},
        "readings": {claim.name: [boot.metrics.get(claim.metric) for boot in boots] for claim in claims},
        "sessions": [boot.session for boot in boots],
    }


def _metrics(outcome: Outcome) -> list[str]:
    """The names of all that any boot measured."""
    return sorted({name for record in outcome.evidence.boots for name in record.metrics})


def _name(plan: Plan, record: BootRecord) -> str:
    """The boot as its folder is called; of several candidates with its arm, as more than one is a B."""
    return f"{record.index:02d}-{record.letter}{f' {record.arm}' if plan.candidates else ''}"


def _look(look: Look) -> dict[str, Any]:
    return {
        "look": look.number,
        "boots": look.boots,
        "verdict": look.verdict.value,
        "claims": [_claim(result.gate, result.judgement, result) for result in look.results if result.judgement],
        "ends": look.ends,
    }


def _claim(gate: str, found: Judgement, result: GateResult) -> dict[str, Any]:
    """The claim as it stands at a look; `look` is the one that decided it, or this one."""
    bar = found.interval
    return {
        "claim": found.claim.name,
        "gate": gate,
        "metric": found.claim.metric,
        "verdict": result.verdict.value,
        "look": result.look,
        "unit": "pp" if found.claim.metric.endswith("_pp") else "%",
        "estimate": found.estimate if bar else None,
        "interval": [bar.lo, bar.hi] if bar else None,
        "level": found.level,
    }
