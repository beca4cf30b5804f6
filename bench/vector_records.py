"""Every bracket of the reference vectors as a bracket record, judged the way `inspect` judges one."""

from collections.abc import Iterator, Mapping
from typing import Any

from scipy.special import stdtr

from campaign.gates.base import GateResult
from campaign.told import record
from campaign.told.rejudge import rejudged
from verdict.claims import Judgement

Data = Mapping[str, Any]
Leaves = Iterator[tuple[str, Any]]
SUPERIOR = {"kind": "superiority", "metric": "step_per_s"}


def judged(claim: Data, letters: str, readings: list[float], **more: Any) -> GateResult:
    """A claim over readings, as a record that is written, read and judged again."""
    named = {"name": "step_rate"} | dict(claim)
    return rejudged(
        record.read({"schema": 1, "claim": named, "letters": letters, "readings": readings} | more, "vector")
    )


def readings(data: Data) -> list[float]:
    """The boots' readings of a data set, one a boot: totals over requests, or rates in points."""
    if "accepted_drafts" in data:
        return [100 * accepted / drafts for accepted, drafts in data["accepted_drafts"]]
    if "requests_steps_seconds" in data:
        return [sum(s for s, _ in boot) / sum(t for _, t in boot) for boot in data["requests_steps_seconds"]]
    return list(data["boot_metric"])


def bracket(data: Data, letters: str, prefix: str = "", **more: Any) -> Leaves:
    """Fit, interval and verdicts of a ratio metric, by the names of the vectors."""
    values, want = readings(data), data["expected"]
    plain = judged(SUPERIOR | {"gate_pct": 0}, letters, values, **more)
    found = plain.judgement
    assert found is not None
    yield from fitted(found, f"{prefix}fit")
    yield f"{prefix}effect", found.estimate / 100
    yield f"{prefix}ci95", share(found)
    yield f"{prefix}mde80", found.mde and found.mde / 100
    narrow = judged({"kind": "equivalence", "metric": "step_per_s", "margin_pct": 2}, letters, values, **more).judgement
    assert narrow is not None
    yield f"{prefix}ci90", share(narrow)
    for key in want:
        if key.startswith("verdict_gate_"):
            gate = float(key.removeprefix("verdict_gate_").removesuffix("pct"))
            yield f"{prefix}{key}", judged(SUPERIOR | {"gate_pct": gate}, letters, values, **more).verdict.value
        if key.startswith("equivalence_"):
            margin = float(key.removeprefix("equivalence_").removesuffix("pct"))
            claim = {"kind": "equivalence", "metric": "step_per_s", "margin_pct": margin}
            yield f"{prefix}{key}", judged(claim, letters, values, **more).verdict.value


def fitted(found: Judgement, where: str) -> Leaves:
    """A fit by the names of the vectors."""
    fit = found.fit
    yield f"{where}.delta", fit.delta
    yield f"{where}.v", fit.v
    yield f"{where}.df_own", fit.own_df
    yield f"{where}.s2_own", sum(r * r for r in fit.residuals) / fit.own_df if fit.own_df else None
    yield f"{where}.slope_per_boot", fit.slope_per_boot
    yield f"{where}.s2_used", fit.s2
    yield f"{where}.df_used", fit.df
    yield f"{where}.se", fit.se
    if fit.se:
        t = fit.delta / fit.se
        yield f"{where}.t", t
        yield f"{where}.p_two_sided", float(2 * stdtr(fit.df, -abs(t)))


def share(found: Judgement) -> list[float]:
    """An interval in per cent as a share."""
    assert found.interval is not None
    return [found.interval.lo / 100, found.interval.hi / 100]
