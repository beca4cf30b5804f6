"""The verdict of a bracket, look by look (statistics.md section 1.9). Pure.

A claim that a look has decided stays as it was told there; the other gates are judged on all boots so far. The bracket
ends when nothing is left that more boots could decide, when a gate has failed, or when its minutes are spent.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from campaign.asked import contrast
from campaign.bracket import several
from campaign.bracket.proof import unproven
from campaign.bracket.reruns import Voided, cause, spent
from campaign.disclosure import shown
from campaign.errors import ExitCode, worst
from campaign.evidence import BootRecord, Evidence
from campaign.gates import synthetic
from campaign.gates.base import GateResult
from campaign.gates.claimed import logic_only
from campaign.names import INTERACTION
from campaign.planning.plan import Plan
from verdict.looks import futility
from verdict.sentence import effect_text, look_text
from verdict.words import Verdict, number_of

CODES = {
    Verdict.PASS: ExitCode.PASS,
    Verdict.FAIL: ExitCode.FAIL,
    Verdict.INCONCLUSIVE: ExitCode.INCONCLUSIVE,
    Verdict.VOID: ExitCode.VOID,
    Verdict.INVALID: ExitCode.INVALID,
}
WORDS = {code: word for word, code in CODES.items()}
WORD_WIDTH = 14
DECIDED = (Verdict.PASS, Verdict.FAIL)
ENDING = (Verdict.FAIL, Verdict.INVALID)


@dataclass(frozen=True)
class Look:
    """One planned look, as it was told."""

    number: int  # from 1
    evidence: Evidence  # the boots that it judged
    results: tuple[GateResult, ...]
    verdict: Verdict
    code: ExitCode
    ends: str  # why it is the last one; empty where the bracket goes on

    @property
    def boots(self) -> int:
        """Boots that it judged."""
        return len(self.evidence.letters)


@dataclass(frozen=True)
class Outcome:
    """The experiment's verdict and what it rests on."""

    evidence: Evidence
    results: tuple[GateResult, ...]
    verdict: Verdict
    code: ExitCode
    looks: tuple[Look, ...] = ()
    ends: str = ""  # why no further boot is made; empty where the bracket is not finished


def judge(plan: Plan, records: tuple[BootRecord, ...], voided: Voided = (), besides_s: float = 0.0) -> Outcome:
    """The verdict of what there is. No number is given for an arm that failed or was not what was asked.

    `besides_s`: what the run spent on no boot of the bracket (attempts.besides_s), which bracket.max_minutes counts.
    """
    boots = _in_run_order(records, voided)
    looks = _looks(plan, records, voided)
    broken = [r for r in records if r.status != "ok"]
    if broken:  # of a pair, the other boot is void because this one is not what it should be
        worst_one = next((r for r in broken if r.status != "void"), cause(broken))
        result = _broken(plan, worst_one, voided)
        evidence = plan.evidence(boots, 1 + plan.looks.boots.index(plan.goal(len(records))))
        return Outcome(evidence, (result,), result.verdict, CODES[result.verdict], looks, result.line)
    if not looks:
        evidence = plan.evidence(boots, 1)
        whole = (*_gates(plan, evidence).values(), *_own_words(plan, evidence))
        results, word, code = _told(plan, evidence, whole)
        return Outcome(evidence, results, word, code, (), out_of_minutes(plan, records, voided, besides_s))
    last = looks[-1]
    ends = last.ends or out_of_minutes(plan, records, voided, besides_s)
    return Outcome(last.evidence, last.results, last.verdict, last.code, looks, ends)


def _in_run_order(records: Iterable[BootRecord], voided: Voided) -> tuple[BootRecord, ...]:
    """The boots, each behind those that were voided in its place or, of a block, in the places behind it."""
    left = {number: tuple(group) for number, group in enumerate(voided)}
    found: list[BootRecord] = []
    for record in records:
        for number in [n for n, group in left.items() if group and group[0].index <= record.index]:
            found += left.pop(number)
        found.append(record)
    return (*found, *(boot for group in left.values() for boot in group))


# the looks


def _looks(plan: Plan, records: tuple[BootRecord, ...], voided: Voided) -> tuple[Look, ...]:
    """Every look that the boots reach, up to the one that ends the bracket."""
    sound = next((i for i, record in enumerate(records) if record.status != "ok"), len(records))
    found: list[Look] = []
    held: dict[str, GateResult] = {}
    for number, boots in enumerate(plan.looks.boots, 1):
        if boots > sound or (found and found[-1].ends):
            break
        before = tuple(group for group in voided if group and group[0].index <= boots)
        evidence = plan.evidence(_in_run_order(records[:boots], before), number)
        held = {gate: _held(held.get(gate), now, number) for gate, now in _gates(plan, evidence).items()}
        whole = (*held.values(), *_own_words(plan, evidence))
        results, word, code = _told(plan, evidence, whole)
        found.append(Look(number, evidence, results, word, code, _ends(plan, evidence, whole, number)))
    return tuple(found)


def _gates(plan: Plan, evidence: Evidence) -> dict[str, GateResult]:
    if plan.candidates:
        return several.results(plan, evidence)
    gates = plan.campaign.gates.switched_on()
    return {name: synthetic.read(name, gate.check(evidence), evidence) for name, gate in gates.items()}


def _own_words(plan: Plan, evidence: Evidence) -> tuple[GateResult, ...]:
    if not plan.candidates:
        return _without_a_knob(plan) + _asked_only(plan, evidence)
    return tuple(
        several.told_of(plan, arm, result)
        for arm in plan.candidates
        for view in [plan.view(arm)]
        for result in _without_a_knob(view) + _asked_only(view, several.seen_by(plan, evidence, arm))
    )


