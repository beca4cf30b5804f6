"""A boot's record while it is made, and what it comes to: whatever goes wrong, what was seen so far is kept."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from campaign.engine.logs import read, tail, unconfirmed
from campaign.engine.readiness import Ladder
from campaign.engine.spec import EngineSpec
from campaign.errors import CampaignError, EngineFailedError, HostUnfitError, InvalidError
from campaign.evidence import BETWEEN_REASONS, BootRecord, KvFacts, Status, WitnessRow
from campaign.gates.base import GateResult
from campaign.gates.sittings import stamp
from campaign.host.machine import uptime_id
from campaign.names import BEGAN, DISCARDED_BECAUSE, MACHINE_BOOT, WINDOWS_DISCARDED
from campaign.planning.plan import PlannedBoot

TAIL_LINES = 12
Ending = EngineFailedError | InvalidError | HostUnfitError  # an error that says something about its boot
ENDINGS = (EngineFailedError, InvalidError, HostUnfitError)


@dataclass
class Draft:
    """A boot's record while it is being made; whatever goes wrong, what was seen so far is kept."""

    boot: PlannedBoot
    seconds: dict[str, float] = field(default_factory=dict)
    kv: KvFacts | None = None
    witness: tuple[WitnessRow, ...] = ()
    facts: dict[str, str] = field(default_factory=dict)
    began: dict[str, str] = field(default_factory=lambda: {BEGAN: stamp(time.time()), MACHINE_BOOT: uptime_id()})
    gates: tuple[GateResult, ...] = ()
    ladder: Ladder = field(default_factory=Ladder)
    ended: dict[str, str] = field(default_factory=dict)  # how the engine ended, as soon as it is stopped
    window_ns: tuple[int, int] | None = None  # the measured window, on the monotonic clock
    finished: BootRecord | None = None  # as soon as all is measured and proven, before the engine is stopped

    @contextmanager
    def timed(self, phase: str) -> Iterator[None]:
        """Seconds of a phase, also of one that raises."""
        started = time.monotonic()
        try:
            yield
        finally:
            self.seconds[phase] = time.monotonic() - started

    def record(self, **more: Any) -> BootRecord:
        """The record as it stands."""
        return BootRecord(
            index=self.boot.index,
            letter=self.boot.letter,
            arm=self.boot.arm,
            pair=self.boot.pair,
            seconds=dict(self.seconds),
            kv=self.kv,
            witness=self.witness,
            facts=self.facts
            | self.began
            | ({"boot_ladder": str(self.ladder)} if self.ladder.reached else {})
            | self.ended,
            **more,
        )

    def measured(self) -> BootRecord:
        """The record of a boot that has given its data (`finished`), with how it ended."""
        assert self.finished is not None
        return replace(self.finished, seconds=dict(self.seconds), facts=self.finished.facts | self.ended)

    def stopped(self, reason: CampaignError, status: Status, log: Path) -> BootRecord:
        """The record of a boot that this ended; whether a second one may end otherwise stands in it."""
        if reason.transient:
            self.facts["transient"] = reason.transient
        return self.record(status=status, reason=str(reason), log_tail=tail(log, TAIL_LINES))


def ended_by(error: Ending, draft: Draft, engine_spec: EngineSpec) -> BootRecord:
    """The record of a boot that this error ended."""
    if isinstance(error, InvalidError):
        return draft.stopped(error, "invalid", engine_spec.log_file)
    if isinstance(error, HostUnfitError):  # what was measured before it is kept, as a void boot
        if draft.finished is None:
            return draft.stopped(error, "void", engine_spec.log_file)
        return replace(draft.measured(), status="void", reason=str(error))
    failed = draft.stopped(error, "failed", engine_spec.log_file)
    doubt = unconfirmed(engine_spec.argv, read(engine_spec.log_file))
    return replace(failed, reason=f"{failed.reason}; {doubt}") if doubt else failed


def discarded(because: tuple[str, ...]) -> dict[str, str]:
    """How many disturbed windows came before the measured one and why each was: facts of the boot."""
    told = {DISCARDED_BECAUSE: BETWEEN_REASONS.join(because)} if because else {}
    return {WINDOWS_DISCARDED: str(len(because))} | told


def failure_behind(interrupt: KeyboardInterrupt) -> Ending | None:
    """The failure that was on its way up when the interruption came, which is its context (PEP 3134).

    It came while the engine was stopped; what had been found out is not forgotten for it.
    """
    before = interrupt.__context__
    while before is not None and not isinstance(before, ENDINGS):
        before = before.__context__
    return before
