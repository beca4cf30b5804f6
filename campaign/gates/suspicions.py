"""What an answer and its counters show together, and what its verdict holds for: lines beside a verdict, never one."""

from collections.abc import Iterator

from campaign.evidence import BootRecord, Evidence
from campaign.gates.footing import boot_name, sound

LOOP = "loop:"
BISECT = (
    "to bisect, run this candidate with serve.enforce_eager=true, with CUDA graphs off "
    "(serve.compilation_config.cudagraph_mode=NONE) and as it is"
)
WARM = "warm"


def suspicions(evidence: Evidence, prompt_set: str) -> tuple[str, ...]:
    """Lines for a prompt set: loops of which no draft was accepted, and the knobs that the verdict holds for."""
    return (*_loops(evidence, prompt_set), *_holds_for(evidence))


def _loops(evidence: Evidence, prompt_set: str) -> Iterator[str]:
    """A loop whose drafts were all refused: the output and the speculation break as one (cases H7)."""
    found = [
        (boot, answer.prompt_id, counts.drafts)
        for boot in sound(evidence, "B")
        for answer in boot.answers
        if answer.prompt_set == prompt_set and LOOP in answer.why
        if (counts := boot.by_prompt.get(f"{prompt_set}/{answer.prompt_id}")) is not None
        if counts.drafts and not sum(counts.accepted)
    ]
    if found:
        boot, prompt_id, drafts = found[0]
        yield f"{prompt_id}: a loop, and 0 of its {drafts} drafts accepted in {boot_name(boot)}: one fault; {BISECT}"


def _holds_for(evidence: Evidence) -> Iterator[str]:
    """With a prefix cache: single-knob passes do not clear a pair of knobs, so the set is named (cases H13)."""
    warm = [boot for boot in sound(evidence, "B") if boot.facts.get("prompts_cache", "").startswith(WARM)]
    if warm:
        yield f"holds for exactly {_knobs(warm[0])}, measured in these engines; prompts answered cold and warm"


def _knobs(boot: BootRecord) -> str:
    knobs = {row.knob: row.wanted for row in boot.witness if row.layer == "asked" and not row.knob.startswith("model.")}
    return ", ".join(f"{name}={value}" for name, value in knobs.items()) or "no knob"
