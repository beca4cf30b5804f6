"""A bracket record: judged again, and told as a run tells it."""

from campaign.inspection.finding import Finding, Row, code_of
from campaign.inspection.recognised import Source
from campaign.told import record
from campaign.told.rejudge import rejudged
from verdict.words import number_of


def look(source: Source) -> Finding:
    """The verdict of a record. Raises ConfigError for one that cannot be read."""
    found = record.read(source.data[0], source.name)
    result = rejudged(found, source.name)
    rows: list[Row] = [("", result.line), *(("", f"  {detail}") for detail in result.details)]
    rows += [("", f"  void boot {_void(boot.index, boot.letter)}: {boot.reason}") for _, boot in found.void]
    judged = found.told.get("judged") or {}
    was = judged.get("line") if isinstance(judged, dict) else f"judged is {str(judged)[:80]}, wanted a map"
    if was is not None:
        same = "as the run told it" if was == result.line else f"the run told another line: {was}"
        rows.append(("", f"  {same}"))
    boots = f"{number_of(len(found.readings), 'boot')} {found.letters}"
    head = f"record       {source.name}: claim {found.claim.name}, {boots}"
    return Finding(
        "record", (source.name,), head, tuple(rows), code_of(result.verdict), True, dict(result.numbers), width=0
    )


def _void(index: int, letter: str) -> str:
    return f"{index:02d}-{letter}"
