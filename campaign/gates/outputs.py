"""Do both arms give the same greedy answers, token by token, in every boot?"""

from collections.abc import Iterator
from dataclasses import dataclass

from campaign.evidence import Answer, Evidence
from campaign.gates.base import GateResult
from campaign.gates.footing import (
    PromptKey,
    boot_name,
    by_prompt,
    incomplete,
    rendered_differently,
    sound,
    unanswered,
)
from verdict.sentence import head
from verdict.words import Verdict

GATE = "outputs"
AROUND = 24  # characters shown on each side of a divergence
FIXED_LENGTH_SET = "decode"  # its answers run to max_tokens (ignore_eos), house.md
Reading = tuple[str, Answer]


@dataclass(frozen=True)
class Divergence:
    """Two answers to one prompt that are not the same."""

    key: PromptKey
    left: Reading
    right: Reading


@dataclass
class Outputs:
    """Equal texts and token ids between the arms; base must first agree with itself (cases H9, H10, H14, D6, D7)."""

    def check(self, evidence: Evidence) -> GateResult:
        """The first reason that settles it, from what makes a comparison unfair down to what it shows."""
        base, candidate = by_prompt(evidence, "A"), by_prompt(evidence, "B")
        control, itself = list(_own_divergences(base)), list(_own_divergences(candidate))
        between = list(_divergences(base, candidate))
        verdict, text = _rule(evidence, base, control, between)
        return GateResult(
            gate=GATE,
            verdict=verdict,
            line=f"{head(verdict, GATE)}{text}",
            details=_details(
                ("base against itself", control),
                ("first divergence", between),
                ("candidate against itself", itself),
            ),
            numbers={"prompts": float(len(base)), "differing": float(_prompts(between))},
        )


def _rule(
    evidence: Evidence,
    base: dict[PromptKey, list[Reading]],
    control: list[Divergence],
    between: list[Divergence],
) -> tuple[Verdict, str]:
    unfair = rendered_differently(evidence) or _early_stop(evidence)
    if unfair:
        return Verdict.INVALID, unfair
    missing = unanswered(evidence)
    if missing:
        return Verdict.FAIL, missing
    if control:
        return Verdict.INCONCLUSIVE, f"not deterministic here: base differs from itself on {_of(control, base)}"
    return _compared(evidence, base, between)


def _compared(
    evidence: Evidence, base: dict[PromptKey, list[Reading]], between: list[Divergence]
) -> tuple[Verdict, str]:
    """What the comparison of the arms says, once it is fair and base agrees with itself."""
    if between and len(sound(evidence, "A")) < 2:
        return Verdict.INCONCLUSIVE, f"arms differ on {_of(between, base)}, and no second base boot is the control"
    if between:
        return Verdict.FAIL, f"arms differ on {_of(between, base)}: first {_where(between[0])}"
    reason = incomplete(evidence) or ("" if base else "no answers to compare")
    if reason:
        return Verdict.INCONCLUSIVE, reason
    return Verdict.PASS, f"{len(base)}/{len(base)} prompts equal over {len(evidence.letters)} boots"


def _early_stop(evidence: Evidence) -> str:
    """The first fixed-length answer that ended by itself: ignore_eos was not passed on (cases D6)."""
    for boot in sound(evidence):
        for answer in boot.answers:
            if answer.prompt_set == FIXED_LENGTH_SET and answer.finish_reason != "length":
                return (
                    f"early stop: {FIXED_LENGTH_SET}/{answer.prompt_id} of boot {boot_name(boot)} ended after "
                    f"{len(answer.token_ids)} tokens ({answer.finish_reason}), wanted a fixed length"
                )
    return ""


def _own_divergences(arm: dict[PromptKey, list[Reading]]) -> Iterator[Divergence]:
    for key, readings in sorted(arm.items()):
        yield from (Divergence(key, readings[0], other) for other in readings[1:] if _differ(readings[0], other))


def _divergences(
    base: dict[PromptKey, list[Reading]], candidate: dict[PromptKey, list[Reading]]
) -> Iterator[Divergence]:
    for key in sorted(base.keys() & candidate.keys()):
        reference = base[key][0]
        yield from (Divergence(key, reference, other) for other in candidate[key] if _differ(reference, other))


def _differ(left: Reading, right: Reading) -> bool:
    return left[1].text != right[1].text or (_both_have_ids(left, right) and left[1].token_ids != right[1].token_ids)


def _both_have_ids(left: Reading, right: Reading) -> bool:
    return bool(left[1].token_ids and right[1].token_ids)


def _prompts(found: list[Divergence]) -> int:
    return len({divergence.key for divergence in found})


def _of(found: list[Divergence], base: dict[PromptKey, list[Reading]]) -> str:
    return f"{_prompts(found)}/{len(base)} prompts"


def _where(found: Divergence) -> str:
    left, right = found.left[1], found.right[1]
    if _both_have_ids(found.left, found.right):
        return f"{'/'.join(found.key)} at token {_first_difference(left.token_ids, right.token_ids)}"
    return f"{'/'.join(found.key)} at character {_first_difference(left.text, right.text)}"


def _details(*titled: tuple[str, list[Divergence]]) -> tuple[str, ...]:
    """The first divergence of each kind, with both texts around it."""
    return tuple(line for title, found in titled if found for line in _shown(title, found[0]))


def _shown(title: str, found: Divergence) -> Iterator[str]:
    at = _first_difference(found.left[1].text, found.right[1].text)
    yield f"{title}: {_where(found)}, character {at}"
    for boot, answer in (found.left, found.right):
        yield f"  {boot}: {_around(answer.text, at)} ({answer.finish_reason}, {len(answer.token_ids)} tokens)"


def _around(text: str, at: int) -> str:
    """Both sides of a place in a text, on one line; `|` stands at the place."""
    before, after = text[max(0, at - AROUND) : at], text[at : at + AROUND]
    return f"{'...' if at > AROUND else ''}{before!r} | {after!r}{'...' if len(text) > at + AROUND else ''}"


def _first_difference(left: tuple[int, ...] | str, right: tuple[int, ...] | str) -> int:
    pairs = enumerate(zip(left, right, strict=False))
    return next((place for place, (a, b) in pairs if a != b), min(len(left), len(right)))
