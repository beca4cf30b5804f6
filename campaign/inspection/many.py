"""Bracket records of several runs, read as one family: each verdict among many, the best of several.

One run's claims are the gates of one patch: all of them must pass, and nothing is adjusted. Source: statistics.md 1.11.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import isfinite

from campaign.errors import worst
from campaign.gates.claimed import label_of
from campaign.inspection.finding import Finding, Row, code_of
from campaign.inspection.recognised import Kind, Source
from campaign.told import record
from campaign.told.rejudge import rejudged
from verdict.claims import ClaimKind, Judgement
from verdict.errors import VerdictError
from verdict.many import Adjusted, Correction, among_many, best, p_values
from verdict.words import Verdict, number_of

WATCH_Q = 0.10


@dataclass(frozen=True)
class _Read:
    name: str  # the run's id, or the file's name where somebody wrote it by hand
    label: str
    verdict: Verdict
    judgement: Judgement | None

    @property
    def without_p(self) -> str:
        """Why it has no p-value; empty where it has one."""
        if self.judgement is None:
            return "it told no effect"
        try:
            found = p_values(self.judgement)
        except VerdictError:
            return "no error bar, or readings that never vary"
        return "" if isfinite(found.passing + found.failing) else "its error bar is no number"


def look(sources: Sequence[Source]) -> tuple[Finding, ...]:
    """The family of all bracket records given, of two runs or more; nothing where there are fewer."""
    records = [source for source in sources if source.kind is Kind.RECORD]
    found = [_read(source) for source in records]
    if len({one.name for one in found}) < 2:
        return ()
    family = [(one, one.judgement) for one in found if one.judgement and not one.without_p]
    judgements = [judgement for _, judgement in family]
    holm = among_many(judgements, Correction.holm)
    watched = among_many(judgements, Correction.benjamini_hochberg, WATCH_Q)
    rows: list[Row] = [
        (blocks.verdict.value, _told(one, blocks, watch))
        for (one, _), blocks, watch in zip(family, holm, watched, strict=True)
    ]
    rows += [("left out", f"{one.name} {one.label}: {one.without_p}") for one in found if one.without_p]
    rows += [("best", told) for told in _best(family)]
    told = f"{number_of(len(family), 'claim')} of {number_of(len({one.name for one in found}), 'run')} as one family"
    head = f"many         {told}: verdicts by Holm at 5 %, a watch list by Benjamini-Hochberg at {100 * WATCH_Q:.0f} %"
    numbers = {f"holm_p.{one.name}.{one.label}": _smaller(p) for (one, _), p in zip(family, holm, strict=True)}
    files, code = tuple(source.name for source in records), worst([code_of(one.verdict) for one in holm])
    return (Finding("many", files, head, tuple(rows), code, bool(family), numbers, width=14),)


def _read(source: Source) -> _Read:
    found = record.read(source.data[0], source.name)
    registered = found.told.get("registered")
    run = registered.get("run_id") if isinstance(registered, dict) else None
    result = rejudged(found, source.name)
    name = run if isinstance(run, str) else str(source.file)
    return _Read(name, label_of(found.claim.metric), result.verdict, result.judgement)


def _told(one: _Read, blocks: Adjusted, watch: Adjusted) -> str:
    alone = "" if blocks.verdict is one.verdict else f"   alone {one.verdict.value}, which does not hold among so many"
    watching = f"   watch list {watch.verdict.value}" if watch.verdict is not blocks.verdict else ""
    return f"{one.name} {one.label}   adjusted p {_smaller(blocks):.2g}{alone}{watching}"


def _smaller(found: Adjusted) -> float:
    """Of both directions the one that could decide."""
    return min(found.p.passing, found.p.failing)


def _best(family: Sequence[tuple[_Read, Judgement]]) -> Iterator[str]:
    """Of several runs that claim more of the same metric."""
    for label in dict.fromkeys(one.label for one, _ in family):
        rivals = {
            one.name: judgement
            for one, judgement in family
            if one.label == label and judgement.claim.kind is ClaimKind.superiority
        }
        if len(rivals) > 1:
            winner = best(rivals)
            yield (
                f"of {winner.of} by {label}, if they are rivals: {winner.name}. Its place is in part luck, so no "
                "effect of these runs may be quoted of it: run it again and quote that run alone"
            )
