"""The ledger: one row a verdict, newest first, in Markdown, between two markers of a file. Pure.

A number stands here only inside its claim's text, which holds the interval, the boots and the looks that it came of.
"""

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from analysis.row import AnalysisError, Row

BEGIN, END = "<!-- ledger: begin -->", "<!-- ledger: end -->"
HEAD = ("when (UTC)", "run", "engine", "verdict", "claims", "other gates", "boots", "remarks")
NOTE = "Written by `python -m analysis ledger`; what stands between the markers is written anew. A (in boots) is base."
ABSENT = "-"
SPECIAL = re.compile(r"([\\`*_|~<>\[\]])")


def table(rows: Sequence[Row]) -> str:
    """The whole table. The same rows give the same text."""
    known = {row.campaign_id: row for row in rows}
    lines = [HEAD, ("---",) * len(HEAD), *(_cells(row, known) for row in rows)]
    body = "\n".join(f"| {' | '.join(cells)} |" for cells in lines)
    return f"{NOTE}\n\n{body}\n" if rows else f"{NOTE}\n\nNo verdict is there yet.\n"


def placed(document: str, text: str) -> str:
    """The document with the text between its markers. Raises AnalysisError unless each marker stands there once."""
    if document.count(BEGIN) != 1 or document.count(END) != 1 or document.index(BEGIN) > document.index(END):
        raise AnalysisError(
            f"the file wants one line {BEGIN} and one line {END} below it; add them where the table goes"
        )
    before, _, rest = document.partition(BEGIN)
    return f"{before}{BEGIN}\n{text}{END}{rest.partition(END)[2]}"


def _cells(row: Row, known: Mapping[str, Row]) -> tuple[str, ...]:
    struck = bool(row.superseded_by or row.corrected_by)
    facts = (
        datetime.fromtimestamp(row.began_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M"),
        row.campaign_id,
        row.engine,
        row.verdict,
        "\n".join(f"{gate}: {text}" for gate, text in row.claims.items()),
        ", ".join(f"{gate} {word}" for gate, word in row.gates.items() if gate not in row.claims),
        _boots(row),
    )
    when, run, *others = (_struck(text) if struck else _plain(text) for text in facts)
    return when, f'<a id="{_anchor(row.campaign_id)}"></a>{run}', *others, _remarks(row, known)


def _boots(row: Row) -> str:
    return f"{row.boots}{f', {row.voided} void' if row.voided else ''}"


def _remarks(row: Row, known: Mapping[str, Row]) -> str:
    """What a reader must know of the row's standing: what replaced it and why, what it replaces and why."""
    said = [
        _said("corrected by", row.corrected_by, known, _because(known, row.corrected_by)),
        _said("superseded by", row.superseded_by, known, _because(known, row.superseded_by)),
        _said("**correction** of", row.corrects, known, row.because),
        _said("supersedes", row.supersedes, known, "" if row.corrects else row.because),
    ]
    return "<br>".join(text for text in said if text) or ABSENT


def _because(known: Mapping[str, Row], other: str) -> str:
    return known[other].because if other in known else ""


def _said(words: str, other: str, known: Mapping[str, Row], because: str) -> str:
    if not other:
        return ""
    link = f"[{_plain(other)}](#{_anchor(other)})" if other in known else _plain(other)
    return f"{words} {link}{f': {_plain(because)}' if because else ''}"


def _anchor(campaign_id: str) -> str:
    return re.sub(r"[^A-Za-z0-9.-]", "-", campaign_id)


def _plain(text: str) -> str:
    """Any text as one cell."""
    lines = (SPECIAL.sub(r"\\\1", " ".join(line.split())) for line in text.splitlines())
    return "<br>".join(line for line in lines if line) or ABSENT


def _struck(text: str) -> str:
    """Each line by itself: a stroke does not go over a line break."""
    return "<br>".join(f"~~{part}~~" for part in _plain(text).split("<br>"))
