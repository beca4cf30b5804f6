"""What a full prefix cache does to drafting within one arm: the cold pass against the warm one, by position (C6).

A drafter that reads KV which no hit ever wrote shows it here and nowhere else: texts stay equal, and a mean over all
requests hides it.
"""

from collections.abc import Callable, Iterator

from campaign.evidence import BootRecord, Evidence, PrefixFacts, PrefixPass, pooled
from campaign.gates.chain import Conditional, Together, chain, is_shown_under, is_thin, is_under, limit_text, totals
from campaign.gates.footing import ARM_OF, sound


def lines(evidence: Evidence, min_reached: int) -> Iterator[str]:
    """Acceptance of both passes beside their hit shares, an arm a line; nothing without a shared prefix."""
    for letter, arm in ARM_OF.items():
        cold, warm = _passes(evidence, letter)
        if cold is None or warm is None:
            continue
        pairs = zip(chain(cold), chain(warm), strict=False)
        each = [_position(p, *pair, min_reached) for p, pair in enumerate(pairs, start=1)]
        yield f"{arm}, prefix cache cold -> warm, hits {hits(evidence, letter)}: {', '.join(each)}"


def _position(position: int, cold: Conditional, warm: Conditional, min_reached: int) -> str:
    given = f"pos{position}" if position == 1 else f"pos{position} given pos{position - 1}"
    thin = " (thin)" if is_thin(cold, warm, min_reached) else ""
    return f"{given} {cold.text} -> {warm.text}{thin}"


def collapsed(evidence: Evidence, ratio: float, min_reached: int) -> str:
    """The first position whose rate the candidate's hits are shown to push under `ratio` of its own cold one."""
    return next((told for shown, told in _low(evidence, ratio, min_reached) if shown), "")


def doubted(evidence: Evidence, ratio: float, min_reached: int) -> str:
    """The first position that is seen so low on a full cache, by too few drafts to show it."""
    found = (told for shown, told in _low(evidence, ratio, min_reached) if not shown)
    return next((f"neither shown nor excluded that {told}" for told in found), "")


def _low(evidence: Evidence, ratio: float, min_reached: int) -> Iterator[tuple[bool, str]]:
    """The candidate's positions that are seen under the limit: whether that is shown, and where."""
    cold, warm = _passes(evidence, "B")
    if cold is None or warm is None:
        return
    for position, (ours, theirs) in enumerate(zip(chain(cold), chain(warm), strict=False), start=1):
        if is_thin(ours, theirs, min_reached) or not is_under(ours, theirs, ratio):
            continue
        given = f"pos{position}" if position == 1 else f"pos{position} given pos{position - 1}"
        limit = limit_text(ours, theirs, ratio).replace("of base", "of the cold pass")
        told = (
            f"acceptance collapses with the hit share ({hits(evidence, 'B')} of the tokens looked up): "
            f"{given} {theirs.text} from a full prefix cache, {ours.text} from an emptied one, {limit}"
        )
        yield is_shown_under(ours, theirs, ratio), told


def follows(evidence: Evidence) -> str:
    """That what the candidate lost against base it lost with the hits: its cold pass is nearer to base; else empty."""
    base, _ = _passes(evidence, "A")
    cold, warm = _passes(evidence, "B")
    if base is None or cold is None or warm is None:
        return ""
    first = [rates[0] for rates in (base.rates_pp(), cold.rates_pp(), warm.rates_pp()) if rates]
    if len(first) < len(("base", "cold", "warm")) or not abs(first[1] - first[0]) < first[0] - first[2]:
        return ""
    return f"it falls with the hit share ({hits(evidence, 'B')}): pos1 {first[1]:.1f} % cold, {first[2]:.1f} % warm"


def lengths(evidence: Evidence) -> Iterator[str]:
    """Tokens a step of both passes, an arm a line."""
    for letter, arm in ARM_OF.items():
        cold, warm = _passes(evidence, letter)
        if cold is not None and warm is not None:
            yield f"{arm} {cold.acceptance_length:.3f} tokens a step cold, {warm.acceptance_length:.3f} warm"


def hits(evidence: Evidence, letter: str) -> str:
    """Hit shares of an arm, cold and warm, in words."""
    counted = all(one.queries is not None for boot in sound(evidence, letter) for one in _both(boot))
    none = "nothing looked up" if counted else "not counted"
    shown = [none if one is None else f"{one:.1f} %" for one in shares(evidence, letter).values()]
    return " -> ".join(dict.fromkeys(shown)) if none in shown else " -> ".join(shown)


def _both(boot: BootRecord) -> tuple[PrefixPass, ...]:
    return (boot.prefix.cold, boot.prefix.warm) if boot.prefix else ()


def shares(evidence: Evidence, letter: str) -> dict[str, float | None]:
    """Pass -> hits per token looked up of an arm's boots together, in per cent; None where they are not counted."""
    facts = [boot.prefix for boot in sound(evidence, letter) if boot.prefix]
    return {"cold": _share([one.cold for one in facts]), "warm": _share([one.warm for one in facts])}


def _share(found: list[PrefixPass]) -> float | None:
    queries = sum(one.queries or 0 for one in found)
    return 100.0 * sum(one.hits or 0 for one in found) / queries if queries else None


def _passes(evidence: Evidence, letter: str) -> tuple[Together | None, Together | None]:
    boots = sound(evidence, letter)
    return _together(boots, lambda facts: facts.cold), _together(boots, lambda facts: facts.warm)


def _together(boots: tuple[BootRecord, ...], pick: Callable[[PrefixFacts], PrefixPass]) -> Together | None:
    """All prompts of a pass, over boots; nothing where nothing was drafted."""
    found = [pick(boot.prefix) for boot in boots if boot.prefix]
    each = [counts for one in found if (counts := pooled(one.counts.values())) and counts.drafts]
    return totals(each, max((one.rounds for one in found), default=1))
