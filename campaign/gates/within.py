"""What may have happened within the windows that a speed is made of: drift, a prefix cache that was read unequally."""

from collections.abc import Iterator
from math import exp, log, sqrt
from statistics import fmean, variance

from campaign.evidence import BootRecord, Evidence
from campaign.gates.footing import boot_name, sound
from campaign.names import (
    ACCEPTANCE_LENGTH,
    PREFIX_HIT_PCT,
    STEADY_AFTER_WARM_UP,
    TOK_PER_S,
    TPOT_S,
    WARM_UP_REQUESTS,
    WINDOW_FIRST_STEP_PER_S,
    WINDOW_LAST_STEP_PER_S,
)
from verdict.student import two_sided_t

LEVEL = 0.99  # of the intervals that tell a drift from chance
SDS = 2.0  # of a boot on this host, by which a window may fall


def hits_apart(evidence: Evidence, limit_pp: float) -> str:
    """The boots whose windows read the prefix cache unequally (cases D1), one sentence; empty where they are alike.

    The prompts are the same in every boot, so that a share of hits that differs is another work measured.
    """
    found = [(boot.metrics[PREFIX_HIT_PCT], boot) for boot in sound(evidence) if PREFIX_HIT_PCT in boot.metrics]
    if not found:
        return ""
    (least, low), (most, high) = (pick(found, key=lambda row: row[0]) for pick in (min, max))
    if most - least <= limit_pp:
        return ""
    return (
        f"prefix-cache hits differ: {least:.1f} % of the window's tokens in boot {boot_name(low)}, {most:.1f} % in "
        f"boot {boot_name(high)} (limit {limit_pp:g} points); reset the cache, switch it off, or use other seeds"
    )


def drift(evidence: Evidence, limit_pct: float) -> str:
    """Why windows drift too much for a speed claim, one sentence; empty where they do not (cases D14).

    In all boots each fell by more than the limit, or than twice the sd of a boot on this host, and their mean not by
    chance (of a duet this is left out: what falls for both of a pair cancels); or the arms drift apart by more than the
    limit, and not by chance.
    """
    moves = {boot.index: _move_ln(boot) for boot in sound(evidence)}
    known = [(boot, moves[boot.index] or 0.0) for boot in sound(evidence) if moves[boot.index] is not None]
    if not known or len(known) < len(moves):
        return ""
    limit = drift_limit_ln(evidence, limit_pct)
    falls = [move for _, move in known]
    if max(falls) < -limit and not _by_chance(falls) and not any(boot.pair for boot, _ in known):
        mean = 100 * (exp(fmean(falls)) - 1)
        return f"drift within the window: {mean:+.1f} % step/s from first part to last, in all {len(known)} boots"
    arms = [[move for boot, move in known if boot.letter == letter] for letter in "AB"]
    apart = _apart(arms[0], arms[1])
    if apart is None or abs(apart) <= limit:
        return ""
    base, candidate = (f"{100 * (exp(fmean(own)) - 1):+.1f} %" for own in arms)
    return f"drift within the window differs: step/s from first part to last, base {base}, candidate {candidate}"


def drift_limit_ln(evidence: Evidence, limit_pct: float) -> float:
    """By how much a window may fall, in ln: the gate's limit, or twice the sd of a boot where that is more."""
    return max(-log(1 - limit_pct / 100), SDS * evidence.history.s0 if evidence.history else 0.0)


def _by_chance(falls: list[float]) -> bool:
    """Whether a 99 % t interval of the mean holds 0: a few boots on a restless machine fall together now and then."""
    if len(falls) < len(("one", "two")):
        return True
    reach = two_sided_t(LEVEL, len(falls) - 1) * sqrt(variance(falls) / len(falls))
    return abs(fmean(falls)) <= reach


def _apart(base: list[float], candidate: list[float]) -> float | None:
    """Candidate's mean less base's, where a 99 % t interval leaves 0 out; None where it does not."""
    df = len(base) + len(candidate) - 2
    if min(len(base), len(candidate)) < len(("one", "two")):
        return None
    pooled = ((len(base) - 1) * variance(base) + (len(candidate) - 1) * variance(candidate)) / df
    found = fmean(candidate) - fmean(base)
    reach = two_sided_t(LEVEL, df) * sqrt(pooled * (1 / len(base) + 1 / len(candidate)))
    return found if abs(found) > reach else None


def remarks(evidence: Evidence, limit_pct: float) -> Iterator[str]:
    """The boots whose window fell by more than the limit, which alone is no reason against the claim."""
    told = []
    for boot in sound(evidence):
        move = _move_ln(boot)
        if move is not None and move < log(1 - limit_pct / 100):
            first, last = boot.metrics[WINDOW_FIRST_STEP_PER_S], boot.metrics[WINDOW_LAST_STEP_PER_S]
            told.append(f"boot {boot_name(boot)} {first:.1f} to {last:.1f} ({100 * (exp(move) - 1):+.1f} %)")
    if told:
        yield f"drift within the window, step/s from first part to last by the client's clock: {', '.join(told)}"


def warmth(evidence: Evidence) -> Iterator[str]:
    """Boots that were measured although their warm-up never got steady, and warm-ups of unequal length (cases D8)."""
    boots = sound(evidence)
    restless = [boot_name(boot) for boot in boots if boot.facts.get(STEADY_AFTER_WARM_UP) == "false"]
    if restless:
        yield f"not steady after the warm-up: boot {', '.join(restless)}; a drift within the window would show it"
    sent = {boot.facts[WARM_UP_REQUESTS] for boot in boots if WARM_UP_REQUESTS in boot.facts}
    if len(sent) > 1:
        yield f"warm-up requests thrown away differ between boots: {', '.join(sorted(sent, key=int))}"


def at_length(metric: str, evidence: Evidence) -> str:
    """What stands beside every tok/s, which the text prices as much as the engine does (cases D11); else empty."""
    if metric not in (TOK_PER_S, TPOT_S):
        return ""
    arms = [[b.metrics[ACCEPTANCE_LENGTH] for b in sound(evidence, x) if ACCEPTANCE_LENGTH in b.metrics] for x in "AB"]
    told = [f"{fmean(own):.2f}" if own else "unknown" for own in arms]
    return f"   at {told[0]} (base) and {told[1]} (candidate) tokens a step"


def _move_ln(boot: BootRecord) -> float | None:
    """ln of the last part's step/s over the first's; None without two rates over 0."""
    first, last = (boot.metrics.get(name, 0.0) for name in (WINDOW_FIRST_STEP_PER_S, WINDOW_LAST_STEP_PER_S))
    return log(last / first) if min(first, last) > 0 else None
