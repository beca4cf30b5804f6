"""The engine's own lists: every argument's type is checked at the door, as the engine's parser would take it."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from campaign.asked.pinned import FOLDER, Argument, load
from campaign.errors import ConfigError

LISTS = sorted(FOLDER.glob("*.json"))


@pytest.mark.parametrize("file", LISTS, ids=lambda f: f.stem)
def test_a_pinned_list_says_of_every_argument_what_it_takes(file: Path) -> None:
    found = load(file.stem)
    assert {argument.takes for argument in found.arguments.values()} == {
        "switch", "int", "float", "json", "choice", "text",
    }  # fmt: skip
    assert [name for name in found.arguments if name != name.lower() or "-" in name] == []
    assert [
        name for name, argument in found.arguments.items() if (argument.takes == "choice") != bool(argument.choices)
    ] == []
    assert json.loads(file.read_text(encoding="utf-8"))["version"] == file.stem


@pytest.mark.parametrize("file", LISTS, ids=lambda f: f.stem)
def test_a_pinned_list_knows_the_variables_that_the_engine_reads(file: Path) -> None:
    variables = load(file.stem).variables
    assert {"VLLM_USE_V2_MODEL_RUNNER", "VLLM_LOGGING_LEVEL", "CUDA_VISIBLE_DEVICES"} <= variables
    assert "VLLM_ATTENTION_BACKEND" not in variables  # removed upstream: case C1
    assert [name for name in variables if not re.fullmatch(r"[A-Z][A-Z0-9_]*", name)] == []


def test_the_reference_engines_own_arguments_are_known() -> None:
    known = load("0.29.0").arguments
    names = ("async_scheduling", "enable_prefix_caching", "max_num_seqs", "dtype", "compilation_config")
    assert [known[name].takes for name in names] == ["switch", "switch", "int", "choice", "json"]


def test_where_the_engine_reads_2k_is_its_own_word() -> None:
    """0.29.0's parser takes it for these and refuses it for every other number (max_num_seqs, tensor_parallel_size)."""
    assert {name for name, argument in load("0.29.0").arguments.items() if argument.human} == {
        "kv_cache_memory_bytes", "max_model_len", "max_num_batched_tokens", "max_num_queued_tokens",
        "max_num_scheduled_tokens", "safetensors_prefetch_block_size",
    }  # fmt: skip


def test_the_limits_of_a_number_are_those_of_the_engines_fields() -> None:
    known = load("0.29.0").arguments
    names = ("max_num_seqs", "tensor_parallel_size", "max_model_len", "gpu_memory_utilization", "block_size", "seed")
    assert [known[name].bounds for name in names] == [
        (("ge", 1),), (("ge", 1),), (("ge", -1),), (("gt", 0), ("le", 1)), (("gt", 0),), (),
    ]  # fmt: skip


@pytest.mark.parametrize("file", LISTS, ids=lambda f: f.stem)
def test_a_pinned_list_knows_the_ways_of_drafting(file: Path) -> None:
    assert {"dflash", "draft_model", "eagle3", "medusa", "mtp", "ngram"} <= set(load(file.stem).methods)


KINDS = {
    "switch": Argument("switch"),
    "int": Argument("int"),
    "length": Argument("int", words=("auto",), human=True),
    "size": Argument("int", bounds=(("ge", 1), ("lt", 100))),
    "alone": Argument("int", only_one=True),
    "float": Argument("float"),
    "json": Argument("json"),
    "choice": Argument("choice", choices=("auto", "none", "8")),
    "text": Argument("text"),
    "several": Argument("int", several=True),
}


