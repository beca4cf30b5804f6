"""Does the KV cache of every boot hold what the configuration may ask of it?"""

from dataclasses import dataclass

from campaign.evidence import BootRecord, Evidence, KvFacts
from campaign.gates.base import GateResult
from campaign.gates.footing import ARM_OF, boot_name, incomplete
from verdict.sentence import GAP, head
from verdict.words import Verdict

GATE = "kv"
LABEL = "KV"
LOG_TOLERANCE = 0.01


@dataclass
class Kv:
    """The smallest capacity of each arm, in blocks, against max_num_seqs requests of full length (house.md)."""

    def check(self, evidence: Evidence) -> GateResult:
        """Judge both arms, each by its smallest boot; one line with both."""
        least = _least(evidence)
        short = next((boot for boot in least if not _fits(boot)), None)
        if short is not None:
            return GateResult(GATE, Verdict.FAIL, _shortage(short), _details(least), _numbers(least))
        reason = incomplete(evidence) or _unknown(evidence)
        if reason:
            return GateResult(GATE, Verdict.INCONCLUSIVE, f"{head(Verdict.INCONCLUSIVE, LABEL)}{reason}")
        line = head(Verdict.PASS, LABEL) + GAP.join(_text(boot) for boot in least)
        return GateResult(GATE, Verdict.PASS, line, _details(least), _numbers(least))

    def check_boot(self, record: BootRecord) -> GateResult:
        """Judge one boot, so that a boot that fails can stop before anything else is asked of it."""
        if record.kv is None:
            line = f"{head(Verdict.INCONCLUSIVE, LABEL)}boot {boot_name(record)} reported no KV budget"
            return GateResult(GATE, Verdict.INCONCLUSIVE, line)
        if not _fits(record):
            return GateResult(GATE, Verdict.FAIL, _shortage(record), _details((record,)), _numbers((record,)))
        return GateResult(GATE, Verdict.PASS, head(Verdict.PASS, LABEL) + _text(record), (), _numbers((record,)))


def _least(evidence: Evidence) -> tuple[BootRecord, ...]:
    """The boot with the least room of each arm, base first; boots without KV facts are not counted."""
    arms = ([boot for boot in evidence.of(letter) if boot.kv] for letter in "AB")
    return tuple(min(arm, key=_room) for arm in arms if arm)


def _facts(boot: BootRecord) -> KvFacts:
    assert boot.kv is not None
    return boot.kv


def _room(boot: BootRecord) -> int:
    return _facts(boot).blocks - _facts(boot).needed_blocks


def _fits(boot: BootRecord) -> bool:
    return _room(boot) >= 0


def _unknown(evidence: Evidence) -> str:
    silent = next((boot for boot in evidence.boots if boot.status == "ok" and boot.kv is None), None)
    return f"boot {boot_name(silent)} reported no KV budget" if silent else ""


def _text(boot: BootRecord) -> str:
    kv = _facts(boot)
    return f"{ARM_OF[boot.letter]} {kv.blocks} >= {kv.needed_blocks} blocks (KV in flight x{kv.batches_in_flight})"


def _shortage(boot: BootRecord) -> str:
    kv = _facts(boot)
    return (
        f"{head(Verdict.FAIL, LABEL)}{ARM_OF[boot.letter]} has {kv.blocks} blocks, needs {kv.needed_blocks} "
        f"(boot {boot_name(boot)}, KV in flight x{kv.batches_in_flight})"
    )


def _details(least: tuple[BootRecord, ...]) -> tuple[str, ...]:
    sums = [_sum(boot) for boot in least]
    contradictions = [_contradiction(boot) for boot in least]
    return tuple(text for text in (*sums, _differing(least), *contradictions) if text)


def _sum(boot: BootRecord) -> str:
    kv = _facts(boot)
    return (
        f"{ARM_OF[boot.letter]} needs {kv.max_num_seqs} x ceil(({kv.max_model_len} + {kv.batches_in_flight} x "
        f"{kv.draft_tokens + 1}) / {kv.block_size}) = {kv.needed_blocks} blocks, has {kv.blocks}"
    )


def _differing(least: tuple[BootRecord, ...]) -> str:
    blocks = [_facts(boot).blocks for boot in least]
    if len(set(blocks)) < 2:
        return ""
    return f"the arms differ in capacity: base {blocks[0]} blocks, candidate {blocks[1]}"


def _contradiction(boot: BootRecord) -> str:
    """Where the engine's token count is not its blocks: hybrid models print such a line (cases B12)."""
    kv = _facts(boot)
    product = kv.blocks * kv.block_size
    if abs(kv.capacity_tokens - product) <= LOG_TOLERANCE * product:
        return ""
    return (
        f"{ARM_OF[boot.letter]} contradicts itself: {kv.capacity_tokens:,} tokens, but {kv.blocks} blocks of "
        f"{kv.block_size} are {product:,}; blocks are judged"
    )


def _numbers(least: tuple[BootRecord, ...]) -> dict[str, float]:
    arms = {ARM_OF[boot.letter]: _facts(boot) for boot in least}
    has = {f"{arm}_blocks": float(kv.blocks) for arm, kv in arms.items()}
    return has | {f"{arm}_needed_blocks": float(kv.needed_blocks) for arm, kv in arms.items()}
