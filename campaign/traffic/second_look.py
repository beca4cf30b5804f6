"""Asks again, outside of the window: from a warm cache, about answers that are damaged, and where answers part.

Nothing of it is measured, and none of it repairs an answer. Bounded, so that a broken candidate costs minutes.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from campaign.errors import InvalidError
from campaign.evidence import Again, Answer, BootRecord
from campaign.gates.divergence import differ, first_difference
from campaign.gates.footing import PromptKey, key_of
from campaign.names import DECODE_SET
from campaign.prompting.checks import Prompt
from campaign.prompting.corruption import BROKEN, damage
from campaign.traffic.answers import worst_of
from campaign.traffic.client import Ask, Client
from verdict.words import number_of

MOST_PARTED = 8  # prompts a boot is asked again about, with log probabilities
MOST_BROKEN = 3  # prompts a boot is asked again about without streaming
LIKELIEST = 5  # tokens whose log probabilities are asked for
SHORT_TOKENS = 16  # of the answer to a short prompt
GOOD_FIRST = (True, None, False)  # what a checker says: right, not to be judged, wrong
TURN = ".turn"  # of a later turn's id in the window


@dataclass(frozen=True)
class Questioner:
    """Who asks again: a client, its patience in seconds, and the prompts by prompt set."""

    client: Client
    timeout_s: float
    sets: Mapping[str, tuple[Prompt, ...]]

    def look_into(
        self, checked: Sequence[Answer], window: Sequence[Answer], earlier: Iterable[BootRecord], letter: str
    ) -> dict[str, Any]:
        """What a boot's record holds of it: its checked answers with what explains their damage, and `again`."""
        answers = self.examined(checked)
        return {"answers": answers, "again": self.parted((*answers, *window), earlier, letter)}

    def warmed(self, answers: Sequence[Answer]) -> tuple[Answer, ...]:
        """The answers, each prompt asked a second time, from a warm prefix cache; the worse one counts (case H13)."""
        return tuple(self._warmer(prompt, a) if (prompt := self._prompt(key_of(a))) else a for a in answers)

    def _warmer(self, prompt: Prompt, cold: Answer) -> Answer:
        ask = Ask(prompt.max_tokens, ignore_eos=False, timeout_s=self.timeout_s)
        warm = worst_of(prompt, (self.client.stream(prompt, ask),))
        if GOOD_FIRST.index(warm.ok) > GOOD_FIRST.index(cold.ok):
            return replace(warm, why=f"from a warm prefix cache: {warm.why}")
        if warm.token_ids == cold.token_ids or cold.sampled or cold.ok is False:
            return cold
        remark = "from a warm prefix cache it is answered in another way"
        return replace(cold, why=f"{cold.why}; {remark}" if cold.why else f"right, but {remark}")

    def examined(self, answers: Sequence[Answer]) -> tuple[Answer, ...]:
        """The answers; beside damaged ones stands what a second question says of the cause (cases H1, H6)."""
        damaged = [answer for answer in answers if answer.why and self._prompt(key_of(answer))]
        notes = {key_of(a): self._after_nan(a) for a in damaged if "suspected NaN" in a.why and a.ok is False}
        notes = dict(list(notes.items())[:1])
        for answer in [a for a in damaged if "U+FFFD" in a.why and not a.sampled][:MOST_BROKEN]:
            notes[key_of(answer)] = self._without_streaming(answer)
        return tuple(replace(a, why=f"{a.why}; {notes[key_of(a)]}") if key_of(a) in notes else a for a in answers)

    def _after_nan(self, answer: Answer) -> str:
        """Whether the engine stays bad after an answer that looks like NaN logits."""
        prompt = self._prompt(key_of(answer))
        messages = ({"role": "user", "content": "Hello."},) if prompt and prompt.messages else None
        short = Prompt("short", "short", messages, None if messages else "Hello.", SHORT_TOKENS)
        text = _text(self._in_one_piece(short, SHORT_TOKENS))
        if damage(text, "", cut_off=False) or not text.strip("! \n"):
            return f"a short prompt asked after it is bad too ({text!r}): the engine stays bad"
        return f"a short prompt asked after it is answered ({text!r}): the engine does not stay bad"

    def _without_streaming(self, answer: Answer) -> str:
        """Whether the server's streaming broke a text, or the engine did. The client itself never makes a U+FFFD."""
        prompt = self._prompt(key_of(answer))
        assert prompt is not None
        streamed = len(BROKEN.findall(answer.text))
        whole = len(BROKEN.findall(_text(self._in_one_piece(prompt, prompt.max_tokens))))
        told = f"streamed {number_of(streamed, 'broken character')}, in one piece {whole}"
        return f"{told}: the server's streaming breaks them" if whole < streamed else f"{told}: not by streaming"

    def parted(self, answers: Sequence[Answer], earlier: Iterable[BootRecord], letter: str) -> tuple[Again, ...]:
        """Prompts whose answers part from base's, asked once more as far as that token, with log probabilities.

        An arm is asked about a prompt in one of its boots, the first that can know; at most MOST_PARTED in a boot.
        """
        boots = [boot for boot in earlier if boot.status == "ok"]
        done = {(again.prompt_set, again.prompt_id) for b in boots if b.letter == letter for again in b.again}
        readings = [(boot.letter, answer) for boot in boots for answer in boot.answers]
        places = _places([*readings, *((letter, answer) for answer in answers)])
        wanted = [(key, at) for key, at in places.items() if key not in done and self._prompt(key)]
        return tuple(self._again(key, at) for key, at in wanted[:MOST_PARTED])

    def _again(self, key: PromptKey, at: int) -> Again:
        """One prompt, asked as far as the token at which its answers part. An engine that refuses gives nothing."""
        prompt = self._prompt(key)
        assert prompt is not None
        by_endpoint = {"logprobs": True, "top_logprobs": LIKELIEST} if prompt.messages else {"logprobs": LIKELIEST}
        more = {**by_endpoint, "return_tokens_as_token_ids": True}
        try:
            choice = self._in_one_piece(prompt, at + 1, fixed=key[0] == DECODE_SET, **more)
        except InvalidError:
            return Again(key[1], key[0], at, ())
        try:
            likeliest = _likeliest(choice, at)
        except (AttributeError, LookupError, TypeError, ValueError):  # an engine that tells them in another form
            likeliest = {}
        return Again(key[1], key[0], at, tuple(choice.get("token_ids") or ())[: at + 1], likeliest)

    def _in_one_piece(self, prompt: Prompt, tokens: int, *, fixed: bool = False, **more: Any) -> dict[str, Any]:
        """The first choice of an answer that does not stream."""
        ask = Ask(tokens, ignore_eos=fixed, timeout_s=self.timeout_s)
        choices = self.client.whole(prompt, ask, **more).get("choices") or [{}]
        return dict(choices[0])

    def _prompt(self, key: PromptKey) -> Prompt | None:
        """The prompt of an answer; later turns of the window have ids of their own."""
        name, _, turn = key[1].partition(TURN)
        names = {key[1], name} if turn.isdigit() else {key[1]}
        return next((prompt for prompt in self.sets.get(key[0], ()) if prompt.id in names), None)


