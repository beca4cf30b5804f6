"""Added by the test overlay acceptance_shift: the first draft token of a share of the drafts is made wrong.

Which drafts depends on their number since the process began and on nothing else. A token that was drafted wrongly is
rejected, so the texts stay what they are.
"""

import os
from typing import Any

from campaign_engine_report.state import count, publish

LOWER_PP = float(os.environ.get("VLLM_PLANTED_ACCEPTANCE_SHIFT_PP", "0"))
TAKES = 0.557  # points of position 1 by one per cent of wrong drafts, on the trained prompts (bench/planted_table.py)
SHARE = LOWER_PP / 100 / TAKES
GOLDEN = 0.6180339887498949  # steps of this size are spread evenly and follow no rhythm of the prompts

counts = {"drafts": 0, "garbled": 0}


def garble(drafts: Any) -> None:
    """Set the chosen rows' first token (rows x K, changed in place) to 0, or to 1 where 0 was drafted."""
    for row in range(len(drafts)):
        counts["drafts"] += 1
        if counts["drafts"] * GOLDEN % 1 < SHARE:
            counts["garbled"] += 1
            drafts[row, 0] = drafts[row, 0] == 0


publish("acceptance_shift", lambda: {"lower_pp": f"{LOWER_PP:g}", "share": SHARE, **counts})
count("acceptance_shift", lambda: counts)
