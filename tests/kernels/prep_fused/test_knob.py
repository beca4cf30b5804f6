"""The knob's words."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernels.prep_fused.knob import WORDS, Mode, parse


@pytest.mark.parametrize(
    ("text", "mode"),
    [
        (None, Mode.OFF), ("", Mode.OFF), ("0", Mode.OFF), ("off", Mode.OFF), ("FALSE", Mode.OFF), ("no", Mode.OFF),
        ("shadow", Mode.SHADOW), ("Shadow", Mode.SHADOW), (" shadow\n", Mode.SHADOW),
        ("1", Mode.ARMED), (" 1 ", Mode.ARMED),
        ("true", Mode.DISARMED), ("yes", Mode.DISARMED), ("on", Mode.DISARMED), ("2", Mode.DISARMED),
        ("armed", Mode.DISARMED), ("shadow,1", Mode.DISARMED), ("１", Mode.DISARMED), ("sha dow", Mode.DISARMED),
    ],
    ids=repr,
)  # fmt: skip
def test_e_a_word_that_is_not_known_disarms_and_says_so(text, mode):
    knob = parse(text)
    assert knob.mode is mode
    assert (repr(text) in knob.reason) is (mode is Mode.DISARMED)


@given(st.text())
def test_e_nothing_but_a_known_word_arms(text):
    known = text.strip().lower() in WORDS
    assert (parse(text).mode is Mode.DISARMED) is not known
    assert (parse(text).mode is Mode.ARMED) is (text.strip() == "1")
