"""Does a verdict see what was planted? `python -m bench.planted`, on the real engine; hours, resumable at any moment.

Equal arms in duets of four pairs, slowdowns of 2, 4 and 8 % in duets of eight, acceptance shifts of 3 and 0.5 points in
brackets. Each job is one run of `python -m campaign` in a folder of its own; a job that has its verdict is not run
again, one that was interrupted is resumed, one that was void is run once more at the next start. After every job its
row is added to `bench/planted.jsonl`, to be committed, and `bench/planted.md` is written anew: another sitting, on
another machine, goes on from there. Nothing else may run on the machine meanwhile.
"""

import argparse
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.planted_rows import keep, kept, row_of
from bench.planted_table import render

ROOT = Path(__file__).resolve().parent.parent
RUNS = ROOT / "runs" / "bench"
ROWS = ROOT / "bench" / "planted.jsonl"
TABLE = ROOT / "bench" / "planted.md"
EQUAL_DUETS = 10
SLOWER_PCT = (2, 4, 8)
SHIFT_PP = ("3", "0.5")
VERDICTS = (0, 1, 3)  # PASS, FAIL, INCONCLUSIVE: measured
VOID = 4


@dataclass(frozen=True)
class Job:
    """One run: what is planted and the words that the campaign is started with."""

    name: str
    planted: str
    words: tuple[str, ...]

    @property
    def folder(self) -> Path:
        """Where its runs lie."""
        return RUNS / self.name


def jobs() -> Iterator[Job]:
    """All jobs, in the order they run: the cheap answer to "is it honest" first."""
    lean = ("gates.quality=null", "gates.korean=null", "bracket=duet")
    short = ("bracket.schedule=AB BA BA AB", "workload.repeats=1")
    for n in range(1, EQUAL_DUETS + 1):
        words = ("exp=aa", "host=bench", "tracking=none", *lean, *short)
        yield Job(f"equal-{n:02d}", "nothing", words)
    for pct in SLOWER_PCT:
        # the ten equal duets are its base beside base; requests of one engine differ by 15 %, so there are more of them
        more = ("bracket.aa_pairs=0", "workload.repeats=3")
        words = ("exp=planted_slow", f"arms.candidate.knobs.slow_step={pct}", *more, *lean)
        yield Job(f"slower-{pct}", f"a step {pct} % longer", words)
    for pp in SHIFT_PP:
        words = ("exp=planted_shift", f"arms.candidate.knobs.acceptance_shift={pp}")
        yield Job(f"shift-{pp.replace('.', '_')}", f"pos1 {pp} pp lower", words)


def main(argv: Sequence[str] | None = None) -> int:
    """Run what is left, or print the list or the table. Returns the last code that was no verdict, or 0."""
    parser = argparse.ArgumentParser(prog="python -m bench.planted", description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="JOB", help="only these (default: all that are left)")
    parser.add_argument("--list", action="store_true", help="the jobs and where each one stands")
    parser.add_argument("--table", action="store_true", help="write the table anew and run nothing")
    asked = parser.parse_args(argv)
    known = {job.name: job for job in jobs()}
    if strange := sorted(set(asked.names) - known.keys()):
        parser.error(f"no job {strange[0]!r}; there are {', '.join(known)}")
    chosen = [known[name] for name in asked.names] or list(known.values())
    if asked.list:
        _say("\n".join(f"{job.name:<12}{_stands(job)}" for job in chosen))
        return 0
    return _write() if asked.table else _run(chosen)


def _run(chosen: Sequence[Job]) -> int:
    _write()
    left = [job for job in chosen if not _measured(job)]
    for number, job in enumerate(left, 1):
        _say(f"job {number}/{len(left)} {job.name}: planted {job.planted}")
        began = time.monotonic()
        code = subprocess.run(_command(job), cwd=ROOT, check=False).returncode
        _say(f"job {job.name} ended with {code} after {(time.monotonic() - began) / 60:.1f} min")
        _write()
        if code not in (*VERDICTS, VOID):
            return code
    return _write()


def _command(job: Job) -> list[str]:
    campaign = [sys.executable, "-m", "campaign"]
    unfinished = [run for run in _runs(job) if not (run / "result.json").is_file()]
    if unfinished:
        return [*campaign, "resume", str(unfinished[-1])]
    return [*campaign, "--config-dir", "bench/conf", *job.words, f"host.runs_dir={job.folder}"]


def _runs(job: Job) -> list[Path]:
    """The job's runs, oldest first."""
    return sorted((plan.parent for plan in job.folder.glob("*/plan.json")), key=lambda run: run.stat().st_mtime)


def _measured(job: Job) -> bool:
    return any(row.job == job.name and row.exit_code in VERDICTS for row in kept(ROWS))


def _stands(job: Job) -> str:
    told = [row.verdict for row in kept(ROWS) if row.job == job.name]
    under_way = [run for run in _runs(job) if not (run / "result.json").is_file()]
    return ", ".join([*told, *("running or interrupted" for _ in under_way)]) or "not begun"


def _write() -> int:
    read = (row_of(job.name, job.planted, run) for job in jobs() for run in _runs(job))
    keep(ROWS, [row for row in read if row is not None])
    TABLE.write_text(render({job.name: job.planted for job in jobs()}, kept(ROWS)), encoding="utf-8")
    return 0


def _say(text: str) -> None:
    print(text, flush=True)


if __name__ == "__main__":
    sys.exit(main())
