"""Twin of campaign.alphabet."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from campaign.alphabet import to_key, to_name

NAMES = st.text(min_size=1, max_size=30)


@given(NAMES)
def test_every_name_comes_back(name):
    assert to_name(to_key(name)) == name


@given(NAMES, NAMES)
def test_two_names_never_share_a_key(one, other):
    assert (to_key(one) == to_key(other)) == (one == other)


@pytest.mark.parametrize("name", ["step_per_s", "acceptance_pos1_pp", "seconds.boot", "gate/kv", "p99-ms"])
def test_plain_names_stay_as_they_are(name):
    assert to_key(name) == name


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("acc@1", "acc:40:1"),
        ("vllm:x", "vllm:3a:x"),
        ("/a", ":2f:a"),
        ("..", ":2e::2e:"),
        ("a/../b", "a:2f::2e::2e::2f:b"),
    ],
)
def test_what_mlflow_refuses_is_escaped(name, key):
    assert to_key(name) == key


@pytest.mark.parametrize("name", ["", "x" * 251])
def test_a_name_that_has_no_key_is_refused(name):
    with pytest.raises(ValueError, match="1 to 250 characters"):
        to_key(name)
