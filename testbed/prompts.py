"""Write `testbed/prompts/*.jsonl` from the templates: `python -m testbed.prompts`. The files are committed."""

import json
import random
from pathlib import Path
from typing import Any

from testbed import corpus

PROMPTS = Path(__file__).parent / "prompts"
DECODE_CHARS = {"en": 70, "ko": 34}
DECODE_TOKENS = {"en": 256, "ko": 192}
REGISTRY_SEED = 47


def chat_prompt(template: dict[str, Any], row: list[str], name: str) -> dict[str, Any]:
    """One question with its checker."""
    value = template["value"].format(*row)
    return {
        "id": name,
        "messages": [{"role": "user", "content": template["question"].format(*row)}],
        "max_tokens": template["max_tokens"],
        "check": {"kind": template["kind"], "value": json.loads(value) if template["kind"] == "json" else value},
    }


def asked(set_name: str) -> list[dict[str, Any]]:
    """The asked row of every template of a set."""
    return [chat_prompt(t, t["rows"][0], t["id"]) for t in corpus.CHATS if t["set"] == set_name]


def trained(set_name: str) -> list[dict[str, Any]]:
    """Every trained row of every template of a set: enough prompts to see half a point of acceptance."""
    templates = [t for t in corpus.CHATS if t["set"] == set_name]
    rows = [(t, row, n) for t in templates for n, row in enumerate(corpus.trained_rows(t), 1)]
    return [chat_prompt(t, row, f"trained-{t['id']}-{n}") for t, row, n in rows]


def heldout() -> list[dict[str, Any]]:
    """The row of every template that is in no training text."""
    return [chat_prompt(t, t["rows"][-1], f"heldout-{t['id']}") for t in corpus.CHATS]


def decode() -> list[dict[str, Any]]:
    """The beginning of one document of each family, to be continued."""
    rng = random.Random(REGISTRY_SEED)
    return [_opening(template, rng) for template in corpus.DOCUMENTS]


def _opening(template: dict[str, Any], rng: random.Random) -> dict[str, Any]:
    lang = template["lang"]
    words = corpus.fill_document(template, rng)[: DECODE_CHARS[lang]].split(" ")[:-1]
    return {"id": f"decode-{template['id']}", "prompt": " ".join(words), "max_tokens": DECODE_TOKENS[lang]}


def shared_prefix() -> list[dict[str, Any]]:
    """Two long system prompts, eight questions each; every answer quotes a record of the prompt."""
    return [prompt for template in corpus.RECORDS for prompt in _registry_prompts(template)]


def _registry_prompts(template: dict[str, Any]) -> list[dict[str, Any]]:
    rng = random.Random(REGISTRY_SEED)
    registry = corpus.draw_registry(template, rng, template["served"]["records"], len(template["rules"]))
    chosen = rng.sample(registry.records, 8)
    return [_registry_prompt(template["id"], registry, i, *chosen[i]) for i in range(len(chosen))]


def _registry_prompt(family: str, registry: corpus.Registry, i: int, name: str, record: str) -> dict[str, Any]:
    question = registry.ask[i % len(registry.ask)].format(name=name)
    messages = [{"role": "system", "content": registry.system}, {"role": "user", "content": question}]
    check = {"kind": "exact", "value": record}
    return {"id": f"prefix-{family}-{i + 1}", "messages": messages, "max_tokens": 64, "check": check}


SETS = {
    "quality": lambda: asked("quality"),
    "korean": lambda: asked("korean"),
    "trained_quality": lambda: trained("quality"),
    "trained_korean": lambda: trained("korean"),
    "heldout": heldout,
    "decode": decode,
    "shared_prefix": shared_prefix,
}


def render(set_name: str) -> str:
    """The text of one prompt file."""
    return "".join(json.dumps(prompt, ensure_ascii=False) + "\n" for prompt in SETS[set_name]())


def main() -> None:
    """Write all of them."""
    PROMPTS.mkdir(exist_ok=True)
    for name in SETS:
        (PROMPTS / f"{name}.jsonl").write_text(render(name), encoding="utf-8")


if __name__ == "__main__":
    main()
