"""The bracket: its boots in order, each journaled once its outcome is known, look by look. Reads as the run does."""

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from campaign.asked import contrast
from campaign.bracket import attempts, burn_in, duet, stamps
from campaign.bracket.bench import Bench
from campaign.bracket.looks import Outcome, judge, look_lines
from campaign.bracket.reruns import PAUSED, Voided, block_of, cause, spent
from campaign.console import format_datum
from campaign.engine.memory import Watch
from campaign.errors import DriftError, InvalidError
from campaign.evidence import BootRecord
from campaign.gates.sittings import pause
from campaign.host.machine import uptime_id
from campaign.journal import RunFolder
from campaign.names import STEP_PER_S
from campaign.planning.plan import Plan, PlannedBoot
from verdict.voids import outer_pairs

BROKEN = ("failed", "invalid")
NO_DATA: dict[str, Any] = {  # of a boot that was not what was asked: no number may be made of it
    "metrics": {}, "natural": None, "by_prompt": {}, "counted": {}, "window": None, "answers": (), "again": (),
    "prefix": None, "shown": (),
}  # fmt: skip


@dataclass
class Progress:
    """A run between two boots. Not frozen: boots are added, and taken out when they are voided."""

    plan: Plan
    folder: RunFolder
    records: list[BootRecord]
    voided: Voided
    told: int = 0  # looks that were told
    machine: Watch | None = field(default=None)

    @classmethod
    def of(cls, plan: Plan, folder: RunFolder) -> "Progress":
        """From what is on disk; what had been judged before is not told again."""
        found = cls(plan, folder, list(folder.records()), folder.voided())
        found.told = len(found.outcome().looks)
        return found

    def outcome(self) -> Outcome:
        """The verdict of what there is."""
        return judge(self.plan, tuple(self.records), self.voided, attempts.besides_s(self.folder))

    def ended(self) -> str:
        """Why no boot follows, in words; empty while one does."""
        last = [r for r in self.records[-2:] if r.status != "ok"]
        if any(record.status in BROKEN for record in last):
            return "a boot failed, or was not what was asked"
        return spent(self.plan, last[0], self.voided) if last else self.outcome().ends

    def void(self, boots: Sequence[BootRecord], reason: str) -> None:
        """These no longer count, and will be run again."""
        indexes = [record.index for record in boots]
        self.folder.void(indexes, reason)
        self.records = [record for record in self.records if record.index not in indexes]
        self.voided = self.folder.voided()


def has_ended(plan: Plan, folder: RunFolder) -> bool:
    """Whether a run on disk has its verdict. One that ended because of the machine has not: it may go on elsewhen."""
    found = Progress.of(plan, folder)
    return bool(found.ended()) and not _unfit(found)


def run_bracket(bench: Bench) -> Outcome:
    """All boots that the journal does not hold yet, look by look, then the verdict.

    Ends at the first look that leaves nothing to decide, and at the first boot that failed or was not what was asked; a
    boot that the environment tainted is run again, as long as its budget lasts.
    """
    run = Progress.of(bench.plan, bench.folder)
    _check_unchanged(bench, run.records)
    vouched_for(run)
    void_the_tainted(bench, run)
    void_the_broken_off(bench, run, uptime_id(), time.time())
    while not run.ended():
        bench = _begun(bench, run)
        _datum(bench, run)
        void_the_tainted(bench, run)
        _tell_looks(bench, run)
    return run.outcome()


def vouched_for(run: Progress) -> None:
    """Take out what an unfit machine ended, of a duet the whole pair: who resumes the run vouches for the machine."""
    if _unfit(run):
        void = [record for record in run.records if record.status == "void"]
        run.void(void, cause(void).reason)


def void_the_broken_off(bench: Bench, run: Progress, machine_boot: str, now_s: float) -> None:
    """Take out a block that was begun before a long pause or a reboot: it is not split (statistics.md section 1.2)."""
    ran = len(run.records)
    if run.ended() or not ran or ran in run.plan.block_ends:
        return
    last_s = max(event.get("time_unix_s", 0.0) for event in run.folder.events())
    if why := pause(run.records, now_s - last_s, machine_boot):
        block = [record for record in run.records if block_of(run.plan, record.index) == block_of(run.plan, ran)]
        names = ", ".join(f"{record.index:02d}-{record.letter}" for record in block)
        bench.say(f"void          {names}: {PAUSED}{why}; run again, and not counted as a re-run")
        run.void(block, f"{PAUSED}{why}")


def _unfit(run: Progress) -> bool:
    return bool(run.records) and run.records[-1].status == "void" and "host_unfit" in run.records[-1].facts


def _begun(bench: Bench, run: Progress) -> Bench:
    """The bench, once all that goes before the first datum is there: also before the first of a resumed run."""
    if run.machine is not None:
        return bench
    run.machine = attempts.watch(bench, _next(run)[0])
    burn_in.before_the_first(bench, run.machine)
    return duet.beside(bench, run.machine)


