"""What may be shown of a result: no number is ever printed for a patch that was not running (house.md)."""

from collections.abc import Iterable
from dataclasses import replace

from campaign.evidence import BootRecord, Evidence
from campaign.gates.base import GateResult
from verdict.sentence import head
from verdict.words import Verdict


def is_dead(evidence: Evidence) -> bool:
    """Whether an engine died, hung or answered with an error in any boot."""
    return any(boot.status == "failed" for boot in evidence.boots)


def may_show_readings(verdict: Verdict, evidence: Evidence) -> bool:
    """Whether the readings of the boots belong to what was asked."""
    return verdict is not Verdict.INVALID and all(boot.status != "invalid" for boot in evidence.boots)


def may_show_effect(verdict: Verdict, evidence: Evidence) -> bool:
    """Whether an effect may be told: what was asked was measured, and no engine died."""
    return may_show_readings(verdict, evidence) and not is_dead(evidence)


def readable(boots: Iterable[BootRecord], verdict: Verdict, evidence: Evidence) -> tuple[BootRecord, ...]:
    """The boots as they may be told: without their readings, where those do not belong to what was asked."""
    told = may_show_readings(verdict, evidence)
    return tuple(boot if told else replace(boot, metrics={}) for boot in boots)


def shown(results: tuple[GateResult, ...], verdict: Verdict, evidence: Evidence) -> tuple[GateResult, ...]:
    """The gates as they may be told, in their order: the number is taken from those that may not tell it."""
    return tuple(result if _may_tell(result, verdict, evidence) else _without_number(result) for result in results)


def _may_tell(result: GateResult, verdict: Verdict, evidence: Evidence) -> bool:
    if result.verdict is Verdict.INVALID:
        return True
    if result.judgement is not None:
        return may_show_effect(verdict, evidence)
    return may_show_readings(verdict, evidence)


def _without_number(result: GateResult) -> GateResult:
    line = f"{head(Verdict.INVALID, result.gate)}no number: what was asked was not what was measured"
    return GateResult(result.gate, Verdict.INVALID, line)
