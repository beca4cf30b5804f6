"""Does a verdict see what was planted? `python -m bench.planted`, on the real engine; hours, resumable at any moment.

Equal arms in duets of four pairs, slowdowns of 2, 4 and 8 % in duets of eight, acceptance shifts of 3 and 0.5 points in
brackets. How jobs are run, kept and gone on with on another machine: bench/jobs.py. Nothing else may run on the machine
meanwhile.
"""

import sys
from collections.abc import Iterator

from bench.jobs import Job, Sheet
from bench.planted_rows import Row, row_of
from bench.planted_table import render

EQUAL_DUETS = 10
SLOWER_PCT = (2, 4, 8)
SHIFT_PP = ("3", "0.5")


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


SHEET = Sheet("planted", tuple(jobs()), Row, row_of, render)

if __name__ == "__main__":
    sys.exit(SHEET.main(None, str(__doc__)))