def _places(readings: Iterable[tuple[str, Answer]]) -> dict[PromptKey, int]:
    """Prompt -> the first token at which a candidate's answer parts from base's first; the first that parts counts."""
    base: dict[PromptKey, Answer] = {}
    candidates: list[Answer] = []
    for letter, answer in readings:
        if answer.sampled or not answer.token_ids:
            continue
        if letter == "A":
            base.setdefault(key_of(answer), answer)
        else:
            candidates.append(answer)
    found: dict[PromptKey, int] = {}
    for answer in candidates:
        reference = base.get(key_of(answer))
        if reference and differ(("", reference), ("", answer)) and reference.token_ids != answer.token_ids:
            found.setdefault(key_of(answer), first_difference(reference.token_ids, answer.token_ids))
    return found


def _likeliest(choice: Mapping[str, Any], at: int) -> dict[str, float]:
    """Token id -> log probability of the likeliest tokens at a place, of either endpoint; empty where none are told."""
    told = choice.get("logprobs") or {}
    content, tops = told.get("content"), told.get("top_logprobs") or []
    if content is not None:
        rows = [content[at], *(content[at].get("top_logprobs") or ())] if at < len(content) else []
        return {_id(row["token"]): float(row["logprob"]) for row in rows}
    return {_id(token): float(value) for token, value in (tops[at] or {}).items()} if at < len(tops) else {}


def _id(token: str) -> str:
    return token.removeprefix("token_id:")


def _text(choice: Mapping[str, Any]) -> str:
    message = choice.get("message")
    return str((message.get("content") if isinstance(message, dict) else choice.get("text")) or "")
