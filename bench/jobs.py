"""Jobs on the real engine that may span sittings and machines: each one run of `python -m campaign`, its row kept.

A job that has its verdict is not run again, one that was interrupted is resumed, one that was void is run once more at
the next start. After every job its row is added to a file of JSON lines, to be committed, and a page is written anew.
"""

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

ROOT = Path(__file__).resolve().parent.parent
VERDICTS = (0, 1, 3)  # PASS, FAIL, INCONCLUSIVE: measured
VOID = 4


class Kept(Protocol):
    """What is kept of a run: a frozen dataclass of plain values that has at least these."""

    @property
    def job(self) -> str:
        """Whose run it is."""

    @property
    def run(self) -> str:
        """Its id."""

    @property
    def exit_code(self) -> int:
        """What it ended with."""

    @property
    def verdict(self) -> str:
        """What it found, in words."""


R = TypeVar("R", bound=Kept)


@dataclass(frozen=True)
class Job:
    """One run: what is done to the engine, and the words that the campaign is started with."""

    name: str
    planted: str
    words: tuple[str, ...]


@dataclass(frozen=True)
class Sheet(Generic[R]):
    """Jobs, the file of their rows, and the page made of them. `row_of` reads a run's folder; None while it runs."""

    name: str  # `python -m bench.NAME` writes bench/NAME.jsonl and bench/NAME.md
    jobs: tuple[Job, ...]
    row: type[R]
    row_of: Callable[[Job, Path], R | None]
    render: Callable[[Sequence[Job], Sequence[R]], str]
    root: Path = ROOT

    @property
    def rows(self) -> Path:
        """The rows, to be committed."""
        return self.root / "bench" / f"{self.name}.jsonl"

    @property
    def page(self) -> Path:
        """The page that is made of them."""
        return self.root / "bench" / f"{self.name}.md"

    @property
    def runs(self) -> Path:
        """Where this machine's runs lie."""
        return self.root / "runs" / "bench" / self.name

    def main(self, argv: Sequence[str] | None, what: str) -> int:
        """Run what is left, or print the list or the page. Returns the last code that was no verdict, or 0."""
        parser = argparse.ArgumentParser(prog=f"python -m bench.{self.name}", description=what.splitlines()[0])
        parser.add_argument("names", nargs="*", metavar="JOB", help="only these (default: all that are left)")
        parser.add_argument("--list", action="store_true", help="the jobs and where each one stands")
        parser.add_argument("--table", action="store_true", help="write the page anew and run nothing")
        asked = parser.parse_args(argv)
        known = {job.name: job for job in self.jobs}
        if strange := sorted(set(asked.names) - known.keys()):
            parser.error(f"no job {strange[0]!r}; there are {', '.join(known)}")
        chosen = [known[name] for name in asked.names] or list(self.jobs)
        if asked.list:
            _say("\n".join(f"{job.name:<18}{self.stands(job)}" for job in chosen))
            return 0
        self.write()
        return 0 if asked.table else self._run([job for job in chosen if not self.measured(job)])

    def _run(self, left: Sequence[Job]) -> int:
        for number, job in enumerate(left, 1):
            _say(f"job {number}/{len(left)} {job.name}: {job.planted}")
            began = time.monotonic()
            code = subprocess.run(self.command(job), cwd=ROOT, check=False).returncode
            _say(f"job {job.name} ended with {code} after {(time.monotonic() - began) / 60:.1f} min")
            self.write()
            if code not in (*VERDICTS, VOID):
                return code
        return 0

    def command(self, job: Job) -> list[str]:
        """How it is begun, or gone on with."""
        campaign = [sys.executable, "-m", "campaign"]
        if unfinished := self._unfinished(job):
            return [*campaign, "resume", str(unfinished[-1])]
        return [*campaign, "--config-dir", "bench/conf", *job.words, f"host.runs_dir={self.runs / job.name}"]

    def _of(self, job: Job) -> list[Path]:
        """The job's runs on this machine, oldest first."""
        plans = (self.runs / job.name).glob("*/plan.json")
        return sorted((plan.parent for plan in plans), key=lambda run: run.stat().st_mtime)

    def _unfinished(self, job: Job) -> list[Path]:
        return [run for run in self._of(job) if not (run / "result.json").is_file()]

    def measured(self, job: Job) -> bool:
        """Whether a run of it has a verdict, wherever it ran."""
        return any(row.job == job.name and row.exit_code in VERDICTS for row in self.kept())

    def stands(self, job: Job) -> str:
        """Its verdicts, in words."""
        told = [row.verdict for row in self.kept() if row.job == job.name]
        return ", ".join([*told, *("running or interrupted" for _ in self._unfinished(job))]) or "not begun"

    def write(self) -> None:
        """Rows of runs that have ended since, and the page."""
        read = (self.row_of(job, run) for job in self.jobs for run in self._of(job))
        keep(self.rows, [row for row in read if row is not None], self.row)
        self.page.write_text(self.render(self.jobs, self.kept()), encoding="utf-8")

    def kept(self) -> list[R]:
        """The rows so far."""
        return kept(self.rows, self.row)


def kept(file: Path, row: type[R]) -> list[R]:
    """The rows of the file, oldest first; none where it is missing. Raises ValueError with file and line."""
    return list(_parsed(file, row)) if file.is_file() else []


def _parsed(file: Path, row: type[R]) -> Iterator[R]:
    for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
        try:
            yield row(**json.loads(line))
        except (ValueError, TypeError) as why:
            raise ValueError(f"{file.name} line {number}: {why}; wanted a row as the bench writes it") from why


def keep(file: Path, rows: Sequence[R], row: type[R]) -> None:
    """Append what the file does not hold yet, by run."""
    known = {one.run for one in kept(file, row)}
    new: list[Any] = [one for one in rows if one.run not in known]
    with file.open("a", encoding="utf-8") as to:
        to.writelines(json.dumps(asdict(one), ensure_ascii=False) + "\n" for one in new)


def result(run: Path) -> dict[str, Any] | None:
    """What a run ended with; None while it has not."""
    file = run / "result.json"
    return json.loads(file.read_text(encoding="utf-8")) if file.is_file() else None


def _say(text: str) -> None:
    print(text, flush=True)
