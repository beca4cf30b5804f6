"""Knobs as they are written down: what a knob without a variable must say, and what is refused where it stands."""

import re
from pathlib import Path

import pytest

from overlays.errors import OverlayError
from overlays.knobs import knobs_of

KNOB = """[[knob]]
name = "cache"
profile_key = "CACHE"
values = ["auto", "0", "off"]
default = "auto"
not_given = "off"
[knob.serve.auto]
methods = ["dflash"]
arguments = { enable_prefix_caching = false }
reason = "why"
[knob.serve.0]
arguments = { enable_prefix_caching = false }
reason = "why"
[knob.legacy.no]
value = "off"
note = "an older word"
[knob.witness.auto]
[knob.witness.0]
resolved = { prefix_caching = false }
[knob.witness.off]
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Where the knobs are written."""
    return tmp_path / "knobs.toml"


def test_a_knob_without_a_variable_reaches_the_engine_by_serve_arguments(file: Path) -> None:
    file.write_text(KNOB)
    (found,) = knobs_of(file)
    assert (found.variable, found.profile_key, found.not_given, found.legacy) == (
        None, "CACHE", "off", {"no": ("off", "an older word")},
    )  # fmt: skip
    assert found.served["0"].arguments == {"enable_prefix_caching": False}
    assert [found.served[value].for_method("eagle3") for value in ("auto", "0")] == [False, True]
    assert [found.served[value].for_method("dflash") for value in ("auto", "0")] == [True, True]


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ('not_given = "off"', "", "'off' reaches no engine; give the knob a variable, or serve for this value"),
        ('not_given = "off"', 'not_given = "none"', "'none' is none of ['auto', '0', 'off']"),
        ("[knob.serve.0]", "[knob.serve.2]", "'2' is none of"),
        ('value = "off"', 'value = "on"', "'on' is none of"),
        ("[knob.witness.off]", "", "witness is given for ['0', 'auto'], but must be for each of"),
        ('default = "auto"', 'default = "1"', "default is '1', but must be one of"),
        ('profile_key = "CACHE"', 'profile_key = "cache"', "profile_key is 'cache', but must match"),
        ('reason = "why"\n[knob.serve.0]', "[knob.serve.0]", "reason is missing"),
        ("enable_prefix_caching = false }\nreason", "x = [1] }\nreason", "arguments.x is [1], but must be a boolean"),
        ("[[knob]]", 'nosuch = 1\n[[knob]]', "unknown key 'nosuch'; known here: knob"),
        ("[[knob]]", "[[knob", "is not TOML"),
    ],
    ids=lambda value: "" if "\n" in value else value[:40],
)  # fmt: skip
def test_a_knob_that_says_too_little_is_refused_where_it_stands(file: Path, old: str, new: str, sentence: str) -> None:
    file.write_text(KNOB.replace(old, new, 1))
    with pytest.raises(OverlayError, match=re.escape(sentence)) as caught:
        knobs_of(file)
    assert str(file) in str(caught.value)
