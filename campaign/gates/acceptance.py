"""Are the candidate's drafts accepted as base's are, at every position?"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from campaign.evidence import BootRecord, DraftCounts, Evidence
from campaign.gates import strata, warm
from campaign.gates.base import GateResult
from campaign.gates.chain import Together, chain, collapse, doubt, is_thin, same_length, totals
from campaign.gates.claimed import label_of, unjudged
from campaign.gates.footing import ARM_OF, boot_name, by_prompt, sound
from campaign.gates.paired import judge_acceptance
from campaign.names import ACCEPTANCE_ESTIMATOR, DRAFT_COUNTERS
from verdict.sentence import head
from verdict.words import Verdict

GATE = "acceptance"
LABEL = "acceptance"
PROVES_A_DRAFTER = 3  # draft tokens from which a length near 1 says that the drafter is useless (cases C5)


@dataclass
class Acceptance:
    """Judges the registered claim of this name, and looks for collapse at the positions after it (house.md).

    `collapse_ratio`: a conditional rate under this share of base's is a collapse, shown where exact 95 % bounds exclude
    the limit; one that is seen and not shown is INCONCLUSIVE. `min_length`: an acceptance length up to this, in tokens
    a step, with three draft tokens or more is an ineffective drafter. `min_reached`: accepted drafts of the position
    before, under which a conditional rate is not judged; a prompt's repeats are no new drafts. `context_edges`: tokens
    of prompt and answer at which a stratum of the window ends; each is judged for collapse by itself.
    """

    collapse_ratio: float = 0.5
    min_length: float = 1.05
    min_reached: int = 20
    claim: str = "acceptance"
    context_edges: list[int] = field(default_factory=lambda: [128, 512, 2048, 8192, 32768])

    def check(self, evidence: Evidence) -> GateResult:
        """No drafts, a useless drafter, a collapse, and then the claim."""
        silent = _no_drafts(evidence)
        if silent:
            return unjudged(GATE, LABEL, silent)
        base, candidate = _totals(evidence, "A"), _totals(evidence, "B")
        if base is None or candidate is None:
            return unjudged(GATE, LABEL, "one arm has no boot yet")
        useless = self._ineffective(base, candidate)
        base, candidate = same_length(base, candidate)
        details = (
            *_position_lines(base, candidate, self.min_reached),
            *strata.lines(evidence, self.min_reached),
            *warm.lines(evidence, self.min_reached),
            *_on_other_text(evidence),
        )
        numbers = _numbers(base, candidate)
        broken = (
            warm.collapsed(evidence, self.collapse_ratio, self.min_reached)  # the reason of what else it may be
            or useless
            or collapse(base, candidate, self.collapse_ratio, self.min_reached)
            or strata.collapsed(evidence, self.collapse_ratio, self.min_reached)
        )
        found = judge_acceptance(GATE, LABEL, self.claim, evidence)
        if broken:
            return _broken(found, broken, details, numbers)
        if found.verdict is Verdict.PASS and (open_ := self._doubted(evidence, base, candidate)):
            found = unjudged(GATE, LABEL, f"{open_}; more boots are more repeats: ask more or longer prompts")
        if found.verdict is Verdict.FAIL and (why := warm.follows(evidence)):
            found = replace(found, line=f"{found.line}; {why}")
        return replace(found, details=found.details + details, numbers=numbers | found.numbers)

    def _doubted(self, evidence: Evidence, base: Together, candidate: Together) -> str:
        limits = self.collapse_ratio, self.min_reached
        return doubt(base, candidate, *limits) or strata.doubted(evidence, *limits) or warm.doubted(evidence, *limits)

    def _ineffective(self, base: DraftCounts, candidate: DraftCounts) -> str:
        """The arms whose drafter is useless; a base that is makes the comparison void of meaning, which is said."""
        found = []
        for arm, counts in (("candidate", candidate), ("base", base)):
            length = counts.acceptance_length or 1.0
            if len(counts.accepted) >= PROVES_A_DRAFTER and length <= self.min_length:
                found.append(f"{arm} gets {length:.2f} tokens a step of {len(counts.accepted)} drafted")
        if not found:
            return ""
        nothing = (
            "; a comparison with such a base means nothing: mend its drafter first"
            if found[-1].startswith("base")
            else ""
        )
        return f"drafter ineffective: {', '.join(found)}{nothing}"


def _broken(claimed: GateResult, why: str, details: tuple[str, ...], numbers: dict[str, float]) -> GateResult:
    """A collapse is the verdict, at whatever look; the claim's numbers and interval stand beside it."""
    by_itself = f"the claim by itself: {' '.join(claimed.line.split())}"
    line = head(Verdict.FAIL, LABEL) + why
    every = (by_itself, *claimed.details, *details)
    return GateResult(GATE, Verdict.FAIL, line, every, numbers | claimed.numbers)