def _held(before: GateResult | None, now: GateResult, number: int) -> GateResult:
    """The first PASS or FAIL of a claim stays; boots of which the claim cannot be judged speak at every look."""
    now = replace(now, look=number if now.judgement else 0)
    broken = now.verdict is Verdict.INVALID or now.judgement is None
    decided = before is not None and before.judgement is not None and before.verdict in DECIDED
    return before if before is not None and decided and not broken else now


def _told(
    plan: Plan, evidence: Evidence, results: tuple[GateResult, ...]
) -> tuple[tuple[GateResult, ...], Verdict, ExitCode]:
    """The gates as they may be told, and the worst of them.

    All must pass, each at its own level: an intersection needs no correction for many claims (section 1.11). What two
    changes together add is no gate.
    """
    code = worst([CODES[r.verdict] for r in results if not r.gate.startswith(INTERACTION)])
    if code is ExitCode.PASS and plan.schedule.is_screen:
        code = ExitCode.INCONCLUSIVE
    return shown(results, WORDS[code], evidence), WORDS[code], code


def _ends(plan: Plan, evidence: Evidence, results: tuple[GateResult, ...], number: int) -> str:
    """Why the bracket ends at this look, in words; empty where it goes on."""
    for result in results:
        if result.verdict in ENDING:
            return f"{result.gate} is {result.verdict.value}"
    undecided = [result for result in results if _is_open(result, evidence)]
    if not undecided:
        return "nothing is left that more boots could decide"
    if number == len(plan.looks.boots):
        return "it is the last look" if number > 1 else "all boots ran"
    why = [futility(result.judgement, plan.looks.last) for result in undecided if result.judgement]
    if plan.campaign.bracket.futility and all(why):
        return f"futility: {'; '.join(f'{r.gate}: {w}' for r, w in zip(undecided, why, strict=True))}"
    return ""


def _is_open(result: GateResult, evidence: Evidence) -> bool:
    """Whether more boots could decide a claim: it has an error bar, and what was measured is not the trouble."""
    found = result.judgement
    if found is None or found.interval is None or result.verdict is not Verdict.INCONCLUSIVE:
        return False
    suspect = found.claim.ceiling_pct is not None and found.interval.lo > found.claim.ceiling_pct
    return not (suspect or found.fit.zero_variance or logic_only(evidence, found.claim.metric))


def out_of_minutes(plan: Plan, records: tuple[BootRecord, ...], voided: Voided, besides_s: float) -> str:
    """Why no further block is begun, in words; empty within bracket.max_minutes, without one, and within a block."""
    most, ran = plan.campaign.bracket.max_minutes, len(records)
    goal = plan.looks.next(ran)
    if most is None or goal is None or not ran or ran not in plan.block_ends:
        return ""
    took_s = [r.seconds.get("total", 0.0) for r in (*records, *(boot for group in voided for boot in group))]
    ends_s = besides_s + sum(took_s) + (goal - ran) * sum(took_s) / len(took_s)
    if ends_s <= 60 * most:
        return ""
    following = number_of(goal - ran, "boot")
    return f"bracket.max_minutes={most:g}: the next {following} would end at about {ends_s / 60:.0f} minutes"


def look_lines(look: Look, plan: Plan) -> list[str]:
    """What a look said, one line for all claims; empty where only one was planned."""
    which = look_text((look.number, len(plan.looks.boots)))
    if not which:
        return []
    told = [f"{r.gate} {r.verdict.value} {_effect(r)}".rstrip() for r in look.results if r.judgement]
    after = f"ends here: {look.ends}" if look.ends else f"goes on to {plan.looks.next(look.boots)} boots"
    return [f"{which}   {look.boots} boots: {', '.join(told) or 'no effect may be told'}; {after}"]


def _effect(result: GateResult) -> str:
    found = result.judgement
    if found is None or found.interval is None:
        return ""
    return effect_text(found, "pp" if found.claim.metric.endswith("_pp") else "%").replace("  ", " ")


# what ends a bracket at once, and what only its own word speaks for


def _without_a_knob(plan: Plan) -> tuple[GateResult, ...]:
    """An overlay by which the arms differ, and of which nothing but its own word can show that it works."""
    bare = contrast.bare(plan.arms)
    if not bare:
        return ()
    why = ", ".join(f"{name}: {reason}" for name, reason in bare.items())
    told = f"overlay {why}; loaded as staged, but nothing shows that it works"
    return (_only_word(told),)


def _asked_only(plan: Plan, evidence: Evidence) -> tuple[GateResult, ...]:
    """An argument by which the arms differ, and of which no process shows what became: never enough for a PASS."""
    bare = unproven(plan.arms, tuple(boot for boot in evidence.boots if boot.status == "ok"))
    if not bare:
        return ()
    why = f"{', '.join(bare)}: the arms differ by it, and no process of the engine shows what became of it"
    return (_only_word(f"serve argument {why}"),)


def _only_word(told: str) -> GateResult:
    word = Verdict.INCONCLUSIVE
    return GateResult("witness", word, f"{word.value:<{WORD_WIDTH}}witness     {told}")


def _broken(plan: Plan, record: BootRecord, voided: Voided) -> GateResult:
    word = {"failed": Verdict.FAIL, "invalid": Verdict.INVALID, "void": Verdict.VOID}[record.status]
    where = f"arm {record.arm}, boot {record.index:02d}-{record.letter}"
    why = spent(plan, record, voided) if word is Verdict.VOID else ""
    unfit = f"HOST-UNFIT, {why}: " if why else ""
    return GateResult("engine", word, f"{word.value:<{WORD_WIDTH}}engine      {unfit}{where}: {record.reason}")
