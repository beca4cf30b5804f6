"""A finished bracket into the noise registry: its residuals, and where they come from (statistics.md 1.10, 1.12)."""

import json
import time
from collections.abc import Iterable
from dataclasses import dataclass
from math import log
from pathlib import Path
from statistics import fmean

from campaign.evidence import BootRecord, Evidence
from campaign.gates.base import GateResult
from campaign.gates.footing import boot_name
from campaign.host.registry import DIFFERS, SAME, Row, add, key_of
from campaign.journal import RunFolder
from campaign.names import DECODE_SET, STEP_PER_S
from campaign.planning.plan import Plan
from verdict.claims import ClaimKind, Judgement
from verdict.components import Components, best_requests, components
from verdict.errors import VerdictError
from verdict.fit import ErrorBar, Fit
from verdict.words import Verdict

VALID = (Verdict.PASS, Verdict.FAIL, Verdict.INCONCLUSIVE)
CAME_OUT = {Verdict.PASS: SAME, Verdict.FAIL: DIFFERS}  # a screen could not have differed, so it says neither


@dataclass(frozen=True)
class Within:
    """What the requests of a bracket say: its components, and how many requests a boot make the most of the time."""

    found: Components
    best: float | None


def feed(plan: Plan, folder: RunFolder, evidence: Evidence, results: Iterable[GateResult], verdict: Verdict) -> str:
    """The bracket into host.registry, once; a sentence where that did not work, else empty.

    Only what measured the host: all boots gave data, none failed or was not what was asked, and speeds that count.
    """
    file = plan.campaign.host.registry
    if file is None or not _counts(evidence, verdict):
        return ""
    judged = [found for result in results for found in (result.judgement, *result.others) if found is not None]
    rows = {found.claim.metric: _row(plan, folder, evidence, found) for found in judged}  # readings count once
    try:
        add(Path(file), [row for row in rows.values() if row is not None])
    except OSError as error:
        return f"host.registry: {file} cannot be written ({error.strerror}); this bracket's noise is not in it"
    return ""


def _counts(evidence: Evidence, verdict: Verdict) -> bool:
    bad = any(boot.status in ("failed", "invalid") for boot in evidence.boots)
    return verdict in VALID and not bad and not evidence.logic_only


def _row(plan: Plan, folder: RunFolder, evidence: Evidence, judgement: Judgement) -> Row | None:
    """None for a bracket without a degree of freedom of its own."""
    own, claim = judgement.fit, judgement.claim
    if own.own_df < 1:
        return None
    rss = _rss(own)
    within = _within(folder, evidence) if claim.metric == STEP_PER_S else None
    return Row(
        key=key_of(plan.campaign, plan.prompts[DECODE_SET], claim.metric),
        run_id=plan.run_id,
        time_unix_s=round(time.time(), 3),
        schedule=judgement.letters,
        rss=rss,
        df=own.own_df,
        s2=rss / own.own_df,
        slope=own.slope_per_boot,
        requests=within.found.requests if within else None,
        sigma_w=within.found.within_sd if within else None,
        sigma_boot=within.found.between_sd if within else None,
        rho=within.found.rho if within else None,
        best_requests=within.best if within else None,
        aa=CAME_OUT.get(judgement.verdict) if claim.kind is ClaimKind.no_difference else None,
    )


def _rss(fit: Fit) -> float:
    """Of the boots' own residuals, whatever error bar was borrowed."""
    if fit.error_bar is ErrorBar.BORROWED or fit.s2 is None:
        return sum(residual**2 for residual in fit.residuals)
    return fit.s2 * fit.own_df


def _within(folder: RunFolder, evidence: Evidence) -> Within | None:
    """By the samples on disk, a prompt's own speed taken off: it is no noise. None where a boot has too few."""
    boots = [boot for boot in evidence.boots if boot.status == "ok"]
    rates = [ln_rates(folder.boot(boot_name(boot)) / "samples.jsonl") for boot in boots]
    try:
        found = components(_by_prompt(rates), [boot.arm for boot in boots])
    except VerdictError:
        return None
    return Within(found, best_requests(found, *_costs(boots, found.requests)))


def ln_rates(file: Path) -> list[float]:
    """ln of each request's decode steps a second by the client's clock, in the order they were sent."""
    try:
        samples = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
        seconds = [(s["chunk_ns"][-1] - s["chunk_ns"][0]) / 1e9 for s in samples]
        return [log((len(s["chunk_ns"]) - 1) / t) for s, t in zip(samples, seconds, strict=True)]
    except (OSError, ValueError, KeyError, IndexError, TypeError, ZeroDivisionError):
        return []


def _by_prompt(rates: list[list[float]]) -> list[list[float]]:
    if len({len(boot) for boot in rates}) != 1:
        return [[]]
    usual = [fmean(place) for place in zip(*rates, strict=True)]
    return [[x - mean for x, mean in zip(boot, usual, strict=True)] for boot in rates]


def _costs(boots: list[BootRecord], requests: int) -> tuple[float, float]:
    """Seconds of a boot besides its window, and of a request."""
    windows = [boot.seconds.get("window", 0.0) for boot in boots]
    totals = [boot.seconds.get("total", 0.0) for boot in boots]
    return max(0.0, fmean(totals) - fmean(windows)), fmean(windows) / requests
