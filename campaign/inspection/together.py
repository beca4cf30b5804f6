"""What a log, its server's counters and its answers say of each other: where they disagree, where one is partial."""

from collections.abc import Iterator, Sequence

from campaign.engine import logs, speculation
from campaign.errors import ExitCode, worst
from campaign.inspection import log, scrapes
from campaign.inspection.finding import WORDS, Finding
from campaign.inspection.recognised import Kind, Source
from campaign.prompting import corruption
from campaign.traffic import metrics, scrape
from verdict.words import number_of

Concluded = tuple[ExitCode, str]


def look(sources: Sequence[Source]) -> tuple[Finding, ...]:
    """Nothing where only one kind was given, or where what was given agrees."""
    of = {kind: [source for source in sources if source.kind is kind] for kind in Kind}
    counters = [scrapes.parsed(source) for source in of[Kind.METRICS]]
    told = [
        *_logs(of[Kind.LOG]),
        *_log_and_counters(of[Kind.LOG], counters),
        *_texts_and_counters(of[Kind.TEXTS], counters),
    ]
    if not told:
        return ()
    names = tuple(source.name for source in sources)
    rows = tuple((f"{WORDS.get(code, 'note')} ({int(code)})" if code else "note", why) for code, why in told)
    return (Finding("together", names, "together", rows, worst([code for code, _ in told]), width=18),)


def _logs(sources: Sequence[Source]) -> Iterator[Concluded]:
    """KV capacities of engines that profile memory differently are no comparison (cases B13)."""
    found = [(log.version(source.text), log.profiling(source.text), logs.kv(source.text)) for source in sources]
    known = [(version, how, kv) for version, how, kv in found if kv is not None]
    if len(known) > 1 and len({(version, how) for version, how, _ in known}) > 1:
        told = ", ".join(f"{kv.capacity_tokens:,} tokens (vLLM {version or 'unknown'})" for version, _, kv in known)
        why = "other versions, or another way to profile memory: not compared, and no patch is blamed"
        yield ExitCode.INCONCLUSIVE, f"KV capacities {told}: {why}"


def _log_and_counters(texts: Sequence[Source], counters: Sequence[metrics.Counters]) -> Iterator[Concluded]:
    if not counters:
        return
    last = counters[-1]
    for source in texts:
        intervals = speculation.lines(source.text)
        drafted = sum(line.drafted for line in intervals)
        counts = metrics.draft_counts(last)
        if drafted and last.has("generation_tokens") and (counts is None or not counts.drafts):
            yield (
                ExitCode.INCONCLUSIVE,
                f"counter not wired: {source.name} tells of {number_of(drafted, 'drafted token')}, the counters of "
                f"{'no draft' if counts is None else '0 drafts'} beside {last.total('generation_tokens'):g} generated "
                "tokens; never an acceptance of 0 %",
            )
        if drafted and counts is not None and counts.drafts:
            yield (
                ExitCode.PASS,
                f"two estimators of acceptance: {number_of(len(intervals), 'interval')} of {source.name}, and the "
                "counters, token-weighted; they are not compared, and the counters count",
            )
        logged = logs.engines(source.text)
        unlogged = sorted(last.by_engine.keys() - logged)
        if logged and unlogged:
            yield (
                ExitCode.PASS,
                f"{source.name} tells only of engine {', '.join(sorted(logged))}, the counters of "
                f"{', '.join(sorted(last.by_engine))}: the log is partial, the counters (summed) count",
            )


def _texts_and_counters(texts: Sequence[Source], counters: Sequence[metrics.Counters]) -> Iterator[Concluded]:
    """Answers that loop, and a drafter of which nothing is accepted: one fault, seen twice (cases H7)."""
    if not counters or scrape.concluded(counters[-1])[0] is not ExitCode.FAIL:
        return
    for source in texts:
        why = next(filter(None, map(_broken, source.data)), "")
        if why:
            yield (
                ExitCode.FAIL,
                f"{source.name}: {why}, and no draft is accepted: one fault, in the verification of drafts; tell which "
                "by three more boots: eager, graphs off, default",
            )


def _broken(data: dict[str, object]) -> str:
    text = str(data.get("text", ""))
    return corruption.corruption(text, str(data.get("prompt", "")), cut_off=data.get("finish_reason") == "length")
