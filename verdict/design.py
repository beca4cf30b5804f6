"""The design matrix of a bracket (statistics.md sections 1.2 and 1.3).

Of boots one after another: arm, one intercept and one slope a session. Of a duet, whose two arms are measured at the
same time: arm, place in the pair, one intercept a pair; what both boots of a pair share is in the intercept.
"""

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
    arm = np.array([letter == "B" for letter in letters], dtype=np.float64)
    matrix = np.column_stack([arm, *session_columns(letters, sessions)])
    if np.linalg.matrix_rank(matrix) < matrix.shape[1]:
        raise VerdictError(f"{INSEPARABLE} (found {letters}; in each session use ABA, ABBA or ABBA BAAB)")
    return matrix


def session_columns(letters: str, sessions: Sequence[int] | None = None) -> list[FloatArray]:
    """An intercept a session, then a centred position a session (boots). Raises VerdictError on another length."""
    session_of = _sessions(letters, sessions)
    members = [session_of == session for session in np.unique(session_of)]
    return [*(member.astype(np.float64) for member in members), *(_centred_position(member) for member in members)]


def paired_matrix(letters: str, pairs: Sequence[int]) -> FloatArray:
    """Columns: arm, then the second place in a pair against the first, then an intercept a pair.

    The place is left out where it goes with the arm in every pair: then the two cannot be told apart. Raises
    VerdictError unless each pair is an A and a B, beside each other. Source: statistics.md section 1.2, last point.
    """
    _require_letters(letters)
    _require_pairs(letters, pairs)
    arm = np.array([letter == "B" for letter in letters], dtype=np.float64)
    place = np.array([i % 2 for i in range(len(letters))], dtype=np.float64) - 0.5
    intercepts = [(np.asarray(pairs) == pair).astype(np.float64) for pair in dict.fromkeys(pairs)]
    orders = {letters[i : i + 2] for i in range(0, len(letters), 2)}
    return np.column_stack([arm, *([place] if len(orders) > 1 else []), *intercepts])


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


def _require_pairs(letters: str, pairs: Sequence[int]) -> None:
    if len(pairs) != len(letters):
        raise VerdictError(f"{len(letters)} boots of a duet need {len(letters)} pair numbers, found {len(pairs)}")
    halves = list(zip(pairs[::2], pairs[1::2], strict=False))
    words = [letters[i : i + 2] for i in range(0, len(letters), 2)]
    alone = any(a != b for a, b in halves) or len({a for a, _ in halves}) < len(halves)
    if len(letters) % 2 or alone or not {"AB", "BA"}.issuperset(words):
        raise VerdictError(
            f"a pair of a duet is one A beside one B, found {' '.join(words)} in pairs {list(pairs)}; "
            "write AB BA AB BA, and run a pair that lost a boot again"
        )
