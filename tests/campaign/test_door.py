"""The command line: wrong input is exit 2 and one sentence, before anything runs (as a real process: test_fuzz)."""

import json
import re
import shlex
import shutil
from pathlib import Path

import pytest

from campaign.config import ROOT
from campaign.door import run_reference, separated
from campaign.errors import ConfigError
from campaign.planning.plan import make

HEAD = "# @package _global_\ndefaults:\n  - exp8\n  - _self_\n"
TREE = {  # file below a --config-dir -> its bytes
    "exp/yaml_bool.yaml": HEAD + "arms: {candidate: {knobs: {async_dflash: on}}}\n",
    "exp/env_bool.yaml": HEAD + "engine: {env: {X: off}}\n",
    "exp/dead_key.yaml": HEAD + "claimz: {}\n",
    "exp/unclosed.yaml": HEAD + "name: [unclosed\n",
    "exp/twice.yaml": HEAD + "name: a\nname: b\n",
    "exp/no_map.yaml": "- a\n- b\n",
    "exp/latin.yaml": (HEAD + "hypothesis: caf\xe9\n").encode("latin-1"),
    "exp/other_bound.yaml": HEAD + "claims: {acceptance: {margin_pct: 2}}\n",
    "exp/unjudged.yaml": HEAD + "claims: {ttft: {kind: superiority, metric: ttft_median_s, gate_pct: 1}}\n",
    "exp/text_for_bool.yaml": HEAD + "arms: {base: {serve: {enforce_eager: '${oc.env:EAGER,0}'}}}\n",
    "exp/decoded.yaml": HEAD + "arms: {base: {serve: {enforce_eager: '${oc.decode:${oc.env:EAGER}}'}}}\n",
    "exp/number_for_text.yaml": HEAD + "arms: {base: {serve: {revision: 0123}}}\n",
    "broken.jsonl": '{"id": "a", "prompt": "x", "max_tokens": 4}\n{"id": "b", "prompt": "x"\n',
    "empty.jsonl": "",
    "twice.jsonl": '{"id": "a", "prompt": "x", "max_tokens": 4}\n' * 2,
    "surrogate.jsonl": '{"id": "a", "prompt": "\\ud800", "max_tokens": 4}\n',
}


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An operator's own tree of mistakes."""
    folder = tmp_path_factory.mktemp("conf")
    (folder / "exp").mkdir()
    for name, content in TREE.items():
        (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    return folder


WRONG = {  # command line (TREE stands for the folder) -> what the sentence must say
    "exp=nosuch": "exp/nosuch.*aa exp7 exp7x8 exp8",
    "": "exp",
    "rseume some-run": "rseume.*key=value",
    "exp=exp8 nosuch=1": "nosuch.*No such key",
    "exp=exp8 ++bracket.nosuch=1": "nosuch.*Bracket",
    "exp=exp8 host.port=abc": "host.port.*found 'abc', wanted a whole number",
    "exp=exp8 arms.candidate.knobs.async_dflsh=1": "async_dflsh.*did you mean 'async_dflash'",
    "exp=exp8 arms.candidate.knobs.async_dflash=2": 'found \'2\', wanted one of "0", "1"',
    "exp=yaml_bool --config-dir TREE": "async_dflash.*truth value true.*quote it",
    "exp=unclosed --config-dir TREE": "unclosed.yaml",
    "exp=exp8 arms.base.serve.max_num_seq=4": "max_num_seq.*did you mean 'max_num_seqs'",
    "exp=exp8 arms.base.serve.enforce_eager=4": "enforce_eager: found 4, wanted true, false or null: it is a switch",
    "exp=exp8 arms.base.serve.port=8000": "the runner sets port itself",
    "exp=exp8 arms.base.serve.api_key=s3cret": "secret must not stand in an argument list",
    "exp=exp8 bracket.schedule=ABX": "A, B and spaces, found 'ABX'",
    "exp=exp8 bracket.schedule=AB": "arm and drift are not separable",
    "exp=exp8 bracket.schedule='ABBA BAAB ABBA BAAB ABBA'": "20 boots, bracket.max_boots allows 16",
    "boot exp=exp8 arm=nosuch": "arm=nosuch: experiment exp8 has base, candidate",
    "exp=exp8 workload.prompts=/nosuch.jsonl": "/nosuch.jsonl: cannot be read",
    "exp=exp8 workload.prompts=TREE/broken.jsonl": "broken.jsonl:2: is no JSON",
    "exp=other_bound --config-dir TREE": "claims.acceptance: .* takes margin_pp, found margin_pct, margin_pp",
    "exp=exp8 claims.step_rate.metric=speed": "no metric 'speed'; there are step_per_s",
    "exp=exp8 hypothesis=한국어": """hypothesis='"한국어"'""",
    "exp=exp8 exp=aa": "exp=exp8 and exp=aa: a group takes one choice",
    "exp=exp8 -m": "sweeps are not in this version",
    "exp=exp8 hydra.mode=MULTIRUN": "sweeps are not in this version",
    "exp=exp8 --nosuch": "no option --nosuch",
    "resume no-such-run": "no run no-such-run",
}

WRONG_TOO = {  # the same way in, by what is composed
    "exp=exp8 +nosuch=1": "nosuch",
    "exp=exp8 engine=nosuch": "engine/nosuch.*reference_cpu",
    "exp=exp8 arms.base.knobs.async_dflash=1": "no staged overlay declares knob 'async_dflash'",
    "exp=env_bool --config-dir TREE": "engine.env.X.*quote it",
    "exp=dead_key --config-dir TREE": "claimz",
    "exp=twice --config-dir TREE": "duplicate key.*twice.yaml|twice.yaml.*duplicate key",
    "exp=no_map --config-dir TREE": "no_map",
    "exp=latin --config-dir TREE": "--config-dir.* is not UTF-8",
    "exp=exp8 --config-dir /nosuch": "/nosuch",
    "exp=exp8 bracket.max_boots=8,16": "bracket.max_boots.*sweeps are not in this version",
    "exp=exp8 arms.nosuch.knobs.x=1": "arms.nosuch",
    "exp=exp8 ~arms.candidate": "has base",
    "exp=exp8 workload.prompts=TREE/empty.jsonl": "empty.jsonl: holds no prompt",
    "exp=exp8 workload.prompts=TREE/twice.jsonl": "twice.jsonl:2: id 'a' is already on line 1",
    "exp=exp8 workload.prompts=TREE/surrogate.jsonl": "surrogate.jsonl:1",
    "exp=unjudged --config-dir TREE": "claims.ttft: no gate judges it",
    "exp=exp8 hypothesis=a=b": """hypothesis='"a=b"'""",
    "exp=exp8 'hypothesis=a#b'": """hypothesis='"a#b"'""",
    "exp=exp8 --multirun": "sweeps are not in this version",
    "exp=exp8 --cfg nosuch": "--cfg takes job or hydra or all, found nosuch",
    "exp=exp8 name=../x": "name: found '../x'",
    "exp=exp8 'engine.overlays=[engine_reprot]'": "did you mean 'engine_report'",
    "exp=exp8 'host.overlay_path=[/nosuch]'": "/nosuch is not a folder",
}


@pytest.mark.parametrize("line", WRONG, ids=lambda line: line or "nothing asked")
def test_wrong_input_is_exit_2_and_one_sentence(asked, tree: Path, line: str) -> None:
    words = shlex.split(line.replace("TREE", str(tree)))
    done = asked(*words) if words[:1] in (["resume"], ["rseume"]) else asked(*words, "dry_run=true")
    assert (done.returncode, done.stdout) == (2, "")
    assert re.fullmatch(r"config \(2\): [^\n]+\n", done.stderr), done.stderr
    assert re.search(WRONG[line], done.stderr), done.stderr
    assert not re.search("Traceback|HYDRA_FULL_ERROR|provider=|--multirun to|LexerNo|s3cret", done.stderr)


@pytest.mark.parametrize("line", WRONG_TOO)
def test_more_wrong_input_is_a_configuration_error_in_one_line(compose, tree: Path, line: str) -> None:
    with pytest.raises(ConfigError, match=WRONG_TOO[line]) as caught:
        make(compose(*shlex.split(line.replace("TREE", str(tree)))), "run-1")
    assert "\n" not in str(caught.value)


FAMILY_F = [  # case, command line, what the sentence must say: the bug bank's own inputs, at the door
    ("F1", "exp=env_bool --config-dir TREE", r"engine\.env\.X: found False, but a variable is text; quote it"),
    ("F1", "exp=yaml_bool --config-dir TREE", "truth value true"),
    ("F2", "exp=text_for_bool --config-dir TREE", r"enforce_eager: found '0', wanted true, false or null"),
    ("F3", """exp=exp8 'arms.base.serve.compilation_config={"mode":3}'""", r"quote the value: .*='\"\{.*3\}\"'"),
    ("F4", "exp=exp8 engine.env.NCCL_IB_HCA=mlx5_0:1,mlx5_3:1", "sweeps are not in this version; give one value a key"),
    ("F5", "exp=exp8 hypothesis=한국어", """hypothesis='"한국어"'"""),
    ("F5", "exp=exp8 'hypothesis=a#b'", """hypothesis='"a#b"'"""),
    ("F5", "exp=exp8 'hypothesis=a=b'", """hypothesis='"a=b"'"""),
    ("F5", "exp=exp8 'hypothesis=(1)'", r"""hypothesis='"\(1\)"'"""),
    ("F5", "exp=exp8 'hypothesis=~'", """hypothesis='"~"'"""),
    ("F7", "exp=exp8 workload.repeats=1,2,3,2", "sweeps are not in this version"),
    ("F9", "exp=exp8 exp/workload=decode_c1", r"a group is chosen by its name alone: workload=\.\.\."),
    ("F9", "exp=exp8 workload@arms.base=decode_c1", r"a group is chosen by its name alone: workload=\.\.\."),
    ("F9", "exp=exp8 workloads=decode_c1", "did you mean 'workload'"),
    ("F10", "exp=exp8 host.prot=1", r"host\.prot.*did you mean 'host\.port'"),
    ("F10", "exp=exp8 +host.prot=1", "prot"),
    ("F10", "exp=exp8 ++host.prot=1", "prot"),
    ("F10", "exp=exp8 hydra.ouput_subdir=zz", "ouput_subdir"),
    ("F11", "exp=exp8 '+arms.base.serve={seed:1},{seed:2}' '+arms.candidate.serve={seed:1},{seed:2}'", "sweeps"),
    ("F13", "exp=number_for_text --config-dir TREE", r'revision: found 83, wanted text; quote it: "83"'),
    ("F13", "exp=exp8 arms.base.serve.revision=1e4", r'revision: found 10000\.0, wanted text; quote it'),
    ("F14", "exp=exp8 arms.base.serve.tokenizer=None", "tokenizer: found the text 'None', .*write null for nothing"),
    ("F14", "exp=exp8 engine.env.X=None", r"engine\.env\.X: found the text 'None'; write null to unset it"),
    ("F14", "exp=exp8 tracking.uri=None", r"tracking\.uri: found the text 'None'; write null for nothing"),
    ("F14", """exp=exp8 model.chat_template.x='"false"'""", "found the text 'false', which a template reads as true"),
    ("F10", "exp=exp8 gates.korean.claimed_below_pct=0", r"claimed_below_pct: found 0, wanted 0\.01 to 99\.99"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("line", "sentence"),
    [pytest.param(line, sentence, marks=pytest.mark.case(case)) for case, line, sentence in FAMILY_F],
)
def test_a_case_of_family_f_is_refused_at_the_door_in_words(compose, tree: Path, line: str, sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence) as caught:
        make(compose(*shlex.split(line.replace("TREE", str(tree)))), "run-1")
    assert "\n" not in str(caught.value)


@pytest.mark.case("F3", "F4", "F5", "F13")
@pytest.mark.parametrize(
    ("line", "value"),
    [
        ("'arms.base.serve.compilation_config={mode: 3}'", {"mode": 3}),
        ("""'arms.base.serve.compilation_config="{\\"mode\\":3}"'""", {"mode": 3}),
        ("arms.base.serve.revision='\"1e4\"'", "1e4"),
        ("arms.base.serve.revision=0123", "0123"),
        ("""arms.base.serve.revision='"한국어 a,b"'""", "한국어 a,b"),
    ],
)
def test_what_is_quoted_as_the_sentence_says_is_what_the_engine_gets(compose, line: str, value: object) -> None:
    name = line.strip("'").removeprefix("arms.base.serve.").partition("=")[0]
    arm = make(compose("exp=exp8", *shlex.split(line)), "run-1").arms["base"]
    assert dict(arm.serve)[name] == value


@pytest.mark.case("F2")
def test_text_of_the_environment_is_decoded_and_the_decoded_value_is_recorded(compose, tree: Path, monkeypatch) -> None:
    monkeypatch.setenv("EAGER", "false")
    plan = make(compose("exp=decoded", "--config-dir", str(tree)), "run-1")
    assert dict(plan.arms["base"].serve)["enforce_eager"] is False
    assert plan.plain()["config"]["arms"]["base"]["serve"]["enforce_eager"] is False


def test_wrong_input_leaves_nothing_behind(command, tmp_path: Path) -> None:
    before = sorted(path.name for path in (ROOT / "runs").glob("exp8*"))
    command("exp=exp8", "bracket.schedule=AB")
    assert list((tmp_path / "cwd").iterdir()) == []
    assert sorted(path.name for path in (ROOT / "runs").glob("exp8*")) == before


def test_equal_arms_are_invalid_before_anything_runs(command) -> None:
    equal = (
        "arms.candidate.overlays=[]",
        "~arms.candidate.knobs.async_dflash",
        "arms.candidate.serve.async_scheduling=false",
    )
    done = command("exp=exp8", "dry_run=true", *equal)
    assert (done.returncode, done.stderr.count("\n")) == (5, 1)
    assert done.stderr.startswith("invalid (5): arms identical: ")


def test_a_fault_of_ours_is_70_and_never_looks_like_a_fail(python) -> None:
    planted = "import sys, runpy; from campaign.planning import plan; plan.make = None; "
    asked = "sys.argv[1:] = ['exp=exp8', 'dry_run=true']; "
    done = python("-c", f"{planted}{asked}runpy.run_module('campaign', run_name='__main__', alter_sys=True)")
    assert done.returncode == 70
    assert "fault (70): a fault of ours" in done.stderr


def test_mlflow_is_not_imported_before_a_tracker_is_asked_for(python) -> None:
    """Two seconds of every run that keeps its results on disk."""
    done = python("-c", "import sys, campaign.verbs; sys.exit('mlflow' in sys.modules)")
    assert done.returncode == 0, done.stderr


# options and overrides


@pytest.mark.parametrize(
    "line",
    ["exp=yaml_text dry_run=true --config-dir TREE", "--config-dir TREE exp=yaml_text dry_run=true",
     "exp=yaml_text --config-dir=TREE dry_run=true"],
)  # fmt: skip
def test_options_and_overrides_may_come_in_any_order(asked, tree: Path, line: str) -> None:
    (tree / "exp" / "yaml_text.yaml").write_text(HEAD + 'arms: {candidate: {knobs: {async_dflash: "0"}}}\n')
    done = asked(*shlex.split(line.replace("TREE", str(tree))))
    assert (done.returncode, done.stderr) == (0, "")
    assert "knob async_dflash=0" in done.stdout


def test_the_composed_configuration_can_be_looked_at(command) -> None:
    done = command("exp=exp8", "--cfg", "job")
    assert (done.returncode, "schedule: ABBA BAAB" in done.stdout) == (0, True)


@pytest.mark.parametrize("word", ["-m", "--multi", "--multirun", "--nosuch", "-x"])
def test_an_option_that_is_not_ours_is_refused(word: str) -> None:
    with pytest.raises(ConfigError, match=f"no option {word}"):
        separated(["exp=exp8", word])


@pytest.mark.parametrize(
    "word", ["hydra.mode=MULTIRUN", "hydra/launcher=joblib", "+hydra/sweeper=x", "hydra.sweep.dir=x"]
)
def test_a_sweep_cannot_be_asked_for_in_another_way(word: str) -> None:
    with pytest.raises(ConfigError, match="sweeps are not in this version"):
        separated([word])


def test_options_take_their_value_with_a_space_or_an_equals_sign() -> None:
    assert (
        separated(["--cfg", "job", "exp=exp8"])
        == separated(["exp=exp8", "--cfg=job"])
        == (["--cfg", "job"], ["exp=exp8"])
    )


@pytest.mark.parametrize(
    "arguments", [["--config-dir"], ["--config-dir="], ["--cfg"], ["--config-dir=", "--cfg"]], ids=" ".join
)
def test_an_option_without_its_value_is_refused(arguments: list[str]) -> None:
    with pytest.raises(ConfigError, match=r"takes .* found (nothing|--cfg)"):
        separated(arguments)


# what Hydra would drop without a word


@pytest.mark.parametrize(
    "line",
    ["exp=exp8 exp=aa", "exp=aa dry_run=true +exp=exp8", "exp=exp8 engine=gpu engine=reference_cpu",
     "workload=decode_c1 exp=exp8 workload=decode_c1_short"],
)  # fmt: skip
def test_a_group_that_is_given_twice_is_refused_with_both_choices(compose, line: str) -> None:
    with pytest.raises(ConfigError, match=r"(\w+)=\w+ and \1=\w+: a group takes one choice; leave one out"):
        compose(*shlex.split(line))


def test_a_group_and_a_value_of_it_are_no_two_choices(compose) -> None:
    found = compose(
        "exp=exp8", "exp=exp8", "engine=reference_cpu", "engine={boot_timeout_s: 7}", "engine.boot_retries=2"
    )
    assert (found.engine.boot_timeout_s, found.engine.boot_retries) == (7, 2)


@pytest.mark.parametrize("name", ["exp/exp8.yaml", "host/default.yaml", "config.yaml"])
def test_a_file_under_the_name_of_one_of_ours_is_refused_with_both_named(compose, tmp_path: Path, name: str) -> None:
    """Hydra takes ours, and the other says nothing."""
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text((ROOT / "conf" / name).read_text(encoding="utf-8") + "# mine\n", encoding="utf-8")
    named = f"{tmp_path / name} has the name of {ROOT / 'conf' / name}, which would be used instead; rename it"
    with pytest.raises(ConfigError, match=re.escape(named)):
        compose("exp=exp8", f"--config-dir={tmp_path}")


@pytest.mark.parametrize("copied", [True, False], ids=["a copy", "the same folder"])
def test_a_file_that_says_the_same_hides_nothing(compose, tmp_path: Path, copied: bool) -> None:
    folder = shutil.copytree(ROOT / "conf", tmp_path / "conf") if copied else ROOT / "conf"
    assert compose("exp=exp8", "--config-dir", str(folder)).name == "exp8"


def test_a_second_tree_is_refused(compose, tree: Path) -> None:
    with pytest.raises(ConfigError, match="--config-dir takes one folder, found "):
        compose("exp=exp8", "--config-dir", str(tree), f"--config-dir={tree}/exp")
    with pytest.raises(ConfigError, match="a tree of one's own is given with --config-dir"):
        compose("exp=exp8", f"hydra.searchpath=[file://{tree}]")


# runs by their id


def test_a_run_is_found_by_the_path_of_its_folder(tmp_path: Path) -> None:
    (tmp_path / "plan.json").write_text(json.dumps({}))
    assert run_reference("resume", [str(tmp_path)]).folder == tmp_path


@pytest.mark.parametrize("text", ["..", ".", "", "-x", "a b", "한국어", "x..y", "x" * 300])
def test_a_run_id_cannot_leave_the_runs(text: str) -> None:
    with pytest.raises(ConfigError, match="is no run id"):
        run_reference("resume", [text])


@pytest.mark.parametrize("arguments", [[], ["a", "b"]], ids=["none", "two"])
def test_a_verb_on_a_run_takes_one_run(arguments: list[str]) -> None:
    with pytest.raises(ConfigError, match="takes one run id"):
        run_reference("import", arguments)
