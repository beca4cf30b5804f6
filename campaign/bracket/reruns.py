"""The budget of boots that are run again because the environment tainted them (statistics.md section 1.6). Pure.

A boot is voided without a look at its metric. Each time that boots are voided, one or a whole block or pair, counts
once, against its block and against the bracket; then the host is unfit.
"""

from bisect import bisect_left
from collections.abc import Sequence

from campaign.evidence import BootRecord
from campaign.planning.plan import Plan
from verdict.words import agreeing, number_of

HOST_UNFIT = "host_unfit"  # a fact of a void boot after which nothing can be started on this machine
BESIDE_ANOTHER = "beside_another"  # a fact of a void boot that had nothing to do with the end of its pair
PAUSED = "the block was broken off: "  # how a reason begins
Voided = Sequence[Sequence[BootRecord]]  # by each time that some were


def spent(plan: Plan, record: BootRecord, voided: Voided) -> str:
    """Why this void boot is not run again, in words; empty where it is."""
    if HOST_UNFIT in record.facts:
        return "the machine is not as it was"
    bracket = plan.campaign.bracket
    counted = [group[0] for group in voided if group and _counts(group[0])]
    if len(counted) >= bracket.reruns:
        return f"{len(counted)} of {number_of(bracket.reruns, 're-run')} {_are(bracket.reruns)} used (bracket.reruns)"
    block = block_of(plan, record.index)
    here = sum(block_of(plan, boot.index) == block for boot in counted)
    if here >= bracket.reruns_per_block:
        each = number_of(bracket.reruns_per_block, "re-run")
        are = _are(bracket.reruns_per_block)
        return f"{here} of {each} of block {block} {are} used (bracket.reruns_per_block)"
    return ""


def _are(number: int) -> str:
    return agreeing(number, "is", "are")


def _counts(void: BootRecord) -> bool:
    """Whether it was voided for what the machine did in a run; not where the run was resumed on another footing."""
    return HOST_UNFIT not in void.facts and not void.reason.startswith(PAUSED)


def cause(void: Sequence[BootRecord]) -> BootRecord:
    """Of void boots the one with a reason of its own: of a pair, the other one has no data only because of it."""
    return next((record for record in void if BESIDE_ANOTHER not in record.facts), void[0])


def block_of(plan: Plan, index: int) -> int:
    """The number of the block that a boot lies in, both from 1."""
    return bisect_left(plan.block_ends, index) + 1
