"""Command line over experiment over profile over default; who wrote a value, and what it goes over."""

import json
import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hydra.core.override_parser.overrides_parser import OverridesParser
from hypothesis import given
from hypothesis import strategies as st
from omegaconf import OmegaConf

from campaign.asked.arms import ResolvedArm, resolve, strays
from campaign.asked.origins import choose, typed
from campaign.config import Campaign, Level, Written, from_plain, to_plain
from campaign.console import format_plan
from campaign.errors import ConfigError
from campaign.planning.plan import make

HEAD = "# @package _global_\ndefaults:\n  - exp8\n  - _self_\n"
Ask = Callable[..., Campaign]


@pytest.fixture
def ask(compose, tmp_path: Path) -> Ask:
    """ask("override", ..., profile="A=1", experiment="engine: ..."): composed from files of the test's own."""

    def asked(*overrides: str, profile: str = "", experiment: str = "") -> Campaign:
        (tmp_path / "exp").mkdir(exist_ok=True)
        (tmp_path / "exp" / "mine.yaml").write_text(HEAD + experiment, encoding="utf-8")
        (tmp_path / "team.env").write_text(profile, encoding="utf-8")
        given = [f"engine.profile={tmp_path}/team.env"] if profile else []
        return compose("exp=mine", "--config-dir", str(tmp_path), *given, *overrides)

    return asked


def setting(arm: ResolvedArm, name: str) -> tuple[Any, str, list[str]]:
    """Value, who wrote it, and what it goes over."""
    found = next(s for s in arm.settings if s.name == name)
    return found.value, found.origin, [f"{w.origin} {w.value}" for w in found.over]


# precedence


PROFILE, EXPERIMENT = "MAX_NUM_SEQS=8\n", "engine: {serve: {max_num_seqs: 16}}\n"


@pytest.mark.parametrize(
    ("line", "profile", "experiment", "wanted"),
    [
        ("", "", "", (4, "engine reference_cpu", [])),
        ("", PROFILE, "", (8, "profile team.env:1", ["engine reference_cpu 4"])),
        ("", "", EXPERIMENT, (16, "experiment mine", ["engine reference_cpu 4"])),
        ("", PROFILE, EXPERIMENT, (16, "experiment mine", ["profile team.env:1 8", "engine reference_cpu 4"])),
        ("engine.serve.max_num_seqs=32", PROFILE, EXPERIMENT,
         (32, "command line", ["experiment mine 16", "profile team.env:1 8", "engine reference_cpu 4"])),
        ("engine.serve={max_num_seqs: 32}", PROFILE, "",
         (32, "command line", ["profile team.env:1 8", "engine reference_cpu 4"])),
        ("engine={serve: {max_num_seqs: 32}}", PROFILE, "",
         (32, "command line", ["profile team.env:1 8", "engine reference_cpu 4"])),
        ("arms.base.serve.max_num_seqs=32", PROFILE, EXPERIMENT,
         (32, "command line", ["experiment mine 16", "profile team.env:1 8", "engine reference_cpu 4"])),
        ("engine.serve.max_num_seqs=null", PROFILE, "",
         (None, "command line", ["profile team.env:1 8", "engine reference_cpu 4"])),
        ("engine.serve.max_num_seqs=4", "", "", (4, "command line", [])),
    ],
    ids=["default", "profile", "experiment", "experiment over profile", "command line over all", "a whole map",
         "a map of maps", "the arm's own", "null takes it out", "the same value goes over nothing"],
)  # fmt: skip
def test_the_order_is_command_line_experiment_profile_default(
    ask: Ask, line: str, profile: str, experiment: str, wanted: tuple[Any, str, list[str]]
) -> None:
    campaign = ask(*filter(None, [line]), profile=profile, experiment=experiment)
    assert setting(resolve(campaign, "base"), "max_num_seqs") == wanted


