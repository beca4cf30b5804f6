"""The tree of conf/, composed and parsed: closed where it is closed, open where it is open, typed everywhere."""

import json
import math
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
import yaml
from omegaconf import OmegaConf

from campaign import config
from campaign.asked import places
from campaign.config import ROOT, Arm, Bracket, Campaign, ClaimKindName, from_plain, open_maps, parse, to_plain
from campaign.errors import ConfigError
from campaign.planning.plan import make

CONF = ROOT / "conf"
EXPERIMENTS = sorted((CONF / "exp").glob("*.yaml"))
OF_TESTS = sorted((ROOT / "tests" / "conf" / "exp").glob("*.yaml"))
GROUPS = [path for path in sorted(CONF.glob("*/*.yaml")) if path.parent.name != "exp" and path.stem != "local"]
LONGEST_EXPERIMENT = 40  # lines
DEFAULT_GROUPS = ("engine", "model", "launcher", "workload", "bracket", "gates", "tracking", "host")


def write_experiment(folder: Path, text: str) -> Path:
    """A tree of the operator's own with one experiment that builds on exp8."""
    (folder / "exp").mkdir(exist_ok=True)
    head = "# @package _global_\ndefaults:\n  - exp8\n  - _self_\n"
    (folder / "exp" / "mine.yaml").write_text(head + text, encoding="utf-8")
    return folder


def changed(campaign: Campaign, path: str, value: Any) -> Campaign:
    """The same configuration with one other value, parsed as if it had been written."""
    tree = OmegaConf.create(to_plain(campaign))
    OmegaConf.update(tree, path, value)
    return parse(tree)


def leaves(node: Any, path: str = "") -> dict[str, Any]:
    """Dotted path -> value of everything that a YAML tree writes; an empty map is a value too."""
    if not isinstance(node, dict) or not node:
        return {path: node}
    found: dict[str, Any] = {}
    for key, value in node.items():
        found |= leaves(value, f"{path}.{key}" if path else str(key))
    return found


# the experiments that ship


@pytest.mark.parametrize("file", EXPERIMENTS, ids=lambda f: f.stem)
def test_every_experiment_composes_and_makes_a_plan(file: Path, compose) -> None:
    plan = make(compose(f"exp={file.stem}"), "run-1")
    assert plan.campaign.name == file.stem


@pytest.mark.parametrize("file", EXPERIMENTS, ids=lambda f: f.stem)
def test_an_experiment_is_short_and_says_how_it_is_run(file: Path) -> None:
    lines = file.read_text(encoding="utf-8").splitlines()
    assert len(lines) <= LONGEST_EXPERIMENT
    assert lines[:2] == ["# @package _global_", f"# python -m campaign exp={file.stem}"]


@pytest.mark.case("F8")
@pytest.mark.parametrize("file", [*EXPERIMENTS, *OF_TESTS], ids=lambda f: f.stem)
def test_an_experiment_states_self_and_a_hypothesis(file: Path) -> None:
    written = yaml.safe_load(file.read_text(encoding="utf-8"))
    assert "_self_" in written["defaults"]
    assert len(written["hypothesis"].split()) > 4


@pytest.mark.case("F8")
@pytest.mark.parametrize("file", [*EXPERIMENTS, *OF_TESTS], ids=lambda f: f.stem)
def test_what_an_experiment_writes_is_what_is_composed(file: Path, compose) -> None:
    """The order of the defaults list must not let another file win."""
    written = yaml.safe_load(file.read_text(encoding="utf-8"))
    del written["defaults"]
    own = ["--config-dir", str(file.parents[1])] if file in OF_TESTS else []
    asked = ["arms.candidate.overlays=[]"] if "overlays: ???" in file.read_text(encoding="utf-8") else []
    composed = OmegaConf.create(to_plain(compose(f"exp={file.stem}", *own, *asked)))
    for path, value in leaves(written).items():
        if value == "???":
            continue
        wanted = OmegaConf.select(composed, value[2:-1]) if isinstance(value, str) and value[:2] == "${" else value
        assert OmegaConf.select(composed, path) == wanted, path


@pytest.mark.parametrize("file", GROUPS, ids=lambda f: f"{f.parent.name}={f.stem}")
def test_every_choice_of_every_group_composes(file: Path, compose) -> None:
    assert compose("exp=aa", "bracket.max_boots=8", f"{file.parent.name}={file.stem}").name == "aa"


