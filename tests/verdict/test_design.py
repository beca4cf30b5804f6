import json
from pathlib import Path

import numpy as np
import pytest

from verdict.design import covariance_factor, design_matrix
from verdict.errors import VerdictError

VECTORS = json.loads(Path(__file__).with_name("vectors.json").read_text())
REFUSED = next(d for d in VECTORS["datasets"] if d["id"] == "D10_refuse")["expected"]


def _asked(key: str) -> tuple[str, list[int] | None]:
    letters = key.rstrip("None0123456789[], ")
    rest = key[len(letters) :]
    return letters, None if rest == "None" else json.loads(rest)


@pytest.mark.parametrize("key", REFUSED, ids=str)
def test_a_schedule_on_which_effect_and_drift_look_alike_is_refused_in_the_exact_words(key: str) -> None:
    letters, sessions = _asked(key)
    with pytest.raises(VerdictError) as caught:
        design_matrix(letters, sessions)
    assert REFUSED[key] in str(caught.value)


def test_aabb_in_one_session_is_separable() -> None:
    assert design_matrix("AABB").shape == (4, 3)


def test_a_session_has_its_own_intercept_and_centred_slope() -> None:
    matrix = design_matrix("ABBAABBA", [7, 7, 7, 7, 9, 9, 9, 9])
    np.testing.assert_allclose(matrix[:, 0], [0, 1, 1, 0, 0, 1, 1, 0])
    np.testing.assert_allclose(matrix[:, 1], [1, 1, 1, 1, 0, 0, 0, 0])
    np.testing.assert_allclose(matrix[:, 4], [0, 0, 0, 0, -1.5, -0.5, 0.5, 1.5])


def test_the_factor_is_the_inverse_of_the_gram_matrix() -> None:
    matrix = design_matrix("ABABA")
    np.testing.assert_allclose(covariance_factor(matrix) @ (matrix.T @ matrix), np.eye(3), atol=1e-12)


def test_a_session_list_of_another_length_is_refused() -> None:
    with pytest.raises(VerdictError, match="8 boots need 8 session numbers, found 2"):
        design_matrix("ABBABAAB", [0, 1])


@pytest.mark.parametrize("letters", ["", "abba", "ABBA BAAB"])
def test_other_letters_are_refused(letters: str) -> None:
    with pytest.raises(VerdictError, match="the letters A and B"):
        design_matrix(letters)
