"""The design matrix of a bracket: arm, one intercept and one slope a session (statistics.md section 1.3)."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from verdict.errors import VerdictError

FloatArray = NDArray[np.float64]

INSEPARABLE = "rank deficient: arm and drift are not separable with this schedule"


def design_matrix(letters: str, sessions: Sequence[int] | None = None) -> FloatArray:
    """Columns: arm (A is 0, B is 1), then an intercept a session, then a centred position a session (boots).

    Raises VerdictError on other letters, on a session list of another length, and where the effect and the
    drift cannot be told apart. Source: statistics.md sections 1.2 (rank check) and 1.3.
    """
    _require_letters(letters)
    session_of = _sessions(letters, sessions)
    arm = np.array([letter == "B" for letter in letters], dtype=np.float64)
    members = [session_of == session for session in np.unique(session_of)]
    intercepts = [member.astype(np.float64) for member in members]
    slopes = [_centred_position(member) for member in members]
    matrix = np.column_stack([arm, *intercepts, *slopes])
    if np.linalg.matrix_rank(matrix) < matrix.shape[1]:
        raise VerdictError(f"{INSEPARABLE} (found {letters}; in each session use ABA, ABBA or ABBA BAAB)")
    return matrix


def covariance_factor(matrix: FloatArray) -> FloatArray:
    """(X'X)^-1, in units of the boot variance; element [0, 0] is the v of the effect (statistics.md section 1.3)."""
    return np.asarray(np.linalg.inv(matrix.T @ matrix), dtype=np.float64)


def _require_letters(letters: str) -> None:
    strange = sorted(set(letters) - {"A", "B"})
    if strange or not letters:
        found = " ".join(strange) if strange else "nothing"
        raise VerdictError(f"a schedule is written with the letters A and B, found {found}; write for example ABBABAAB")


def _sessions(letters: str, sessions: Sequence[int] | None) -> NDArray[np.int64]:
    found = np.zeros(len(letters), dtype=np.int64) if sessions is None else np.asarray(sessions, dtype=np.int64)
    if len(found) != len(letters):
        raise VerdictError(f"{len(letters)} boots need {len(letters)} session numbers, found {len(found)}")
    return found


def _centred_position(member: NDArray[np.bool_]) -> FloatArray:
    position = np.cumsum(member) - 1.0
    return np.where(member, position - position[member].mean(), 0.0)
