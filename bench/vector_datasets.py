"""The data sets of the reference vectors: every figure that they expect, found through records, judge and verdict."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from bench import references
from bench.vector_records import SUPERIOR, bracket, fitted, judged, readings, share
from verdict.claims import Claim, ClaimKind, Direction, judge
from verdict.components import best_requests, components, lag1
from verdict.design import design_matrix
from verdict.errors import VerdictError
from verdict.fit import Scale, fit, flag_limit, flagged_boots, session_deltas, studentised_residuals
from verdict.history import (
    History,
    base_disagreement_ln,
    noisy_limit,
    variance_ratio,
    void_threshold_ln,
    worst_drift_bias_ln,
)
from verdict.interval import prompt_se
from verdict.voids import voided_blocks

FILE = Path(__file__).resolve().parent.parent / "tests" / "verdict" / "vectors.json"
Data = Mapping[str, Any]
Leaves = Iterator[tuple[str, Any]]
EIGHT = "ABBABAAB"
GATE = Claim("step_rate", "step_per_s", ClaimKind.superiority, 5.0, Scale.LOG, Direction.HIGHER)


def datasets(vectors: Data) -> Leaves:
    """Every figure of every data set, by its path."""
    for data in vectors["datasets"]:
        for path, value in DATASETS[data["id"].split("_")[0]](data):
            yield f"datasets.{data['id']}.{path}", value


def _ratio(data: Data) -> Leaves:
    """D1, D2, D9, D12, D5c: a bracket of its own variance."""
    letters = data["schedule"]
    more = {"sessions": data["sessions"]} if "sessions" in data else {}
    yield from bracket(data, letters, **more)
    values = readings(data)
    if "sessions" in data:
        deltas = session_deltas(values, letters, data["sessions"], scale=Scale.LOG)
        yield "per_session_delta", list(deltas.values())
        return
    found = fit(values, letters, scale=Scale.LOG)
    yield "externally_studentized_residuals", list(studentised_residuals(found))
    yield "flag_if_abs_gt", flag_limit(found)
    yield "flagged_positions_1based", list(flagged_boots(found))
    if "expected_band_pct" in data:
        claim = SUPERIOR | {"gate_pct": data["gate_pct"], "expect_pct": data["expected_band_pct"]}
        told = judged(claim, letters, values).judgement
        assert told is not None
        yield "estimate_in_band", "band" in (told.expectation or "") and "out" not in (told.expectation or "")
        yield "ci95_inside_band", told.expectation == "confirmed in band"
    if "tost_2pct" in data["expected"]:
        yield from _tost("tost_2pct", found.delta, found.se or 0.0, found.df, Scale.LOG.difference(2.0))


def _tost(path: str, delta: float, se: float, df: float, margin: float) -> Leaves:
    lower, upper = references.tail((delta + margin) / se, df), references.tail((margin - delta) / se, df)
    yield f"{path}.p_lower", lower
    yield f"{path}.p_upper", upper
    yield f"{path}.p", max(lower, upper)


def _drift(data: Data) -> Leaves:
    """D3a and its ABA sisters."""
    if data["id"] != "D3a_drift":
        yield from _screen(data)
        return
    for name, letters in (("sequential_AAAABBBB", "AAAABBBB"), ("interleaved_ABBABAAB", EIGHT)):
        values = np.log(readings(data))
        arms = [np.array([v for v, letter in zip(values, letters, strict=True) if letter == arm]) for arm in "AB"]
        for key, value in zip(("delta", "t", "p", "df"), references.welch(*arms), strict=True):
            yield f"{name}.welch_no_drift_term.{key}", float(value)
        for path, value in bracket({**data, "expected": data["expected"][name]}, letters):
            yield f"{name}.{path.replace('fit.', 'ols_lin.')}", value


def _screen(data: Data) -> Leaves:
    """ABA and ABBA, with and without the host's history."""
    values, letters, was = readings(data), data["schedule"], data["history"]
    history = History(was["s0"], was["nu0"])
    borrowed = {"history": {"sd_pct": 100 * was["s0"], "df": was["nu0"]}}
    found = judge(GATE, values, letters, history=history)
    apart = base_disagreement_ln(values, letters)
    yield "base_disagreement_ln", apart
    yield "void_threshold_ln", void_threshold_ln(history)
    yield "void", bool(voided_blocks(values, letters, len(letters), history))
    yield "worst_case_monotone_drift_bias_ln", worst_drift_bias_ln(values, letters)
    alone = judged(SUPERIOR | {"gate_pct": 5}, letters, values)
    refused = alone.judgement is None or alone.judgement.interval is None
    if refused:
        yield "without_history_error", "no residual df and no history: refuse to give an interval"
    for name in ("fit", "fit_if_not_voided", "moderated"):
        yield from fitted(found, name)
    yield "effect", found.estimate / 100
    yield "ci95", share(found)
    yield "moderated_ci95", share(found)
    for gate in (0, 5):
        word = judged(SUPERIOR | {"gate_pct": gate}, letters, values, **borrowed).judgement
        # a screen is no verdict: what it would promote is what the vectors call PASS
        yield f"verdict_gate_{gate}pct", "PASS" if word and word.screen == "SCREEN-PROMOTE" else "other"
    yield "moderated_verdict_gate_5pct", "PASS" if found.screen == "SCREEN-PROMOTE" else "other"
    own = fit(values, letters, scale=Scale.LOG)
    if own.se:
        yield from _own(own, history)