def _no_drafts(evidence: Evidence) -> str:
    """The boot whose counters show no draft: never an acceptance of 0 % (cases B9, B11)."""
    boots = sound(evidence)
    silent = next((b for b in boots if b.natural is None or not (b.natural.drafts and b.natural.accepted)), None)
    if silent is None:
        return _two_estimators(boots) if boots else "no boot gave data"
    where = f"boot {boot_name(silent)} ({ARM_OF[silent.letter]})"
    if seen := silent.facts.get(DRAFT_COUNTERS):
        return f"counters not wired in {where}: {seen}; no acceptance is made of this"
    return f"no drafts in window of {where}: not speculating, or the counters are not wired"


def _two_estimators(boots: tuple[BootRecord, ...]) -> str:
    """That boots counted their acceptance in two ways: such numbers are never compared (cases B10)."""
    found = {boot.facts.get(ACCEPTANCE_ESTIMATOR, "an unnamed estimator"): boot_name(boot) for boot in boots}
    if len(found) < len(("one", "another")):
        return ""
    told = ", ".join(f"{name} in {how!r}" for how, name in found.items())
    return f"acceptance was counted in two ways ({told}): two estimators are not compared"


def _on_other_text(evidence: Evidence) -> Iterator[str]:
    """That the arms' greedy answers differ, so that acceptance is compared on different text (statistics.md 1.1)."""
    base, candidate = by_prompt(evidence, "A"), by_prompt(evidence, "B")
    asked = [key for key in base if key in candidate and not any(a.sampled for _, a in base[key])]
    other = [key for key in asked if {a.token_ids for _, a in base[key]} != {a.token_ids for _, a in candidate[key]}]
    if other:
        yield f"{len(other)} of {len(asked)} prompts are answered otherwise: acceptance is compared on different text"


def _totals(evidence: Evidence, letter: str) -> Together | None:
    """The natural-length counters of all boots of an arm together."""
    boots = [boot for boot in sound(evidence, letter) if boot.natural]
    rounds = max((boot.prefix.warm.rounds for boot in boots if boot.prefix), default=1)
    return totals((boot.natural for boot in boots if boot.natural), rounds)


def _position_lines(base: Together, candidate: Together, min_reached: int) -> Iterator[str]:
    lengths = f"base {base.acceptance_length:.3f}, candidate {candidate.acceptance_length:.3f}"
    yield f"acceptance length in tokens a step (token-weighted, counters' differences over answers): {lengths}"
    for position, (ours, theirs) in enumerate(zip(chain(base), chain(candidate), strict=False), start=1):
        given = "of all drafts" if position == 1 else f"given pos{position - 1}"
        thin = position > 1 and is_thin(ours, theirs, min_reached)
        judged = f", thin: no collapse is judged under {min_reached} drafts that are no repeats" if thin else ""
        yield f"{label_of(f'acceptance_pos{position}_pp')} {given}: base {ours.text}, candidate {theirs.text}{judged}"


def _numbers(base: DraftCounts, candidate: DraftCounts) -> dict[str, float]:
    numbers = {}
    for arm, counts in (("base", base), ("candidate", candidate)):
        numbers[f"{arm}_acceptance_length"] = counts.acceptance_length or 1.0
        numbers |= {f"{arm}_acceptance_pos{i}_pp": rate for i, rate in enumerate(counts.rates_pp(), start=1)}
    return numbers