@pytest.mark.parametrize(
    ("overrides", "profile", "value", "origin"),
    [
        ([], "OMP_NUM_THREADS=4", "4", "profile team.env:1"),
        (["engine.env.OMP_NUM_THREADS='8'"], "OMP_NUM_THREADS=4", "8", "command line"),
        (["engine.env={OMP_NUM_THREADS: '8'}"], "OMP_NUM_THREADS=4", "8", "command line"),
        (["engine.env.OMP_NUM_THREADS=null"], "OMP_NUM_THREADS=4", None, "command line"),
        ([], "NCCL_DEBUG=INFO", None, ""),
    ],
    ids=["profile", "command line", "a whole map", "null unsets", "another key changes nothing"],
)
def test_a_variable_follows_the_same_order(
    ask: Ask, overrides: list[str], profile: str, value: str | None, origin: str
) -> None:
    arm = resolve(ask(*overrides, profile=profile), "base")
    found = setting(arm, "OMP_NUM_THREADS")
    assert found[:2] == ((value, origin) if origin else ("1", "engine reference_cpu"))


def test_a_profile_goes_over_what_the_engine_passes_on_but_not_over_a_typed_pass(ask: Ask) -> None:
    profiled = resolve(ask(profile="LD_PRELOAD=/a.so"), "base")
    assert (profiled.environment["LD_PRELOAD"], "LD_PRELOAD" in profiled.passed) == ("/a.so", False)
    passed = resolve(ask("engine.pass_env=[LD_PRELOAD]", profile="LD_PRELOAD=/a.so"), "base")
    assert ("LD_PRELOAD" in passed.environment, passed.passed) == (False, ("LD_PRELOAD",))


@pytest.mark.parametrize(
    ("overrides", "profile", "value", "origin"),
    [
        ([], "", "1", "experiment exp8"),
        ([], "VLLM_GLM53_ASYNC_DFLASH=0", "1", "experiment exp8"),
        (["arms.candidate.knobs.async_dflash=0"], "VLLM_GLM53_ASYNC_DFLASH=1", "0", "command line"),
        (['arms.candidate.knobs={async_dflash: "0"}'], "", "0", "command line"),
        (["~arms.candidate.knobs.async_dflash"], "VLLM_GLM53_ASYNC_DFLASH=1", "1", "profile team.env:1"),
        (["~arms.candidate.knobs.async_dflash"], "", "0", "default of overlay async_dflash"),
        (["~arms.candidate.knobs.async_dflash", "engine.knobs.async_dflash=1"], "", "1", "command line"),
    ],
    ids=["experiment", "over profile", "command line", "a whole map", "profile", "default", "for the engine"],
)
def test_a_knob_follows_the_same_order(ask: Ask, overrides: list[str], profile: str, value: str, origin: str) -> None:
    found = resolve(ask(*overrides, profile=profile), "candidate").knobs[0]
    assert (found.knob.name, found.value, found.origin) == ("async_dflash", value, origin)


@pytest.mark.parametrize(
    ("line", "spelling"),
    [
        ("engine.serve.async_scheduling=true", "write arms.base.serve.async_scheduling=True"),
        ("engine.knobs.async_dflash=0", "write arms.candidate.knobs.async_dflash=0"),
    ],
)
def test_what_is_typed_for_the_engine_is_never_lost_on_an_arm_that_sets_its_own(
    ask: Ask, line: str, spelling: str
) -> None:
    with pytest.raises(ConfigError, match=f"sets its own .*; {re.escape(spelling)}"):
        make(ask(line), "run-1")


def test_a_typed_engine_value_and_a_typed_arm_value_both_hold(ask: Ask) -> None:
    campaign = ask("engine.serve.max_num_seqs=8", "arms.base.serve.max_num_seqs=2")
    assert [dict(resolve(campaign, arm).serve)["max_num_seqs"] for arm in ("base", "candidate")] == [2, 8]


LEVELS = st.sampled_from(list(Level))


