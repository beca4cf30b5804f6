"""The engine's KV budget as evidence: what its processes report, beside what its log says."""

from collections.abc import Sequence
from typing import Any

from campaign.engine.logs import KvLog
from campaign.engine.reports import Report
from campaign.errors import InvalidError
from campaign.evidence import KvFacts


def facts(reports: Sequence[Report], log: KvLog | None, configured_draft_tokens: int) -> KvFacts:
    """The smallest budget of all ranks, and the largest need of any.

    Capacity is the log's number; a log without one is blocks times block size. Raises InvalidError when no process
    reports a number that the gate needs, or when what drafts differs from what was configured.
    """
    blocks, block_size = min(_all(reports, "kv_blocks")), min(_all(reports, "kv_block_size"))
    draft_tokens = max(_all(reports, "spec_tokens"), default=0) if _any(reports, "spec_tokens") else 0
    if draft_tokens != configured_draft_tokens:
        raise InvalidError(
            f"the engine drafts {draft_tokens} tokens a step, the configuration asks for {configured_draft_tokens}"
        )
    return KvFacts(
        capacity_tokens=log.capacity_tokens if log else blocks * block_size,
        block_size=block_size,
        blocks=blocks,
        max_num_seqs=max(_all(reports, "max_num_seqs")),
        max_model_len=max(_all(reports, "max_model_len")),
        batches_in_flight=max(_all(reports, "max_concurrent_batches")),
        draft_tokens=draft_tokens,
    )


def contradictions(found: KvFacts, log: KvLog | None) -> tuple[str, ...]:
    """Sentences for numbers that disagree: the log with itself, and the log with the reported blocks."""
    if log is None:
        return ("the log has no KV line",)
    product = found.blocks * found.block_size
    blocks = (
        f"the log says {log.capacity_tokens:,} KV tokens, the processes {found.blocks:,} blocks of {found.block_size} "
        f"({product:,} tokens)"
    )
    return tuple(s for s in (log.contradiction, blocks if product != log.capacity_tokens else "") if s)


def _any(reports: Sequence[Report], key: str) -> bool:
    return any(key in report.section("resolved") for report in reports)


def _all(reports: Sequence[Report], key: str) -> list[int]:
    found: list[Any] = [report.section("resolved")[key] for report in reports if key in report.section("resolved")]
    if not found or not all(isinstance(value, int) for value in found):
        who = ", ".join(map(str, reports)) or "nobody answered"
        raise InvalidError(f"no process reports {key} as a number (found {found or 'nothing'}; answering: {who})")
    return [int(value) for value in found]
