"""A bracket record judged again, by the gate that judges a run: the same verdict, the same line, the same code."""

from campaign.errors import ConfigError
from campaign.evidence import Evidence
from campaign.gates import synthetic
from campaign.gates.base import GateResult
from campaign.gates.claimed import judge_claim
from campaign.gates.step_rate import StepRate
from campaign.names import SPEED, TTFT_COLD_S, TTFT_WARM_S
from campaign.told.record import Record
from verdict.claims import ClaimKind
from verdict.errors import VerdictError
from verdict.looks import Looks, planned
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
        looks = planned(record.looks)
    except VerdictError as error:
        raise ConfigError(f"{where}: looks: {error}") from error
    wanted = looks.level(record.claim.kind)
    if record.level is not None and record.level < wanted:
        raise ConfigError(
            f"{where}: level is {record.level:g}, but {len(looks.boots)} looks want {wanted:.4g} at each; leave it out"
        )
    return looks


def _judged(record: Record, evidence: Evidence) -> GateResult:
    """The way of a run, also where several hosts or a level of its own are what no run of this version has."""
    claim = record.claim
    of_the_window = claim.metric in SPEED and claim.metric not in (TTFT_COLD_S, TTFT_WARM_S)
    if of_the_window and claim.kind is not ClaimKind.no_difference:
        found = StepRate(claim=claim.name, **record.limits).check(evidence)
    else:
        found = judge_claim(claim.name, claim, evidence, record.paired_differences)
    return synthetic.read("acceptance" if claim.metric.startswith("acceptance") else found.gate, found, evidence)
