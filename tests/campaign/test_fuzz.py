"""Whatever is typed or written: a plan, or one sentence. Never a traceback, never a boot."""

import io
import re
import shlex
import sys
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st

from campaign.__main__ import main
from campaign.config import ROOT
from campaign.errors import ExitCode

HEAD = "# @package _global_\ndefaults:\n  - exp8\n  - _self_\n"
EXAMPLES = 20
ANSWERS = (ExitCode.PASS, ExitCode.CONFIG, ExitCode.INVALID)  # a plan, a mistake, arms that ask for the same
SENTENCE = re.compile(r"(config \(2\)|invalid \(5\)): [^\n]+\n")
GROUPS = ["exp", "engine", "model", "launcher", "workload", "bracket", "gates", "tracking", "host"]
PATHS = [
    "name",
    "hypothesis",
    "arm",
    "dry_run",
    "arms",
    "arms.base",
    "arms.base.overlays",
    "arms.base.knobs",
    "arms.base.knobs.prefix_cache",
    "arms.candidate.knobs.async_dflash",
    "arms.base.serve",
    "arms.base.serve.max_model_len",
    "arms.base.serve.dtype",
    "arms.third",
    "arms.base.serve.compilation_config",
    "claims",
    "claims.step_rate",
    "claims.step_rate.gate_pct",
    "claims.step_rate.kind",
    "claims.step_rate.expect_pct",
    "engine",
    "engine.env",
    "engine.env.X",
    "engine.env.VLLM_X",
    "engine.env.A B",
    "engine.serve",
    "engine.serve.seed",
    "engine.knobs",
    "engine.knobs.model_runner",
    "engine.pass_env",
    "engine.overlays",
    "engine.profile",
    "engine.version",
    "engine.boot_timeout_s",
    "engine.serve_arguments",
    "model.method",
    "model.target",
    "model.drafter",
    "model.num_speculative_tokens",
    "workload.max_tokens",
    "workload.prompts",
    "bracket.schedule",
    "bracket.max_boots",
    "gates",
    "gates.quality",
    "gates.quality.prompts",
    "gates.step_rate",
    "host.port",
    "host.overlay_path",
    "host.history_sd_pct",
    "host.min_free_gb",
    "tracking.uri",
    "origins",
    "origins.written",
    "nosuch.key",
]
WORDS = st.sampled_from(
    ["null", "None", "true", "off", "~", "", "0", "-1", "1e400", "nan", "0123", "12:30", "1,2", "[]", "{}", "[1, {}]",
     "{a: {b: [c]}}", "한국어", "'한 국'", '"x"', "a=b", "a#b", "(1)", "${name}", "${arms}", "${engine.env}",
     "${oc.env:HOME}", "${oc.env:NOSUCH}", "${nosuch}", "${root:x}", "${root:}", "${.name}", "${..}", "\\${x}", "${",
     "$", "???",
     "{a: ???}",
     "9" * 400, "range(1,3)", "choice(1,2)", "glob(*)", "sort(1)", "int(1)", "str(1)", "json_str({})", "\\", "\ud800",
     "\u2028", "\x00", "\t", "a\nb", "../x", "/", "/nosuch"]
)  # fmt: skip
TEXTS = st.text(max_size=12)
DEEP = st.sampled_from([40, 400, 4000])
VALUES = (
    WORDS | TEXTS | DEEP.map(lambda n: "[" * n + "]" * n) | DEEP.map(lambda n: "${" * n + "}" * n)
    | DEEP.map(lambda n: "{a: " * n + "1" + "}" * n)
)  # fmt: skip
OVERRIDES = st.builds(
    lambda sign, path, value: f"{sign}{path}={value}",
    st.sampled_from(["", "", "", "+", "++", "~"]),
    st.sampled_from(PATHS) | st.sampled_from(GROUPS) | TEXTS,
    VALUES,
)
OPTIONS = st.sampled_from(
    ["-m", "--multirun", "--cfg", "--info=x", "-x", "--config-dir=", "--resolve", "--hydra-help", "-"]
)
LINES = st.lists(OVERRIDES | TEXTS | OPTIONS | st.sampled_from(PATHS).map("~{}".format), max_size=4)
KEYS = st.sampled_from([*PATHS[:8], "A=B", "A B", "1A", "", "A\0", "password"]) | TEXTS
LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | TEXTS | WORDS
TREES = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=8,
)


