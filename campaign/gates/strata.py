"""Acceptance within a boot: by the context's length, cold beside warm, and from the window's first part to its last.

All of it is counted by the streams' chunks (traffic/timing.py), another estimator than the counters' differences, so
it is compared with itself only: arm with arm, part with part.
"""

import re
from collections.abc import Iterator

from campaign.evidence import DraftCounts, Evidence
from campaign.gates.chain import (
    Conditional,
    Together,
    chain,
    collapse,
    doubt,
    is_shown_under,
    is_thin,
    is_under,
    limit_text,
    same_length,
    totals,
)
from campaign.gates.footing import ARM_OF, boot_name, sound

STRATUM = re.compile(r"context (\d+)")
SLIDE_PCT = 5.0  # by which the acceptance length may fall within a window, unremarked (cases C11)
HOW = "by the streams' chunks"


def collapsed(evidence: Evidence, ratio: float, min_reached: int) -> str:
    """The first context at which the candidate's chain collapses, or pos1 falls under `ratio` of base's; else empty."""
    for name, base, candidate, ours, theirs in _judged(evidence, min_reached):
        if is_under(ours, theirs, ratio) and is_shown_under(ours, theirs, ratio):
            return f"collapse at {_tokens(name)}: {_pos1(ours, theirs, ratio)}"
        if found := collapse(base, candidate, ratio, min_reached):
            return f"at {_tokens(name)}: {found} ({HOW})"
    return ""


def doubted(evidence: Evidence, ratio: float, min_reached: int) -> str:
    """The first context at which a collapse is seen and not shown; else empty."""
    for name, base, candidate, ours, theirs in _judged(evidence, min_reached):
        if is_under(ours, theirs, ratio):
            return f"a collapse at {_tokens(name)} is neither shown nor excluded: {_pos1(ours, theirs, ratio)}"
        if found := doubt(base, candidate, ratio, min_reached):
            return f"at {_tokens(name)}: {found} ({HOW})"
    return ""


def _judged(evidence: Evidence, min_reached: int) -> Iterator[tuple[str, Together, Together, Conditional, Conditional]]:
    """The contexts with enough drafts: both arms, and pos1 of each."""
    for name in _strata(evidence):
        base, candidate = _both(evidence, name)
        firsts = zip(chain(base)[:1], chain(candidate)[:1], strict=True)
        yield from ((name, base, candidate, o, t) for o, t in firsts if not is_thin(o, t, min_reached))


def _pos1(ours: Conditional, theirs: Conditional, ratio: float) -> str:
    return f"pos1 {theirs.text}, base {ours.text}, {limit_text(ours, theirs, ratio)} ({HOW})"


def lines(evidence: Evidence, min_reached: int) -> Iterator[str]:
    """Each context with both arms, each with its counts; cold and warm; and what slid within a window."""
    for name in _strata(evidence):
        base, candidate = _both(evidence, name)
        thin = min(c.drafts // c.repeats for c in (base, candidate)) < min_reached
        judged = f", thin: not judged under {min_reached} drafts that are no repeats" if thin else ""
        yield f"pos1 at {_tokens(name)} ({HOW}): base {_first(base)}, candidate {_first(candidate)}{judged}"
    for letter, arm in ARM_OF.items():
        told = [(name, _total(evidence, letter, name)) for name in ("cold", "warm up", "first", "last")]
        words = [f"{_called(name)} {_length(counts)}" for name, counts in told if counts is not None and counts.drafts]
        if words:
            yield f"tokens a step of {arm} ({HOW}): {', '.join(words)}"
    yield from _slides(evidence)


def _slides(evidence: Evidence) -> Iterator[str]:
    """Boots whose acceptance fell within the window: the same prompts again, so the text is no excuse (cases C11)."""
    told = []
    for boot in sound(evidence):
        lengths = [boot.counted[part].acceptance_length for part in ("first", "last") if part in boot.counted]
        if len(lengths) < len(("first", "last")) or None in lengths:
            continue
        first, last = (length or 1.0 for length in lengths)
        if 100 * (1 - last / first) > SLIDE_PCT:
            told.append(f"boot {boot_name(boot)} {first:.3f} to {last:.3f}")
    if told:
        why = "an engine measured late is not one measured fresh"
        yield f"acceptance slides within the window, tokens a step {HOW}: {', '.join(told)}; {why}"


def _strata(evidence: Evidence) -> list[str]:
    found = {name for boot in sound(evidence) for name in boot.counted if STRATUM.match(name)}
    return sorted(found, key=lambda name: int(STRATUM.findall(name)[0]))


def _both(evidence: Evidence, name: str) -> tuple[Together, Together]:
    base, candidate = (_total(evidence, letter, name) or Together(0, (0,)) for letter in "AB")
    return same_length(base, candidate)


def _total(evidence: Evidence, letter: str, name: str) -> Together | None:
    found = (boot.counted[name] for boot in sound(evidence, letter) if name in boot.counted)
    return totals(found, evidence.turns)


def _first(counts: DraftCounts) -> str:
    return Conditional(counts.accepted[0], counts.drafts).text if counts.drafts else "no draft"


def _length(counts: DraftCounts) -> str:
    return f"{counts.acceptance_length:.3f} ({counts.drafts} drafts)"


def _called(name: str) -> str:
    return {"cold": "cold request", "first": "first part of the window", "last": "last part"}.get(name, name)


def _tokens(name: str) -> str:
    return f"{name} tokens"
