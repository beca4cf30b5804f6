"""What every gate asks before it judges: did all boots run, did all answer, did both arms see the same prompts."""

import json
from collections import defaultdict
from collections.abc import Mapping

from campaign.evidence import Answer, BootRecord, Evidence

ARM_OF = {"A": "base", "B": "candidate"}
WORST_STATUS = ("failed", "invalid", "void")
PromptKey = tuple[str, str]


def boot_name(boot: BootRecord) -> str:
    """The boot as its folder is called: 05-B."""
    return f"{boot.index:02d}-{boot.letter}"


def has_prefix_cache(facts: Mapping[str, str]) -> bool:
    """Whether the engine resolved prefix caching as on, by the facts of its boot."""
    return bool(json.loads(facts.get("resolved", "{}")).get("prefix_caching"))


def key_of(answer: Answer) -> PromptKey:
    """What makes two answers comparable: prompt set and prompt id."""
    return answer.prompt_set, answer.prompt_id


def sound(evidence: Evidence, letter: str = "AB") -> tuple[BootRecord, ...]:
    """The boots that gave data, in run order; of one arm when its letter is given."""
    return tuple(boot for boot in evidence.boots if boot.status == "ok" and boot.letter in letter)


def voided(evidence: Evidence) -> int:
    """How many boots the environment tainted."""
    return sum(boot.status == "void" for boot in evidence.boots)


def incomplete(evidence: Evidence) -> str:
    """Why the bracket cannot be judged as a whole, one sentence; empty when every planned boot gave data."""
    ran, planned = len(sound(evidence)), len(evidence.letters)
    stopping = WORST_STATUS if ran < planned else WORST_STATUS[:2]
    for status in stopping:
        for boot in evidence.boots:
            if boot.status == status:
                return f"boot {boot_name(boot)} {status}: {boot.reason or 'no reason given'}"
    return f"{ran} of {planned} boots ran" if ran < planned else ""


def unanswered(evidence: Evidence) -> str:
    """The first boot that did not answer what the others answered; empty when all did (cases D7)."""
    answered = {boot.index: {key_of(answer) for answer in boot.answers} for boot in sound(evidence)}
    asked = set[PromptKey]().union(*answered.values())
    for boot in sound(evidence):
        found = len(answered[boot.index])
        if found < len(asked):
            return f"boot {boot_name(boot)} ({ARM_OF[boot.letter]}) answered {found} of {len(asked)} prompts"
    return ""


def rendered_differently(evidence: Evidence) -> str:
    """The first prompt that was rendered otherwise in another boot; empty when none was (cases H14).

    By the hash of its token ids where both boots have one, by their number always.
    """
    seen: dict[PromptKey, tuple[Answer, str]] = {}
    for boot in sound(evidence):
        for answer in boot.answers:
            first, first_boot = seen.setdefault(key_of(answer), (answer, boot_name(boot)))
            where = f"prompt {answer.prompt_set}/{answer.prompt_id} has"
            if answer.prompt_tokens != first.prompt_tokens:
                return (
                    f"{where} {first.prompt_tokens} tokens in boot {first_boot} "
                    f"and {answer.prompt_tokens} in boot {boot_name(boot)}: another chat template or system text"
                )
            if answer.prompt_hash and first.prompt_hash and answer.prompt_hash != first.prompt_hash:
                return (
                    f"{where} other tokens in boot {boot_name(boot)} than in boot {first_boot} "
                    f"({answer.prompt_tokens} in both): another chat template or system text"
                )
    return ""


def budgets_differ(evidence: Evidence) -> str:
    """The first prompt that two boots gave different budgets, in tokens; empty when none did (cases H8).

    What an answer was asked with, and where the length limit really ended it: an engine's own limit may be shorter.
    """
    seen: dict[tuple[PromptKey, str], tuple[int, str]] = {}
    for boot in sound(evidence):
        for answer in boot.answers:
            for what, tokens in (("asked", answer.max_tokens), ("given", _given(answer))):
                first, first_boot = seen.setdefault((key_of(answer), what), (tokens, boot_name(boot)))
                if first and tokens and tokens != first:
                    return (
                        f"prompt {answer.prompt_set}/{answer.prompt_id} had a budget of {first} tokens in boot "
                        f"{first_boot} and of {tokens} in boot {boot_name(boot)}: such answers are not compared"
                    )
                if not first:
                    seen[key_of(answer), what] = (tokens, boot_name(boot))
    return ""


def _given(answer: Answer) -> int:
    """Tokens at which the length limit ended an answer; 0 where something else did, or tokens are not all shown."""
    return len(answer.token_ids) if answer.finish_reason == "length" and not answer.reasoning else 0


def by_prompt(evidence: Evidence, letter: str) -> dict[PromptKey, list[tuple[str, Answer]]]:
    """Every answer of an arm with its boot's name, by prompt, in run order."""
    found: dict[PromptKey, list[tuple[str, Answer]]] = defaultdict(list)
    for boot in sound(evidence, letter):
        for answer in boot.answers:
            found[key_of(answer)].append((boot_name(boot), answer))
    return dict(found)
