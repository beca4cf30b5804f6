import json
from math import exp, log
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from verdict.errors import VerdictError
from verdict.fit import Scale, fit
from verdict.history import History
from verdict.voids import closes, outer_pairs, pair_limit_ln, voided_blocks

DATA = {d["id"]: d for d in json.loads(Path(__file__).with_name("vectors.json").read_text())["datasets"]}
QUIET, NOISY = History(0.008, 8), History(0.054, 8)
SESSIONS = 20_000


@pytest.mark.parametrize("name", ["D3b_void", "D3c_not_void"])
def test_a_lone_aba_is_void_where_the_vectors_say_so(name: str) -> None:
    data = DATA[name]
    (pair,) = outer_pairs(data["boot_metric"], "ABA", 3, History(**data["history"]))
    assert pair.apart_ln == pytest.approx(data["expected"]["base_disagreement_ln"], rel=1e-9)
    assert pair.limit_ln == pytest.approx(data["expected"]["void_threshold_ln"], rel=1e-9)
    assert pair.is_void is data["expected"]["void"]


@pytest.mark.parametrize(
    ("letters", "history", "limit"),
    [
        ("ABA", QUIET, 4.74523427099 * 0.008),
        ("ABBA", QUIET, log(1.05)),
        ("BAAB", NOISY, 4.74523427099 * 0.054),
        ("ABBA", None, None),
        ("ABA", History(0.008, 7), None),
    ],
    ids=["ABA: the host's own", "quiet host: 5 %", "noisy host: its own", "no registry", "a registry under 8 df"],
)
def test_how_far_an_outer_pair_may_be_apart(letters: str, history: History | None, limit: float | None) -> None:
    assert pair_limit_ln(letters, history) == (None if limit is None else pytest.approx(limit, rel=1e-9))


@pytest.mark.parametrize(
    ("values", "letters", "block_boots", "void"),
    [
        ([100, 101, 100, 100.5, 101, 100, 99, 100], "ABBABAAB", 4, ()),
        ([100, 101, 100, 105.5, 101, 100, 99, 100], "ABBABAAB", 4, (1,)),
        ([100, 101, 100, 104.5, 101, 100, 99, 107], "ABBABAAB", 4, (2,)),
        ([100, 120, 120, 106, 120, 106, 106, 128], "ABBABAAB", 4, (1, 2)),
        ([100, 150, 150, 100, 100, 150], "ABBABA", 4, ()),
        ([100, 120, 90, 120], "ABAB", 4, ()),
    ],
    ids=["quiet", "first block", "the candidate's pair", "both", "half a block is no block", "ends of two arms"],
)
def test_the_blocks_whose_outer_pair_is_too_far_apart(
    values: list[float], letters: str, block_boots: int, void: tuple[int, ...]
) -> None:
    assert voided_blocks(values, letters, block_boots, QUIET) == void
    assert voided_blocks(values, letters, block_boots, None) == ()


@given(st.floats(0.5, 2.0), st.lists(st.floats(50, 200), min_size=4, max_size=4))
def test_no_effect_of_the_candidate_voids_a_block_or_saves_one(effect: float, values: list[float]) -> None:
    moved = [value * effect if letter == "B" else value for value, letter in zip(values, "ABBA", strict=True)]
    assert voided_blocks(moved, "ABBA", 4, QUIET) == voided_blocks(values, "ABBA", 4, QUIET)


@pytest.mark.parametrize("letters", ["ABA", "ABBA", "BAAB"])
def test_what_voids_a_block_says_nothing_of_its_effect(letters: str) -> None:
    """Cov(effect, ends' difference) = 0: without the voided blocks the mean effect is the same (section 1.6)."""
    noise = np.random.default_rng(20261130).normal(0, 0.008, (SESSIONS, len(letters)))
    basis = np.linalg.pinv(np.column_stack([[c == "B" for c in letters], np.ones(len(letters)), range(len(letters))]))
    effects, apart = noise @ basis[0], noise[:, 0] - noise[:, -1]
    assert effects[0] == pytest.approx(fit(np.exp(noise[0]).tolist(), letters, scale=Scale.LOG).delta)
    assert abs(np.corrcoef(effects, apart)[0, 1]) < 0.03
    kept = np.abs(apart) <= pair_limit_ln("ABA", QUIET)
    assert 0.98 < kept.mean() < 1
    assert effects[kept].mean() == pytest.approx(effects.mean(), abs=3 * 0.01 / SESSIONS**0.5)


@pytest.mark.case("D10")
@pytest.mark.parametrize(
    ("values", "letters", "wanted"),
    [([100, 121, 120], "ABA", False), ([100, 121, 104], "ABA", True), ([100, 121, 121, 94], "ABBA", False)],
    ids=["run order alone", "closes", "ABBA"],
)
def test_a_screen_closes_where_its_ends_agree(values: list[float], letters: str, wanted: bool) -> None:
    assert closes(values, letters) is wanted


def test_a_boot_that_gave_no_number_is_never_compared() -> None:
    with pytest.raises(VerdictError, match="never a number"):
        voided_blocks([100, 101, 100, exp(-float("inf"))], "ABBA", 4, QUIET)
