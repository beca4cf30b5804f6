"""Small evidence in the words of a test: values of campaign.evidence, filled with what a test does not care for."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from campaign.evidence import Answer, BootRecord, DraftCounts, Evidence, KvFacts, WitnessRow
from campaign.names import ACCEPTANCE_ALL_PP, ACCEPTANCE_LENGTH, STEP_PER_S, TOK_PER_S, acceptance_pp
from verdict.claims import Claim, ClaimKind, Direction
from verdict.fit import Scale

VERDICT = "ABBABAAB"
STEADY = (100.0, 108.9, 108.7, 100.3, 108.4, 99.8, 100.1, 108.6)  # about +8.7 %
ALIKE = (100.0, 100.4, 99.7, 100.2, 99.9, 100.1, 99.8, 100.3)  # nothing


def answer(prompt_id: str = "p1", text: str = "안녕하세요.", **fields: Any) -> Answer:
    """An answer to a quality prompt that nobody checked."""
    plain: dict[str, Any] = {"prompt_set": "quality", "token_ids": tuple(map(ord, text)), "finish_reason": "stop"}
    return Answer(prompt_id=prompt_id, text=text, **(plain | {"prompt_tokens": 12} | fields))


def right(prompt_id: str, **fields: Any) -> Answer:
    """An answer that its checker liked."""
    return answer(prompt_id, ok=True, **fields)


def wrong(prompt_id: str, why: str = "wanted '42', got '41' (stop)", **fields: Any) -> Answer:
    """An answer that its checker did not like."""
    return answer(prompt_id, ok=False, why=why, **fields)


def kv(**fields: Any) -> KvFacts:
    """A budget of 100 blocks, of which 68 are needed."""
    plain = {"capacity_tokens": 12800, "block_size": 128, "blocks": 100, "max_num_seqs": 4, "max_model_len": 2048}
    return KvFacts(**(plain | {"batches_in_flight": 1, "draft_tokens": 5} | fields))


def boot(index: int = 1, letter: str = "A", **fields: Any) -> BootRecord:
    """One boot that went well and said nothing."""
    plain: dict[str, Any] = {"arm": "base" if letter == "A" else "candidate", "status": "ok"}
    return BootRecord(index=index, letter=letter, **(plain | fields))  # type: ignore[arg-type]


def bracket(
    letters: str = VERDICT,
    *,
    base: Mapping[str, Any] | None = None,
    candidate: Mapping[str, Any] | None = None,
    at: Mapping[int, Mapping[str, Any]] | None = None,
    metrics: Mapping[str, Sequence[float]] | None = None,
    claims: Sequence[Claim] = (),
    **fields: Any,
) -> Evidence:
    """A bracket: fields for every boot of an arm, for the boot at a place (from 1), and metrics in run order."""
    of_arm = {"A": base or {}, "B": candidate or {}}
    boots = [boot(i, letter, **(of_arm[letter] | (at or {}).get(i, {}))) for i, letter in enumerate(letters, start=1)]
    columns = metrics or {}
    read = {i: {name: values[i] for name, values in columns.items()} for i in range(len(letters))}
    boots = [replace(b, metrics=read[i] | b.metrics) for i, b in enumerate(boots)]
    plain: dict[str, Any] = {"experiment": "exp8", "letters": letters, "claims": {c.name: c for c in claims}}
    return Evidence(boots=tuple(boots), **(plain | fields))


def died(reason: str = "engine died: SIGKILL (-9)", **fields: Any) -> dict[str, Any]:
    """What a boot holds whose engine died."""
    return {"status": "failed", "reason": reason, "log_tail": ("EngineCore died",), "metrics": {}} | fields


def step_rate(gate_pct: float = 5.0, **fields: Any) -> Claim:
    """The superiority claim of EXP-8."""
    return Claim("step_rate", STEP_PER_S, ClaimKind.superiority, gate_pct, Scale.LOG, Direction.HIGHER, **fields)


def acceptance(margin_pp: float = 2.0) -> Claim:
    """The equivalence claim of EXP-8."""
    return Claim("acceptance", acceptance_pp(1), ClaimKind.equivalence, margin_pp, Scale.LINEAR, Direction.TWO_SIDED)


def no_difference(name: str = "step_rate", metric: str = STEP_PER_S) -> Claim:
    """The claim of an A/A bracket."""
    return Claim(name, metric, ClaimKind.no_difference, 0.0, Scale.LOG, Direction.TWO_SIDED)


def drafts(*accepted: int, drafted: int = 1000) -> DraftCounts:
    """Counters of so many drafts, accepted up to each position."""
    return DraftCounts(drafted, accepted)


def speculating(counts: DraftCounts, prompts: int = 4) -> dict[str, Any]:
    """What a boot holds that drafted: counters, each prompt alike, and the metrics made of them."""
    rates = {acceptance_pp(i): rate for i, rate in enumerate(counts.rates_pp(), start=1)}
    rates |= {ACCEPTANCE_ALL_PP: counts.kept_pp} if counts.kept_pp is not None else {}
    by_prompt = {f"quality/q{i}": counts for i in range(prompts)}
    return {"natural": counts, "by_prompt": by_prompt, "metrics": rates}


def whole(letters: str = VERDICT, rates: Sequence[float] = STEADY, **fields: Any) -> Evidence:
    """A bracket in which every gate finds what it looks for: the evidence of a report or a tracker."""
    plain = {
        "kv": kv(),
        "answers": tuple(right(f"q{i}") for i in range(9))
        + tuple(right(f"k{i}", prompt_set="korean") for i in range(16)),
        "witness": (WitnessRow("async_dflash", "behaved", "batches in flight", "2", "2", True, "EngineCore"),),
        "seconds": {"boot": 21.5, "warm_up": 3.1, "prompts": 9.0, "window": 12.0, "stop": 0.5},
        "facts": {"runner": "V1", "method": "dflash", "stage": "5f3c" * 8},
    } | speculating(drafts(781, 610, 470, 355, 260))
    lengths = [counts_length(plain["natural"])] * len(letters)
    columns = {
        STEP_PER_S: rates,
        TOK_PER_S: [rate * length for rate, length in zip(rates, lengths, strict=True)],
        ACCEPTANCE_LENGTH: lengths,
    }
    return bracket(
        letters, base=plain, candidate=plain, metrics=columns, **({"claims": (step_rate(), acceptance())} | fields)
    )


def counts_length(counts: DraftCounts) -> float:
    """The acceptance length of counters that drafted."""
    assert counts.acceptance_length is not None
    return counts.acceptance_length
