"""The tables of the reference vectors, computed anew: by the product's functions where it has them."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from bench import references
from verdict import looks
from verdict.claims import ClaimKind, decide
from verdict.history import History, void_threshold_ln
from verdict.many import benjamini_hochberg, holm
from verdict.power import design_df, design_v, half_width, mde, mde_pct, superiority_power, tost_power
from verdict.proportions import (
    chance_of_seeing_one,
    difference_bounds,
    fisher_exact_p,
    lower_bound,
    mcnemar_exact_p,
    n_eff,
    two_sided_bounds,
    upper_bound,
    zero_failures_needed,
)
from verdict.registry import aa_calibration, aa_limit

Data = Mapping[str, Any]
Leaves = Iterator[tuple[str, Any]]
KNOWN_SD_DF = 10**10  # "known": a variance on as many degrees of freedom as anybody wants


def design_constants(table: Data) -> Leaves:
    """v, df and resolution of each schedule, in boot sd."""
    for letters, row in table.items():
        yield f"{letters}.boots", len(letters)
        yield f"{letters}.v", design_v(letters)
        yield f"{letters}.df_own", design_df(letters)
        balanced = 1 / letters.count("A") + 1 / letters.count("B")
        yield f"{letters}.lin_drift_loss", design_v(letters) / balanced
        for key in {"own", "borrowed_nu0_8"} & row.keys():
            df = design_df(letters) + (8 if key != "own" else 0)
            yield f"{letters}.{key}.df", df
            yield f"{letters}.{key}.halfwidth95_in_sd", half_width(1.0, letters, 0.95, df=df)
            yield f"{letters}.{key}.halfwidth90_in_sd", half_width(1.0, letters, 0.9, df=df)
            yield f"{letters}.{key}.mde80_in_sd", mde(1.0, letters, df=df)
            yield f"{letters}.{key}.mde90_in_sd", mde(1.0, letters, power=0.9, df=df)


def decision_table(rows: list[Data]) -> Leaves:
    """The verdict of each interval, ties at the bound included."""
    for at, row in enumerate(rows):
        kind = ClaimKind(row["kind"].replace("noninferiority", "non_inferiority").replace("-", "_"))
        yield f"{at}.verdict", decide(kind, row["lo"], row["hi"], row.get("bound", row.get("margin"))).value


def k_of_n(table: Data) -> Leaves:
    """What counts show."""
    for at, row in enumerate(table["clopper_pearson"]):
        k, n = row["k"], row["n"]
        yield f"clopper_pearson.{at}.cp95_two_sided", list(two_sided_bounds(k, n))
        yield f"clopper_pearson.{at}.cp_one_sided95_lower", lower_bound(k, n)
        yield f"clopper_pearson.{at}.cp_one_sided95_upper", upper_bound(k, n)
        yield f"clopper_pearson.{at}.jeffreys90", list(references.jeffreys(k, n))
    for rate in table["zero_failure_n_for_95pct"]:
        yield f"zero_failure_n_for_95pct.{rate}", zero_failures_needed(float(rate))
    for name in table["detect_prob_at_least_one"]:
        rate, n = name.removeprefix("rate").split("_n")
        yield f"detect_prob_at_least_one.{name}", chance_of_seeing_one(float(rate), int(n))
    for at, row in enumerate(table["mcnemar_exact"]):
        yield f"mcnemar_exact.{at}.p", mcnemar_exact_p(row["base_ok_cand_bad"], row["base_bad_cand_ok"])
    for at, row in enumerate(table["fisher_two_sided"]):
        yield f"fisher_two_sided.{at}.p", fisher_exact_p(*row["base"], *row["cand"])
    for at, row in enumerate(table["diff_ci_newcombe95"]):
        yield f"diff_ci_newcombe95.{at}.ci", list(difference_bounds(*row["base"], *row["cand"]))
    example = table["design_effect"]["example"]
    yield "design_effect.example.n_eff", n_eff(example["n"], example["m"], example["rho"])


def multiplicity(table: Data) -> Leaves:
    """Adjusted p of ten claims."""
    p = table["p"]
    adjusted = {
        "holm": list(holm(p)),
        "bh": list(benjamini_hochberg(p)),
        "by": references.benjamini_yekutieli(p),
    }
    for name, found in adjusted.items():
        yield f"{name}_adjusted", found
    yield "holm_rejects_at_05", sum(x <= 0.05 for x in adjusted["holm"])
    yield "bh_rejects_at_05", sum(x <= 0.05 for x in adjusted["bh"])
    yield "bh_rejects_at_10", sum(x <= 0.1 for x in adjusted["bh"])


def aa(table: Data) -> Leaves:
    """A/A calibration, the factor on a host's sd, and the void threshold."""
    for at, row in enumerate(table["fpr_ci95"]):
        found = aa_calibration(row["false_positives"], row["runs"])
        yield f"fpr_ci95.{at}.cp95", [found.low, found.high]
    for name in table["reject_calibration_if_fp_at_least"]:
        yield f"reject_calibration_if_fp_at_least.{name}", aa_limit(int(name.split("_")[0].removeprefix("n")))
    for name in table["sigma_ci95_factor"]:
        yield f"sigma_ci95_factor.{name}", list(references.sd_factor(int(name.removeprefix("df"))))
    for name in table["void_threshold_in_sd"]:
        nu0 = KNOWN_SD_DF if name == "known" else int(name.removeprefix("nu0_"))
        yield f"void_threshold_in_sd.{name}", void_threshold_ln(History(1.0, nu0))


