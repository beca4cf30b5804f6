"""Are the candidate's drafts accepted as base's are, at every position?"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import zip_longest
from statistics import fmean

from campaign.evidence import DraftCounts, Evidence
from campaign.gates.base import GateResult
from campaign.gates.claimed import judge_claim, label_of, unjudged
from campaign.gates.footing import ARM_OF, boot_name, sound
from verdict.claims import Claim
from verdict.sentence import head
from verdict.words import Verdict

GATE = "acceptance"
LABEL = "acceptance"
CLAIMED_POSITION = re.compile(r"acceptance_pos(\d+)_pp")
MEAN_DIGITS = 9  # of a mean over unequally many boots; equal rates must differ by exactly nothing
PROVES_A_DRAFTER = 3  # draft tokens from which a length near 1 says that the drafter is useless (cases C5)


@dataclass
class Acceptance:
    """Judges the registered claim of this name, and looks for collapse at the positions after it (house.md).

    `collapse_ratio`: a conditional rate under this share of base's is a collapse. `min_length`: an acceptance length
    up to this, in tokens a step, with three draft tokens or more is an ineffective drafter. `min_reached`: accepted
    drafts of the position before, under which a conditional rate is not judged.
    """

    collapse_ratio: float = 0.5
    min_length: float = 1.05
    min_reached: int = 20
    claim: str = "acceptance"

    def check(self, evidence: Evidence) -> GateResult:
        """No drafts, a useless drafter, a collapse, and then the claim."""
        silent = _no_drafts(evidence)
        if silent:
            return unjudged(GATE, LABEL, silent)
        base, candidate = _totals(evidence, "A"), _totals(evidence, "B")
        if base is None or candidate is None:
            return unjudged(GATE, LABEL, "one arm has no boot yet")
        useless = self._ineffective(base, candidate)
        base, candidate = _same_length(base, candidate)
        details, numbers = tuple(_position_lines(base, candidate)), _numbers(base, candidate)
        broken = useless or self._collapse(base, candidate)
        if broken:
            return GateResult(GATE, Verdict.FAIL, head(Verdict.FAIL, LABEL) + broken, details, numbers)
        found = self._claimed(evidence)
        return replace(found, details=found.details + details, numbers=numbers | found.numbers)

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

    def _collapse(self, base: DraftCounts, candidate: DraftCounts) -> str:
        pairs = zip(_conditional(base), _conditional(candidate), strict=True)
        for position, (ours, theirs) in enumerate(pairs, start=1):
            if min(ours.reached, theirs.reached) < self.min_reached or theirs.rate >= self.collapse_ratio * ours.rate:
                continue
            return (
                f"chain collapse after pos{position}: pos{position + 1} given pos{position} {theirs.text}, "
                f"base {ours.text}, limit {100 * self.collapse_ratio * ours.rate:.1f} %"
            )
        return ""

    def _claimed(self, evidence: Evidence) -> GateResult:
        claim = evidence.claims.get(self.claim)
        if claim is None:
            return unjudged(GATE, LABEL, f"no claim is registered as {self.claim}")
        differences = paired_differences(evidence, claim)
        if len(differences) >= 2:
            return judge_claim(GATE, claim, evidence, differences)
        alone = judge_claim(GATE, claim, evidence)
        return replace(alone, details=("without the spread of the prompts: no counters a prompt", *alone.details))


@dataclass(frozen=True)
class Conditional:
    """How often a position is accepted where the one before it was."""

    accepted: int
    reached: int

    @property
    def rate(self) -> float:
        """From 0 to 1; 0 where the position was never reached."""
        return self.accepted / self.reached if self.reached else 0.0

    @property
    def text(self) -> str:
        """The rate with its counts."""
        return f"{100 * self.rate:.1f} % ({self.accepted}/{self.reached})"


def paired_differences(evidence: Evidence, claim: Claim) -> list[float]:
    """Candidate less base in points, a prompt each, of rates averaged over boots (statistics.md section 1.8)."""
    found = CLAIMED_POSITION.fullmatch(claim.metric)
    if found is None:
        return []
    base, candidate = (_prompt_rates(evidence, letter, int(found[1])) for letter in "AB")
    return [round(candidate[prompt] - base[prompt], MEAN_DIGITS) for prompt in sorted(base.keys() & candidate.keys())]


def _prompt_rates(evidence: Evidence, letter: str, position: int) -> dict[str, float]:
    rates: dict[str, list[float]] = {}
    for boot in sound(evidence, letter):
        for prompt, counts in boot.by_prompt.items():
            found = counts.rates_pp()
            if len(found) >= position:
                rates.setdefault(prompt, []).append(found[position - 1])
    return {prompt: fmean(found) for prompt, found in rates.items()}


def _no_drafts(evidence: Evidence) -> str:
    """The boot whose counters show no draft: never an acceptance of 0 % (cases B9, B11)."""
    boots = sound(evidence)
    silent = next((b for b in boots if b.natural is None or not (b.natural.drafts and b.natural.accepted)), None)
    if silent is None:
        return "" if boots else "no boot gave data"
    arm = ARM_OF[silent.letter]
    return f"no drafts in window of boot {boot_name(silent)} ({arm}): not speculating, or the counters are not wired"


def _totals(evidence: Evidence, letter: str) -> DraftCounts | None:
    """The natural-length counters of all boots of an arm together."""
    counts = [boot.natural for boot in sound(evidence, letter) if boot.natural]
    if not counts:
        return None
    accepted = tuple(sum(column) for column in zip_longest(*(found.accepted for found in counts), fillvalue=0))
    return DraftCounts(sum(found.drafts for found in counts), accepted)


def _same_length(base: DraftCounts, candidate: DraftCounts) -> tuple[DraftCounts, DraftCounts]:
    """Both with the positions of the longer one: a position that an arm never shows was never accepted there."""
    longest = max(len(base.accepted), len(candidate.accepted))
    padded = [c.accepted + (0,) * (longest - len(c.accepted)) for c in (base, candidate)]
    return DraftCounts(base.drafts, padded[0]), DraftCounts(candidate.drafts, padded[1])


def _conditional(counts: DraftCounts) -> list[Conditional]:
    """Of position 2 given position 1, of 3 given 2, and so on."""
    return [Conditional(after, before) for before, after in zip(counts.accepted, counts.accepted[1:], strict=False)]


def _position_lines(base: DraftCounts, candidate: DraftCounts) -> Iterator[str]:
    lengths = f"base {base.acceptance_length:.3f}, candidate {candidate.acceptance_length:.3f}"
    yield f"acceptance length in tokens a step: {lengths}"
    chains = [[Conditional(counts.accepted[0], counts.drafts), *_conditional(counts)] for counts in (base, candidate)]
    for position, (ours, theirs) in enumerate(zip(*chains, strict=False), start=1):
        given = "of all drafts" if position == 1 else f"given pos{position - 1}"
        yield f"{label_of(f'acceptance_pos{position}_pp')} {given}: base {ours.text}, candidate {theirs.text}"


def _numbers(base: DraftCounts, candidate: DraftCounts) -> dict[str, float]:
    numbers = {}
    for arm, counts in (("base", base), ("candidate", candidate)):
        numbers[f"{arm}_acceptance_length"] = counts.acceptance_length or 1.0
        numbers |= {f"{arm}_acceptance_pos{i}_pp": rate for i, rate in enumerate(counts.rates_pp(), start=1)}
    return numbers
