"""An arm, resolved: overlays, knobs and serve arguments are checked by name and value before anything is started."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from campaign.arms import ARGUMENTS, digest, pinned_arguments, resolve, spelled
from campaign.config import Arm, Campaign
from campaign.errors import ConfigError

UPSTREAM = '[upstream]\nlink = "none"\nstatus = "none"\ndrop_when = "never"\n'
TARGET = '[[target]]\nversion = "0.29.0"\nbuilds = ["cpu"]\n[[target.file]]\npath = "vllm/envs.py"\n'
PINS = f'preimage_sha256 = "{"0" * 64}"\npostimage_sha256 = "{"0" * 64}"\n'
Shelf = Callable[..., None]


@pytest.fixture
def shelf(tmp_path: Path, exp8: Campaign) -> Shelf:
    """shelf("name", requires=..., async_safe=..., knobs=...): an overlay in a folder that the experiment searches."""
    folder = tmp_path / "overlays"
    folder.mkdir()
    exp8.host.overlay_path = [str(folder)]

    def add(name: str, *, requires: str = "[]", async_safe: str = "true", knobs: str = "") -> None:
        (folder / name).mkdir()
        head = f'why = "to test"\nowner = "tests"\nrequires = {requires}\nasync_safe = {async_safe}\n'
        reason = 'async_reason = "it reads draft ids where async scheduling holds placeholders"\n'
        (folder / name / "manifest.toml").write_text(head + reason + UPSTREAM + knobs + TARGET + PINS)

    return add


def knob(name: str, default: str = "0") -> str:
    """A knob with the values 0 and 1."""
    witness = f"[knob.witness.0]\nresolved = {{}}\n[knob.witness.1]\nresolved = {{ {name} = true }}\n"
    variable = f"VLLM_{name.upper()}"
    return (
        f'[[knob]]\nname = "{name}"\nvariable = "{variable}"\nvalues = ["0", "1"]\ndefault = "{default}"\n{witness}\n'
    )


def arm(campaign: Campaign, **fields: Any) -> Campaign:
    """The experiment with another candidate."""
    campaign.arms["candidate"] = Arm(**fields)
    return campaign


# overlays


def test_the_engines_base_set_comes_first_in_every_arm(exp8: Campaign) -> None:
    names = {name: [o.name for o in resolve(exp8, name).overlays] for name in exp8.arms}
    assert names == {"base": ["engine_report"], "candidate": ["engine_report", "async_dflash"]}


def test_an_overlay_named_twice_is_staged_once(exp8: Campaign) -> None:
    found = resolve(arm(exp8, overlays=["async_dflash", "engine_report", "async_dflash"]), "candidate")
    assert [o.name for o in found.overlays] == ["engine_report", "async_dflash"]


def test_what_an_overlay_requires_is_staged_with_it(exp8: Campaign, shelf: Shelf) -> None:
    shelf("upper", requires='["lower"]')
    shelf("lower")
    found = resolve(arm(exp8, overlays=["upper"]), "candidate")
    assert [o.name for o in found.overlays] == ["engine_report", "upper", "lower"]


def test_an_unknown_overlay_is_refused_with_the_nearest_name(exp8: Campaign) -> None:
    with pytest.raises(ConfigError, match=r"'async_dflsh'; did you mean 'async_dflash'.*python -m overlays list"):
        resolve(arm(exp8, overlays=["async_dflsh"]), "candidate")


def test_an_unknown_arm_is_refused_with_those_there_are(exp8: Campaign) -> None:
    with pytest.raises(ConfigError, match="no arm 'third' in experiment exp8; it has base, candidate"):
        resolve(exp8, "third")


# knobs


def test_a_knob_has_the_value_that_the_arm_gives_it(exp8: Campaign) -> None:
    (found,) = resolve(exp8, "candidate").knobs
    assert (found.knob.name, found.value, found.origin) == ("async_dflash", "1", "arm candidate")


def test_a_knob_that_the_arm_does_not_name_keeps_its_overlays_default(exp8: Campaign) -> None:
    (found,) = resolve(arm(exp8, overlays=["async_dflash"]), "candidate").knobs
    assert (found.value, found.origin) == ("0", "default of overlay async_dflash")


def test_what_must_be_seen_is_the_witness_of_the_value(exp8: Campaign) -> None:
    (found,) = resolve(exp8, "candidate").knobs
    assert found.witness is not None
    assert found.witness.resolved["async_scheduling"] is True


def test_a_knob_travels_in_its_variable(exp8: Campaign) -> None:
    assert resolve(exp8, "candidate").knob_variables == {"VLLM_GLM53_ASYNC_DFLASH": "1"}


@pytest.mark.parametrize("value", ["1", 1], ids=["text", "number"])
def test_the_number_1_and_the_text_1_are_the_same_value(exp8: Campaign, value: object) -> None:
    found = resolve(arm(exp8, overlays=["async_dflash"], knobs={"async_dflash": value}), "candidate")
    assert found.knobs[0].value == "1"


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        (True, 'found the YAML truth value true, wanted text, one of "0", "1"; quote it'),
        (False, "found the YAML truth value false"),
        ("on", "found 'on', wanted one of"),
        ("2", "found '2', wanted one of"),
        ("", "found '', wanted one of"),
        (" 1", "found ' 1', wanted one of"),
        (1.0, r"found '1\.0', wanted one of"),
        (None, "wanted one of"),
        ([1], "wanted one of"),
    ],
    ids=repr,
)
def test_a_value_outside_the_closed_set_is_refused(exp8: Campaign, value: object, sentence: str) -> None:
    """F1, F14."""
    with pytest.raises(ConfigError, match=rf"arms\.candidate\.knobs\.async_dflash: .*{sentence}"):
        resolve(arm(exp8, overlays=["async_dflash"], knobs={"async_dflash": value}), "candidate")


def test_a_knob_of_an_overlay_that_is_not_staged_is_refused(exp8: Campaign) -> None:
    with pytest.raises(
        ConfigError, match="no staged overlay declares knob 'async_dflash'; staged overlays: engine_report"
    ):
        resolve(arm(exp8, knobs={"async_dflash": "1"}), "candidate")


def test_a_variable_that_a_knob_sets_cannot_be_set_beside_it(exp8: Campaign) -> None:
    exp8.engine.env["VLLM_GLM53_ASYNC_DFLASH"] = "0"
    with pytest.raises(
        ConfigError, match=r"engine\.env\.VLLM_GLM53_ASYNC_DFLASH: knob async_dflash sets this variable"
    ):
        resolve(exp8, "candidate")


def test_two_overlays_cannot_share_a_knob(exp8: Campaign, shelf: Shelf) -> None:
    """Which of the two would the arm have switched on?"""
    shelf("one", knobs=knob("fast"))
    shelf("two", knobs=knob("fast").replace("VLLM_FAST", "VLLM_FASTER"))
    with pytest.raises(ConfigError, match="fast"):
        resolve(arm(exp8, overlays=["one", "two"], knobs={"fast": "1"}), "candidate")


# serve arguments


def test_the_arms_arguments_go_over_the_engines(exp8: Campaign) -> None:
    found = dict(resolve(arm(exp8, serve={"max_num_seqs": 8}), "candidate").serve)
    assert (found["max_num_seqs"], found["dtype"]) == (8, "float32")


def test_an_argument_set_to_null_is_left_out(exp8: Campaign) -> None:
    """F14: null is "not given", never a text."""
    assert "dtype" not in dict(resolve(arm(exp8, serve={"dtype": None}), "candidate").serve)


@pytest.mark.parametrize(
    ("serve", "sentence"),
    [
        ({"max_num_seq": 4}, r"has no serve argument 'max_num_seq' \(did you mean 'max_num_seqs'\?\)"),
        ({"max-num-seqs": 4}, r"'max-num-seqs' \(did you mean 'max_num_seqs'\?\)"),
        ({"nonsense_at_all_": 4}, "vLLM 0.29.0 has no serve argument 'nonsense_at_all_'$"),
        ({"enforce_eager": 1}, "found 1, wanted true, false or null: enforce_eager is a switch"),
        ({"enforce_eager": "false"}, "found 'false', wanted true, false or null"),
        ({"enforce_eager": "off"}, "found 'off', wanted true, false or null"),
        ({"max_num_seqs": True}, "found the truth value true, wanted a value; quote text"),
        ({"port": 8000}, "the runner sets port itself"),
        ({"host": "0.0.0.0"}, "the runner sets host itself"),
        ({"model": "x"}, "the runner sets model itself"),
        ({"served_model_name": "x"}, "the runner sets served_model_name itself"),
        ({"speculative_config": {"method": "ngram"}}, "the runner sets speculative_config itself"),
        ({"spec_tokens": 3}, "the runner sets spec_tokens itself"),
        ({"help": True}, "the runner sets help itself"),
        ({"api_key": "s3cret"}, "a secret must not stand in an argument list; use engine.pass_env"),
        ({"hf_token": "s3cret"}, "a secret must not stand"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_a_wrong_serve_argument_is_refused_by_its_path(exp8: Campaign, serve: dict[str, object], sentence: str) -> None:
    with pytest.raises(ConfigError, match=rf"^arms\.candidate\.serve\.{next(iter(serve))}: .*{sentence}") as caught:
        resolve(arm(exp8, serve=serve), "candidate")
    assert "s3cret" not in str(caught.value)


def test_a_wrong_argument_of_the_engine_is_refused_by_its_own_path(exp8: Campaign) -> None:
    exp8.engine.serve["max_num_seq"] = 4
    with pytest.raises(ConfigError, match=r"^engine\.serve\.max_num_seq: "):
        resolve(exp8, "base")


def test_an_engine_without_a_pinned_list_of_arguments_is_refused(exp8: Campaign) -> None:
    exp8.engine.version = "0.99.0"
    with pytest.raises(ConfigError, match=r"engine version 0\.99\.0 \(there is 0\.29\.0\): make serve-arguments"):
        resolve(exp8, "base")


@pytest.mark.parametrize("file", sorted(ARGUMENTS.glob("*.json")), ids=lambda f: f.stem)
def test_a_pinned_list_says_of_every_argument_how_it_takes_a_value(file: Path) -> None:
    found = pinned_arguments(file.stem)
    assert set(found.values()) == {"switch", "value"}
    assert [name for name in found if name != name.lower() or "-" in name] == []
    assert json.loads(file.read_text(encoding="utf-8"))["version"] == file.stem


def test_the_reference_engines_own_arguments_are_known(exp8: Campaign) -> None:
    known = pinned_arguments(exp8.engine.version)
    assert {name: known[name] for name in ("async_scheduling", "enable_prefix_caching", "max_num_seqs")} == {
        "async_scheduling": "switch", "enable_prefix_caching": "switch", "max_num_seqs": "value",
    }  # fmt: skip


# async scheduling and overlays that cannot bear it


def test_an_overlay_that_reads_draft_ids_is_refused_in_an_arm_that_asks_for_async(exp8: Campaign, shelf: Shelf) -> None:
    shelf("reader", async_safe="false")
    with pytest.raises(
        ConfigError, match="asks for async scheduling, but overlay reader declares async_safe = false: it reads"
    ):
        resolve(arm(exp8, overlays=["reader"], serve={"async_scheduling": True}), "candidate")


def test_a_knob_whose_witness_is_async_asks_for_it_too(exp8: Campaign, shelf: Shelf) -> None:
    shelf("reader", async_safe="false")
    both = {"overlays": ["async_dflash", "reader"], "knobs": {"async_dflash": "1"}}
    with pytest.raises(ConfigError, match="overlay reader declares async_safe = false"):
        resolve(arm(exp8, **both), "candidate")


def test_the_same_overlay_is_fine_in_an_arm_that_does_not_ask(exp8: Campaign, shelf: Shelf) -> None:
    shelf("reader", async_safe="false")
    found = resolve(arm(exp8, overlays=["reader"], serve={"async_scheduling": False}), "candidate")
    assert "reader" in [o.name for o in found.overlays]


# the same asked twice is the same arm


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({"max_num_seqs": 8}, {"max_num_seqs": "8"}),
        ({"compilation_config": {"mode": 3, "level": 1}}, {"compilation_config": {"level": 1, "mode": 3}}),
        ({"compilation_config": {"mode": 3}}, {"compilation_config": '{"mode":3}'}),
        ({"block_size": 32, "seed": 1}, {"seed": 1, "block_size": 32}),
        ({"seed": None}, {}),
    ],
    ids=["number and text", "order of a map", "map and JSON text", "order of arguments", "null and nothing"],
)
def test_two_spellings_of_one_argument_are_the_same_arm(exp8: Campaign, first, second) -> None:
    """F3."""
    digests = [resolve(arm(exp8, serve=serve), "candidate").digest for serve in (first, second)]
    assert digests[0] == digests[1]


@pytest.mark.parametrize(
    "other",
    [
        {"serve": {"max_num_seqs": 9}},
        {"overlays": ["async_dflash"]},
        {"overlays": ["async_dflash"], "knobs": {"async_dflash": "1"}},
        {"serve": {"async_scheduling": True}},
        {"serve": {"async_scheduling": False}},
    ],
    ids=["argument", "overlay", "knob", "switch on", "switch off"],
)
def test_another_thing_asked_is_another_arm(exp8: Campaign, other: dict[str, Any]) -> None:
    plain = resolve(arm(exp8), "candidate").digest
    assert resolve(arm(exp8, **other), "candidate").digest != plain


def test_a_digest_is_of_the_value_and_not_of_its_order() -> None:
    assert digest({"a": 1, "b": [1, 2]}) == digest({"b": [1, 2], "a": 1}) != digest({"a": 1, "b": [2, 1]})


def test_what_is_asked_can_be_written_as_json(exp8: Campaign) -> None:
    asked = resolve(exp8, "candidate").asked
    assert json.loads(json.dumps(asked)) == asked


@pytest.mark.parametrize(
    ("value", "text"), [(8, "8"), ("x", "x"), (True, "true"), ("{no json", "{no json"), (0.5, "0.5")]
)
def test_a_value_has_one_spelling(value: object, text: str) -> None:
    assert spelled(value) == text
