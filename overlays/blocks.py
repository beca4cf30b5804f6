"""Which blocks of a Python text a line stands in: a hunk that lands in another function is one to look at."""

import ast
from collections.abc import Sequence
from dataclasses import replace

from overlays.merge import SHOWN_LINES, Carried, Fate, applied
from overlays.patch import lines

NAMED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
HEADS = ("test", "target", "iter", "type", "subject", "pattern")
Block = ast.stmt | ast.excepthandler | ast.match_case
Homes = tuple[tuple[str, ...], ...]  # of each line of a hunk


def in_place(hunks: Sequence[Carried], was: str, later: str) -> list[Carried]:
    """The hunks of a .py file; one whose lines land in another function, or under another condition, is to look at."""
    before = _homes(hunks, was, [hunk.change.start for hunk in hunks])
    after = _homes(hunks, later, [hunk.to for hunk in hunks])
    if before is None or after is None:
        return list(hunks)  # what does not parse is told by the one who merges
    return [
        hunk if old == new else _elsewhere(hunk, old, new, lines(was), lines(later))
        for hunk, old, new in zip(hunks, before, after, strict=True)
    ]


def around(tree: ast.Module, line: int) -> tuple[str, ...]:
    """The blocks that hold `line` (from 0) and the part of each (body, orelse), outermost first."""
    found: list[str] = []
    node: ast.AST = tree
    while step := _within(node, line + 1):
        part, node = step
        found.append(part)
        if not hasattr(node, "body"):
            break
        found.append(_head(node))
    return tuple(found)


def _within(node: ast.AST, line: int) -> tuple[str, ast.AST] | None:
    for part, value in ast.iter_fields(node):
        for child in value if isinstance(value, list) else ():
            if isinstance(child, Block) and _first(child) <= line <= _last(child):
                return part, child
    return None


def _first(block: Block) -> int:
    if isinstance(block, ast.match_case):
        return block.pattern.lineno
    decorators: list[ast.expr] = getattr(block, "decorator_list", [])
    return min([block.lineno, *(one.lineno for one in decorators)])


def _last(block: Block) -> int:
    end = block.body[-1].end_lineno if isinstance(block, ast.match_case) else block.end_lineno
    return end or _first(block)


def _head(block: ast.AST) -> str:
    """What names the block: a function by its name, whatever its parameters; an if, a loop, a with by its header."""
    if isinstance(block, NAMED):
        return f"{'class' if isinstance(block, ast.ClassDef) else 'def'} {block.name}"
    heads = [getattr(block, name, None) for name in HEADS] + list(getattr(block, "items", ()))
    told = " ".join(ast.unparse(head) for head in heads if isinstance(head, ast.AST))
    return f"{type(block).__name__.lower()} {told}".strip()


def _homes(hunks: Sequence[Carried], text: str, places: Sequence[int]) -> list[Homes] | None:
    """Where each hunk's lines stand, made at `places` of `text`: those it adds, or else those it takes away."""
    there = [replace(hunk, to=place) for hunk, place in zip(hunks, places, strict=True)]
    bare, made = _parsed(text), _parsed(applied(there, text))
    if bare is None or made is None:
        return None
    found: list[Homes] = []
    longer = 0
    for hunk in there:
        added, removed = (len(side) for side in (hunk.change.added, hunk.change.removed))
        tree, first, size = (made, hunk.to + longer, added) if added else (bare, hunk.to, removed)
        found.append(tuple(around(tree, first + line) for line in range(size)) if hunk.fate.carried else ())
        longer += added - removed if hunk.fate.carried else 0
    return found


def _parsed(text: str) -> ast.Module | None:
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError):  # ValueError: a null character
        return None


def _elsewhere(hunk: Carried, old: Homes, new: Homes, was: list[str], later: list[str]) -> Carried:
    home, place = next((one, other) for one, other in zip(old, new, strict=True) if one != other)
    why = f"written for {_told(home)}, and now in {_told(place)}"
    change = hunk.change
    above, below = was[max(0, change.start - SHOWN_LINES) : change.start], was[change.end : change.end + SHOWN_LINES]
    theirs = later[max(0, hunk.to - SHOWN_LINES) : hunk.to + len(change.removed) + SHOWN_LINES]
    return Carried(
        change, Fate.look, hunk.to, hunk.ours or (*above, *change.added, *below), hunk.theirs or tuple(theirs), why
    )


def _told(home: tuple[str, ...]) -> str:
    return ", ".join(part for part in home if part != "body") or "the module itself"
