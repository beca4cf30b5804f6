"""One datum, from the staged engine to its stop: the straight line of house.md. A boot, or the two boots of a pair."""

import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

from campaign.bracket.bench import Bench
from campaign.bracket.draft import ENDINGS, Draft, Ending, ended_by, failure_behind
from campaign.bracket.live import Live, asked_of, finish, make_ready, side, start
from campaign.bracket.preflight import overlays_told
from campaign.bracket.reruns import BESIDE_ANOTHER
from campaign.engine import signals
from campaign.evidence import BootRecord
from campaign.host.host_watch import Seen, watch
from campaign.host.tainted import SERIES, judged, limits
from campaign.journal import write_json
from campaign.names import DECODE_SET
from campaign.planning.plan import PlannedBoot
from campaign.traffic.alternate import measure_in_turn
from campaign.traffic.window import measure
from overlays.stage import verify

Records = tuple[BootRecord, ...]
Keep = Callable[[Records], Records]


def run_trial(bench: Bench, boots: tuple[PlannedBoot, ...], keep: Keep) -> Records:
    """Boot, prove, measure, stop: one engine, or the two of a pair, which are up at once; a record each.

    A dead engine gives a failed record, a knob that is off an invalid one; the other engine of its pair has no data
    then. `keep` takes the records as soon as they are known, once, also when an interruption then ends the run; what it
    makes of them is returned.
    """
    lives = tuple(asked_of(bench, boot) for boot in boots)
    started, seen = time.monotonic(), Seen()
    files, visible = [live.folder / SERIES for live in lives], lives[0].spec.env.get("CUDA_VISIBLE_DEVICES")
    try:
        with watch(files=files, visible=visible, into=seen):
            records = _outcome(lives)
    except KeyboardInterrupt as interrupt:
        with signals.held():
            if known := _known(lives, interrupt):
                _settle(lives, _witnessed(lives, known, seen), keep, started)
        raise
    with signals.held():
        return _settle(lives, _witnessed(lives, records, seen), keep, started)


def _witnessed(lives: tuple[Live, ...], records: Records, seen: Seen) -> Records:
    """The records with what the machine did meanwhile; void where that spoiled them."""
    bench = lives[0].bench
    may = limits(bench.plan.campaign.host.foreign_cpu_cores, bench.folder.records())
    return judged(records, [live.draft.window_ns for live in lives], seen, may)


def _settle(lives: tuple[Live, ...], records: Records, keep: Keep, started_s: float) -> Records:
    """What is known is written down before anything that could be interrupted."""
    took = {"total": (time.monotonic() - started_s) / len(lives)}  # the boots of a pair share its time
    timed = tuple(replace(r, seconds=live.draft.seconds | took) for live, r in zip(lives, records, strict=True))
    for live, record in zip(lives, timed, strict=True):
        write_json(live.folder / "verdicts.json", _verdicts(record, live.draft))
    return keep(timed)


def _outcome(lives: tuple[Live, ...]) -> Records:
    try:
        return _unchanged(lives)
    except ENDINGS as error:
        return _ended(lives, error)


def _ended(lives: tuple[Live, ...], error: Ending) -> Records:
    """The records of engines that this error ended: of the one it is about, or of all where it is about none."""
    blamed = [live for live in lives if live.error is error] or list(lives)
    found = {live.draft.boot.index: ended_by(error, live.draft, live.spec) for live in blamed}
    other = next(iter(found.values()))
    return tuple(found.get(live.draft.boot.index) or _beside(live.draft, other) for live in lives)


def _beside(draft: Draft, other: BootRecord) -> BootRecord:
    """The record of an engine that had nothing to do with the end of its pair: a pair is one datum, or none."""
    where = f"{other.index:02d}-{other.letter} ({other.arm})"
    why = f"pair {other.pair} has no data: its other boot, {where}, {other.status}"
    void = draft.record(status="void", reason=why)
    return replace(void, facts=void.facts | {BESIDE_ANOTHER: where})


def _known(lives: tuple[Live, ...], interrupt: KeyboardInterrupt) -> Records:
    """How it had ended before the interruption; nothing while it had not. Raises DriftError as the boot would."""
    if (failure := failure_behind(interrupt)) is not None:
        return _ended(lives, failure)
    if any(live.draft.finished is None for live in lives):
        return ()
    _verify(lives)
    return tuple(live.draft.measured() for live in lives)


def _unchanged(lives: tuple[Live, ...]) -> Records:
    """The boots between two readings of their stages' hashes. Raises DriftError when a file is not as it was staged."""
    _verify(lives)
    records = _booted(lives)
    _verify(lives)
    return records


def _verify(lives: tuple[Live, ...]) -> None:
    with overlays_told():
        for live in lives:
            verify(live.bench.stages[live.draft.boot.arm])


def _booted(lives: tuple[Live, ...]) -> Records:
    with ExitStack() as engines:
        for live in lives:
            with live.at_fault():
                start(live, engines)
        for live in lives:
            with live.at_fault():
                make_ready(live)
        _measure(lives)
        stopping = time.monotonic()
    for live in lives:
        live.draft.seconds["stop"] = time.monotonic() - stopping
    return tuple(live.draft.measured() for live in lives)


def _measure(lives: tuple[Live, ...]) -> None:
    """The window of one engine, or the common one of two, and then what closes each boot's record."""
    bench = lives[0].bench
    drafting = bench.plan.campaign.model.num_speculative_tokens > 0
    prompts, workload, silence_s = bench.prompts[DECODE_SET], bench.plan.campaign.workload, bench.longest_silence_s
    sides = [side(live) for live in lives]
    with ExitStack() as timed:
        for live in lives:
            timed.enter_context(live.draft.timed("window"))
        if len(sides) > 1:
            rest_s = bench.plan.campaign.bracket.rest_s
            found = measure_in_turn(sides, prompts, workload, silence_s, rest_s=rest_s, drafting=drafting)
        else:
            (alone,) = sides
            with alone.watched():
                found = (measure(alone.client, prompts, workload, silence_s, alone.folder, drafting=drafting),)
    for live, measured in zip(lives, found, strict=True):
        with live.at_fault():
            finish(live, measured)


def _verdicts(record: BootRecord, draft: Draft) -> dict[str, Any]:
    """The boot's own verdicts for verdicts.json: status, witness rows, the kv gate."""
    return {
        "status": record.status,
        "reason": record.reason,
        "witness": [vars(row) for row in record.witness],
        "gates": [result.plain() for result in draft.gates],
    }
