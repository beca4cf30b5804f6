"""A verdict over counted items: the rule and the line that the gates over prompt checkers share."""

from campaign.evidence import Evidence
from campaign.gates.base import GateResult
from campaign.gates.footing import incomplete, rendered_differently
from campaign.gates.items import Tally, tally
from verdict.proportions import lower_bound, upper_bound
from verdict.sentence import GAP, Counted, count_line, head
from verdict.words import Verdict


def judge_items(gate: str, label: str, evidence: Evidence, noun: str, counted: Counted) -> GateResult:
    """The verdict of a prompt set that has the gate's name; `noun` and `counted` say what its k counts.

    PASS iff every item that is not void passes, and one is left. Source: statistics.md section 1.7; house.md.
    """
    found = tally(evidence, gate)
    verdict, reason = _rule(found, evidence)
    return GateResult(
        gate=gate,
        verdict=verdict,
        line=_line(verdict, label, found, reason, noun, counted),
        details=found.remarks(),
        numbers=_numbers(found, counted),
    )


def _rule(found: Tally, evidence: Evidence) -> tuple[Verdict, str]:
    """The verdict, and the reason where it is not plain from the count."""
    differing = rendered_differently(evidence)
    if differing:
        return Verdict.INVALID, differing
    if found.nobody_is_right:
        return Verdict.INCONCLUSIVE, f"harness suspect: 0/{len(found.items)} in every arm"
    if found.count("fail"):
        return Verdict.FAIL, ""
    reason = incomplete(evidence) or _unjudged(found)
    return (Verdict.INCONCLUSIVE, reason) if reason else (Verdict.PASS, "")


def _unjudged(found: Tally) -> str:
    if not found.items:
        return "no answers to judge"
    if found.count("unjudged"):
        return f"{found.count('unjudged')} of {len(found.items)} items could not be judged"
    return "" if found.count("pass") else f"all {len(found.items)} items void: base fails too"


def _line(verdict: Verdict, label: str, found: Tally, reason: str, noun: str, counted: Counted) -> str:
    if reason:
        return f"{head(verdict, label)}{reason}"
    line = count_line(verdict, label, _k(found, counted), found.counted, noun=noun, counted=counted)
    return GAP.join(text for text in (line, found.void_text) if text)


def _k(found: Tally, counted: Counted) -> int:
    return found.count("fail" if counted is Counted.FAILURES else "pass")


def _numbers(found: Tally, counted: Counted) -> dict[str, float]:
    counts = {name: float(found.count(name)) for name in ("pass", "fail", "void", "unjudged")}
    if not found.counted:
        return counts
    k, n = _k(found, counted), found.counted
    bound = upper_bound(k, n) if counted is Counted.FAILURES else lower_bound(k, n)
    return counts | {"shown_pct": 100 * bound}
