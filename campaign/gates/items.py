"""k of n with a base control on the same items: what the gates over prompt checkers share (statistics.md 1.7)."""

from dataclasses import dataclass
from typing import Literal

from campaign.evidence import Answer, Evidence
from campaign.gates.footing import by_prompt

State = Literal["good", "bad", "unjudged"]
Outcome = Literal["pass", "fail", "void", "unjudged"]
Readings = list[tuple[str, Answer]]
SHOWN_CHARACTERS = 80


@dataclass(frozen=True)
class Item:
    """One prompt over all boots of both arms."""

    name: str
    base: State
    candidate: State
    remarks: tuple[str, ...]

    @property
    def outcome(self) -> Outcome:
        """An item fails where any candidate boot fails it and every base boot passes it (house.md)."""
        if self.candidate == "good":
            return "pass"
        if self.base != "good":
            return "void"
        return "fail" if self.candidate == "bad" else "unjudged"


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
    def base_fails(self) -> int:
        """Items that base itself does not pass, in any of its boots."""
        return sum(item.base == "bad" for item in self.items)

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
    return Item(name, _state(base), _state(candidate), found)


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
