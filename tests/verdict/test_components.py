import json
from math import log
from pathlib import Path

import numpy as np
import pytest

from verdict.components import batched_rho, best_requests, components, lag1
from verdict.errors import VerdictError

D4 = next(
    d for d in json.loads(Path(__file__).with_name("vectors.json").read_text())["datasets"] if d["id"].startswith("D4")
)
RATES = [[log(steps / seconds) for steps, seconds in boot] for boot in D4["requests_steps_seconds"]]
WANTED = D4["expected"]


def test_the_components_are_those_of_the_vectors() -> None:
    found, wanted = components(RATES, D4["schedule"]), WANTED["variance_components_arm_centered"]
    assert found.msb == pytest.approx(wanted["MSB"], rel=1e-9)
    assert found.within_sd**2 == pytest.approx(wanted["T1_sq"], rel=1e-9)
    assert found.between_sd**2 == pytest.approx(wanted["T2_sq"], rel=1e-9)
    assert found.icc == pytest.approx(wanted["icc"], rel=1e-9)
    assert found.rho == pytest.approx(WANTED["mean_lag1_acf_within_boot"], rel=1e-9)
    assert found.requests / found.tau == pytest.approx(WANTED["n_eff_per_boot_AR1"], rel=1e-9)


def test_past_the_best_number_of_requests_a_boot_is_the_better_buy() -> None:
    found = components(RATES, D4["schedule"])
    assert best_requests(found, 240, 2) == pytest.approx(WANTED["optimal_requests_per_boot_cboot240s_creq2s"], rel=1e-9)


def test_boots_that_do_not_differ_need_no_second_one() -> None:
    alike = components([[0.0, 1.0], [0.0, 1.0], [0.0, 1.0]], "AAA")
    assert alike.between_sd == 0
    assert best_requests(alike, 240, 2) is None


def test_arms_that_differ_are_no_noise_between_boots() -> None:
    moved = [[x + (5.0 if arm == "B" else 0.0) for x in boot] for boot, arm in zip(RATES, D4["schedule"], strict=True)]
    assert components(moved, D4["schedule"]).msb == pytest.approx(components(RATES, D4["schedule"]).msb)


@pytest.mark.parametrize("rho", [0.0, 0.3, 0.6])
def test_both_ways_find_how_requests_hang_together(rho: float) -> None:
    noise = np.random.default_rng(20261130).normal(size=40_000)
    series = [noise[0]]
    for x in noise[1:]:
        series.append(rho * series[-1] + x * (1 - rho**2) ** 0.5)
    assert lag1(series) == pytest.approx(rho, abs=0.03)
    assert batched_rho(series) == pytest.approx(rho, abs=0.1)


@pytest.mark.parametrize(
    ("boots", "groups"),
    [([[1.0, 2.0], [1.0]], "AA"), ([[1.0], [2.0]], "AA"), ([[1.0, 2.0], [1.0, 2.0]], "AB")],
    ids=["unequal", "one request", "a boot an arm"],
)
def test_too_little_gives_no_components(boots: list[list[float]], groups: str) -> None:
    with pytest.raises(VerdictError, match="variance components need"):
        components(boots, groups)
