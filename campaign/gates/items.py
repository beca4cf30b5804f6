"""k of n with a base control on the same items: what the gates over prompt checkers share (statistics.md 1.7)."""

import re
from collections import Counter
from dataclasses import dataclass
from math import floor
from typing import Literal

from campaign.evidence import Answer, Evidence
from campaign.gates.footing import by_prompt
from verdict.proportions import n_eff

State = Literal["good", "bad", "unjudged"]
Outcome = Literal["pass", "fail", "void", "unjudged"]
Readings = list[tuple[str, Answer]]
SHOWN_CHARACTERS = 80
DRAW = re.compile(r"\.\d+$")  # what campaign.prompting adds to the id of a prompt that is drawn again
RHO = 0.8  # how alike the draws of one prompt are taken to be (statistics.md section 1.7)
FAR_MORE = 2.0  # times base's share of foreign script, and FAR_MORE_SHARE over it: worse than base, not alike
FAR_MORE_SHARE = 0.05


@dataclass(frozen=True)
class Item:
    """One prompt over all boots of both arms."""

    name: str
    base: State
    candidate: State
    remarks: tuple[str, ...]
    far_more_foreign: bool = False  # base mixes scripts too, the candidate far more (case H4)
    is_sampled: bool = False

    @property
    def outcome(self) -> Outcome:
        """An item fails where a candidate boot fails it and every base boot that could be judged passes it (house.md).

        It also fails where base writes foreign script too, and the candidate far more of it. Void is what base itself
        fails; where no base boot could be judged (a budget), nobody knows, and the candidate is not let off.
        """
        if self.candidate == "good":
            return "pass"
        if self.far_more_foreign:
            return "fail"
        if self.base == "bad":
            return "void"
        return "fail" if (self.base, self.candidate) == ("good", "bad") else "unjudged"


@dataclass(frozen=True)
class Tally:
    """All items of one prompt set."""

    items: tuple[Item, ...]

    def count(self, outcome: Outcome) -> int:
        """How many items ended so."""
        return sum(item.outcome == outcome for item in self.items)

    @property
    def counted(self) -> int:
        """The n of k of n: items that are not void."""
        return len(self.items) - self.count("void")

    @property
    def worth(self) -> int:
        """How many items the counted ones are worth: draws of one prompt are alike, and no new items (section 1.7)."""
        return self._worth([item.name for item in self.items if item.outcome != "void"])

    @property
    def worth_of_all(self) -> int:
        """How many items all of them are worth, the void ones too."""
        return self._worth([item.name for item in self.items])

    def _worth(self, names: list[str]) -> int:
        if not self.is_sampled or not names:
            return len(names)
        draws = Counter(DRAW.sub("", name) for name in names).values()
        return max(1, floor(sum(n_eff(1, of_one, RHO) for of_one in draws)))

    @property
    def is_sampled(self) -> bool:
        """Whether its answers were drawn."""
        return any(item.is_sampled for item in self.items)

    @property
    def base_fails(self) -> int:
        """Items that base itself does not pass, in any of its boots."""
        return sum(item.base == "bad" for item in self.items)

    @property
    def candidate_fails(self) -> int:
        """Items that the candidate does not pass, in any of its boots."""
        return sum(item.candidate == "bad" for item in self.items)

    @property
    def discordant(self) -> tuple[int, int]:
        """Items that only base fails, and that only the candidate fails; the others are passed."""
        only_base = sum((item.base, item.candidate) == ("bad", "good") for item in self.items)
        return only_base, sum((item.base, item.candidate) == ("good", "bad") for item in self.items)

    @property
    def nobody_is_right(self) -> bool:
        """Whether items fail and none is good in any arm: the harness is suspect, not the engine (cases H11)."""
        states = {state for item in self.items for state in (item.base, item.candidate)}
        return "bad" in states and "good" not in states

    @property
    def void_text(self) -> str:
        """What the line says of the base control; empty when base passes everything."""
        voids, fails = self.count("void"), self.base_fails
        texts = [f"{voids} void" if voids else "", f"base fails {fails}" if fails else ""]
        return ", ".join(text for text in texts if text)

    def remarks(self) -> tuple[str, ...]:
        """A line for everything that is not a plain pass."""
        return tuple(remark for item in self.items for remark in item.remarks)


def tally(evidence: Evidence, prompt_set: str) -> Tally:
    """The items of a prompt set, by id, as the checkers judged them in every boot that gave data."""
    base, candidate = by_prompt(evidence, "A"), by_prompt(evidence, "B")
    keys = sorted(key for key in base.keys() | candidate.keys() if key[0] == prompt_set)
    return Tally(tuple(_item(key[1], base.get(key, []), candidate.get(key, [])) for key in keys))


def _item(name: str, base: Readings, candidate: Readings) -> Item:
    found = _remarks(name, "candidate", candidate) + _remarks(name, "base", base)
    is_sampled = any(answer.sampled for _, answer in base + candidate)
    ours, theirs = _foreign_share(candidate), _foreign_share(base)
    mixed = [answer.foreign > 0 for _, answer in base if answer.ok is False]
    far_more = all(mixed) and bool(mixed) and ours > max(FAR_MORE * theirs, theirs + FAR_MORE_SHARE)
    if far_more:
        shares = f"{100 * ours:.0f} % of its letters in a candidate boot, at most {100 * theirs:.0f} % in base"
        found += (f"{name}: foreign script makes {shares}: worse than base, and not void",)
    judged = [(boot, answer) for boot, answer in base if answer.ok is not None]
    return Item(name, _state(judged), _state(candidate), found, far_more, is_sampled)


def _foreign_share(readings: Readings) -> float:
    """The largest share of Han and kana among the letters of an answer, over an arm's boots (case H4)."""
    letters = [(answer.foreign, answer.foreign + answer.hangul) for _, answer in readings]
    return max((foreign / both for foreign, both in letters if both), default=0.0)


def _state(readings: Readings) -> State:
    if any(answer.ok is False for _, answer in readings):
        return "bad"
    return "good" if readings and all(answer.ok for _, answer in readings) else "unjudged"


def _remarks(name: str, arm: str, readings: Readings) -> tuple[str, ...]:
    """The first reading of each different remark, with how many boots share it."""
    if not readings:
        return (f"{name}: no answer in {arm}",)
    boots: dict[str, list[str]] = {}
    for boot, answer in readings:
        if not answer.ok or answer.why:
            boots.setdefault(answer.why or _excerpt(answer), []).append(boot)
    return tuple(f"{name}: {arm} {found[0]}{_more(len(found))}: {why}" for why, found in boots.items())


def _excerpt(answer: Answer) -> str:
    verdict = "no checker" if answer.ok is None else "not ok"
    return f"{verdict}: {answer.text[:SHOWN_CHARACTERS]!r} ({answer.finish_reason})"


def _more(boots: int) -> str:
    return f" and {boots - 1} more" if boots > 1 else ""
