"""Does acceptance survive a prefix-cache hit? `python -m bench.layouts`: per layout of KV groups, on the real engine.

V1 with one mixed group (a verdict), V2 under Triton's interpreter with a drafter of its own group and with mixed
layers, each also with the planted fault that it must catch; the hole of the stock V1 engine and its guard; a prefix
that is too short. How jobs are run and kept: bench/jobs.py. But for the first one they judge greedy answers alone, so a
busy machine only makes them slower.
"""

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.jobs import Job, Sheet, result

GATES = ("prefix", "acceptance", "draft_rate", "ttft", "outputs")
HEAD = """# The prefix cache, per layout of KV groups

Reference engine: vLLM 0.29.0, CPU build, float32, eager, toy models; V2 under Triton's interpreter. Nothing here is a
figure for a GPU. Written by `python -m bench.layouts` from the rows of `layouts.jsonl`; what each gate asks:
[docs/prefix_cache.md](../docs/prefix_cache.md).
"""


@dataclass(frozen=True)
class Row:
    """A run that ended, with the line of each gate that is about the cache."""

    job: str
    planted: str
    run: str
    exit_code: int
    verdict: str
    lines: Mapping[str, str]
    details: tuple[str, ...]  # of acceptance: cold beside warm


def jobs() -> Iterator[Job]:
    """All jobs, the layout with a verdict first."""
    base = ("exp=prefix_cache", "host=bench", "tracking=none")
    lean = ("gates.quality=null", "gates.korean=null", "gates.ttft=null", "~claims.ttft", "bracket.schedule=ABABA")
    answers = (*base, *lean, "host.foreign_cpu_cores=1024")  # greedy answers: a busy machine changes no draft
    starved = ("arms.candidate.overlays=[starved_hits]", "arms.candidate.knobs.starved_hits='1'")
    beside = ("workload=shared_prefix_beside", "arms.candidate.overlays=[draft_kv_guard]")
    guard = "arms.candidate.knobs.draft_kv_guard="
    yield Job("v1", "nothing: V1, one mixed group", base)
    yield Job("v1-starved", "V1, the drafts' KV of hits zeroed", (*answers, *starved))
    yield Job("v1-hole", "V1, cache filled beside a request at the limit", (*answers, *beside, f"{guard}'0'"))
    yield Job("v1-guard", "the same, decided per request", (*answers, *beside, f"{guard}'1'"))
    yield Job("v1-short", "V1, a prefix of under three blocks", (*answers, "engine.shared_prefix.block_size=256"))
    for model, layout in (("swa", "a group of the drafter's own"), ("mixed", "mixed layers, a group each")):
        v2 = (*answers, "engine=vllm_cpu_v2", f"model=toy_dflash_{model}")
        yield Job(f"v2-{model}", f"nothing: V2, {layout}", v2)
        yield Job(f"v2-{model}-starved", f"V2, {layout}, the drafts' KV of hits zeroed", (*v2, *starved))


def row_of(job: Job, run: Path) -> Row | None:
    """The run read from its folder, None while it has no result."""
    found = result(run)
    if found is None:
        return None
    lines = {gate["gate"]: " ".join(gate["line"].split()) for gate in found["gates"] if gate["gate"] in GATES}
    told = [line for gate in found["gates"] if gate["gate"] == "acceptance" for line in gate["details"]]
    passes = tuple(line for line in told if "cold -> warm" in line)
    return Row(job.name, job.planted, run.name, found["exit_code"], found["verdict"], lines, passes)


def render(known: Sequence[Job], rows: Sequence[Row]) -> str:
    """The page: a section a job, its gates as a run tells them, with their intervals."""
    return HEAD + "".join(_section(job, [row for row in rows if row.job == job.name]) for job in known)


def _section(job: Job, rows: Sequence[Row]) -> str:
    told = "".join(_told(row) for row in rows) or "not run yet\n"
    return f"\n## {job.name}\n\n{job.planted}\n\n{told}"


def _told(row: Row) -> str:
    every = [f"verdict {row.verdict} ({row.exit_code}), run {row.run}", *row.lines.values(), *row.details]
    return "```\n" + "".join(f"{line}\n" for line in every) + "```\n"


SHEET = Sheet("layouts", tuple(jobs()), Row, row_of, render)

if __name__ == "__main__":
    sys.exit(SHEET.main(None, str(__doc__)))
