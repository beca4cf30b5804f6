"""A drafter whose luck is drawn from the prompt and the step: the same in every boot."""

from hashlib import sha256

ACCEPT_PCT = (80, 78, 76, 74, 72, 70, 68, 66)  # given that all earlier positions were accepted


def draw(*parts: object) -> float:
    """A number in [0, 1) that depends on its arguments only."""
    text = "\x1f".join(map(str, parts)).encode()
    return int.from_bytes(sha256(text).digest()[:8], "big") / 2**64


def accepted(prompt: str, step: int, draft_tokens: int) -> int:
    """How many of the step's drafted tokens are accepted."""
    for position in range(draft_tokens):
        if draw(prompt, step, position) >= ACCEPT_PCT[min(position, len(ACCEPT_PCT) - 1)] / 100:
            return position
    return draft_tokens