def test_the_paths_that_people_override_keep_their_names(compose) -> None:
    """house.md lists them."""
    found = to_plain(compose("exp=exp8"))
    tree = OmegaConf.create(found)
    paths = (
        "arms.base.overlays arms.base.knobs arms.base.serve workload.max_tokens workload.prompts gates.quality.prompts "
        "gates.korean.prompts bracket.schedule bracket.max_boots engine.overlays host.overlay_path dry_run"
    )
    assert [p for p in paths.split() if OmegaConf.select(tree, p, default="absent") == "absent"] == []


def test_every_group_of_the_house_is_a_folder_and_a_default() -> None:
    defaults = yaml.safe_load((CONF / "config.yaml").read_text(encoding="utf-8"))["defaults"]
    named = {key for item in defaults if isinstance(item, dict) for key in item}
    assert set(DEFAULT_GROUPS) <= named
    assert [group for group in DEFAULT_GROUPS if not (CONF / group).is_dir()] == []


@pytest.mark.case("C5")
def test_the_drafting_method_is_always_named() -> None:
    """A method inferred from a path has been wrong."""
    models = [yaml.safe_load(f.read_text(encoding="utf-8")) for f in (CONF / "model").glob("*.yaml")]
    assert [m["name"] for m in models if m.get("drafter") and not m.get("method")] == []


@pytest.mark.case("F12")
def test_paths_do_not_depend_on_where_the_command_was_started(compose, monkeypatch, tmp_path: Path) -> None:
    here = to_plain(compose("exp=exp8"))
    monkeypatch.chdir(tmp_path)
    assert to_plain(compose("exp=exp8")) == here
    assert [here["workload"]["prompts"], here["host"]["runs_dir"]] == [
        str(ROOT / "testbed/prompts/decode.jsonl"),
        str(ROOT / "runs"),
    ]


@pytest.mark.case("F12")
@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("workload.prompts", "testbed/prompts/decode.jsonl"),
        ("gates.quality.prompts", "testbed/prompts/quality.jsonl"),
        ("host.runs_dir", "runs"),
        ("host.cache_dir", "runs/cache"),
        ("engine.python", ".venv-engine/bin/python"),
        ("model.target", "testbed/weights/target"),
    ],
)
def test_a_relative_path_is_made_absolute_where_it_was_typed(
    exp8: Campaign, monkeypatch, path: str, value: str
) -> None:
    """A resume comes from another folder, the engine has a working directory of its own."""
    monkeypatch.chdir(ROOT)
    found = to_plain(places.absolute(changed(exp8, path, value)))
    assert OmegaConf.select(OmegaConf.create(found), path) == str(ROOT / value)


def test_the_command_line_makes_its_paths_absolute(compose, monkeypatch) -> None:
    monkeypatch.chdir(ROOT)
    found = compose("exp=exp8", "workload.prompts=testbed/prompts/decode.jsonl", "host.overlay_path=[tests/overlays]")
    assert found.workload.prompts == str(ROOT / "testbed/prompts/decode.jsonl")
    assert found.host.overlay_path == [str(ROOT / "tests/overlays")]


