"""`inspect FILE...`: what this product reads in files, whoever made them, and what it would conclude of them.

Reading only: the same functions that judge a boot, over files. The exit code is that of the conclusion: 0 when all was
read and nothing is wrong (or a verdict is PASS), 1 when a log shows an engine that died or never started (whatever the
cause) or a verdict is FAIL, 3 INCONCLUSIVE, 4 VOID, 5 when not what was asked was measured (a variable that does
nothing, counters that restarted); of several files the worst. A file of no kind that is read is a ConfigError.
"""

from collections.abc import Sequence
from pathlib import Path

from campaign.inspection import brackets, log, many, outcomes, recognised, scrapes, streams, texts, together
from campaign.inspection.document import code, document
from campaign.inspection.finding import Finding
from campaign.inspection.recognised import Kind, Source

__all__ = ["Finding", "code", "document", "look_into", "look_into_all"]


def look_into(file: Path) -> Finding:
    """One file. Raises ConfigError for a file of no kind that is read, too large, or no text."""
    return look_into_all([file])[0]


def look_into_all(files: Sequence[Path]) -> tuple[Finding, ...]:
    """Files of one kind or of several, in their order; what they say of each other comes last.

    Scrapes, texts and streams belong together: in the order given they are before and after, base and candidate.
    Raises ConfigError as `look_into` does.
    """
    sources = [recognised.recognise(file) for file in files]
    findings: list[Finding] = []
    for kind in dict.fromkeys(source.kind for source in sources):
        findings += _look(kind, [source for source in sources if source.kind is kind])
    return (*findings, *many.look(sources), *together.look(sources))


def _look(kind: Kind, sources: list[Source]) -> list[Finding]:
    if kind is Kind.METRICS:
        return [scrapes.look(sources)]
    if kind is Kind.TEXTS:
        return [texts.look(sources)]
    if kind is Kind.STREAM:
        return [streams.look(sources)]
    return [_alone(source) for source in sources]


def _alone(source: Source) -> Finding:
    """A file that is read by itself."""
    if source.kind is Kind.LOG:
        return log.look(source.file, source.text)
    if source.kind is Kind.RECORD:
        return brackets.look(source)
    return outcomes.look(source)
