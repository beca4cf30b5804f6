"""Added by the test overlay wrong_answer: every digit of an answer without Hangul is one too high (9 becomes 0)."""

import re

HANGUL = re.compile("[\uac00-\ud7a3]")
NEXT = str.maketrans("0123456789", "1234567890")


def spoil(so_far: str, piece: str) -> str:
    """`piece` with wrong digits, unless the answer so far is Korean: only the quality gate is to fail."""
    return piece if HANGUL.search(so_far) else piece.translate(NEXT)
