"""Added by the test overlay korean_corruption: one broken character in every Korean answer, on its way out."""

import re

HANGUL = re.compile("[\uac00-\ud7a3]")
BROKEN = "\ufffd"


def spoil(so_far: str, piece: str) -> str:
    """`piece` with its first Hangul syllable broken, unless `so_far` is broken already."""
    return piece if BROKEN in so_far else HANGUL.sub(BROKEN, piece, count=1)