@given(st.lists(st.tuples(LEVELS, st.integers(0, 3)), min_size=1, max_size=6))
def test_the_strongest_wins_of_equals_the_later_and_nothing_else_is_lost(given: list[tuple[Level, int]]) -> None:
    found = [Written("k", level, f"writer {i}", value) for i, (level, value) in enumerate(given)]
    chosen = choose(found)
    assert all(chosen.winner.level.value >= entry.level.value for entry in found)
    assert not [e for e in found[found.index(chosen.winner) + 1 :] if e.level is chosen.winner.level]
    assert {e.origin for e in chosen.over} == {e.origin for e in found if e.value != chosen.winner.value}


# profiles through the door


@pytest.mark.parametrize(
    ("profile", "sentence"),
    [
        ("VLLM_GLM53_ASYNC_DFLSH=1", r"team\.env:1: .*did you mean 'VLLM_GLM53_ASYNC_DFLASH'"),
        (
            "VLLM_GLM53_ASYNC_DFLASH=yes",
            r"team\.env:1: VLLM_GLM53_ASYNC_DFLASH: found 'yes', wanted one of \"0\", \"1\"",
        ),
        ("MAX_NUM_SEQ=8", r"team\.env:1: .*did you mean 'MAX_NUM_SEQS'"),
        ("max_num_seqs=8", r"team\.env:1: .*did you mean 'MAX_NUM_SEQS'"),
        ("MAX_NUM_SEQS=many", r"team\.env:1: MAX_NUM_SEQS: found 'many', wanted a whole number"),
        ("MAX_MODEL_LEN=None", r"team\.env:1: MAX_MODEL_LEN: found the text 'None'"),
        ("ENFORCE_EAGER=yes", r"team\.env:1: ENFORCE_EAGER: found 'yes', wanted 1, 0, true or false"),
        ("DTYPE=float23", r"team\.env:1: DTYPE: found 'float23', wanted one of .*did you mean 'float32'"),
        ("PORT=8000", r"team\.env:1: PORT: the runner sets port itself"),
        ("SPECULATIVE_CONFIG={}", r"the runner sets speculative_config itself"),
        ("ENABLE_PREFIX_CACHING=0", r"team\.env:1: ENABLE_PREFIX_CACHING: knob prefix_cache .* write PREFIX_CACHE="),
        ("PREFIX_CACHE=on", r"team\.env:1: PREFIX_CACHE: found 'on', wanted one of \"auto\", \"0\", \"1\""),
        ("MY_OWN=1", r"team\.env:1: MY_OWN is no knob, no serve argument of vLLM 0\.29\.0 in upper case, and no"),
        ("VLLM_ATTENTION_BACKEND=FLASH_ATTN", r"team\.env:1: VLLM_ATTENTION_BACKEND is no knob"),
        ("VLLM_CACHE_ROOT=/x", r"team\.env:1: the runner sets VLLM_CACHE_ROOT itself"),
        ("HOME=/x", r"team\.env:1: the runner sets HOME itself"),
        ("# a\nVLLM_API_KEY=s3cret", r"team\.env:2: VLLM_API_KEY sounds like a secret"),
        ("HF_TOKEN=s3cret", r"team\.env:1: HF_TOKEN: a secret must not stand in an argument list"),
        ("MY_PASSWORD=s3cret", r"team\.env:1: MY_PASSWORD sounds like a secret"),
    ],
    ids=lambda value: value.split("=")[0].split("\n")[-1] if "team" not in value else "",
)
def test_a_profiles_line_that_cannot_be_meant_is_refused_with_file_and_line(
    ask: Ask, profile: str, sentence: str
) -> None:
    with pytest.raises(ConfigError, match=sentence) as caught:
        make(ask(profile=profile), "run-1")
    assert "s3cret" not in str(caught.value)