def test_a_model_of_a_hub_keeps_its_name(exp8: Campaign, monkeypatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    assert places.absolute(changed(exp8, "model.target", "org/model")).model.target == "org/model"


@pytest.mark.parametrize("key", ["target", "drafter"])
@pytest.mark.parametrize("path", ["testbed/weigths/target", "testbed/nosuch", "./nosuch", "../x", "~/model", "a/b/c"])
def test_a_models_path_that_leads_nowhere_is_not_taken_for_a_hubs_name(
    exp8: Campaign, monkeypatch, key: str, path: str
) -> None:
    """The engine would look for it offline, and lose a boot."""
    monkeypatch.chdir(ROOT)
    with pytest.raises(ConfigError, match=rf"model\.{key}: found '.*', a path that leads nowhere from "):
        places.absolute(changed(exp8, f"model.{key}", path))


# the schema


@pytest.mark.case("F10")
@pytest.mark.parametrize(
    "override",
    [
        "nosuch=1", "+nosuch=1", "++nosuch=1", "bracket.max_boot=4", "+bracket.nosuch=1", "+claims.step_rate.nosuch=1",
        "+arms.candidate.nosuch=1", "+engine.nosuch=1", "+gates.nosuch={}", "gates.quality.nosuch=1", "+host.nosuch=1",
        "hydra.ouput_subdir=zz",
    ],
)  # fmt: skip
def test_a_key_that_nobody_reads_is_refused_even_when_it_is_forced(compose, override: str) -> None:
    with pytest.raises(ConfigError, match=r"No such key|not in '|Could not override"):
        compose("exp=exp8", override)


@pytest.mark.parametrize(
    ("override", "sentence"),
    [
        ("host.port=abc", "host.port: found 'abc', wanted a whole number"),
        ("host.port=8080.5", "host.port: found '8080.5', wanted a whole number"),
        ("host.port=true", "host.port: found 'True', wanted a whole number"),
        ("dry_run=maybe", "dry_run: found 'maybe', wanted true or false"),
        ("claims.step_rate.kind=nosuch", "claims.step_rate.kind.*nosuch.*superiority"),
        ("claims.step_rate.gate_pct=much", "claims.step_rate.gate_pct: found 'much', wanted a number"),
        ("launcher.name=docker", "launcher.name.*docker.*local"),
        ("name=null", "name"),
        ("host.history_sd_pct=None", "history_sd_pct: found 'None', wanted a number"),
        ("gates.quality=None", "gates.quality.*None"),
        ("workload.max_tokens=${oc.env:HOME}", "workload.max_tokens"),
        ("workload.prompts=${nosuch.key}", "nosuch.key.*not found"),
        ("workload.prompts=${oc.env:NOSUCH_VARIABLE}", "NOSUCH_VARIABLE"),
    ],
    ids=lambda value: value if "=" in value else "",
)
def test_a_wrong_type_says_where_what_was_found_and_what_is_wanted(compose, override: str, sentence: str) -> None:
    with pytest.raises(ConfigError, match=f"(?i){sentence}"):
        compose("exp=exp8", override)


@pytest.mark.case("F2")
def test_text_from_the_environment_is_no_truth_value(compose, monkeypatch) -> None:
    """The text "0" is true as a text; the typed schema decodes it and the resolved configuration records it."""
    monkeypatch.setenv("MIRROR", "0")
    found = compose("exp=exp8", "bracket.mirror=${oc.env:MIRROR}")
    assert found.bracket.mirror is False
    assert to_plain(found)["bracket"]["mirror"] is False


@pytest.mark.case("F14")
@pytest.mark.parametrize("path", ["tracking.uri", "model.drafter", "model.method"])
@pytest.mark.parametrize("text", ["None", "none", "null"])
def test_the_text_none_is_not_null(exp8: Campaign, path: str, text: str) -> None:
    with pytest.raises(ConfigError, match=f"{path}.*null"):
        changed(exp8, path, text)


@pytest.mark.parametrize("path", ["host.overlay_path", "engine.overlays", "engine.pass_env", "arms.base.overlays"])
@pytest.mark.parametrize("value", [[["a"]], [{"a": 1}], ["a", None]], ids=repr)
def test_a_list_of_texts_holds_texts(exp8: Campaign, path: str, value: list[Any]) -> None:
    """OmegaConf lets a list stand where a text is wanted; found by the fuzz."""
    with pytest.raises(ConfigError, match=path):
        changed(exp8, path, value)


def test_null_is_null(compose) -> None:
    assert compose("exp=exp8", "tracking.uri=null").tracking.uri is None


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("workload.repeats", 0), ("workload.max_tokens", 0), ("workload.max_tokens", -1),
        ("workload.warm_up_requests", -1), ("host.port", 0), ("host.port", 99999), ("engine.boot_timeout_s", -1),
        ("engine.boot_timeout_s", math.inf), ("engine.request_timeout_s", math.nan), ("engine.stop_timeout_s", 0),
        ("model.num_speculative_tokens", -3), ("bracket.max_boots", 0), ("host.history_sd_pct", -1),
        ("host.history_sd_pct", math.nan), ("host.min_free_gb", -1),
        ("gates.step_rate.drift_pct", 100), ("gates.step_rate.drift_pct", 0), ("gates.step_rate.prefix_hits_pp", -1),
    ],
)  # fmt: skip
def test_a_number_that_cannot_be_meant_is_refused_with_its_range(exp8: Campaign, path: str, value: float) -> None:
    with pytest.raises(ConfigError, match=rf"{path}: found .* wanted"):
        changed(exp8, path, value)


