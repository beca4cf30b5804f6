"""A page of plain sections, as Markdown and as one HTML file that needs nothing else. Knows no campaign.

Texts come from engines and operators: every one is cleaned and escaped here. Readable on a phone and without colour.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from html import escape

CONTROL = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|[\x00-\x08\x0b-\x1f\x7f-\x9f]")
MARKDOWN_SPECIAL = re.compile(r"([\\`*<|~&]|(?<=\])\(|(?<!\w)_|_(?!\w)|^[#>+-])")  # as little as keeps a text a text
CSS = """
:root { color-scheme: light }
body { font: 16px/1.45 system-ui, "Noto Sans KR", "Noto Sans CJK KR", "Apple SD Gothic Neo", "Malgun Gothic",
  sans-serif; color: #111; background: #fff; max-width: 62rem; margin: 0 auto; padding: 1rem; overflow-wrap: anywhere }
h1 { font-size: 1.15rem; margin: 0 } h2 { font-size: 1.05rem; margin: 2rem 0 .5rem }
.verdict { border: 3px solid #111; padding: .6rem 1rem; margin: .8rem 0 }
.verdict b { font-size: 2.2rem; display: block } .FAIL { border-style: double; border-width: 8px }
.INCONCLUSIVE, .VOID { border-style: dashed; border-color: #777 } .INVALID { border-style: dotted; border-width: 6px }
.wide { overflow-x: auto } table { border-collapse: collapse; font-size: .9rem }
th, td { border: 1px solid #bbb; padding: .25rem .5rem; text-align: left; vertical-align: top; overflow-wrap: normal }
th { background: #eee } pre { white-space: pre-wrap; background: #f4f4f4; padding: .6rem; font-size: .8rem }
.small { font-size: .85rem; color: #333; margin: .2rem 0; padding-left: 1.1rem }
.panels { display: flex; flex-wrap: wrap; gap: 1rem } .panels div { flex: 1 1 20rem; min-width: 0 }
.panels svg { width: 100%; height: auto; display: block } footer { margin-top: 2rem; border-top: 1px solid #111 }
@media print { body { max-width: none } }
""".strip()
POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"


@dataclass(frozen=True)
class Table:
    """Rows under a head; `note` is a sentence below."""

    title: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""


@dataclass(frozen=True)
class Listing:
    """Lines as they are, in a fixed pitch."""

    title: str
    lines: tuple[str, ...]
    note: str = ""


@dataclass(frozen=True)
class Statements:
    """Sentences that have each some smaller ones below."""

    title: str
    entries: tuple[tuple[str, tuple[str, ...]], ...]


@dataclass(frozen=True)
class Panels:
    """Drawings of ours (SVG, trusted), a sentence above and small print below. Text only in Markdown."""

    title: str
    sentence: str
    svgs: tuple[str, ...]
    captions: tuple[str, ...]


Section = Table | Listing | Statements | Panels


@dataclass(frozen=True)
class Page:
    """One page: its verdict word is the biggest thing on it."""

    title: str
    verdict: str
    sentences: tuple[str, ...]
    sections: tuple[Section, ...]
    footer: tuple[str, ...] = field(default=())


def clean(text: str) -> str:
    """A text without terminal colours, control characters and lone surrogates; Korean stays as it is."""
    return CONTROL.sub("", text).encode("utf-8", "replace").decode()


def to_markdown(page: Page) -> str:
    """The page for terminals, trackers and pull requests."""
    blocks = [f"# {_md(page.verdict)}: {_md(page.title)}", *map(_md, page.sentences)]
    blocks += [block for section in page.sections for block in _md_section(section)]
    return "\n\n".join([*blocks, "---", *map(_md, page.footer)]) + "\n"


def _md(text: str) -> str:
    return MARKDOWN_SPECIAL.sub(r"\\\1", " ".join(clean(text).split()))


def _md_section(section: Section) -> Iterator[str]:
    yield f"## {_md(section.title)}"
    if isinstance(section, Table):
        rows = [section.head, ("---",) * len(section.head)]
        lines = [" | ".join(_md(cell) if row is not rows[1] else cell for cell in row) for row in rows]
        lines += [" | ".join(_md(cell) or " " for cell in row) for row in section.rows]
        yield "\n".join(f"| {line} |" for line in lines)
    elif isinstance(section, Listing):
        yield _fenced(section.lines)
    elif isinstance(section, Statements):
        yield "\n".join(line for text, below in section.entries for line in _md_entry(text, below))
    else:
        yield "\n".join([_md(section.sentence), "", *(f"- {_md(text)}" for text in section.captions)])
        yield "The drawing is in report.html."
    note = getattr(section, "note", "")
    if note:
        yield _md(note)


def _md_entry(text: str, below: tuple[str, ...]) -> list[str]:
    return [f"- {_md(text)}", *(f"  - {_md(line)}" for line in below)]


def _fenced(lines: tuple[str, ...]) -> str:
    """A code block whose fence is longer than any in it."""
    text = "\n".join(clean(line) for line in lines)
    fence = "`" * max(3, 1 + max((len(run) for run in re.findall("`+", text)), default=0))
    return f"{fence}text\n{text}\n{fence}"


def to_html(page: Page) -> str:
    """The page as one file without any other resource."""
    body = [
        f"<h1>{_html(page.title)}</h1>",
        f'<div class="verdict {_html(page.verdict)}"><b>{_html(page.verdict)}</b>',
        *(f"<div>{_html(sentence)}</div>" for sentence in page.sentences),
        "</div>",
        *(part for section in page.sections for part in _html_section(section)),
        "<footer>",
        *(f"<p>{_html(line)}</p>" for line in page.footer),
        "</footer>",
    ]
    head = (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
        f"<title>{_html(page.verdict)}: {_html(page.title)}</title><style>{CSS}</style></head><body>"
    )
    return "\n".join([head, *body, "</body></html>"]) + "\n"


def _html(text: str) -> str:
    return escape(clean(text))


def _html_section(section: Section) -> Iterator[str]:
    yield f"<section><h2>{_html(section.title)}</h2>"
    if isinstance(section, Table):
        yield '<div class="wide"><table>' + _row("th", section.head)
        yield from (_row("td", row) for row in section.rows)
        yield "</table></div>"
    elif isinstance(section, Listing):
        yield "<pre>" + "\n".join(_html(line) for line in section.lines) + "</pre>"
    elif isinstance(section, Statements):
        yield from (_html_entry(text, below) for text, below in section.entries)
    else:
        yield f'<p>{_html(section.sentence)}</p><div class="panels">'
        yield from (f"<div>{svg}</div>" for svg in section.svgs)
        yield "</div>" + _html_list(section.captions)
    note = getattr(section, "note", "")
    yield f'<p class="small">{_html(note)}</p></section>' if note else "</section>"


def _row(tag: str, cells: tuple[str, ...]) -> str:
    return "<tr>" + "".join(f"<{tag}>{_html(cell)}</{tag}>" for cell in cells) + "</tr>"


def _html_entry(text: str, below: tuple[str, ...]) -> str:
    return f"<p>{_html(text)}</p>" + _html_list(below)


def _html_list(lines: tuple[str, ...]) -> str:
    items = "".join(f"<li>{_html(line)}</li>" for line in lines)
    return f'<ul class="small">{items}</ul>' if items else ""
