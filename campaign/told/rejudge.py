"""A bracket record judged again, by the gate that judges a run: the same verdict, the same line, the same code."""

from campaign.errors import ConfigError
from campaign.evidence import Evidence
from campaign.gates.base import GateResult
from campaign.gates.claimed import judge_claim, label_of, unjudged
from campaign.gates.footing import voided
from campaign.gates.step_rate import StepRate
from campaign.names import SPEED
from campaign.told.record import Record
from verdict.claims import ClaimKind, judge
from verdict.errors import VerdictError
from verdict.fit import Scale
from verdict.looks import Looks, planned
from verdict.sentence import claim_line
from verdict.words import Verdict

DECIDED = (Verdict.PASS, Verdict.FAIL)


def rejudged(record: Record, where: str = "record") -> GateResult:
    """The claim's verdict at the look that is asked for; else at the first that decides it, or the last there is.

    Raises ConfigError for looks whose levels nobody has computed, or that the readings do not reach.
    """
    if not record.looks:
        return _judged(record, record.evidence())
    looks = _looks(record, where)
    numbers = [record.look] if record.look else range(1, len(looks.boots) + 1)
    reached = [number for number in numbers if looks.boots[number - 1] <= len(record.letters)]
    if not reached:
        first = looks.boots[numbers[0] - 1]
        raise ConfigError(f"{where}: the look is at {first} boots, found {len(record.letters)} readings")
    for number in reached:
        found = _judged(record, record.evidence(looks, number))
        if found.verdict in DECIDED:
            break
    return found


def _looks(record: Record, where: str) -> Looks:
    try:
        return planned(record.looks)
    except VerdictError as error:
        raise ConfigError(f"{where}: looks: {error}") from error


def _judged(record: Record, evidence: Evidence) -> GateResult:
    """What needs nothing but the evidence goes the way of a run."""
    claim = record.claim
    if record.sessions is not None or record.level is not None:
        return _apart(record, evidence)
    if claim.metric in SPEED and claim.kind is not ClaimKind.no_difference:
        return StepRate(claim=claim.name, **record.limits).check(evidence)
    return judge_claim(claim.name, claim, evidence, record.paired_differences)


def _apart(record: Record, evidence: Evidence) -> GateResult:
    """Several sessions, or a level of one's own: what no run of this version has."""
    claim, n = record.claim, len(evidence.letters)
    try:
        found = judge(
            claim,
            record.readings[:n],
            evidence.letters,
            sessions=record.sessions and record.sessions[:n],
            history=record.history,
            paired_differences=record.paired_differences,
            level=record.level,
        )
    except VerdictError as error:
        return unjudged(claim.name, label_of(claim.metric), str(error))
    unit = "%" if claim.scale is Scale.LOG else "pp"
    line = claim_line(found, label_of(claim.metric), unit, voided_boots=voided(evidence), look=evidence.which_look)
    return GateResult(claim.name, found.verdict, line, judgement=found)