@pytest.mark.parametrize("name", ["../x", "a/b", "my exp", "", ".", "한국어", "-x", "x" * 200])
def test_a_name_that_cannot_be_a_folder_is_refused(exp8: Campaign, name: str) -> None:
    with pytest.raises(ConfigError, match="name: found"):
        changed(exp8, "name", name)


def test_a_history_needs_its_degrees_of_freedom(compose) -> None:
    with pytest.raises(ConfigError, match="history_df"):
        compose("exp=exp8", "host.history_sd_pct=2")


# text for the engine


@pytest.mark.case("F1")
@pytest.mark.parametrize("value", ["off", "no", "on", "yes", "true"])
def test_a_yaml_truth_value_in_the_engines_environment_is_refused_before_anything_runs(
    compose, tmp_path: Path, value: str
) -> None:
    tree = write_experiment(tmp_path, f"engine: {{env: {{SOME_SWITCH: {value}}}}}\n")
    with pytest.raises(ConfigError, match=r"engine\.env\.SOME_SWITCH: .*quote it"):
        make(compose("exp=mine", "--config-dir", str(tree)), "run-1")


@pytest.mark.case("F13")
@pytest.mark.parametrize(("value", "read_as"), [("12:30", 750), ("0123", 83), ("1e4", 10000.0)])
def test_a_number_that_yaml_reads_otherwise_never_reaches_the_engine(
    compose, tmp_path: Path, value: str, read_as: float
) -> None:
    tree = write_experiment(tmp_path, f"engine: {{env: {{START_AT: {value}}}}}\n")
    with pytest.raises(ConfigError, match=rf"engine\.env\.START_AT: .*{read_as}.*quote it"):
        make(compose("exp=mine", "--config-dir", str(tree)), "run-1")


@pytest.mark.case("F13")
@pytest.mark.parametrize("value", ["off", "12:30", "0123", "1e4", "한국어", "a=b,c"])
def test_quoted_text_reaches_the_engine_as_it_is_written(compose, tmp_path: Path, value: str) -> None:
    tree = write_experiment(tmp_path, f'engine: {{env: {{X: "{value}"}}}}\n')
    assert compose("exp=mine", "--config-dir", str(tree)).engine.env["X"] == value


@pytest.mark.case("F14")
def test_a_null_variable_is_unset_and_not_the_text(compose) -> None:
    assert make(compose("exp=exp8", "engine.env.OMP_WAIT_POLICY=null"), "run-1").campaign.engine.env[
        "OMP_WAIT_POLICY"
    ] in (None, "absent")


# open maps


@pytest.mark.parametrize(
    ("override", "opened"),
    [
        ("arms.base.serve.max_num_seqs=8", "++arms.base.serve.max_num_seqs=8"),
        ("arms.candidate.knobs.async_dflash=0", "++arms.candidate.knobs.async_dflash=0"),
        ("arms.base.serve.x={a: 1}", "++arms.base.serve.x={a: 1}"),
        ("arms.base.serve.x=a=b", "++arms.base.serve.x=a=b"),
        ("arms.base.serve={x: 1}", "++arms.base.serve={x: 1}"),
        ("arms.base.knobs={x: 1}", "++arms.base.knobs={x: 1}"),
        ("arms.candidate={serve: {x: 1}}", "++arms.candidate={serve: {x: 1}}"),
        ("arms={candidate: {serve: {x: 1}}}", "++arms={candidate: {serve: {x: 1}}}"),
        ("engine={serve: {x: 1}}", "++engine={serve: {x: 1}}"),
        ("engine.env={X: a}", "++engine.env={X: a}"),
        ("engine=gpu", "engine=gpu"),
        ("engine.exp8={gate_pct: 1}", "engine.exp8={gate_pct: 1}"),
        ("arms.base.serve=null", "arms.base.serve=null"),
        ("arms.base.overlays=[a]", "arms.base.overlays=[a]"),
        ("+arms.base.serve.x=1", "+arms.base.serve.x=1"),
        ("~arms.base.serve.x", "~arms.base.serve.x"),
        ("engine.serve.x=1", "++engine.serve.x=1"),
        ("engine.env.X='a'", "++engine.env.X='a'"),
        ("engine.knobs.x=1", "++engine.knobs.x=1"),
        ("engine.serve={x: 1}", "++engine.serve={x: 1}"),
        ("engine.pass_env=[X]", "engine.pass_env=[X]"),
        ("exp=exp8", "exp=exp8"),
    ],
)
def test_only_new_names_of_knobs_and_serve_need_no_plus(override: str, opened: str) -> None:
    assert open_maps([override]) == [opened]


