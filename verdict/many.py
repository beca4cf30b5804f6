"""Many claims at once: adjusted p-values, the best of several (statistics.md 1.11).

A patch's own gates need none of this: it is accepted when all of them pass, each at its own level.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from scipy.special import stdtr

from verdict.claims import ClaimKind, Judgement
from verdict.design import FloatArray
from verdict.errors import VerdictError
from verdict.words import Verdict

ALPHA = 0.05


class Correction(StrEnum):
    """How the p-values of many claims are adjusted: Holm for what blocks, Benjamini-Hochberg for a watch list."""

    none = "none"
    holm = "holm"
    benjamini_hochberg = "benjamini_hochberg"


def holm(p: Sequence[float]) -> tuple[float, ...]:
    """Holm's adjusted p-values, in the order given: any error among all of them at most alpha."""
    found, n = _checked(p), len(p)
    order = np.argsort(found, kind="stable")
    raised = np.maximum.accumulate((n - np.arange(n)) * found[order])
    return _back(np.minimum(raised, 1.0), order)


def benjamini_hochberg(p: Sequence[float]) -> tuple[float, ...]:
    """Benjamini and Hochberg's adjusted p-values, in the order given: of the hits, at most q are false on average."""
    found, n = _checked(p), len(p)
    order = np.argsort(found, kind="stable")
    scaled = found[order] * n / (np.arange(n) + 1)
    lowered = np.minimum.accumulate(scaled[::-1])[::-1]
    return _back(np.minimum(lowered, 1.0), order)


def _checked(p: Sequence[float]) -> FloatArray:
    found = np.asarray(p, dtype=np.float64)
    if not ((found >= 0) & (found <= 1)).all():
        raise VerdictError(f"a p-value lies between 0 and 1, found {found.tolist()}")
    return found


def _back(ordered: FloatArray, order: np.ndarray) -> tuple[float, ...]:
    found = np.empty_like(ordered)
    found[order] = ordered
    return tuple(found.tolist())


@dataclass(frozen=True)
class PValues:
    """How surprising a claim's readings are, scaled so that both are compared with the same alpha of 0.05.

    `passing` where the claim does not hold, `failing` where it does. Of superiority each is twice the one-sided p, as
    its interval has 2.5 % on each side; of a margin it is the one-sided p. A planned look has a stricter level than a
    single one, and its p is larger by that ratio (0.05 to 0.022: 2.3). At the 1 % of a family of five it would have to
    be 9 % larger still (1.5 million simulated sessions, normal theory, looks on .5, .75 and 1).
    """

    passing: float
    failing: float


def p_values(found: Judgement) -> PValues:
    """Those of a judged claim. Raises VerdictError where it has no error bar, or readings that never vary."""
    if found.error is None or found.error.se == 0:
        raise VerdictError(f"claim {found.claim.name} has no error bar, so it has no p-value; leave it out of the many")
    claim, bar = found.claim, found.error
    bound, delta = claim.scale.difference(claim.bound), claim.sign * found.fit.delta
    over, under = ((delta - at) / bar.se for at in (bound, -bound))
    passing, failing = _raw(claim.kind, over, under, bar.df)
    stricter = (1 - claim.kind.level) / (1 - found.level)
    return PValues(min(1.0, stricter * passing), min(1.0, stricter * failing))


def _raw(kind: ClaimKind, over: float, under: float, df: float) -> tuple[float, float]:
    """p of passing and of failing, of a single look; over and under are t against the bound and against minus it."""
    if kind is ClaimKind.superiority:
        return 2 * _above(over, df), 2 * _above(-over, df)
    if kind is ClaimKind.non_inferiority:
        return _above(under, df), _above(-under, df)
    if kind is ClaimKind.equivalence:
        return max(_above(under, df), _above(-over, df)), min(_above(over, df), _above(-under, df))
    return 1.0, 2 * _above(abs(over), df)


def _above(t: float, df: float) -> float:
    return float(stdtr(df, -t))


@dataclass(frozen=True)
class Adjusted:
    """A claim's verdict among many: from its adjusted p-values, never from the raw ones."""

    judgement: Judgement
    correction: Correction
    p: PValues
    verdict: Verdict


def among_many(judgements: Sequence[Judgement], correction: Correction, alpha: float = ALPHA) -> tuple[Adjusted, ...]:
    """Each claim's verdict, made again from the p-values adjusted over all of them; in the order given.

    PASS and FAIL are one family each. A verdict that stood for another reason than its interval (a screen, an estimate
    above the ceiling) stays INCONCLUSIVE. Raises VerdictError as p_values does.
    """
    raw = [p_values(found) for found in judgements]
    passing = _adjusted([p.passing for p in raw], correction)
    failing = _adjusted([p.failing for p in raw], correction)
    found = [PValues(*pair) for pair in zip(passing, failing, strict=True)]
    return tuple(
        Adjusted(judgement, correction, p, _verdict(judgement, p, alpha))
        for judgement, p in zip(judgements, found, strict=True)
    )


def _adjusted(p: Sequence[float], correction: Correction) -> tuple[float, ...]:
    if correction is Correction.none:
        return tuple(p)
    return holm(p) if correction is Correction.holm else benjamini_hochberg(p)


def _verdict(found: Judgement, p: PValues, alpha: float) -> Verdict:
    """Adjusting can only take a verdict back."""
    if found.verdict is Verdict.INCONCLUSIVE:
        return found.verdict
    if found.claim.kind is ClaimKind.no_difference:
        return Verdict.FAIL if p.failing < alpha else Verdict.PASS
    if found.verdict is Verdict.PASS:
        return Verdict.PASS if p.passing <= alpha else Verdict.INCONCLUSIVE
    return Verdict.FAIL if p.failing <= alpha else Verdict.INCONCLUSIVE


# the best of several


@dataclass(frozen=True)
class Winner:
    """The best of several candidates, which owes its place in part to luck: it has no effect that may be quoted."""

    name: str
    of: int


@dataclass(frozen=True)
class Confirmed:
    """What may be quoted of a winner: the bracket of fresh boots that was run once it had been chosen."""

    winner: Winner
    judgement: Judgement

    @property
    def verdict(self) -> Verdict:
        """That of the confirmation alone."""
        return self.judgement.verdict


def best(judgements: Mapping[str, Judgement]) -> Winner:
    """The candidate with the best estimate, in its claim's direction. Raises VerdictError under two of them."""
    if len(judgements) < 2:
        raise VerdictError(f"the best of several takes two or more, found {len(judgements)}; judge the one by itself")
    return Winner(max(judgements, key=lambda name: judgements[name].estimate), len(judgements))


def confirmed(winner: Winner, selection_runs: Sequence[str], run: str, judgement: Judgement) -> Confirmed:
    """The winner with the bracket that confirms it. Raises VerdictError for boots that had helped to choose it."""
    if run in selection_runs:
        raise VerdictError(
            f"{winner.name} was chosen among {winner.of} by run {run}, whose boots cannot confirm it; run a new bracket"
        )
    return Confirmed(winner, judgement)