def _own(own: Any, history: History) -> Leaves:
    """ABBA on its one degree of freedom."""
    t = own.delta / own.se
    for name in ("delta", "v", "se", "slope_per_boot"):
        yield f"own.{name}", getattr(own, name)
    yield "own.df_own", own.own_df
    yield "own.s2_own", own.s2
    yield "own.s2_used", own.s2
    yield "own.df_used", own.df
    yield "own.t", t
    yield "own.p_two_sided", 2 * references.tail(abs(t), own.df)
    reach = references.quantile(0.975, own.df) * own.se
    low, high = (Scale.LOG.effect(own.delta + side * reach) / 100 for side in (-1, 1))
    yield "own_ci95", [low, high]
    yield "own_verdict_gate_5pct", "PASS" if low >= 0.05 else "FAIL" if high < 0.05 else "INCONCLUSIVE"
    yield "moderated.F_vs_history", variance_ratio(own, history)
    yield "moderated.F_crit_99", noisy_limit(own.own_df, history)


def _correlated(data: Data) -> Leaves:
    """D4: requests inside boots are no replicates."""
    values = readings(data)
    yield from bracket(data, data["schedule"])
    yield "boot_metric", values
    rates = [[log_rate(s, t) for s, t in boot] for boot in data["requests_steps_seconds"]]
    arms = [
        np.array([r for boot, a in zip(rates, data["schedule"], strict=True) if a == arm for r in boot]) for arm in "AB"
    ]
    for key, value in zip(("delta", "t", "p", "df"), references.welch(*arms), strict=True):
        yield f"naive_pooled_request_welch.{key}", float(value)
    found = components(rates, list(data["schedule"]))
    rho = float(np.mean([lag1(boot) for boot in rates]))
    n = len(rates[0])
    yield "mean_lag1_acf_within_boot", rho
    yield "n_eff_per_boot_AR1", n * (1 - rho) / (1 + rho)
    t2 = max(0.0, (found.msb - found.msw) / n)
    parts = {"MSB": found.msb, "MSW": found.msw, "T1_sq": found.msw, "T2_sq": t2, "icc": t2 / (t2 + found.msw)}
    yield from ((f"variance_components_arm_centered.{name}", value) for name, value in parts.items())
    yield "optimal_requests_per_boot_cboot240s_creq2s", best_requests(found, 240.0, 2.0)


def log_rate(steps: float, seconds: float) -> float:
    """ln of a request's rate."""
    return float(np.log(steps / seconds))


def _acceptance(data: Data) -> Leaves:
    """D6: percentage points, boots alone and with the prompts' error."""
    if "base_by_prompt" in data:
        yield from _prompts(data)
        return
    values, claim = readings(data), {"kind": "equivalence", "metric": "acceptance_pos1_pp", "margin_pp": 2.0}
    result = judged(claim, data["schedule"], values)
    found = result.judgement
    assert found is not None
    assert found.interval is not None
    yield "acceptance_pp", values
    yield from fitted(found, "fit")
    yield "ci90", [found.interval.lo, found.interval.hi]
    wide = judged(claim, data["schedule"], values, level=0.95).judgement
    assert wide is not None
    assert wide.interval is not None
    yield "ci95", [wide.interval.lo, wide.interval.hi]
    yield from _tost("tost", found.fit.delta, found.fit.se or 0.0, found.fit.df, 2.0)
    yield "verdict", result.verdict.value
    sums = {arm: [0, 0] for arm in "AB"}
    for (accepted, drafts), arm in zip(data["accepted_drafts"], data["schedule"], strict=True):
        sums[arm] = [sums[arm][0] + accepted, sums[arm][1] + drafts]
    yield "pooled_difference_pp", 100 * (sums["B"][0] / sums["B"][1] - sums["A"][0] / sums["A"][1])


