"""Several candidates of one base, judged: every gate of each beside base, its speed by the fit that all share. Pure.

A claim on a speed is judged with one dummy a candidate, the session's drift and one error bar, and Holm over the
candidates; every other gate sees base and one candidate, as in a bracket of two arms. What two changes together add is
told, and decides nothing (statistics.md 1.11).
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from campaign.evidence import BootRecord, Evidence
from campaign.gates import synthetic
from campaign.gates.base import Gate, GateResult
from campaign.gates.claimed import label_of, logic_only
from campaign.names import INTERACTION, SPEED, STEP_PER_S
from campaign.planning.plan import Plan
from verdict.claims import Claim, Judgement
from verdict.errors import VerdictError
from verdict.fit import Scale
from verdict.interval import Interval
from verdict.many import Adjusted
from verdict.sentence import WORD_WIDTH, signed
from verdict.several import Contrast, interaction, judge_each
from verdict.words import Verdict

Judged = Mapping[str, Adjusted] | str  # by letter; or why there is none


def results(plan: Plan, evidence: Evidence) -> dict[str, GateResult]:
    """Each gate of each candidate, as `ARM GATE`, and what the arms that are `together` add to their sum."""
    claims = speed_claims(evidence)
    judged = {claim.name: judge(plan, evidence, claim, ("ok",)) for claim in claims}
    found: dict[str, GateResult] = {}
    for arm, seen in each(plan, evidence, judged).items():
        for name, gate in asked_of(plan, arm).items():
            result = synthetic.read(name, gate.check(seen), seen)
            found[f"{arm} {name}"] = told_of(plan, arm, _with_p(result, judged, plan.candidates[arm]))
    return found | {result.gate: result for claim in claims for result in _interaction(plan, evidence, claim)}


def each(plan: Plan, evidence: Evidence, judged: Mapping[str, Judged] | None = None) -> dict[str, Evidence]:
    """What the gates of each candidate see; nothing where there is one."""
    if not plan.candidates:
        return {}
    claims = speed_claims(evidence)
    judged = judged or {claim.name: judge(plan, evidence, claim, ("ok",)) for claim in claims}
    voided = {claim.name: judge(plan, evidence, claim, ("ok", "void")) for claim in claims}
    return {
        arm: replace(
            seen_by(plan, evidence, arm), contrasts=_of(judged, letter), contrasts_with_voided=_of(voided, letter)
        )
        for arm, letter in plan.candidates.items()
    }


def asked_of(plan: Plan, arm: str) -> dict[str, Gate]:
    """The gates that a candidate is asked: those about an overlay only where it has that."""
    overlays = {overlay.name for overlay in plan.arms[arm].overlays}
    gates = plan.campaign.gates.switched_on()
    return {name: gate for name, gate in gates.items() if vars(gate).get("overlay") in (None, *overlays)}


def told_of(plan: Plan, arm: str, result: GateResult) -> GateResult:
    """A gate's answer with the arm that it is about, in its name and in its line."""
    width = max(map(len, plan.candidates))
    line = f"{result.line[:WORD_WIDTH]}{arm:<{width}}  {result.line[WORD_WIDTH:]}"
    return replace(result, gate=f"{arm} {result.gate}", line=line)


def alone(plan: Plan, arm: str, result: GateResult) -> GateResult:
    """The inverse of `told_of`: the answer as a bracket of two arms gives it."""
    skipped = WORD_WIDTH + max(map(len, plan.candidates)) + len("  ")
    line = f"{result.line[:WORD_WIDTH]}{result.line[skipped:]}"
    return replace(result, gate=result.gate.removeprefix(f"{arm} "), line=line)


def seen_by(plan: Plan, evidence: Evidence, arm: str) -> Evidence:
    """The boots of base and of one candidate."""
    view = plan.view(arm)
    boots = tuple(boot for boot in evidence.boots if boot.arm in view.arms)
    return replace(evidence, boots=boots, letters=view.schedule.letters, looks=view.looks)


def speed_claims(evidence: Evidence) -> list[Claim]:
    """The claims that all candidates are judged by in one fit."""
    return [claim for claim in evidence.claims.values() if claim.metric in SPEED]


def letters_of(plan: Plan, boots: Sequence[BootRecord]) -> str:
    """The boots' arms as the schedule writes them: A, B, C, ..."""
    return "".join(plan.candidates.get(boot.arm, "A") for boot in boots)