def test_a_profile_is_typed_by_the_engines_own_list(ask: Ask) -> None:
    arm = resolve(ask(profile='MAX_MODEL_LEN=4096\nENFORCE_EAGER=0\nCOMPILATION_CONFIG={"mode": 3}\nSEED=7\n'), "base")
    found = dict(arm.serve)
    assert [found[k] for k in ("max_model_len", "enforce_eager", "compilation_config", "seed")] == [
        4096, False, {"mode": 3}, 7,
    ]  # fmt: skip


def test_a_knob_of_an_overlay_that_an_arm_does_not_stage_is_said_and_not_given(ask: Ask) -> None:
    plan = make(ask(profile="VLLM_GLM53_ASYNC_DFLASH=1"), "run-1")
    text = "\n".join(format_plan(plan))
    note = (
        "team.env:1: VLLM_GLM53_ASYNC_DFLASH=1 is not given to arm base, which stages no overlay with knob async_dflash"
    )
    assert text.count(note) == 1
    assert "VLLM_GLM53_ASYNC_DFLASH" not in plan.arms["base"].environment


def test_two_lines_that_set_one_knob_otherwise_are_refused(ask: Ask) -> None:
    text = "PREFIX_CACHE=1\nVLLM_USE_V2_MODEL_RUNNER=0\nPREFIX_CACHE=auto\n"
    with pytest.raises(ConfigError, match=r"team\.env:3: PREFIX_CACHE is already set on line 1"):
        ask(profile=text)


def test_a_run_is_resumed_without_the_profile(ask: Ask, tmp_path: Path) -> None:
    """plan.json keeps what the profile said."""
    campaign = ask("engine.serve.max_num_seqs=2", profile="MAX_MODEL_LEN=1024\nPREFIX_CACHE=0\n", experiment=EXPERIMENT)
    first = make(campaign, "run-1")
    (tmp_path / "team.env").unlink()
    again = make(from_plain(json.loads(json.dumps(to_plain(campaign)))), "run-1")
    assert again.arms == first.arms
    assert format_plan(again) == format_plan(first)


def test_the_part_that_the_runner_writes_cannot_be_typed(ask: Ask) -> None:
    with pytest.raises(ConfigError, match="origins: the runner writes this part itself"):
        ask("origins.written=[{key: a, level: profile, origin: me, value: 1}]")


def test_an_interpolation_that_was_overridden_is_told_and_not_resolved(ask: Ask, monkeypatch) -> None:
    monkeypatch.setenv("MY_SEQS", "7")
    experiment = "engine: {serve: {max_num_seqs: '${oc.decode:${oc.env:MY_SEQS}}'}}\n"
    assert setting(resolve(ask(experiment=experiment), "base"), "max_num_seqs")[:2] == (7, "experiment mine")
    over = setting(resolve(ask("engine.serve.max_num_seqs=2", experiment=experiment), "base"), "max_num_seqs")[2]
    assert over == ["experiment mine an interpolation", "engine reference_cpu 4"]


# the shell


@pytest.mark.parametrize(
    ("shell", "profile", "said"),
    [
        ({"VLLM_GLM53_ASYNC_DFLASH": "0"}, "", [
            "VLLM_GLM53_ASYNC_DFLASH=0 of this shell is not used (arm base has none, arm candidate has 1); "
            "to use it: arms.candidate.knobs.async_dflash=0"]),
        ({"VLLM_USE_V2_MODEL_RUNNER": "1"}, "", [
            "VLLM_USE_V2_MODEL_RUNNER=1 of this shell is not used (arm base has none, arm candidate has none); "
            "to use it: arms.base.knobs.model_runner=1 arms.candidate.knobs.model_runner=1"]),
        ({"MAX_MODEL_LEN": "512"}, "MAX_MODEL_LEN=1024", [
            "MAX_MODEL_LEN=512 of this shell is not used (arm base has 1024, arm candidate has 1024); to use it: "
            "arms.base.serve.max_model_len=512 arms.candidate.serve.max_model_len=512"]),
        ({"NCCL_DEBUG": "WARN"}, "NCCL_DEBUG=INFO", [
            "NCCL_DEBUG=WARN of this shell is not used (arm base has INFO, arm candidate has INFO); to use it: "
            """engine.env.NCCL_DEBUG='"WARN"'"""]),
        ({"NCCL_DEBUG": "INFO", "MAX_MODEL_LEN": "1024"}, "NCCL_DEBUG=INFO\nMAX_MODEL_LEN=1024", []),
        ({"MAX_MODEL_LEN": "512", "VLLM_LOGGING_LEVEL": "DEBUG"}, "", []),
    ],
    ids=["a knob", "a knob of both arms", "an argument", "a variable", "the same", "nobody speaks of it"],
)  # fmt: skip
def test_a_value_of_the_shell_that_is_not_used_is_said_with_the_way_to_use_it(
    ask: Ask, shell: dict[str, str], profile: str, said: list[str]
) -> None:
    campaign = ask(profile=profile)
    arms = {name: resolve(campaign, name) for name in campaign.arms}
    assert strays(arms, campaign.origins.profile, shell) == said
    for line in said:
        make(ask(*shlex.split(line.partition("to use it: ")[2]), profile=profile), "run-1")