@pytest.mark.case("F1", "F2", "F3", "F13", "F14")
@pytest.mark.parametrize(
    ("kind", "value", "read"),
    [
        ("switch", True, True),
        ("switch", None, None),
        ("int", 8, 8),
        ("int", "8", 8),
        ("int", -1, -1),
        ("length", "2k", 2000),
        ("length", "2K", 2048),
        ("length", "0.2k", 200),
        ("length", "25.6k", 25600),
        ("length", "1M", 1048576),
        ("length", "2t", 2 * 10**12),
        ("length", -1, "auto"),
        ("length", "-1", "auto"),
        ("size", "1", 1),
        ("alone", 1, 1),
        ("length", "auto", "auto"),
        ("float", 0.5, 0.5),
        ("float", 1, 1),
        ("float", "0.5", 0.5),
        ("json", {"a": 1}, {"a": 1}),
        ("json", '{"a": 1}', {"a": 1}),
        ("choice", "auto", "auto"),
        ("choice", "none", "none"),
        ("choice", 8, 8),
        ("text", "0123", "0123"),
        ("text", "1e4", "1e4"),
        ("text", {"a": 1}, {"a": 1}),
        ("several", [1, "2"], (1, 2)),
        ("several", 3, 3),
    ],
    ids=repr,
)
def test_a_value_has_one_spelling_of_its_type(kind: str, value: Any, read: Any) -> None:
    found = KINDS[kind].read("here", value)
    assert (found, type(found)) == (read, type(read))


@pytest.mark.case("F1", "F2", "F13", "F14")
@pytest.mark.parametrize(
    ("kind", "value", "sentence"),
    [
        ("switch", "0", "found '0', wanted true, false or null: it is a switch"),
        ("switch", 1, "found 1, wanted true, false or null"),
        ("int", True, "found the truth value true, wanted a whole number; quote text"),
        ("int", 1.5, "found 1.5, wanted a whole number"),
        ("int", "many", "found 'many', wanted a whole number"),
        ("int", "2k", "found '2k', wanted a whole number"),
        ("length", "1.5K", "found '1.5K', wanted a whole number"),
        ("int", "9" * 5000, "wanted a whole number"),
        ("length", "9" * 400 + "k", "wanted a whole number"),
        ("size", 0, "found 0, wanted at least 1"),
        ("size", 100, "found 100, wanted less than 100"),
        ("alone", 2, "found 2, wanted 1: the runner asks one engine behind one API server"),
        ("json", {"a": [{"api_key": "x"}]}, "here.a[0].api_key: api_key sounds like a secret"),
        ("json", '{"password": "x"}', "here.password: password sounds like a secret"),
        ("text", '{"password": "x"}', "here.password: password sounds like a secret"),
        ("int", "٣", "wanted a whole number"),
        ("int", "None", "found the text 'None', wanted a whole number; write null for nothing"),
        ("length", "Auto", "found 'Auto', wanted a whole number or \"auto\""),
        ("float", float("nan"), "found nan, wanted a number"),
        ("float", float("inf"), "found inf, wanted a number"),
        ("float", "high", "found 'high', wanted a number"),
        ("json", "{no json", "wanted a map or a list"),
        ("json", "3", "wanted a map or a list"),
        ("choice", "atuo", "found 'atuo', wanted one of auto, none, 8 (did you mean 'auto'?)"),
        ("text", 83, 'found 83, wanted text; quote it: "83"'),
        ("text", 10000.0, 'found 10000.0, wanted text; quote it: "10000.0"'),
        ("text", "null", "found the text 'null', wanted text; write null for nothing"),
        ("several", [1, "x"], "here[1]: found 'x', wanted a whole number"),
    ],
    ids=lambda value: repr(value)[:40],
)
def test_a_value_of_another_type_is_refused_in_words(kind: str, value: Any, sentence: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(sentence)):
        KINDS[kind].read("here", value)


@pytest.mark.parametrize(
    ("kind", "text", "read"),
    [
        ("switch", "1", True),
        ("switch", "False", False),
        ("int", "4096", 4096),
        ("json", "[1]", [1]),
        ("text", "x", "x"),
    ],
    ids=repr,
)
def test_a_profiles_text_becomes_a_value_of_the_type(kind: str, text: str, read: Any) -> None:
    assert KINDS[kind].from_text("team.env:1", text) == read


@given(
    st.sampled_from(sorted(KINDS)),
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
        max_leaves=5,
    ),
)
def test_whatever_is_given_is_read_or_refused_and_reading_twice_is_reading_once(kind: str, value: Any) -> None:
    try:
        found = KINDS[kind].read("here", value)
    except ConfigError:
        return
    again = list(found) if isinstance(found, tuple) else found
    assert KINDS[kind].read("here", again) == found
