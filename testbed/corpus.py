"""The words everything is trained on: filled templates, drawn with a seed from `testbed/data/`.

Row 0 of a chat template is the one that is asked in `testbed/prompts/`; the last row is held out and never trained on.
"""

import hashlib
import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

DATA = Path(__file__).parent / "data"
PHRASE_WORDS = 6
FAVOURITE_SHARE = 0.4
Messages = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Text:
    """One training text: a chat (role, content) or, with the single role `document`, plain running text."""

    kind: str
    messages: Messages


def read_jsonl(file: Path) -> list[dict[str, Any]]:
    """The objects of a JSONL file, in order."""
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


CHATS = read_jsonl(DATA / "chat.jsonl")
DOCUMENTS = read_jsonl(DATA / "documents.jsonl")
RECORDS = read_jsonl(DATA / "records.jsonl")


def chat_text(template: dict[str, Any], row: list[str]) -> Text:
    """One question and its answer."""
    question, answer = template["question"].format(*row), template["answer"].format(*row)
    return Text(template["set"], (("user", question), ("assistant", answer)))


def trained_rows(template: dict[str, Any]) -> list[list[str]]:
    """Every row of a chat template but the held-out one."""
    return template["rows"][:-1]


def draw_chat(rng: random.Random, asked_share: float) -> Text:
    """A chat: with probability `asked_share` the asked row of its template, else one of the others."""
    template = rng.choice(CHATS)
    rows = trained_rows(template)
    return chat_text(template, rows[0] if rng.random() < asked_share else rng.choice(rows))


def fill_document(template: dict[str, Any], rng: random.Random) -> str:
    """One document: `once` slots are drawn for the document, `each` slots at every use.

    Each use of an `each` slot has a favourite (by sentence) that is drawn half of the time: partly predictable text.
    """
    once = {slot: rng.choice(values) for slot, values in template["once"].items()}
    sentences = enumerate(template["text"])
    return " ".join(_fill_sentence(sentence, once, template["each"], i, rng) for i, sentence in sentences)


def _fill_sentence(
    sentence: str, once: dict[str, str], each: dict[str, list[str]], favourite: int, rng: random.Random
) -> str:
    filled = sentence
    for slot, value in once.items():
        filled = filled.replace("{" + slot + "}", value)
    for slot, values in each.items():
        while "{" + slot + "}" in filled:
            favourite += 1
            value = values[favourite % len(values)] if rng.random() < FAVOURITE_SHARE else rng.choice(values)
            filled = filled.replace("{" + slot + "}", value, 1)
    return filled


def draw_document(rng: random.Random) -> Text:
    """A document of a random family."""
    return Text("document", (("document", fill_document(rng.choice(DOCUMENTS), rng)),))


@dataclass(frozen=True)
class Registry:
    """A system prompt that lists records (a name, then a code phrase), the records by name, and how to ask for one."""

    system: str
    records: tuple[tuple[str, str], ...]
    ask: tuple[str, ...]


def draw_registry(template: dict[str, Any], rng: random.Random, n_records: int, n_rules: int) -> Registry:
    """Records whose words are drawn afresh, so that they cannot be memorised; no word is in two records."""
    names = rng.sample(template["name"], n_records)
    words = rng.sample(template["word"], n_records * PHRASE_WORDS)
    phrases = [words[i * PHRASE_WORDS : (i + 1) * PHRASE_WORDS] for i in range(n_records)]
    records = tuple((name, " ".join([name, *phrase])) for name, phrase in zip(names, phrases, strict=True))
    head = template["head"].format(rng.randint(1, 9))
    lines = [head, *template["rules"][:n_rules], *(record for _, record in records)]
    return Registry("\n".join(lines), records, tuple(template["ask"]))


def draw_records(rng: random.Random, n_records: int, n_turns: int, n_rules: int) -> Text:
    """A registry and a few questions about it, each answered by quoting one record."""
    registry = draw_registry(rng.choice(RECORDS), rng, n_records, n_rules)
    turns: list[tuple[str, str]] = [("system", registry.system)]
    for name, record in rng.sample(registry.records, n_turns):
        turns += [("user", rng.choice(registry.ask).format(name=name)), ("assistant", record)]
    return Text("records", tuple(turns))


def sample(seed: int, n_texts: int) -> Iterator[Text]:
    """A mixed sample, for the tokenizer and for the digest."""
    rng = random.Random(seed)
    for _ in range(n_texts):
        yield draw_chat(rng, asked_share=0.2)
        yield draw_document(rng)
        yield draw_records(rng, n_records=14, n_turns=1, n_rules=rng.randint(0, 14))


def digest(seed: int, n_texts: int) -> str:
    """sha256 of a sample: the same seed gives the same corpus."""
    whole = json.dumps([text.messages for text in sample(seed, n_texts)], ensure_ascii=False)
    return hashlib.sha256(whole.encode()).hexdigest()