@pytest.mark.parametrize(
    ("passed", "said"),
    [
        ("[MY_OWN]", ["MY_OWN is not set"]),
        ("[LD_PRELOAD]", ["LD_PRELOAD is not set"]),
        ("[THERE]", []),
        ("", []),
    ],
    ids=["a name of one's own", "a library's", "it is there", "what the engine's file passes on"],
)  # fmt: skip
def test_a_variable_that_is_to_be_passed_on_and_is_not_there_is_said(ask: Ask, passed: str, said: list[str]) -> None:
    campaign = ask(*([f"engine.pass_env={passed}"] if passed else []))
    arms = {name: resolve(campaign, name) for name in campaign.arms}
    tail = " in this shell, so engine.pass_env (command line) gives the engine nothing"
    assert strays(arms, [], {"THERE": "1"}) == [f"{name}{tail}" for name in said]


def test_the_dry_run_says_what_the_shell_has_for_nothing(command) -> None:
    done = command("exp=exp8", "dry_run=true", env={"VLLM_GLM53_ASYNC_DFLASH": "0"})
    assert done.stdout.startswith("note: VLLM_GLM53_ASYNC_DFLASH=0 of this shell is not used")
    assert "knob async_dflash=1 (VLLM_GLM53_ASYNC_DFLASH; experiment exp8)" in done.stdout


def test_the_dry_run_shows_every_value_with_who_wrote_it_and_what_it_goes_over(asked, tmp_path: Path) -> None:
    (tmp_path / "team.env").write_text("MAX_MODEL_LEN=8192\nPREFIX_CACHE=0\nNCCL_DEBUG=INFO\n")
    done = asked("exp=exp8", "dry_run=true", f"engine.profile={tmp_path}/team.env", "engine.serve.max_model_len=4096")
    assert (done.returncode, done.stderr) == (0, "")
    for line in (
        "serve --max-model-len 4096 (command line; over profile team.env:1 8192; over engine reference_cpu 2048)",
        "knob prefix_cache=auto (--no-enable-prefix-caching; profile team.env:2)  auto: dflash reads KV that",
        "env NCCL_DEBUG=INFO (profile team.env:3)",
        "note        team.env:2: PREFIX_CACHE=0 is read as auto: in a profile 0 was the drafter path's default",
    ):
        assert line in done.stdout


@pytest.mark.case("F5")
@given(st.text(st.characters(exclude_categories=("Cs", "Cc")), max_size=20) | st.text("\\\\\"'${}a =#,", max_size=12))
def test_a_value_as_we_spell_it_is_what_the_command_line_reads(value: str) -> None:
    (word,) = shlex.split(typed("engine.env.X", value))
    (override,) = OverridesParser.create().parse_overrides([word])
    assert OmegaConf.to_container(OmegaConf.create({"x": override.value()}), resolve=True) == {"x": value}
