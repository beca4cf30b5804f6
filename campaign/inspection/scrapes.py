"""/metrics texts, in the order they were taken: one gives totals, two a window, three or more a series of windows."""

from collections.abc import Iterator, Sequence
from math import isfinite

from campaign.errors import ConfigError, ExitCode, InvalidError, worst
from campaign.inspection import servers
from campaign.inspection.finding import WORDS, Finding, Row
from campaign.inspection.recognised import Source
from campaign.names import ACCEPTANCE_LENGTH, acceptance_pp
from campaign.traffic import metrics, scrape, series
from verdict.words import agreeing, number_of

WIDTH = 20


def look(sources: Sequence[Source]) -> Finding:
    """All scrapes of one server. Raises ConfigError where one is no Prometheus text."""
    scrapes = [parsed(source) for source in sources]
    if len(sources) == 1:
        return _totals(sources[0], scrapes[0])
    return _window(sources, scrapes)


def parsed(source: Source) -> metrics.Counters:
    """A scrape's counters. Raises ConfigError where it is no Prometheus text."""
    try:
        return metrics.parse(source.text)
    except InvalidError as error:
        raise ConfigError(f"{source.name}: {error}") from error


def _totals(source: Source, counters: metrics.Counters) -> Finding:
    head = f"/metrics     {source.name}: {_engines(counters)}"
    rows = tuple(scrape.rows(counters, source.text))
    code, why = scrape.concluded(counters)
    rows += (_conclusion(code, why),) if why else ()
    return Finding("metrics", (source.name,), head, rows, code, numbers=_numbers(counters), width=WIDTH)


def _engines(counters: metrics.Counters) -> str:
    return f"engines {', '.join(sorted(counters.by_engine)) or 'none'}"


def _window(sources: Sequence[Source], scrapes: Sequence[metrics.Counters]) -> Finding:
    """Two scrapes or more, in order: their differences, or why there is none."""
    names = tuple(source.name for source in sources)
    head = f"/metrics     {' -> '.join(names)}: {_engines(scrapes[-1])}"
    found = series.series(scrapes)
    if others := servers.apart(sources):
        return Finding("metrics", names, head, (_conclusion(ExitCode.INVALID, others),), ExitCode.INVALID, width=WIDTH)
    if found.delta is None:
        rows = (*_scraped(scrapes), _conclusion(ExitCode.INVALID, found.refusal))
        return Finding("metrics", names, head, rows, ExitCode.INVALID, width=WIDTH)
    waiting, running = [each.waiting for each in scrapes], [each.running for each in scrapes]
    verdicts = [
        scrape.concluded(found.delta),
        *scrape.series_concluded(found.deltas, waiting, running),
        *_shared(scrapes),
    ]
    told = [(code, why) for code, why in verdicts if code is not ExitCode.PASS]
    code = worst([code for code, _ in told]) if told else ExitCode.PASS
    counts = code not in (ExitCode.INVALID, ExitCode.VOID)  # else no rate is made of the window
    one = len(found.deltas) == 1
    rows = tuple(scrape.window_rows(found.delta, rates=counts) if one else scrape.series_rows(found.deltas))
    rows += tuple(_conclusion(*verdict) for verdict in told)
    return Finding("metrics", names, head, rows, code, numbers=_numbers(found.delta), width=WIDTH)


def _shared(scrapes: Sequence[metrics.Counters]) -> Iterator[tuple[ExitCode, str]]:
    """Requests of somebody else at the first scrape: a run would discard the window (cases D12)."""
    if len(scrapes) == len(("before", "after")) and scrapes[0].running:
        were = f"{number_of(scrapes[0].running, 'request')} {agreeing(scrapes[0].running, 'was', 'were')} running"
        yield ExitCode.VOID, f"{were} before the window: a run measures it again"


def _scraped(scrapes: Sequence[metrics.Counters]) -> tuple[Row, ...]:
    """The counters at each scrape, of the first name that all have."""
    name = next((name for name in metrics.ALIASES if all(counters.has(name) for counters in scrapes)), None)
    return ((name, ", ".join(f"{counters.total(name):g}" for counters in scrapes)),) if name else ()


def _conclusion(code: ExitCode, why: str) -> Row:
    return f"{WORDS[code]} ({int(code)})", why


def _numbers(delta: metrics.Counters) -> dict[str, float]:
    """The window in numbers, by our names with units."""
    counts = metrics.draft_counts(delta)
    found: dict[str, float | None] = {name: delta.total(name) for name in metrics.ALIASES if delta.has(name)}
    found["prefix_hits_pct"] = scrape.hit_share_pct(delta)
    if counts is not None:
        found[ACCEPTANCE_LENGTH] = counts.acceptance_length
        found |= {acceptance_pp(i): rate for i, rate in enumerate(counts.rates_pp(), 1)}
    return {name: value for name, value in found.items() if value is not None and isfinite(value)}
