"""The table of bench/planted.md: what was planted, what the overlay recorded, what the verdict saw."""

from collections.abc import Iterator, Sequence

from bench.jobs import Job
from bench.planted_rows import Row

EQUAL_MAY_DIFFER = 3
HEAD = """# Planted effects on the real engine

Reference engine: vLLM 0.29.0, CPU build, float32, eager, toy models, two shared cores. Nothing here is a figure for
a GPU. Written by `python -m bench.planted` from the rows of `planted.jsonl`. *Recorded* is what the planted overlay
itself wrote down: the time that it added to a step over the window's own time for one (the engine's decode seconds,
wall clock), or the share of first draft tokens that it garbled, by 0.557 points for one per cent. That rate was
seen once, with 3.38 % garbled (-1.88 pp, 5,736 of 8,280 against 5,686 of 8,437 drafts, run
planted_shift-20261201-010649-a099): a garbled draft loses its token, and the drafts that then fill the gap are
accepted more often than others. *Covered*: the recorded effect lies in the interval.

| job | planted | recorded | estimated | interval | verdict | covered | boots | voids | run |
|---|---|---|---|---|---|---|---|---|---|
"""


def render(jobs: Sequence[Job], rows: Sequence[Row]) -> str:
    """The page: every run that ended is a line, void ones too, and every job that has none."""
    lines = [line for job in jobs for line in _lines(job.name, job.planted, rows)]
    return HEAD + "\n".join(lines) + "\n\n" + _summary(rows) + "\n"


def _lines(job: str, what: str, rows: Sequence[Row]) -> Iterator[str]:
    ended = [row for row in rows if row.job == job]
    if not ended:
        yield f"| {job} | {what} | not run yet |  |  |  |  |  |  |  |"
    yield from (_line(row) for row in ended)


def _line(row: Row) -> str:
    bar = "none" if row.lo is None or row.hi is None else f"[{row.lo:+.2f}, {row.hi:+.2f}] {row.unit}"
    covered = {None: "", True: "yes", False: "**no**"}[row.covered]
    estimated = "" if row.lo is None else _number(row.effect, row.unit)
    cells = (
        row.job, row.planted, _number(row.recorded, row.unit), estimated, bar, row.verdict, covered,
        str(row.boots_ok), str(row.boots_void), row.run,
    )  # fmt: skip
    return f"| {' | '.join(cells)} |"


def _number(value: float | None, unit: str) -> str:
    return "" if value is None else f"{value:+.2f} {unit}"


def _summary(rows: Sequence[Row]) -> str:
    judged = [row.verdict for row in rows if row.job.startswith("equal") and "no_difference" in row.verdict]
    differing = sum("no_difference FAIL" in word for word in judged)
    return (
        f"Equal arms: {differing} of {len(judged)} duets differ (nominal 5 %; {EQUAL_MAY_DIFFER} of 10 may, 4 ask for "
        "a new calibration of the pipeline)."
    )
