"""Does the prefix cache do what each arm asks: off where it is to be off, hits where prompts share a long prefix?"""

from collections.abc import Iterator
from dataclasses import dataclass
from statistics import median

from campaign.evidence import BootRecord, Evidence, PrefixFacts, PrefixPass
from campaign.gates import warm
from campaign.gates.base import GateResult
from campaign.gates.claimed import logic_only, unjudged
from campaign.gates.footing import ARM_OF, boot_name, has_prefix_cache, incomplete, sound
from campaign.names import FILLED_BESIDE, TTFT_WARM_S
from verdict.sentence import head
from verdict.words import Verdict

GATE = "prefix"
LABEL = "prefix hits"
PER_ATTEMPT = 1.01  # tokens looked up per token served, above which a request is looked up more than once
Word = tuple[Verdict, str]


@dataclass
class Prefix:
    """Hits that the counters show, believed only where they agree with themselves and with the time to first token.

    `min_blocks`: resolved KV blocks that the shared prefix must fill; of a shorter one, no hits say nothing (cases B4).
    `faster_pct`: by which a warm first token must be faster than a cold one to speak for hits that no counter shows
    (cases B6). `cold_pct`: hits of the cold pass from which it is not cold. `least_pct`: of the shared prefix, in whole
    blocks, that the warm pass must hit; a layout that loses one block of three still does.
    """

    min_blocks: int = 3
    faster_pct: float = 50.0
    cold_pct: float = 1.0
    least_pct: float = 50.0

    def check(self, evidence: Evidence) -> GateResult:
        """The first reason that settles it, from what makes the counters unfit down to what they show."""
        if reason := incomplete(evidence):
            return unjudged(GATE, LABEL, reason)
        boots = [(boot, boot.prefix) for boot in sound(evidence) if boot.prefix]
        if len(boots) < len(sound(evidence)):
            return unjudged(GATE, LABEL, "no prompts with a shared prefix were asked; set workload=shared_prefix")
        mark = logic_only(evidence, TTFT_WARM_S)
        verdict, text = next(self._reasons(boots, f" ({mark})" if mark else ""), (Verdict.PASS, _shares(evidence)))
        details = tuple(_told(boots))
        return GateResult(GATE, verdict, head(verdict, LABEL) + text, details, _numbers(evidence))

    def _reasons(self, boots: list[tuple[BootRecord, PrefixFacts]], mark: str) -> Iterator[Word]:
        named = [(f"boot {boot_name(boot)} ({ARM_OF[boot.letter]})", boot, facts) for boot, facts in boots]
        for where, boot, facts in named:
            yield from self._unfit(where, boot, facts)
        for where, boot, facts in named:
            yield from self._engaged(where, boot, facts, mark)
        for where, boot, facts in named:
            yield from _not_reached(where, boot, facts)

    def _unfit(self, where: str, boot: BootRecord, facts: PrefixFacts) -> Iterator[Word]:
        """Counters that contradict themselves, and a prefix that is too short to be hit."""
        for name, one in (("cold", facts.cold), ("warm", facts.warm)):
            if why := contradiction(one):
                yield Verdict.INCONCLUSIVE, f"{where}, {name} pass: {why}"
        block = boot.kv.block_size if boot.kv else 0
        if has_prefix_cache(boot.facts) and facts.shared_tokens < self.min_blocks * block:
            yield (
                Verdict.INCONCLUSIVE,
                f"the shared prefix of {facts.shared_tokens} tokens is shorter than {self.min_blocks} resolved blocks "
                f"of {block} ({self.min_blocks * block} tokens): hits of 0 would not say that the cache is off",
            )

    def _engaged(self, where: str, boot: BootRecord, facts: PrefixFacts, mark: str) -> Iterator[Word]:
        """Whether hits are there where they should be, and nowhere else."""
        on, seen = has_prefix_cache(boot.facts), facts.warm.hits or 0
        if (facts.cold.hit_pct or 0.0) > self.cold_pct:
            yield (
                Verdict.INVALID,
                f"{where}: {facts.cold.hit_pct:.1f} % hits in the cold pass, wanted at most {self.cold_pct:g} %: "
                "the cache was not emptied, so cold and warm are not apart",
            )
        if not on and seen:
            yield (
                Verdict.INVALID,
                f"{where}: prefix caching is off by the engine's configuration, and {seen} tokens hit",
            )
        if on and not seen:
            yield self._without_hits(where, facts, mark)
        block = boot.kv.block_size if boot.kv else 0
        wanted, hit = _could_hit(facts, block), sum(facts.warm.hits_of.values())
        if on and hit < self.least_pct / 100 * wanted:
            yield (
                Verdict.INCONCLUSIVE,
                f"{where}, warm pass: {hit} of {wanted} tokens of the shared prefix were hit, wanted at least "
                f"{self.least_pct:g} %: what prompts show that were computed is nothing of a cache",
            )

    def _without_hits(self, where: str, facts: PrefixFacts, mark: str) -> Word:
        """No counted hit: off after all, or counters that are not wired while the cache works."""
        cold_s, warm_s = (median(one.ttft_s.values()) for one in (facts.cold, facts.warm))
        times = f"first tokens after {1e3 * cold_s:.1f} ms cold and {1e3 * warm_s:.1f} ms warm{mark}"
        counted = (
            "no counter of hits" if facts.warm.hits is None else f"0 hits of {facts.warm.queries} tokens looked up"
        )
        if warm_s < (1 - self.faster_pct / 100) * cold_s:
            return Verdict.INCONCLUSIVE, f"{where}: two kinds of evidence disagree: {counted}, but {times}"
        return Verdict.INVALID, f"{where}: knob not engaged: prefix caching resolves to on, with {counted}, and {times}"


