"""Boot the real engine in this process and measure the pair: `python -m testbed.measure --out testbed/MEASURED.md`.

Run it with the engine environment's python, from the repository's root. vLLM 0.29.0 (CPU), float32, DFlash with K
drafts, greedy, eager, prefix caching off, one request at a time. Acceptance is the engine's own counters, read before
and after every prompt.
"""

import os

os.environ |= {"VLLM_ENABLE_V1_MULTIPROCESSING": "0", "OMP_NUM_THREADS": "1", "VLLM_LOGGING_LEVEL": "WARNING"}

import argparse
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from vllm import LLM, SamplingParams

from testbed.check import right
from testbed.corpus import read_jsonl

HERE = Path(__file__).parent
SETS = ("quality", "korean", "heldout", "shared_prefix", "decode")
KV_BYTES = 256 * 2**20
DRAFTS = "vllm:spec_decode_num_drafts"
ACCEPTED = "vllm:spec_decode_num_accepted_tokens_per_pos"


@dataclass(frozen=True)
class Row:
    """One prompt as it was answered. `accepted[i]` counts drafts whose position i+1 was accepted."""

    id: str
    text: str
    n_tokens: int
    right: bool | None
    drafts: int
    accepted: tuple[int, ...]


def boot(weights: Path, draft: str, k: int, prefix_caching: bool = False) -> LLM:
    """The engine with one of the drafters."""
    return LLM(
        model=str(weights / "target"),
        dtype="float32",
        max_model_len=1024,
        max_num_seqs=4,
        enforce_eager=True,
        enable_prefix_caching=prefix_caching,
        kv_cache_memory_bytes=KV_BYTES,
        disable_log_stats=False,
        speculative_config={"method": "dflash", "model": str(weights / draft), "num_speculative_tokens": k},
    )


def counters(llm: LLM, k: int) -> tuple[int, ...]:
    """Drafts so far, then accepted drafts for each position."""
    metrics = {metric.name: metric for metric in llm.get_metrics()}
    return (int(metrics[DRAFTS].value), *(int(n) for n in metrics[ACCEPTED].values[:k]))


def ask(llm: LLM, prompt: dict[str, Any], k: int) -> Row:
    """Answer one prompt greedily, alone in the engine."""
    params = SamplingParams(temperature=0.0, max_tokens=prompt["max_tokens"])
    before = counters(llm, k)
    if "messages" in prompt:
        output = llm.chat(prompt["messages"], params, use_tqdm=False)[0].outputs[0]
    else:
        output = llm.generate(prompt["prompt"], params, use_tqdm=False)[0].outputs[0]
    drafts, *accepted = (b - a for a, b in zip(before, counters(llm, k), strict=True))
    passed = right(output.text, prompt["check"]) if "check" in prompt else None
    return Row(prompt["id"], output.text, len(output.token_ids), passed, drafts, tuple(accepted))


def starve(llm: LLM, n_positions: int) -> None:
    """Zero the drafter's keys and values of the first positions: what an unfilled draft cache looks like."""
    drafter = llm.llm_engine.model_executor.driver_worker.model_runner.drafter.model.model
    project, store = drafter._project_context_kv, drafter.precompute_and_store_context_kv
    seen: dict[str, torch.Tensor] = {}

    def note_positions(states: torch.Tensor, positions: torch.Tensor, slots: Any = None) -> None:
        seen["kept"] = (positions >= n_positions)[None, :, None, None]
        store(states, positions, slots)

    def project_starved(*given: Any) -> tuple[torch.Tensor, ...]:
        return tuple(part * seen["kept"] for part in project(*given))

    drafter._project_context_kv, drafter.precompute_and_store_context_kv = project_starved, note_positions


def rates(rows: list[Row]) -> tuple[float, ...]:
    """Accepted share of the drafts for each position, pooled over the rows."""
    drafts = sum(row.drafts for row in rows)
    return tuple(sum(column) / drafts for column in zip(*(row.accepted for row in rows), strict=True))


def format_rates(rows: list[Row]) -> str:
    """Rates as table cells, then the mean number of tokens a step."""
    positions = rates(rows)
    return " | ".join([*(f"{rate:.3f}" for rate in positions), f"{1 + sum(positions):.2f}"])


def format_set(name: str, rows: list[Row]) -> str:
    """One line of the table of sets."""
    judged = [row.right for row in rows if row.right is not None]
    score = f"{sum(judged)}/{len(judged)}" if judged else "-"
    return f"| {name} | {score} | {sum(row.drafts for row in rows)} | {format_rates(rows)} |"


def head(first: str, k: int) -> str:
    """The head of a table with one column a position."""
    names = [first, "right", "drafts", *(f"pos{i + 1}" for i in range(k)), "tokens a step"]
    return "| " + " | ".join(names) + " |\n|" + " --- |" * len(names)


def format_details(name: str, rows: list[Row], k: int) -> str:
    """Each prompt of a set, and the texts that were wrong."""
    words = {True: "yes", False: "no", None: "-"}
    lines = [f"\n### {name}\n", head("prompt", k)]
    lines += [f"| {row.id} | {words[row.right]} | {row.drafts} | {format_rates([row])} |" for row in rows if row.drafts]
    wrong = [f"- `{row.id}`: {row.text!r}" for row in rows if row.right is False]
    return "\n".join([*lines, *(["\nWrong answers:\n"] if wrong else []), *wrong])


def report(measured: dict[str, list[Row]], title: str, k: int) -> str:
    """The page: the table of sets, then every prompt."""
    lines = [title, "", head("set", k), *(format_set(name, rows) for name, rows in measured.items())]
    return "\n".join([*lines, *(format_details(name, rows, k) for name, rows in measured.items())]) + "\n"


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--weights", type=Path, default=HERE / "weights")
    parser.add_argument("--draft", default="draft")
    parser.add_argument("--k", type=int, default=5)
    parser.add_argument("--sets", nargs="+", default=list(SETS))
    parser.add_argument("--starve", type=int, default=0, help="zero the draft cache of that many first positions")
    parser.add_argument("--texts", action="store_true", help="print every answer")
    parser.add_argument("--out", type=Path, default=None)
    return parser.parse_args()


def main() -> None:
    """Boot, ask every prompt, report."""
    args = arguments()
    llm = boot(args.weights.resolve(), args.draft, args.k)
    if args.starve:
        starve(llm, args.starve)
    prompts = {name: read_jsonl(HERE / "prompts" / f"{name}.jsonl") for name in args.sets}
    measured = {name: [ask(llm, prompt, args.k) for prompt in prompts[name]] for name in args.sets}
    starved = f", draft cache of the first {args.starve} positions zeroed" if args.starve else ""
    title = f"`python -m testbed.measure {' '.join(sys.argv[1:])}`: drafter `{args.draft}`, K={args.k}{starved}."
    title += "\n\nvLLM 0.29.0 (CPU), V1 runner, float32, greedy, eager, prefix caching off, one request at a time."
    page = report(measured, title, args.k)
    print(page)
    if args.texts:
        print("\n".join(f"{row.id}: {row.text!r}" for rows in measured.values() for row in rows))
    if args.out:
        args.out.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
