"""A duet before its first pair: base beside base, which shows whether two engines beside each other are alike here.

Two engines that are up at once share a machine, and one of them started first, on the first port. Both of these may
cost one of them something. Base beside base has nothing else by which its two engines could differ; what it shows is
told with every boot of the bracket, and where it shows a difference, or gave nothing, no speed is judged (statistics.md
section 1.2). A pair that the machine spoiled is run again, within a budget as large as that of the bracket.
"""

from collections.abc import Sequence
from dataclasses import replace

from campaign.bracket import attempts
from campaign.bracket.bench import Bench
from campaign.bracket.reruns import HOST_UNFIT, cause, spent
from campaign.bracket.trial import Keep, Records
from campaign.console import format_pair
from campaign.engine.memory import Watch
from campaign.errors import EngineFailedError, HostUnfitError, InvalidError
from campaign.evidence import BootRecord
from campaign.names import BESIDE, STEP_PER_S, UNLIKE
from campaign.planning.plan import PlannedBoot
from verdict.errors import VerdictError
from verdict.fit import Scale, fit
from verdict.interval import interval
from verdict.sentence import signed

LEVEL = 0.95
PREFIX = "aa-"


def beside(bench: Bench, machine: Watch) -> Bench:
    """The bench whose boots tell what base beside base showed, once its pairs have run that the journal lacks.

    Raises EngineFailedError or InvalidError where one of their engines failed, or was not what was asked;
    HostUnfitError where nothing can be started after one.
    """
    if not bench.plan.beside:
        return bench
    if unfit := [record for record in bench.folder.records(PREFIX) if HOST_UNFIT in record.facts]:
        _void(bench, unfit)  # somebody has resumed it, and so vouches for the machine
    for pair in bench.plan.beside:
        while not _is_settled(bench, pair):
            _run(bench, pair, machine)
    told = comparison(bench.folder.records(PREFIX))
    bench.say(f"base beside base: {told[BESIDE]}")
    return replace(bench, told=dict(bench.told) | told)


def _is_settled(bench: Bench, pair: tuple[PlannedBoot, ...]) -> bool:
    """Whether a pair needs no further run: it gave data, or the machine spoiled it and no re-run is left."""
    indexes = [boot.index for boot in pair]
    found = [record for record in bench.folder.records(PREFIX) if record.index in indexes]
    _check(found)
    if not found or all(record.status == "ok" for record in found):
        return bool(found)
    why = spent(bench.plan, found[0], bench.folder.voided(PREFIX))
    names = ", ".join(boot.name for boot in pair)
    bench.say(f"void          {names}: {cause(found).reason}; {why or 'run again'}")
    if not why:
        _void(bench, found)
    return bool(why)


def _void(bench: Bench, records: Sequence[BootRecord]) -> None:
    bench.folder.void([record.index for record in records], cause(records).reason, PREFIX)


def _run(bench: Bench, pair: tuple[PlannedBoot, ...], machine: Watch) -> None:
    """One run of a pair, in the journal and told."""
    voided = [record.index for group in bench.folder.voided(PREFIX) for record in group]
    for boot in pair:
        attempts.keep_aside(bench, boot, voided.count(boot.index))
    found = attempts.run_datum(bench, pair, machine, _keeping(bench))
    bench.say("base beside base:")
    for line in format_pair(found, len(bench.plan.beside), None):
        bench.say(line)


def _keeping(bench: Bench) -> Keep:
    """Journals the boots of a pair, as no boots of the bracket."""

    def keep(records: Records) -> Records:
        bench.folder.keep(*records, prefix=PREFIX)
        return records

    return keep


def _check(records: Sequence[BootRecord]) -> None:
    """One that failed ends the run, and so does a machine on which nothing can be started."""
    for record in records:
        if HOST_UNFIT in record.facts:
            raise HostUnfitError(f"base beside base, boot {PREFIX}{record.index:02d}-{record.letter}: {record.reason}")
        if record.status in ("failed", "invalid"):
            kind = EngineFailedError if record.status == "failed" else InvalidError
            raise kind(f"arm base beside itself, boot {PREFIX}{record.index:02d}-{record.letter}: {record.reason}")


def comparison(records: Sequence[BootRecord]) -> dict[str, str]:
    """What the pairs of base beside base show, as facts of the boots that follow: second port against first, step/s."""
    ok = [record for record in records if record.status == "ok" and STEP_PER_S in record.metrics]
    if not ok:
        return _unknown("base beside base gave no data")
    pairs = [record.pair for record in ok]
    values = [record.metrics[STEP_PER_S] for record in ok]
    try:
        found = fit(values, "AB" * (len(values) // 2), scale=Scale.LOG, pairs=pairs)
    except VerdictError as error:
        return _unknown(f"of base beside base nothing is known: {error}")
    seen = f"second port against first, step/s {signed(Scale.LOG.effect(found.delta), 1)} %"
    ran = f"{found.n_pairs} pair{'' if found.n_pairs == 1 else 's'}"
    if found.se is None:
        return {BESIDE: f"{seen} [no error bar of {ran}]"}
    bar = interval(found, LEVEL, scale=Scale.LOG)
    told = f"{seen} [{signed(bar.lo, 1)}, {signed(bar.hi, 1)}] on {found.df} df, {ran}"
    if found.zero_variance or bar.covers(0):
        return {BESIDE: told}
    return {BESIDE: f"{told}: they differ", UNLIKE: f"two engines beside each other are not alike here ({told})"}


def _unknown(why: str) -> dict[str, str]:
    """What was asked for, and did not come: no speed is judged without it."""
    return {BESIDE: why, UNLIKE: f"whether two engines beside each other are alike here is not known: {why}"}