def _not_reached(where: str, boot: BootRecord, facts: PrefixFacts) -> Iterator[Word]:
    """A cache that was to be filled beside a request at the drafter's limit, and nothing counts that it was."""
    counted = boot.facts.get(FILLED_BESIDE)
    if counted is None or not has_prefix_cache(boot.facts):
        return
    if not counted:
        yield (
            Verdict.INCONCLUSIVE,
            f"{where}: nothing counts what was prefilled beside a request at the drafter's limit; stage overlay "
            "draft_kv_guard, its knob at 0 for the engine as it is",
        )
    elif float(counted) < facts.shared_tokens:
        yield (
            Verdict.INCONCLUSIVE,
            f"{where}: {float(counted):g} tokens were prefilled beside a request at the drafter's limit, wanted at "
            f"least {facts.shared_tokens}, the shared prefix: the long request ended too soon, or is below the limit",
        )


def contradiction(one: PrefixPass) -> str:
    """Why the hit share of a pass is not to be believed (cases B2, B5), one sentence; empty where nothing speaks."""
    queries, hits = one.queries or 0, one.hits or 0
    if hits > queries:
        return f"{hits} tokens hit of {queries} looked up: the counters contradict each other"
    if one.preemptions:
        return f"{one.preemptions} preemptions: tokens of prompts that were computed again count as hits"
    if queries > PER_ATTEMPT * one.prompt_tokens:
        return f"hit rate unreliable: {queries} tokens looked up of {one.prompt_tokens} served, without a preemption"
    return ""


def _could_hit(facts: PrefixFacts, block: int) -> int:
    """Tokens of the shared prefix in whole blocks, over all prompts asked once; 0 where the block is not known."""
    shared = [min(facts.shared_tokens, tokens) for tokens in facts.warm.tokens_of.values()]
    return sum(tokens // block * block for tokens in shared) if block else 0


def lost_units(one: PrefixPass, block: int) -> int | None:
    """How many whole blocks every prompt lost of what could hit (cases C7); None where they did not lose alike.

    Of L tokens (L - 1) // block blocks can hit, because the last token is always computed. A prompt too short for the
    loss shows 0 hits and says nothing against it.
    """
    whole = {name: (tokens - 1) // block for name, tokens in one.tokens_of.items()}
    lost = {name: whole[name] - one.hits_of[name] // block for name in whole}
    most = max(lost.values(), default=0)
    alike = all(lost[n] == most or (lost[n] == whole[n] < most) for n in whole)
    exact = all(hits % block == 0 for hits in one.hits_of.values())
    return most if alike and exact and any(one.hits_of.values()) else None


def _told(boots: list[tuple[BootRecord, PrefixFacts]]) -> Iterator[str]:
    """What each arm's first boot looked up, and what its layout costs."""
    for letter, arm in ARM_OF.items():
        first = next(((boot, facts) for boot, facts in boots if boot.letter == letter), None)
        if first is None:
            continue
        boot, facts = first
        block = boot.kv.block_size if boot.kv else 0
        blocks = facts.shared_tokens // block if block else 0
        yield (
            f"{arm}: shared prefix {facts.shared_tokens} tokens, {blocks} blocks of {block}; warm pass "
            f"{facts.warm.hits or 0} of {facts.warm.queries or 0} tokens looked up were there"
        )
        lost = lost_units(facts.warm, block) if block and facts.warm.hits else None
        if lost:
            yield f"{arm}: on, {lost} unit{'s' if lost > 1 else ''} of {block} tokens lost in every prompt"


def _shares(evidence: Evidence) -> str:
    """Hit shares of both arms, cold and warm."""
    told = [f"{arm} {warm.hits(evidence, letter)}" for letter, arm in ARM_OF.items()]
    return f"cold -> warm: {', '.join(told)}"


def _numbers(evidence: Evidence) -> dict[str, float]:
    found = {}
    for letter, arm in ARM_OF.items():
        for name, one in warm.shares(evidence, letter).items():
            if one is not None:
                found[f"{arm}_{name}_hit_pct"] = one
    return found
