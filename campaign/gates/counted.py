"""A verdict over counted items: the rule and the line that the gates over prompt checkers share."""

from dataclasses import dataclass
from math import ceil

from campaign.evidence import Evidence
from campaign.gates.base import GateResult
from campaign.gates.footing import budgets_differ, incomplete, rendered_differently
from campaign.gates.items import Tally, tally
from campaign.gates.suspicions import suspicions
from verdict.proportions import difference_bounds, fisher_exact_p, lower_bound, mcnemar_exact_p, upper_bound
from verdict.proportions import zero_failures_needed as needed
from verdict.sentence import GAP, Counted, count_line, head
from verdict.words import Verdict, number_of


@dataclass(frozen=True)
class Asked:
    """What a gate asks of one prompt set: its words, what its k counts, and the failure rate (0..1) it claims."""

    prompt_set: str
    label: str
    noun: str
    counted: Counted
    claimed: float | None = None


def judge_items(asked: Asked, evidence: Evidence) -> GateResult:
    """The verdict of a prompt set, in the words of its gate.

    PASS iff every item that is not void passes, and one is left; with a claimed rate also only when so many items show
    it. Source: statistics.md section 1.7; house.md.
    """
    found = tally(evidence, asked.prompt_set)
    verdict, reason = _rule(found, evidence, asked)
    details = () if verdict is Verdict.INVALID else (*_told(found), *suspicions(evidence, asked.prompt_set))
    return GateResult(
        gate=asked.prompt_set,
        verdict=verdict,
        line=_line(verdict, found, reason, asked),
        details=found.remarks() + details,
        numbers={} if verdict is Verdict.INVALID else _numbers(found, asked.counted),
    )


def _rule(found: Tally, evidence: Evidence, asked: Asked) -> tuple[Verdict, str]:
    """The verdict, and the reason where it is not plain from the count."""
    differing = rendered_differently(evidence) or budgets_differ(evidence)
    if differing:
        return Verdict.INVALID, differing
    if found.nobody_is_right:
        return Verdict.INCONCLUSIVE, f"harness suspect: 0/{len(found.items)} in every arm"
    if found.count("fail"):
        return Verdict.FAIL, ""
    reason = incomplete(evidence) or _unjudged(found) or _unproven(found, asked)
    return (Verdict.INCONCLUSIVE, reason) if reason else (Verdict.PASS, "")


def _unjudged(found: Tally) -> str:
    """Why items were not counted; all void has its reason before this: nobody is right in any arm."""
    if not found.items:
        return "no answers to judge"
    unjudged = found.count("unjudged")
    return f"{unjudged} of {len(found.items)} items could not be judged" if unjudged else ""


def _unproven(found: Tally, asked: Asked) -> str:
    """Why items without a failure do not show the claimed rate; empty when they do, or none is claimed."""
    if asked.claimed is None or upper_bound(0, found.worth) < asked.claimed:
        return ""
    shown = 100 * upper_bound(0, found.worth)
    return (
        f"no failure in {found.worth} items shows at most {shown:.1f} % failing (95 %), "
        f"claimed is under {100 * asked.claimed:g} %: {needed(asked.claimed)} items would show it"
    )


def _line(verdict: Verdict, found: Tally, reason: str, asked: Asked) -> str:
    if reason:
        return f"{head(verdict, asked.label)}{reason}"
    k, n = _k(found, asked.counted), found.counted
    shown = (_of_worth(k, found), found.worth) if n else None
    line = count_line(verdict, asked.label, k, n, noun=asked.noun, counted=asked.counted, shown_by=shown)
    repeated = f"{n} draws are worth {number_of(found.worth, 'item')}" if found.worth < n else ""
    return GAP.join(text for text in (line, repeated, found.void_text) if text)


def _k(found: Tally, counted: Counted) -> int:
    return found.count("fail" if counted is Counted.FAILURES else "pass")


def _of_worth(k: int, found: Tally) -> int:
    """The k of as many items as the repeats are worth, rounded to the side that shows less."""
    return k if found.worth == found.counted else ceil(k * found.worth / found.counted)


def _told(found: Tally) -> tuple[str, ...]:
    """Both arms side by side. Small suites cannot prove a change of rate, so the rule carries the verdict."""
    base_only, candidate_only = found.discordant
    if not base_only + candidate_only:
        return ()
    p = mcnemar_exact_p(base_only, candidate_only)
    told = (
        f"items that only base fails: {base_only}, that only the candidate fails: {candidate_only}; "
        f"exact McNemar p = {p:.3g} (told, not the verdict)",
    )
    return told + _rates(found) if found.is_sampled else told


def _rates(found: Tally) -> tuple[str, ...]:
    """Of drawn answers, which are not pairs: the rates of the arms, with the interval that so many items are worth."""
    base, candidate, n, worth = found.base_fails, found.candidate_fails, len(found.items), found.worth_of_all
    b, c = ceil(base * worth / n), ceil(candidate * worth / n)
    low, high = difference_bounds(b, worth, c, worth)
    difference = (
        f"{100 * (candidate - base) / n:+.0f} pp [{100 * low:+.0f}, {100 * high:+.0f}] (95 %, as {worth} items)"
    )
    p = fisher_exact_p(b, worth, c, worth)
    return (f"base fails {base}/{n}, the candidate {candidate}/{n}: {difference}, Fisher p = {p:.3g} (told)",)


def _numbers(found: Tally, counted: Counted) -> dict[str, float]:
    counts = {name: float(found.count(name)) for name in ("pass", "fail", "void", "unjudged")}
    if not found.counted:
        return counts
    k, n = _of_worth(_k(found, counted), found), found.worth
    bound = upper_bound(k, n) if counted is Counted.FAILURES else lower_bound(k, n)
    return counts | {"shown_pct": 100 * bound}
