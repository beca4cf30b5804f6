"""Where two answers to one prompt part, and what kind of difference that is (statistics.md 1.1; cases H5, H9, H10).

With log probabilities of the token at which they part, asked for after the window (campaign.traffic.second_look).
"""

import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from campaign.evidence import Again, Answer, BootRecord
from campaign.gates.footing import PromptKey
from campaign.prompting.corruption import damage

Reading = tuple[str, Answer]
AROUND = 24  # characters shown on each side of a divergence


class Kind(StrEnum):
    """What a divergence is. The order is the one in which they are told, the gravest first."""

    CORRUPTION = "corruption"
    REAL = "real"
    UNKNOWN = "not classified"
    NORMAL_FORM = "another normal form of the same text"
    NEAR_TIE = "near-tie"


@dataclass(frozen=True)
class Divergence:
    """Two answers to one prompt that are not the same, the reference on the left."""

    key: PromptKey
    left: Reading
    right: Reading

    @property
    def at(self) -> int | None:
        """The first token that differs, from 0; None where an engine gives no token ids, or they are the same."""
        ours, theirs = self.left[1].token_ids, self.right[1].token_ids
        return first_difference(ours, theirs) if ours and theirs and ours != theirs else None

    @property
    def where(self) -> str:
        """The place, in words."""
        if self.at is not None:
            return f"{'/'.join(self.key)} at token {self.at}"
        return f"{'/'.join(self.key)} at character {first_difference(self.left[1].text, self.right[1].text)}"


@dataclass(frozen=True)
class Classified:
    """A divergence, its kind, and by what that was decided."""

    found: Divergence
    kind: Kind
    why: str


def differ(left: Reading, right: Reading) -> bool:
    """Whether two answers differ: their texts, or their tokens where both have some."""
    ours, theirs = left[1], right[1]
    both = bool(ours.token_ids and theirs.token_ids)
    return ours.text != theirs.text or (both and ours.token_ids != theirs.token_ids)


def classify(found: Divergence, boots: Iterable[BootRecord], near_tie_nats: float) -> Classified:
    """A near-tie: in both arms the two tokens lie less than `near_tie_nats` apart; more in either is a real difference.

    That holds also where an arm's own model prefers the other's token by more: its answer is none of that model.

    Before that: an answer that is damaged where the reference is not, and a text that is the same in NFC.
    """
    ours, theirs = found.left[1], found.right[1]
    sign = _damage(theirs)
    if sign and not _damage(ours):
        return Classified(found, Kind.CORRUPTION, sign)
    if ours.text != theirs.text and _nfc(ours.text) == _nfc(theirs.text):
        return Classified(found, Kind.NORMAL_FORM, "the texts are equal in NFC")
    gaps = _gaps(found, tuple(boots))
    if isinstance(gaps, str):
        return Classified(found, Kind.UNKNOWN, gaps)
    why = f"base prefers its token by {gaps[0]} nats, the candidate its own by {gaps[1]}"
    is_tie = all(gap.is_exact and abs(gap.nats) < near_tie_nats for gap in gaps)
    return Classified(found, Kind.NEAR_TIE if is_tie else Kind.REAL, why)


def _damage(answer: Answer) -> str:
    return damage(_nfc(answer.text), "", cut_off=answer.finish_reason == "length")


@dataclass(frozen=True)
class Gap:
    """By how many nats an arm prefers its own token; at least so many where the other is not among the likeliest."""

    nats: float
    is_exact: bool

    def __str__(self) -> str:
        return f"{'' if self.is_exact else 'at least '}{self.nats:.2f}"


def _gaps(found: Divergence, boots: tuple[BootRecord, ...]) -> tuple[Gap, Gap] | str:
    """By how much either arm prefers the token it gave to the one that the other gave; or why none can say."""
    at = found.at
    if at is None:
        return "no token ids"
    tokens = [answer.token_ids[at] if at < len(answer.token_ids) else None for _, answer in (found.left, found.right)]
    if None in tokens:
        return "one answer ends where the other goes on, and the end is no token"
    gaps = []
    for letter, (own, other) in (("A", tokens), ("B", tokens[::-1])):
        seen = next((again for again in _asked_again(boots, letter, found) if str(own) in again.logprobs), None)
        if seen is None:
            arm = "base" if letter == "A" else "the candidate"
            return f"{arm} was not asked again, or gave no log probabilities behind the same tokens"
        least = min(seen.logprobs.values())
        gap = seen.logprobs[str(own)] - seen.logprobs.get(str(other), least)
        gaps.append(Gap(gap, str(other) in seen.logprobs))
    return gaps[0], gaps[1]


def _asked_again(boots: tuple[BootRecord, ...], letter: str, found: Divergence) -> Iterator[Again]:
    """What an arm gave at this place, where it came there by the same tokens as both answers did."""
    way = (*found.key, found.at, found.left[1].token_ids[: found.at])
    asked = (again for boot in boots if boot.letter == letter for again in boot.again)
    yield from (a for a in asked if (a.prompt_set, a.prompt_id, a.at, a.token_ids[: a.at]) == way)


def unlike_itself(boot: BootRecord) -> set[PromptKey]:
    """Prompts that a boot answered otherwise when it was asked again: a control within the boot (cases H9)."""
    own = {(answer.prompt_set, answer.prompt_id): answer.token_ids for answer in boot.answers}
    asked = (((again.prompt_set, again.prompt_id), again) for again in boot.again if again.token_ids)
    return {key for key, again in asked if own.get(key, ())[: again.at + 1] != again.token_ids}


def gravest_of_each(found: Iterable[Classified]) -> list[Classified]:
    """One divergence a prompt: boots of an arm may differ in several ways, and the gravest counts."""
    by_gravity = sorted(found, key=lambda one: list(Kind).index(one.kind), reverse=True)
    gravest = {one.found.key: one for one in by_gravity}
    return [gravest[key] for key in sorted(gravest)]


def kinds(found: Iterable[Classified]) -> str:
    """How many of each kind: `2 real, 18 near-tie`."""
    counts = Counter(one.kind for one in found)
    return ", ".join(f"{counts[kind]} {kind}" for kind in Kind if counts[kind])


def shown(title: str, found: Divergence) -> Iterator[str]:
    """A divergence with both texts around it."""
    at = first_difference(found.left[1].text, found.right[1].text)
    yield f"{title}: {found.where}, character {at}"
    for boot, answer in (found.left, found.right):
        yield f"  {boot}: {_around(answer.text, at)} ({answer.finish_reason}, {len(answer.token_ids)} tokens)"


def _around(text: str, at: int) -> str:
    """Both sides of a place in a text, on one line; `|` stands at the place."""
    before, after = text[max(0, at - AROUND) : at], text[at : at + AROUND]
    return f"{'...' if at > AROUND else ''}{before!r} | {after!r}{'...' if len(text) > at + AROUND else ''}"


def first_difference(left: tuple[int, ...] | str, right: tuple[int, ...] | str) -> int:
    """The first place at which two sequences differ; the length of the shorter one where it is the other's start."""
    pairs = enumerate(zip(left, right, strict=False))
    return next((place for place, (a, b) in pairs if a != b), min(len(left), len(right)))


def _nfc(text: str) -> str:
    return unicodedata.normalize("NFC", text)
