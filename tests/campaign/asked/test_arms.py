"""An arm, resolved: all that is asked is checked by name and value before anything is started."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from campaign.asked.arms import digest, resolve, spelled
from campaign.config import Arm, Campaign
from campaign.errors import ConfigError

UPSTREAM = '[upstream]\nlink = "none"\nstatus = "none"\ndrop_when = "never"\n'
TARGET = '[[target]]\nversion = "0.29.0"\nbuilds = ["cpu"]\n[[target.file]]\npath = "vllm/envs.py"\n'
PINS = f'preimage_sha256 = "{"0" * 64}"\npostimage_sha256 = "{"0" * 64}"\n'
REFUSED = {  # arguments that move the server, take its counters away, or bring others past the door
    "uds": "/tmp/x.sock",
    "headless": True,
    "grpc": True,
    "root_path": "/v2",
    "ssl_certfile": "/c.pem",
    "ssl_keyfile": "/k.pem",
    "middleware": "my.module",
    "disable_log_stats": True,
    "config": "/more.yaml",
    "log_config_file": "/log.json",
    "data_parallel_rank": 1,
    "node_rank": 1,
    "skip_tokenizer_init": True,
    "fail_on_environ_validation": True,
}
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
    found, *_ = resolve(exp8, "candidate").knobs
    assert (found.knob.name, found.value, found.origin) == ("async_dflash", "1", "experiment exp8")


def test_a_knob_that_the_arm_does_not_name_keeps_its_overlays_default(exp8: Campaign) -> None:
    found, *_ = resolve(arm(exp8, overlays=["async_dflash"]), "candidate").knobs
    assert (found.value, found.origin) == ("0", "default of overlay async_dflash")


def test_what_must_be_seen_is_the_witness_of_the_value(exp8: Campaign) -> None:
    found, *_ = resolve(exp8, "candidate").knobs
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
        (None, "found 'None', wanted one of"),
        ([1], "wanted one of"),
    ],
    ids=repr,
)
@pytest.mark.case("F1", "F14")
def test_a_value_outside_the_closed_set_is_refused(exp8: Campaign, value: object, sentence: str) -> None:
    with pytest.raises(ConfigError, match=rf"arms\.candidate\.knobs\.async_dflash: .*{sentence}"):
        resolve(arm(exp8, overlays=["async_dflash"], knobs={"async_dflash": value}), "candidate")


def test_a_knob_of_an_overlay_that_is_not_staged_is_refused(exp8: Campaign) -> None:
    words = r"no staged overlay declares knob 'async_dflash'; overlay async_dflash does, stage it: "
    with pytest.raises(ConfigError, match=rf"{words}'arms\.candidate\.overlays=\[async_dflash\]'"):
        resolve(arm(exp8, knobs={"async_dflash": "1"}), "candidate")
    with pytest.raises(ConfigError, match=r"no staged overlay declares knob 'nosuch'; knobs come from knobs\.toml$"):
        resolve(arm(exp8, knobs={"nosuch": "1"}), "candidate")


def test_a_variable_that_a_knob_sets_cannot_be_set_beside_it(exp8: Campaign) -> None:
    exp8.engine.env["VLLM_GLM53_ASYNC_DFLASH"] = "0"
    with pytest.raises(
        ConfigError, match=r"engine\.env\.VLLM_GLM53_ASYNC_DFLASH: knob async_dflash sets this variable .*; use arms"
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


@pytest.mark.case("F14")
def test_an_argument_set_to_null_is_left_out(exp8: Campaign) -> None:
    """Null is "not given", never a text."""
    assert "dtype" not in dict(resolve(arm(exp8, serve={"dtype": None}), "candidate").serve)


@pytest.mark.parametrize(
    ("serve", "sentence"),
    [
        ({"max_num_seq": 4}, r"has no serve argument 'max_num_seq' \(did you mean 'max_num_seqs'\?\)"),
        ({"max-num-seqs": 4}, r"'max-num-seqs' \(did you mean 'max_num_seqs'\?\)"),
        ({"nonsense_at_all_": 4}, "vLLM 0.29.0 has no serve argument 'nonsense_at_all_'$"),
        ({"enforce_eager": 1}, "found 1, wanted true, false or null: it is a switch"),
        ({"enforce_eager": "false"}, "found 'false', wanted true, false or null"),
        ({"enforce_eager": "off"}, "found 'off', wanted true, false or null"),
        ({"max_num_seqs": True}, "found the truth value true, wanted a whole number; quote text"),
        ({"port": 8000}, "the runner sets port itself"),
        ({"host": "0.0.0.0"}, "the runner sets host itself"),
        ({"model": "x"}, "the runner sets model itself"),
        ({"served_model_name": "x"}, "the runner sets served_model_name itself"),
        ({"speculative_config": {"method": "ngram"}}, "the runner sets speculative_config itself"),
        ({"spec_tokens": 3}, "the runner sets spec_tokens itself"),
        ({"help": True}, "the runner sets help itself"),
        *(({name: value}, f"{name} .*; leave it out") for name, value in REFUSED.items()),
        ({"max_num_seqs": "2k"}, "found '2k', wanted a whole number"),
        ({"tensor_parallel_size": "1k"}, "found '1k', wanted a whole number"),
        ({"max_num_seqs": 0}, "found 0, wanted at least 1"),
        ({"tensor_parallel_size": 0}, "found 0, wanted at least 1"),
        ({"max_model_len": -2}, "found -2, wanted at least -1"),
        ({"block_size": 0}, "found 0, wanted more than 0"),
        ({"gpu_memory_utilization": 1.5}, "found 1.5, wanted at most 1"),
        ({"data_parallel_size": 2}, "found 2, wanted 1: the runner asks one engine behind one API server"),
        ({"api_server_count": 2}, "found 2, wanted 1"),
        ({"api_server_count": 0}, "found 0, wanted 1"),
        ({"nnodes": 2}, "found 2, wanted 1"),
        ({"model_loader_extra_config": {"access_token": "s3cret"}}, "access_token sounds like a secret"),
        ({"api_key": "s3cret"}, "a secret must not stand in an argument list; use engine.pass_env"),
        ({"hf_token": "s3cret"}, "a secret must not stand"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_a_wrong_serve_argument_is_refused_by_its_path(exp8: Campaign, serve: dict[str, object], sentence: str) -> None:
    with pytest.raises(ConfigError, match=rf"^arms\.candidate\.serve\.{next(iter(serve))}[:.].*{sentence}") as caught:
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


# variables


@pytest.mark.case("F14")
def test_a_variable_set_to_null_is_not_given(exp8: Campaign) -> None:
    exp8.engine.env["OMP_WAIT_POLICY"] = None
    assert "OMP_WAIT_POLICY" not in resolve(exp8, "base").environment


@pytest.mark.case("F1", "F13")
@pytest.mark.parametrize("value", [True, False, 750, 1.5, ["x"], {"a": 1}], ids=repr)
def test_a_variable_that_is_no_text_is_refused(exp8: Campaign, value: object) -> None:
    exp8.engine.env["SOME"] = value
    with pytest.raises(ConfigError, match=r"engine\.env\.SOME: found .* quote it"):
        resolve(exp8, "base")


@pytest.mark.parametrize("place", ["env", "pass_env"])
@pytest.mark.parametrize("name", ["PYTHONPATH", "VLLM_CAMPAIGN_REPORT_DIR", "CAMPAIGN_RUN_ID", "TMPDIR"])
def test_a_variable_of_the_runner_is_refused(exp8: Campaign, name: str, place: str) -> None:
    exp8.engine.env |= {name: "x"} if place == "env" else {}
    exp8.engine.pass_env += [name] if place == "pass_env" else []
    with pytest.raises(ConfigError, match=rf"engine\.{place}.*the runner sets {name} itself"):
        resolve(exp8, "base")


@pytest.mark.parametrize("place", ["env", "pass_env"])
@pytest.mark.parametrize(
    "name",
    ["PATH", "LANG", "LC_ALL", "PYTHONHOME", "PYTHONHASHSEED", "VLLM_LOGGING_LEVEL", "VLLM_LOGGING_CONFIG_PATH",
     "VLLM_PLUGINS", "VLLM_SERVER_DEV_MODE", "VLLM_DP_SIZE", "VLLM_USE_RUST_FRONTEND", "VLLM_MODEL_REDIRECT_PATH"],
)  # fmt: skip
def test_a_variable_that_would_cost_the_boot_or_hide_what_runs_is_refused_with_the_reason(
    exp8: Campaign, name: str, place: str
) -> None:
    exp8.engine.env |= {name: "x"} if place == "env" else {}
    exp8.engine.pass_env += [name] if place == "pass_env" else []
    with pytest.raises(ConfigError, match=rf"engine\.{place}.*{name} [a-z].*; leave it out"):
        resolve(exp8, "base")


@pytest.mark.parametrize("place", ["env", "pass_env"])
@pytest.mark.parametrize("name", ["A=B", "", "1A", "A B", "A\0", "A.B", "한국어", "A\n"], ids=repr)
def test_what_is_no_name_of_a_variable_is_refused(exp8: Campaign, name: str, place: str) -> None:
    exp8.engine.env |= {name: "x"} if place == "env" else {}
    exp8.engine.pass_env += [name] if place == "pass_env" else []
    with pytest.raises(ConfigError, match=r"is no variable's name; wanted letters, digits and '_'"):
        resolve(exp8, "base")


def test_a_variable_that_is_passed_and_set_by_the_same_is_refused(exp8: Campaign) -> None:
    exp8.engine.env["BOTH"] = "2"
    exp8.engine.pass_env.append("BOTH")
    with pytest.raises(ConfigError, match=r"variable BOTH is set by engine\.env and by engine\.pass_env"):
        resolve(exp8, "base")


@pytest.mark.parametrize("name", ["VLLM_API_KEY", "HF_TOKEN", "MY_SECRET", "DB_PASSWORD", "S3_ACCESS_KEY_ID"])
def test_a_secret_in_the_configuration_is_refused_and_not_repeated(exp8: Campaign, name: str) -> None:
    exp8.engine.env[name] = "s3cret"
    with pytest.raises(ConfigError, match=r"sounds like a secret.*engine\.pass_env") as caught:
        resolve(exp8, "base")
    assert "s3cret" not in str(caught.value)


@pytest.mark.parametrize("name", ["VLLM_API_KEY", "HF_TOKEN"])
def test_a_secret_may_be_passed_on(exp8: Campaign, name: str) -> None:
    exp8.engine.pass_env = [name]
    assert resolve(exp8, "base").passed == (name,)


@pytest.mark.case("C1", "C2")
@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("VLLM_ATTENTION_BACKEND", "reads no variable VLLM_ATTENTION_BACKEND"),
        ("VLLM_LOGING_LEVEL", r"did you mean 'VLLM_LOGGING_LEVEL'"),
        ("VLLM_FLASHINFER_MOE_BACKENDS", "and no overlay declares it; it would do nothing"),
    ],
)
def test_a_variable_that_nobody_reads_is_refused_before_a_boot(exp8: Campaign, name: str, hint: str) -> None:
    exp8.engine.env[name] = "x"
    with pytest.raises(ConfigError, match=rf"engine\.env\.{name}: .*{hint}"):
        resolve(exp8, "base")


@pytest.mark.case("C1", "C2")
def test_a_variable_that_nobody_reads_is_refused_also_where_it_is_passed_on(exp8: Campaign) -> None:
    exp8.engine.pass_env = ["VLLM_TYPO_X"]
    with pytest.raises(ConfigError, match=r"engine\.pass_env: vLLM 0\.29\.0 reads no variable VLLM_TYPO_X"):
        resolve(exp8, "base")


def test_a_passed_variable_of_an_overlay_goes_only_to_the_arm_that_stages_it(exp8: Campaign, shelf: Shelf) -> None:
    shelf("reader", requires='[]\nvariables = ["VLLM_READER_DEPTH"]')
    exp8.engine.pass_env = ["VLLM_READER_DEPTH"]
    arm(exp8, overlays=["reader"])
    base, candidate = resolve(exp8, "base"), resolve(exp8, "candidate")
    assert (base.passed, candidate.passed) == ((), ("VLLM_READER_DEPTH",))
    assert "engine.pass_env: VLLM_READER_DEPTH is not given to arm base" in " ".join(base.notes)


def test_a_variable_of_an_overlay_goes_only_to_the_arm_that_stages_it_and_that_is_said(
    exp8: Campaign, shelf: Shelf
) -> None:
    shelf("reader", requires='[]\nvariables = ["VLLM_READER_DEPTH"]')
    exp8.engine.env["VLLM_READER_DEPTH"] = "3"
    arm(exp8, overlays=["reader"])
    base, candidate = resolve(exp8, "base"), resolve(exp8, "candidate")
    assert ("VLLM_READER_DEPTH" in base.environment, candidate.environment["VLLM_READER_DEPTH"]) == (False, "3")
    assert "VLLM_READER_DEPTH is not given to arm base, which does not stage overlay reader" in " ".join(base.notes)
    assert candidate.notes == ()


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
        ({"max_model_len": 4000}, {"max_model_len": "4k"}),
        ({"max_model_len": "auto"}, {"max_model_len": -1}),
        ({"compilation_config": {"mode": 3, "level": 1}}, {"compilation_config": {"level": 1, "mode": 3}}),
        ({"compilation_config": {"mode": 3}}, {"compilation_config": '{"mode":3}'}),
        ({"block_size": 32, "seed": 1}, {"seed": 1, "block_size": 32}),
        ({"seed": None}, {}),
    ],
    ids=[
        "number and text",
        "number and thousands",
        "auto and -1",
        "order of a map",
        "map and JSON text",
        "order of arguments",
        "null and nothing",
    ],
)
@pytest.mark.case("F3")
def test_two_spellings_of_one_argument_are_the_same_arm(exp8: Campaign, first, second) -> None:
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


@pytest.mark.case("E11")
def test_another_environment_is_another_arm(exp8: Campaign) -> None:
    """The same id with another argv or environment is a new experiment, not a repeat."""
    plain = resolve(exp8, "base").digest
    exp8.engine.env["OMP_NUM_THREADS"] = "2"
    other = resolve(exp8, "base").digest
    exp8.engine.pass_env.append("MY_LIBRARY")
    assert len({plain, other, resolve(exp8, "base").digest}) == 3


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
