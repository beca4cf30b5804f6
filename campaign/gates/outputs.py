"""Do both arms give the same greedy answers, token by token, in every boot?"""

from collections.abc import Iterator
from dataclasses import dataclass

from campaign.evidence import Evidence
from campaign.gates.base import GateResult
from campaign.gates.divergence import (
    Classified,
    Divergence,
    Kind,
    Reading,
    classify,
    differ,
    gravest_of_each,
    kinds,
    shown,
    unlike_itself,
)
from campaign.gates.footing import (
    PromptKey,
    boot_name,
    budgets_differ,
    by_prompt,
    incomplete,
    rendered_differently,
    sound,
    unanswered,
)
from campaign.names import DECODE_SET
from verdict.proportions import mcnemar_exact_p
from verdict.sentence import head
from verdict.words import Verdict, number_of

GATE = "outputs"
MOST_SHOWN = 10  # divergences whose kind is told one by one
ABOVE_THE_FLOOR = 0.05  # two-sided p at which the arms differ more than base does from itself
Readings = dict[PromptKey, list[Reading]]


@dataclass
class Outputs:
    """Equal texts and token ids between the arms; base must first agree with itself (cases H9, H10, H14, D6, D7).

    The control is base against itself over its boots and when it is asked again: the same prompts, one at a time, as
    between the arms. Where it differs too, B fails only above that floor. `near_tie_nats` bounds what is called a
    near-tie: two steps of a bfloat16 logit of 16 to 32. It is told, and fails as any difference does against a clean
    control; `allow_near_ties` lets a patch pass that is meant to round otherwise, when nothing else differs.
    """

    near_tie_nats: float = 0.25
    allow_near_ties: bool = False

    def check(self, evidence: Evidence) -> GateResult:
        """The first reason that settles it, from what makes a comparison unfair down to what it shows."""
        base, candidate = _greedy(evidence, "A"), _greedy(evidence, "B")
        control, itself = list(_own_divergences(base)), list(_own_divergences(candidate))
        between = list(_divergences(base, candidate))
        each = (classify(found, evidence.boots, self.near_tie_nats) for found in _unlike(between))
        sorted_out = gravest_of_each(each)
        verdict, text = self._rule(evidence, base, control, between, sorted_out)
        titled = (("base against itself", control), ("first divergence", between), ("candidate against itself", itself))
        return GateResult(
            gate=GATE,
            verdict=verdict,
            line=f"{head(verdict, GATE)}{text}",
            details=(*_details(*titled), *_sorted_out(sorted_out)),
            numbers={"prompts": float(len(base)), "differing": float(_prompts(between))}
            | {f"differing_{kind.name.lower()}": float(n) for kind in Kind if (n := _count(sorted_out, kind))},
        )

    def _rule(
        self,
        evidence: Evidence,
        base: Readings,
        control: list[Divergence],
        between: list[Divergence],
        sorted_out: list[Classified],
    ) -> tuple[Verdict, str]:
        unfair = rendered_differently(evidence) or budgets_differ(evidence) or _early_stop(evidence)
        if unfair:
            return Verdict.INVALID, unfair
        missing = unanswered(evidence)
        if missing:
            return Verdict.FAIL, missing
        noisy = {found.key for found in control}.union(*(unlike_itself(boot) for boot in sound(evidence, "A")))
        if noisy:
            return _above_the_floor(base, noisy, between)
        return self._compared(evidence, base, between, sorted_out)

    def _compared(
        self, evidence: Evidence, base: Readings, between: list[Divergence], sorted_out: list[Classified]
    ) -> tuple[Verdict, str]:
        """What the comparison of the arms says, once it is fair and base agrees with itself."""
        if between and len(sound(evidence, "A")) < 2:
            return Verdict.INCONCLUSIVE, f"arms differ on {_of(between, base)}, and no second base boot is the control"
        near_ties = self.allow_near_ties and all(one.kind is Kind.NEAR_TIE for one in sorted_out)
        if between and not near_ties:
            told = f"arms differ on {_of(between, base)}: first {between[0].where}"
            return Verdict.FAIL, f"{told} ({kinds(sorted_out)})"
        reason = incomplete(evidence) or ("" if base else "no answers to compare")
        if reason:
            return Verdict.INCONCLUSIVE, reason
        if between:
            return Verdict.PASS, f"arms differ on {_of(between, base)}, by near-ties alone, which are allowed"
        over = number_of(len(evidence.letters), "boot")
        return Verdict.PASS, f"{len(base)}/{number_of(len(base), 'prompt')} equal over {over}"


