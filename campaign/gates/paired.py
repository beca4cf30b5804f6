"""Acceptance prompt by prompt, candidate less base: the second source of error of a claim on it (statistics.md 1.8)."""

import re
from statistics import fmean

from campaign.evidence import BootRecord, DraftCounts, Evidence
from campaign.gates.base import GateResult
from campaign.gates.claimed import judge_claim, unjudged
from campaign.gates.footing import sound
from campaign.names import ACCEPTANCE_ALL_PP, PREFIX_SET
from verdict.claims import Claim

POSITION = re.compile(r"acceptance_pos(\d+)_pp")
MEAN_DIGITS = 9  # of a mean over unequally many boots; equal rates must differ by exactly nothing


def judge_acceptance(gate: str, label: str, name: str, evidence: Evidence) -> GateResult:
    """The registered claim of this name on an acceptance, with the spread of boots and, where counted, of prompts."""
    claim = evidence.claims.get(name)
    if claim is None:
        return unjudged(gate, label, f"no claim is registered as {name}")
    differences = paired_differences(evidence, claim)
    if len(differences) >= 2:
        return judge_claim(gate, claim, evidence, differences)
    alone = judge_claim(gate, claim, evidence)
    details = ("without the spread of the prompts: no counters a prompt", *alone.details)
    return GateResult(**{**vars(alone), "details": details})


def paired_differences(evidence: Evidence, claim: Claim) -> list[float]:
    """Candidate less base in points, a prompt each, of rates averaged over boots."""
    base, candidate = (_prompt_rates(evidence, letter, claim.metric) for letter in "AB")
    return [round(candidate[prompt] - base[prompt], MEAN_DIGITS) for prompt in sorted(base.keys() & candidate.keys())]


def _prompt_rates(evidence: Evidence, letter: str, metric: str) -> dict[str, float]:
    rates: dict[str, list[float]] = {}
    for boot in sound(evidence, letter):
        for prompt, counts in _claimed_prompts(boot).items():
            if (found := _rate(counts, metric)) is not None:
                rates.setdefault(prompt, []).append(found)
    return {prompt: fmean(found) for prompt, found in rates.items()}


def _rate(counts: DraftCounts, metric: str) -> float | None:
    """What the metric is of these counters; None where they do not show it."""
    if metric == ACCEPTANCE_ALL_PP:
        return counts.kept_pp
    position, rates = POSITION.fullmatch(metric), counts.rates_pp()
    return rates[int(position[1]) - 1] if position and len(rates) >= int(position[1]) else None


def _claimed_prompts(boot: BootRecord) -> dict[str, DraftCounts]:
    """The prompts that acceptance is claimed on: where some share a prefix those, on a full cache, and no other."""
    on_a_full_cache = f"{PREFIX_SET}/"
    return {n: c for n, c in boot.by_prompt.items() if boot.prefix is None or n.startswith(on_a_full_cache)}