def sequential(table: Data) -> Leaves:
    """Pocock's z by the recursion, the product's levels, and the mixture's radius."""
    boots = table["looks_boots"]
    planned = looks.planned(boots)
    fractions = [n / boots[-1] for n in boots]
    yield "looks_boots", list(planned.boots)
    yield "pocock_z_two_sided_05", references.pocock_z(fractions, 0.05, two_sided=True)
    yield "pocock_z_one_sided_05", references.pocock_z(fractions, 0.05, two_sided=False)
    yield (
        "check_against_textbook.pocock_4_equal_looks",
        references.pocock_z([0.25, 0.5, 0.75, 1], 0.05, two_sided=True),
    )
    yield "nominal_t_levels.two_sided_for_95", planned.two_sided
    yield "nominal_t_levels.one_sided_for_tost_05", planned.one_sided
    for at, row in enumerate(table["normal_mixture_cs"]):
        yield f"normal_mixture_cs.{at}.radius", references.mixture_radius(row["se"], row["tau"], row["alpha"])
        yield f"normal_mixture_cs.{at}.fixed_n_radius", references.fixed_radius(row["se"], row["alpha"])


def planning(rows: list[Data]) -> Leaves:
    """Half widths, detectable effects and power of each schedule at each sd."""
    for at, row in enumerate(rows):
        letters, df = row["schedule"], row["df"] if row["borrowed"] else None
        yield f"{at}.boots", len(letters)
        yield f"{at}.df", df or design_df(letters)
        if "sd_accept_pp" in row:
            for true in (0, 1):
                found = tost_power(row["sd_accept_pp"], letters, 2.0, float(true), df=df)
                yield f"{at}.tost2pp_power_at_{true}", found
            continue
        sd = row["sd_bootmean"]
        yield f"{at}.halfwidth95", half_width(sd, letters, df=df)
        yield f"{at}.mde80", mde_pct(sd, letters, df=df) / 100
        yield f"{at}.mde90", mde_pct(sd, letters, power=0.9, df=df) / 100
        yield f"{at}.power_gate5_true9", superiority_power(sd, letters, 5, 9, df=df)
        yield f"{at}.power_gate0_true3", superiority_power(sd, letters, 0, 3, df=df)


TABLES = {
    "design_constants": design_constants,
    "decision_table": decision_table,
    "k_of_n": k_of_n,
    "multiplicity": multiplicity,
    "aa_calibration": aa,
    "sequential": sequential,
    "planning": planning,
}


def tables(vectors: Data) -> Leaves:
    """Every leaf that is computed, by its path."""
    for name, table in TABLES.items():
        for path, value in table(vectors[name]):  # type: ignore[operator]
            yield f"{name}.{path}", value


def plain(value: Any) -> str:
    """For a message."""
    return json.dumps(value)
