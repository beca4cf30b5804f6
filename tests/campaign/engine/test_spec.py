"""Arguments and environment of one boot."""

from collections.abc import Callable

import pytest

from campaign.asked import variables
from campaign.asked.variables import RUNNERS
from campaign.engine.spec import EngineSpec, argument
from campaign.errors import ConfigError

Make = Callable[..., EngineSpec]


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (True, ("--some-name",)),
        (False, ("--no-some-name",)),
        (3, ("--some-name", "3")),
        (0.5, ("--some-name", "0.5")),
        ("한 $x", ("--some-name", "한 $x")),
        ("-1", ("--some-name=-1",)),
        (["a", 1], ("--some-name", '["a", 1]')),
        ({"k": "값"}, ("--some-name", '{"k": "값"}')),
        ((1, 2), ("--some-name", "1", "2")),
    ],
    ids=str,
)
def test_an_argument_is_written_as_the_engine_reads_it(value: object, words: tuple[str, ...]) -> None:
    assert argument("some_name", value) == words


def test_an_arm_and_its_engine_make_one_argument_list(make: Make) -> None:
    argv = make(serve={"max_num_seqs": 4, "enforce_eager": True}).argv
    assert "--max-num-seqs 4 --enforce-eager" in " ".join(argv)
    assert argv[1:3] == ("-m", "vllm.entrypoints.openai.api_server")
    assert argv[-2:] == (
        "--speculative-config",
        '{"method": "dflash", "model": "/models/draft", "num_speculative_tokens": 5}',
    )


def test_stray_variables_of_the_caller_do_not_reach_the_engine(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VLLM_ATTENTION_BACKEND", "TRITON_ATTN")
    monkeypatch.setenv("LD_PRELOAD_TOO", "x")
    monkeypatch.setenv("MY_LIBRARY", "/lib")
    env = make(pass_env=["MY_LIBRARY", "NOT_THERE"]).env
    assert env["MY_LIBRARY"] == "/lib"
    assert not {"VLLM_ATTENTION_BACKEND", "LD_PRELOAD_TOO", "NOT_THERE"} & env.keys()


def test_every_variable_that_the_runner_sets_is_refused_where_a_person_writes_one(make: Make) -> None:
    """One list (campaign/asked/variables.py) stands for what spec.build sets; a person may change only these few."""
    changeable = {"DO_NOT_TRACK", "VLLM_NO_USAGE_STATS", "VLLM_ENGINE_READY_TIMEOUT_S", "HF_HUB_OFFLINE"}
    set_by_us = {name for name in make().env if not name.startswith("FAKE_")} - changeable
    assert set_by_us
    for name in sorted(set_by_us):
        with pytest.raises(ConfigError, match=rf"the runner sets {name} itself|{name} .*; leave it out"):
            variables.refuse("engine.env", name)


@pytest.mark.parametrize("name", RUNNERS)
def test_what_the_runner_sets_wins_over_everything(make: Make, name: str) -> None:
    assert make(env={name: "planted"}).env[name] != "planted"


@pytest.mark.parametrize(
    "name", ["DB_PASSWD", "TOKEN2", "PASSPHRASE", "GH_PAT", "HF_AUTH", "COOKIE", "VLLM_API_KEY", "MY_OWN", "HF_HOME"]
)
def test_what_is_passed_on_is_masked_in_the_record_unless_its_name_is_known(
    make: Make, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv(name, "hunter2")
    spec = make(pass_env=[name])
    assert (spec.env[name], spec.public_env()[name]) == ("hunter2", "***")


@pytest.mark.parametrize("name", ["LD_PRELOAD", "CUDA_VISIBLE_DEVICES", "NCCL_DEBUG", "OMP_NUM_THREADS", "VLLM_SOME"])
def test_what_is_known_to_be_no_secret_is_shown_unless_its_value_is_one(
    make: Make, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    for value, shown in (("/lib/x.so", "/lib/x.so"), ("http://bob:hunter2@h:1", "***")):
        monkeypatch.setenv(name, value)
        assert make(pass_env=[name]).public_env()[name] == shown


def test_the_tmpdir_leaves_room_for_the_engines_sockets(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", "/a/very/long/place/" * 5)
    assert len(make().env["TMPDIR"]) <= 60
