"""A duet before its first pair: base beside base, which shows whether two engines beside each other are alike here.

Two engines that are up at once share a machine, and one of them started first, on the first port. Both of these may
cost one of them something. Base beside base has nothing else by which its two engines could differ; what it shows is
told with every boot of the bracket, and where it shows a difference no speed is judged (statistics.md section 1.2).
"""

from collections.abc import Sequence
from dataclasses import replace

from campaign.bracket import attempts
from campaign.bracket.live import Bench
from campaign.bracket.trial import Keep, Records
from campaign.console import format_pair
from campaign.engine.memory import Watch
from campaign.errors import EngineFailedError, InvalidError
from campaign.evidence import BootRecord
from campaign.names import BESIDE, STEP_PER_S, UNLIKE
from verdict.errors import VerdictError
from verdict.fit import Scale, fit
from verdict.interval import interval
from verdict.sentence import signed

LEVEL = 0.95
PREFIX = "aa-"


def beside(bench: Bench, machine: Watch) -> Bench:
    """The bench whose boots tell what base beside base showed, once its pairs have run that the journal lacks.

    Raises EngineFailedError or InvalidError where one of their engines failed, or was not what was asked.
    """
    pairs = bench.plan.beside
    if not pairs:
        return bench
    records = list(bench.folder.records(PREFIX))
    for pair in pairs:
        _check(records)
        if pair[0].index not in [record.index for record in records]:
            found = attempts.run_datum(bench, pair, machine, _keeping(bench))
            bench.say("base beside base:")
            for line in format_pair(found, len(pairs), None):
                bench.say(line)
            records += found
    _check(records)
    told = comparison(records)
    bench.say(f"base beside base: {told[BESIDE]}")
    return replace(bench, told=dict(bench.told) | told)


def _keeping(bench: Bench) -> Keep:
    """Journals the boots of a pair, as no boots of the bracket."""

    def keep(records: Records) -> Records:
        bench.folder.keep(*records, prefix=PREFIX)
        return records

    return keep


def _check(records: Sequence[BootRecord]) -> None:
    """A void pair is left out; one that failed ends the run."""
    for record in records:
        if record.status in ("failed", "invalid"):
            kind = EngineFailedError if record.status == "failed" else InvalidError
            raise kind(f"arm base beside itself, boot {PREFIX}{record.index:02d}-{record.letter}: {record.reason}")


def comparison(records: Sequence[BootRecord]) -> dict[str, str]:
    """What the pairs of base beside base show, as facts of the boots that follow: second port against first, step/s."""
    ok = [record for record in records if record.status == "ok" and STEP_PER_S in record.metrics]
    if not ok:
        return {BESIDE: "no pair of it gave data"}
    pairs = [record.pair for record in ok]
    values = [record.metrics[STEP_PER_S] for record in ok]
    try:
        found = fit(values, "AB" * (len(values) // 2), scale=Scale.LOG, pairs=pairs)
    except VerdictError as error:
        return {BESIDE: f"nothing is known: {error}"}
    seen = f"second port against first, step/s {signed(Scale.LOG.effect(found.delta), 1)} %"
    ran = f"{found.n_pairs} pair{'' if found.n_pairs == 1 else 's'}"
    if found.se is None:
        return {BESIDE: f"{seen} [no error bar of {ran}]"}
    bar = interval(found, LEVEL, scale=Scale.LOG)
    told = f"{seen} [{signed(bar.lo, 1)}, {signed(bar.hi, 1)}] on {found.df} df, {ran}"
    if found.zero_variance or bar.covers(0):
        return {BESIDE: told}
    return {BESIDE: f"{told}: they differ", UNLIKE: f"two engines beside each other are not alike here ({told})"}