def _datum(bench: Bench, run: Progress) -> None:
    """The next boot, or the two of the next pair."""
    boots = _next(run)
    assert run.machine is not None
    _check_stamps(bench, run.records)
    for boot in boots:
        attempts.keep_aside(bench, boot, sum(boot.index == r.index for group in run.voided for r in group))
    run.records += attempts.run_datum(bench, boots, run.machine, lambda found: _kept(bench, run.records, found))
    last = run.records[-len(boots) :]
    for line in format_datum(last, run.plan.goal(last[-1].index), _left_s(run.plan, run.records)):
        bench.say(line)


def _next(run: Progress) -> tuple[PlannedBoot, ...]:
    """The boots of the next datum, in the order they start."""
    first, *more = run.plan.boots[len(run.records) :]
    return (first, *more[:1]) if first.pair else (first,)


def void_the_tainted(bench: Bench, run: Progress) -> None:
    """Take out what the environment spoiled, if it may be run again; else it stands as void, and ends the run."""
    spoiled, reason = _spoiled(run)
    if not spoiled:
        return
    names = ", ".join(f"{record.index:02d}-{record.letter}" for record in spoiled)
    if not spent(run.plan, spoiled[0], run.voided):
        bench.say(f"void          {names}: {reason}; run again")
        run.void(spoiled, reason)
    elif any(record.status != "void" for record in spoiled):
        bench.folder.keep(*(replace(record, status="void", reason=reason) for record in spoiled))
        run.records = list(bench.folder.records())


def _spoiled(run: Progress) -> tuple[list[BootRecord], str]:
    """The last boots as far as they are void, or the last block where its own outer pair says so; and why."""
    last, ran = run.records[-2:], len(run.records)
    if any(record.status in BROKEN for record in last):
        return [], ""
    if void := [record for record in last if record.status == "void"]:
        return void, cause(void).reason
    block = [record for record in run.records if block_of(run.plan, record.index) == block_of(run.plan, ran)]
    return _apart(run, block) if ran in run.plan.block_ends else ([], "")


def _apart(run: Progress, block: list[BootRecord]) -> tuple[list[BootRecord], str]:
    """A block whose outer pair disagrees more than this host may; there is no limit without a history.

    A row of several arms has no two boots of one arm, so nothing is looked at.
    """
    if run.plan.candidates:
        return [], ""
    values = [record.metrics.get(STEP_PER_S) for record in block]
    if None in values:
        return [], ""
    letters = "".join(record.letter for record in block)
    pairs = outer_pairs([value or 0.0 for value in values], letters, len(block), run.plan.history)
    for pair in pairs:
        if pair.is_void and pair.limit_ln is not None:
            apart, limit = 100 * pair.apart_ln, 100 * pair.limit_ln
            return block, f"the ends of {letters} are {apart:.1f} % apart, of one arm (limit {limit:.1f} %)"
    return [], ""


def _tell_looks(bench: Bench, run: Progress) -> None:
    """The looks that the last boot reached."""
    outcome = run.outcome()
    for look in outcome.looks[run.told :]:
        for line in look_lines(look, run.plan):
            bench.say(line)
    run.told = len(outcome.looks)
    if outcome.ends.startswith("bracket.max_minutes"):
        bench.say(f"ends here     {outcome.ends}")


def _kept(bench: Bench, records: list[BootRecord], found: tuple[BootRecord, ...]) -> tuple[BootRecord, ...]:
    """The records as they count, in the journal: from here on neither a kill nor an interruption can lose them."""
    proven: list[BootRecord] = []
    for record in found:
        proven.append(_proven_unlike(bench.plan, [*records, *proven], record))
    bench.folder.keep(*proven)
    return tuple(proven)


def _left_s(plan: Plan, records: list[BootRecord]) -> float | None:
    left = plan.goal(len(records)) - len(records)
    if not left or records[-1].status != "ok":
        return None
    return left * sum(r.seconds["total"] for r in records) / len(records)


def _check_unchanged(bench: Bench, records: list[BootRecord]) -> None:
    """A resumed run must go on with the engine and the surroundings it began with. Raises DriftError."""
    _check_stamps(bench, records)
    for record in records:
        now = bench.stages[record.arm].digest
        if record.facts.get("stage", now) != now:
            raise DriftError(
                f"boot {record.index:02d}-{record.letter} ran on stage {record.facts['stage'][:12]}, the engine and "
                f"overlays of arm {record.arm} now make {now[:12]}; start a new run"
            )


def _check_stamps(bench: Bench, records: list[BootRecord]) -> None:
    now = {arm: stamps.take(bench.plan, arm, bench.site, os.environ) for arm in {r.arm for r in records}}
    for record in records:
        why = stamps.changed(bench.plan, record.facts, now[record.arm], bench.site)
        if why:
            raise DriftError(f"since boot {record.index:02d}-{record.letter}: {why}, or start a new run")


def _proven_unlike(plan: Plan, records: list[BootRecord], record: BootRecord) -> BootRecord:
    """The record; invalid when the other arm already showed all that a knob of its arm was to change."""
    if contrast.sameness_claimed(plan.claims) or record.status != "ok":
        return record
    shown = {r.arm: contrast.Shown.of(r.facts) for r in [*records, record] if r.status == "ok"}
    try:
        for view in plan.views:
            if record.arm in view.arms and shown.keys() >= view.arms.keys():
                contrast.require_shown(view.arms, shown)
    except InvalidError as error:
        return replace(record, status="invalid", reason=str(error), **NO_DATA)
    return record