@pytest.mark.parametrize("plus", ["", "+", "++"])
def test_a_new_serve_argument_composes_with_and_without_a_plus(compose, plus: str) -> None:
    found = compose("exp=exp8", f"{plus}arms.candidate.serve.block_size=32")
    assert found.arms["candidate"].serve["block_size"] == 32


@pytest.mark.parametrize(
    "override",
    ["arms.base.serve={max_num_seqs: 2}", "arms.base={serve: {max_num_seqs: 2}}", "engine.serve={max_num_seqs: 2}",
     "arms={base: {serve: {max_num_seqs: 2}}}", "engine={serve: {max_num_seqs: 2, seed: 1}}"],
)  # fmt: skip
def test_a_whole_map_may_hold_new_names_and_is_laid_over_what_is_there(compose, override: str) -> None:
    found = dict(make(compose("exp=exp8", override), "run-1").arms["base"].serve)
    assert (found["max_num_seqs"], found["async_scheduling"], found["dtype"]) == (2, False, "float32")


@pytest.mark.case("F10")
@pytest.mark.parametrize("override", ["arms.base={serv: {x: 1}}", "engine={nosuch: 1}", "arms={base: {x: 1}}"])
def test_a_whole_map_is_closed_where_the_schema_is(compose, override: str) -> None:
    with pytest.raises(ConfigError, match=r"serv|nosuch|x"):
        compose("exp=exp8", override)


def test_a_serve_argument_that_the_experiment_sets_can_be_overridden(compose) -> None:
    assert compose("exp=exp8", "arms.base.serve.async_scheduling=null").arms["base"].serve["async_scheduling"] is None


# there and back


@pytest.mark.parametrize("file", EXPERIMENTS, ids=lambda f: f.stem)
def test_a_configuration_comes_back_from_plan_json_as_it_was(file: Path, compose) -> None:
    found = compose(f"exp={file.stem}")
    assert from_plain(json.loads(json.dumps(to_plain(found)))) == found


def test_a_plan_json_with_an_unknown_key_is_refused(exp8: Campaign) -> None:
    plain = to_plain(exp8)
    plain["engine"]["nosuch"] = 1
    with pytest.raises(ConfigError, match="nosuch"):
        from_plain(plain)


def test_a_plan_json_without_a_name_is_refused(exp8: Campaign) -> None:
    plain = to_plain(exp8)
    del plain["name"]
    with pytest.raises(ConfigError, match="name"):
        from_plain(plain)


def test_a_kind_is_an_enum_and_plain_text_outside(exp8: Campaign) -> None:
    assert exp8.claims["step_rate"].kind is ClaimKindName.superiority
    assert to_plain(exp8)["claims"]["step_rate"]["kind"] == "superiority"


def test_registering_twice_is_as_once() -> None:
    config.register()
    config.register()
    assert OmegaConf.create({"x": "${root:conf}"}).x == str(CONF)


def test_defaults_of_the_schema_are_not_shared_between_campaigns() -> None:
    first, second = Campaign(), Campaign()
    first.arms["x"] = Arm()
    first.host.overlay_path.append("/x")
    assert (second.arms, second.host.overlay_path) == ({}, [])


def test_every_number_with_a_unit_says_it_in_its_name() -> None:
    unitless = {
        "port",
        "max_tokens",
        "repeats",
        "prefix_rounds",
        "warm_up_requests",
        "max_warm_up_requests",
        "max_boots",
        "num_speculative_tokens",
        "history_df",
        "boot_retries",
        "reruns_per_block",
        "reruns",
        "aa_pairs",
    }
    classes = [
        value for value in vars(config).values() if isinstance(value, type) and value.__module__ == config.__name__
    ]
    numbers = [
        f.name for c in classes if hasattr(c, "__dataclass_fields__") for f in fields(c) if f.type in (int, float)
    ]
    suffixes = ("_s", "_pct", "_pp", "_gb", "_cores")
    assert [n for n in numbers if n not in unitless and not n.endswith(suffixes) and "minutes" not in n] == []


def test_a_bracket_is_mirrored_by_default() -> None:
    assert Bracket().mirror is True


def test_composing_leaves_no_file_behind(compose, monkeypatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    compose("exp=exp8")
    assert list(tmp_path.iterdir()) == []