@pytest.fixture(scope="module")
def mark(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file that appears as soon as anybody starts the engine's interpreter."""
    folder = tmp_path_factory.mktemp("engine")
    script = folder / "python"
    script.write_text(f"#!/bin/sh\ntouch {shlex.quote(str(folder / 'started'))}\n")
    script.chmod(0o755)
    return folder / "started"


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """An empty working directory; argv and environment are put back afterwards."""
    folder = tmp_path_factory.mktemp("cwd")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", list(sys.argv))
        patch.setenv("HYDRA_FULL_ERROR", "1")
        patch.chdir(folder)
        yield folder


@pytest.fixture(scope="module")
def answers(mark: Path, here: Path) -> Callable[[list[str]], None]:
    """answers(["exp=exp8", ...]): asked in this process, it is a plan or one sentence, and nothing was started."""

    def check(words: list[str]) -> None:
        told = io.StringIO()
        with redirect_stderr(told), redirect_stdout(io.StringIO()):
            code = main([*words, f"engine.python={mark.parent / 'python'}", "dry_run=true"])
        assert code in ANSWERS, told.getvalue()
        assert re.fullmatch(SENTENCE if code else "", told.getvalue()), told.getvalue()
        assert not mark.exists()
        assert list(here.iterdir()) == []

    return check


@settings(max_examples=EXAMPLES)
@given(LINES)
@example(["arms.base.knobs=null"])
@example(["+arms.base=3"])
@example([])
@example(["engine=null"])
@example(["--config-dir=", "--config-dir="])
@example(["~a\nb?@="])
@example(["engine.env.X='\\${HOME}'"])
def test_any_command_line_is_a_plan_or_one_sentence(answers, line: list[str]) -> None:
    answers(["exp=exp8", *line])


@settings(max_examples=EXAMPLES)
@given(st.sampled_from(PATHS), TREES)
@example("host.overlay_path", [["a"]])
@example("engine.env", {"X": "${engine.env.Y}", "Y": "${engine.env.X}"})
@example("engine.serve", {"max_model_len": "${engine.serve}"})
@example("engine.env", {"A=B": "x"})
@example("engine.env", {"": "x"})
@example("engine.env", {"A\0": "x"})
@example("engine.env", {"\ud800": "x"})
@example("engine.pass_env", ["A=B", ""])
@example("model.target", "x" * 400)
@example("engine.serve", {"tensor_parallel_size": "1k", "max_model_len": "9" * 400 + "k", "seed": "9" * 5000})
@example("engine.serve", {"additional_config": "[" * 4000})
@example("arms", {"base": None})
@example("claims", {"step_rate": []})
def test_any_tree_in_an_experiment_is_a_plan_or_one_sentence(answers, here: Path, path: str, tree: object) -> None:
    for key in reversed(path.split(".")):
        tree = {key: tree}
    answers(written(here, HEAD + yaml.safe_dump(tree, allow_unicode=True)))


@settings(max_examples=EXAMPLES)
@given(st.lists(TEXTS | WORDS | VALUES | st.sampled_from(PATHS).map("{}: ".format), max_size=5).map("".join))
@example("engine: &a {env: *a}\n")
@example("a: &a [*a]\n")
@example("engine: {env: {X: !!python/object/apply:os.system [ls]}}\n")
@example("x: !!binary x\n")
@example("engine: {1: 2}\n")
@example("defaults: []\n")
@example("? [a]\n: b\n")
def test_any_text_of_an_experiment_is_a_plan_or_one_sentence(answers, here: Path, text: str) -> None:
    answers(written(here, HEAD + text))


@settings(max_examples=EXAMPLES)
@given(
    st.lists(TEXTS | st.sampled_from(["MAX_MODEL_LEN", "PREFIX_CACHE", "VLLM_X"]).map("{}=".format) | WORDS).map(
        "\n".join
    )
)
def test_any_profile_is_a_plan_or_one_sentence(answers, here: Path, text: str) -> None:
    (here.parent / "team.env").write_bytes(text.encode("utf-8", "surrogatepass"))
    answers(["exp=exp8", f"engine.profile={here.parent}/team.env"])


def written(folder: Path, text: str) -> list[str]:
    """The words that ask for an experiment with this text, in a tree of its own beside the working directory."""
    tree = folder.parent / f"{folder.name}-conf"
    (tree / "exp").mkdir(parents=True, exist_ok=True)
    (tree / "exp" / "mine.yaml").write_bytes(text.encode("utf-8", "surrogatepass"))
    return ["exp=mine", "--config-dir", str(tree)]


@pytest.mark.parametrize(
    "line",
    ["exp=exp8 'arms.base.serve.max_model_len=한국어'", "exp=exp8 engine.env.X='\\${HOME}' ~arms",
     "exp=exp8 engine.serve.seed=" + "9" * 5000, "exp=exp8 name=[[[[" ],
    ids=["unquoted Korean", "no arms", "a huge number", "unclosed"],
)  # fmt: skip
def test_a_real_process_ends_the_same_way(command, mark: Path, line: str) -> None:
    done = command(*shlex.split(line), f"engine.python={mark.parent / 'python'}", "dry_run=true")
    assert (done.returncode, done.stdout) == (2, "")
    assert SENTENCE.fullmatch(done.stderr), done.stderr
    assert not mark.exists()
    assert str(ROOT / ".venv") not in done.stderr