def _prompts(data: Data) -> Leaves:
    """D6d: its boots are those of D6a."""
    vectors = json.loads(FILE.read_text(encoding="utf-8"))
    boots = next(d for d in vectors["datasets"] if d["id"] == "D6a_accept_pass")
    apart = [c - b for b, c in zip(data["base_by_prompt"], data["cand_by_prompt"], strict=True)]
    claim = {"kind": "equivalence", "metric": "acceptance_pos1_pp", "margin_pp": data["margin_pp"]}
    result = judged(claim, boots["schedule"], readings(boots), paired_differences=apart)
    found = result.judgement
    assert found is not None
    assert found.error is not None
    assert found.interval is not None
    mean, se = float(np.mean(apart)), prompt_se(apart)
    yield "mean_paired_diff", mean
    yield "se_prompt", found.error.se_prompt
    yield "tost_prompt_only_p", references.tail((2.0 - abs(mean)) / se, len(apart) - 1)
    yield "se_boot", found.error.se_boot
    yield "se_combined", found.error.se
    yield "df_welch_satterthwaite", found.error.df
    yield "delta_boot", found.fit.delta
    yield "ci90_combined", [found.interval.lo, found.interval.hi]
    yield "verdict_combined", result.verdict.value


def _lower(data: Data) -> Leaves:
    """D7: less is better."""
    values, letters = readings(data), data["schedule"]
    claim = {"kind": "non_inferiority", "metric": "tpot_s", "margin_pct": 3.0}
    found = judged(claim, letters, values).judgement
    assert found is not None
    assert found.error is not None
    yield from fitted(found, "fit_raw")
    yield "raw_change", Scale.LOG.effect(found.fit.delta) / 100
    yield "oriented_delta", found.claim.sign * found.fit.delta
    yield "oriented_ci90", [found.error.interval.lo, found.error.interval.hi]
    yield "verdict_noninferior_3pct", judged(claim, letters, values).verdict.value
    yield "verdict_noninferior_1pct", judged(claim | {"margin_pct": 1.0}, letters, values).verdict.value
    less = {"kind": "superiority", "metric": "tpot_s", "gate_pct": 0}
    yield "verdict_superiority_0", judged(less, letters, values).verdict.value


def _looks(data: Data) -> Leaves:
    """D8: one look after another, and the record that holds them all."""
    values, letters = readings(data), data["schedule"]
    for at, look in enumerate(data["expected"]["path"]):
        n = look["boots"]
        once = judged(SUPERIOR | {"gate_pct": 0}, letters[:n], values[:n])
        seen = judged(SUPERIOR | {"gate_pct": 0}, letters[:n], values[:n], level=1 - data["nominal_two_sided"])
        assert once.judgement is not None
        assert seen.judgement is not None
        yield f"path.{at}.boots", n
        yield from fitted(seen.judgement, f"path.{at}.fit")
        yield f"path.{at}.rci", share(seen.judgement)
        yield f"path.{at}.unadjusted_ci95", share(once.judgement)
        yield f"path.{at}.verdict_gate_0pct", seen.verdict.value
        yield f"path.{at}.unadjusted_verdict", once.verdict.value
    stopped = judged(SUPERIOR | {"gate_pct": 0}, letters, values, looks=[8, 12, 16])
    yield "stop_at", stopped.judgement and stopped.judgement.fit.n_boots


def _refused(data: Data) -> Leaves:
    """D10: schedules on which arm and drift are one."""
    for name, wanted in data["expected"].items():
        letters = name.removesuffix("None").split("[")[0]
        sessions = json.loads("[" + name.split("[")[1]) if "[" in name else None
        try:
            design_matrix(letters, sessions)
        except VerdictError as error:
            yield name, wanted if wanted in str(error) else str(error)


def _crosschecks(data: Data) -> Leaves:
    """D11: other methods on the same readings."""
    base, candidate = data["base"], data["cand"]
    for name, value in references.fieller(base, candidate).items():
        yield f"fieller95.{name}", value
    yield "cluster_bootstrap_enumerated_65536.percentile95", list(references.bootstrap(base, candidate))
    yield "permutation_p_two_sided", references.permutation_p(base, candidate)
    yield "permutation_min_attainable_p", references.permutation_p([1, 2, 3, 4], [5, 6, 7, 8])
    yield "sign_flip_p", references.sign_flip_p(data["block_differences_ln"])
    yield "sign_flip_min_attainable_p", references.sign_flip_p([1] * len(data["block_differences_ln"]))


DATASETS = {
    "D1": _ratio, "D2": _ratio, "D3a": _drift, "D3b": _screen, "D3c": _screen, "D4": _correlated, "D5a": _screen,
    "D5b": _screen, "D5c": _ratio, "D6a": _acceptance, "D6b": _acceptance, "D6c": _acceptance, "D6d": _prompts,
    "D7": _lower, "D8": _looks, "D9": _ratio, "D10": _refused, "D11": _crosschecks, "D12": _ratio,
}  # fmt: skip