def _above_the_floor(base: Readings, noisy: set[PromptKey], between: list[Divergence]) -> tuple[Verdict, str]:
    """Base differs from itself: the arms are told apart only by prompts on which nothing but the candidate differs.

    The exact McNemar test over prompts, each compared between the arms at most as often as base was with itself.
    """
    fair = {found.key for found in _as_often(base, between)}
    only_between, only_control = len(fair - noisy), len(noisy - fair)
    p = mcnemar_exact_p(only_control, only_between)
    told = f"base differs from itself on {len(noisy)}/{number_of(len(base), 'prompt')}"
    if only_between > only_control and p < ABOVE_THE_FLOOR:
        return Verdict.FAIL, (
            f"arms differ on {_of(between, base)}, {told}: above that floor "
            f"({number_of(only_between, 'prompt')} against {only_control}, exact McNemar p = {p:.2g})"
        )
    return Verdict.INCONCLUSIVE, f"not deterministic here: {told}; arms differ on {_of(between, base)}"


def _as_often(base: Readings, between: list[Divergence]) -> Iterator[Divergence]:
    """The divergences of so many candidate boots as there are comparisons of base with itself."""
    boots = sorted({found.right[0] for found in between})
    most = max((len(readings) for readings in base.values()), default=1) - 1
    yield from (found for found in between if found.right[0] in boots[: max(1, most)])


def _greedy(evidence: Evidence, letter: str) -> Readings:
    """The answers of an arm that must be alike: drawn ones need not be."""
    return {key: rows for key, rows in by_prompt(evidence, letter).items() if not any(a.sampled for _, a in rows)}


def _early_stop(evidence: Evidence) -> str:
    """The first fixed-length answer that ended by itself: ignore_eos was not passed on (cases D6)."""
    for boot in sound(evidence):
        for answer in boot.answers:
            if answer.prompt_set == DECODE_SET and answer.finish_reason != "length":
                return (
                    f"early stop: {DECODE_SET}/{answer.prompt_id} of boot {boot_name(boot)} ended after "
                    f"{len(answer.token_ids)} tokens ({answer.finish_reason}), wanted a fixed length"
                )
    return ""


def _own_divergences(arm: Readings) -> Iterator[Divergence]:
    for key, readings in sorted(arm.items()):
        yield from (Divergence(key, readings[0], other) for other in readings[1:] if differ(readings[0], other))


def _divergences(base: Readings, candidate: Readings) -> Iterator[Divergence]:
    for key in sorted(base.keys() & candidate.keys()):
        reference = base[key][0]
        yield from (Divergence(key, reference, other) for other in candidate[key] if differ(reference, other))


def _unlike(found: list[Divergence]) -> list[Divergence]:
    """The divergences that are not the same answer again, the first of each."""
    return list({(one.key, one.right[1].token_ids, one.right[1].text): one for one in reversed(found)}.values())[::-1]


def _prompts(found: list[Divergence]) -> int:
    return len({divergence.key for divergence in found})


def _count(found: list[Classified], kind: Kind) -> int:
    return sum(one.kind is kind for one in found)


def _of(found: list[Divergence], base: Readings) -> str:
    return f"{_prompts(found)}/{number_of(len(base), 'prompt')}"


def _sorted_out(found: list[Classified]) -> Iterator[str]:
    """What kind each divergence is, the gravest first."""
    gravest = sorted(found, key=lambda one: list(Kind).index(one.kind))
    yield from (f"{one.kind}: {one.found.where}: {one.why}" for one in gravest[:MOST_SHOWN])
    if len(found) > MOST_SHOWN:
        yield f"and {len(found) - MOST_SHOWN} more ({kinds(gravest[MOST_SHOWN:])})"


def _details(*titled: tuple[str, list[Divergence]]) -> tuple[str, ...]:
    """The first divergence of each kind, with both texts around it."""
    return tuple(line for title, found in titled if found for line in shown(title, found[0]))