def judge(plan: Plan, evidence: Evidence, claim: Claim, statuses: Sequence[str]) -> Judged:
    """The claim judged for each candidate, by the boots of these statuses; why not, where it cannot be."""
    boots = [boot for boot in evidence.boots if boot.status in statuses and claim.metric in boot.metrics]
    if evidence.values(claim.metric) is None:
        ran = len([boot for boot in boots if boot.status == "ok"])
        return f"{ran} of {len(evidence.letters)} boots gave {claim.metric}: the candidates are judged in one fit"
    values, sessions = [boot.metrics[claim.metric] for boot in boots], _sessions(boots)
    history = evidence.history if claim.metric == STEP_PER_S else None
    try:
        return judge_each(claim, values, letters_of(plan, boots), sessions=sessions, history=history)
    except VerdictError as error:
        return str(error)


def _sessions(boots: Sequence[BootRecord]) -> list[int] | None:
    return [boot.session for boot in boots] if any(boot.session for boot in boots) else None


def _of(judged: Mapping[str, Judged], letter: str) -> dict[str, Judgement | str]:
    """What one candidate's gates find of each claim."""
    return {name: found if isinstance(found, str) else found[letter].judgement for name, found in judged.items()}


def _with_p(result: GateResult, judged: Mapping[str, Judged], letter: str) -> GateResult:
    """The number that its verdict rests on beside the interval."""
    found = judged.get(result.judgement.claim.name, "") if result.judgement else ""
    if isinstance(found, str):
        return result
    mark = "logic_only." if any(name.startswith("logic_only.") for name in result.numbers) else ""
    p = found[letter].p
    return replace(result, numbers=result.numbers | {f"{mark}p_holm": min(p.passing, p.failing)})


# what two changes together add


def _interaction(plan: Plan, evidence: Evidence, claim: Claim) -> list[GateResult]:
    """One line, never a verdict: nothing where it is not asked for, or where a reading is missing."""
    together = plan.campaign.bracket.together
    values = evidence.values(claim.metric)
    if together is None or values is None:
        return []
    boots = [boot for boot in evidence.boots if boot.status == "ok"]
    one, other = (plan.candidates[name] for name in together.parts)
    try:
        found = interaction(
            values,
            letters_of(plan, boots),
            both=plan.candidates[together.arm],
            parts=(one, other),
            scale=claim.scale,
            sessions=_sessions(boots),
        )
    except VerdictError as error:
        return [_line(claim, f"{label_of(claim.metric)}: {error}", {})]
    return [_line(claim, *_words(plan, evidence, claim, found))]


def _words(plan: Plan, evidence: Evidence, claim: Claim, found: Contrast) -> tuple[str, dict[str, float]]:
    together = plan.campaign.bracket.together
    assert together is not None
    bar, mark = _oriented(claim, found.interval), logic_only(evidence, claim.metric)
    unit, places = ("%", 1) if claim.scale is Scale.LOG else ("pp", 2)
    effect = f"{signed(bar.estimate, places)} {unit} [{signed(bar.lo, places)}, {signed(bar.hi, places)}]"
    named = "INCONCLUSIVE, not shown to be more or less than the sum of its parts"
    if not bar.covers(0):
        named = f"{'more' if bar.lo > 0 else 'less'} than the sum of its parts"
    what = f"{together.arm} beyond {' and '.join(together.parts)}"
    text = f"{label_of(claim.metric):<11} {effect}   {what}: {mark or named}   p {found.p:.2g}"
    unit_name = "pct" if claim.scale is Scale.LOG else "pp"
    numbers = {f"effect_{unit_name}": bar.estimate, f"lo_{unit_name}": bar.lo, f"hi_{unit_name}": bar.hi, "p": found.p}
    return text, {f"logic_only.{name}" if mark else name: value for name, value in numbers.items()}


def _oriented(claim: Claim, bar: Interval) -> Interval:
    """In the direction of better, as the claim's own interval."""
    if claim.sign > 0:
        return bar
    lo, estimate, hi = (claim.scale.effect(-claim.scale.difference(x)) for x in (bar.hi, bar.estimate, bar.lo))
    return Interval(lo, hi, bar.level, estimate)


def _line(claim: Claim, text: str, numbers: dict[str, float]) -> GateResult:
    """INCONCLUSIVE is all that a tracker may read of it: it passes and fails nothing."""
    head = f"{'INTERACTION':<{WORD_WIDTH}}"
    gate = INTERACTION if claim.name == "step_rate" else f"{INTERACTION} {claim.name}"
    return GateResult(gate, Verdict.INCONCLUSIVE, f"{head}{text}".rstrip(), (), numbers)
