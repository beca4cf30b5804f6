"""Arguments and environment of one boot."""

from collections.abc import Callable
from typing import Any

import pytest

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
    ],
    ids=str,
)
def test_an_argument_is_written_as_the_engine_reads_it(value: object, words: tuple[str, ...]) -> None:
    assert argument("some_name", value) == words


def test_an_arm_and_its_engine_make_one_argument_list(make: Make) -> None:
    argv = make(serve={"max_num_seqs": 4, "enforce_eager": True, "seed": None}).argv
    text = " ".join(argv)
    assert "--max-num-seqs 4 --enforce-eager" in text
    assert "--seed" not in text
    assert argv[1:3] == ("-m", "vllm.entrypoints.openai.api_server")
    assert argv[-2:] == (
        "--speculative-config",
        '{"method": "dflash", "model": "/models/draft", "num_speculative_tokens": 5}',
    )


@pytest.mark.parametrize("name", ["port", "served_model_name", "api_key"])
def test_an_argument_that_is_the_runners_or_a_secret_is_refused(make: Make, name: str) -> None:
    with pytest.raises(ConfigError, match=name):
        make(serve={name: "x"})


def test_stray_variables_of_the_caller_do_not_reach_the_engine(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VLLM_ATTENTION_BACKEND", "TRITON_ATTN")
    monkeypatch.setenv("LD_PRELOAD_TOO", "x")
    monkeypatch.setenv("MY_LIBRARY", "/lib")
    env = make(pass_env=["MY_LIBRARY", "NOT_THERE"]).env
    assert env["MY_LIBRARY"] == "/lib"
    assert not {"VLLM_ATTENTION_BACKEND", "LD_PRELOAD_TOO", "NOT_THERE"} & env.keys()


@pytest.mark.parametrize("value", [True, ["x"]], ids=str)
def test_a_variable_that_is_no_text_is_refused(make: Make, value: Any) -> None:
    with pytest.raises(ConfigError, match=r"engine\.env\.SOME is .* quote it"):
        make(env={"SOME": value})


def test_a_variable_set_to_null_is_left_out(make: Make) -> None:
    assert "SOME" not in make(env={"SOME": None}).env


@pytest.mark.parametrize("name", ["PYTHONPATH", "VLLM_CAMPAIGN_REPORT_DIR", "CAMPAIGN_RUN_ID", "TMPDIR"])
def test_a_variable_that_the_runner_sets_is_refused_in_the_configuration(make: Make, name: str) -> None:
    with pytest.raises(ConfigError, match=rf"variable {name} is set by engine\.env and by the runner"):
        make(env={name: "x"})


def test_a_variable_that_is_passed_and_set_is_refused(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BOTH", "1")
    with pytest.raises(ConfigError, match=r"variable BOTH is set by engine\.env and by engine\.pass_env"):
        make(env={"BOTH": "2"}, pass_env=["BOTH"])


def test_the_tmpdir_leaves_room_for_the_engines_sockets(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", "/a/very/long/place/" * 5)
    assert len(make().env["TMPDIR"]) <= 60
