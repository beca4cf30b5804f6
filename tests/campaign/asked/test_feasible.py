"""What would cost a boot is told by the plan."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from campaign.config import ROOT, Campaign
from campaign.errors import ConfigError
from campaign.planning.plan import make

FAKE = ["--config-dir", str(ROOT / "tests" / "conf")]


def planned(compose: Callable[..., Campaign], *words: str) -> None:
    """The plan of a command line."""
    make(compose(*words), "run-1")


@pytest.mark.parametrize(
    ("override", "sentence"),
    [
        (
            "engine.serve.max_model_len=0.2k",
            r"workload: max_tokens 256 leaves no room .* max_model_len 200",
        ),
        ("engine.serve.max_model_len=256", r"max_tokens 256 leaves no room for a prompt in max_model_len 256"),
        ("engine.serve.max_model_len=0", r"leaves no room for a prompt in max_model_len 0"),
        ("engine.serve.max_num_seqs=2k", r"engine\.serve\.max_num_seqs: found '2k', wanted a whole number"),
        ("engine.serve.tensor_parallel_size=1k", r"engine\.serve\.tensor_parallel_size: found '1k'"),
        ("engine.serve.max_num_seqs=0", r"engine\.serve\.max_num_seqs: found 0, wanted at least 1"),
        ("engine.serve.data_parallel_size=2", r"engine\.serve\.data_parallel_size: found 2, wanted 1"),
        ("engine.serve.api_server_count=2", r"engine\.serve\.api_server_count: found 2, wanted 1"),
        ("engine.serve.uds=/tmp/x.sock", r"engine\.serve\.uds: uds moves the server to a socket"),
        ("engine.overlays=[]", r"arm base stages no overlay engine_report, so nobody could tell what its engine runs"),
        ("engine.pass_env=[VLLM_TYPO_X]", r"engine\.pass_env: vLLM 0\.29\.0 reads no variable VLLM_TYPO_X"),
        ("model.method=dflsh", r"knows no way of drafting 'dflsh' \(did you mean 'dflash'\?\)"),
        ("model.method=dflash2", r"knows no way of drafting 'dflash2'.*no knob of a staged overlay names it"),
        ("model.num_speculative_tokens=0", r"num_speculative_tokens: found 0 beside method dflash, wanted at least 1"),
        ("model.drafter=null", r"model\.drafter: found null, but method dflash drafts with a model of its own"),
        ("model.method=null", r"model\.drafter is set, but model\.method is null, which drafts nothing"),
        ("model.target=testbed/weigths/target", r"model\.target: found 'testbed/weigths/target', a path that leads"),
    ],
    ids=lambda value: value if "=" in value and " " not in value else "",
)
def test_what_would_cost_a_boot_is_a_configuration_error(compose, monkeypatch, override: str, sentence: str) -> None:
    monkeypatch.chdir(ROOT)
    with pytest.raises(ConfigError, match=sentence) as caught:
        planned(compose, "exp=exp8", override)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "overrides",
    [
        ["engine.serve.max_model_len=0.3k"],
        ["engine.serve.max_model_len=-1"],
        ["engine.serve.max_model_len=auto"],
        ["engine.serve.data_parallel_size=1", "engine.serve.api_server_count=1"],
        ["model.method=ngram", "model.drafter=null"],
        ["model.method=mtp", "model.drafter=null"],
        ["model.method=null", "model.drafter=null"],
        ["model.method=null", "model.drafter=null", "model.num_speculative_tokens=0"],
        ["model.target=org/model"],
    ],
    ids=" ".join,
)
def test_what_can_be_booted_is_planned(compose, tmp_path: Path, monkeypatch, overrides: list[str]) -> None:
    monkeypatch.chdir(tmp_path)
    planned(compose, "exp=exp8", *overrides)


def test_an_engine_that_answers_by_itself_needs_no_overlay_for_it(compose) -> None:
    planned(compose, "exp=fake8", *FAKE)


def test_a_way_of_drafting_that_a_staged_overlays_knob_names_is_known(compose, tmp_path: Path) -> None:
    (tmp_path / "newer").mkdir()
    (tmp_path / "newer" / "manifest.toml").write_text(MANIFEST)
    overlay = [f"host.overlay_path=[{tmp_path}]", "engine.overlays=[engine_report, newer]"]
    planned(compose, "exp=exp8", "model.method=dflash2", *overlay)


MANIFEST = f"""why = "to test"
owner = "tests"
requires = []
async_safe = true
async_reason = "it reads nothing"
[upstream]
link = "none"
status = "none"
drop_when = "never"
[[knob]]
name = "newer"
values = ["0", "1"]
default = "0"
[knob.serve.0]
arguments = {{ enable_chunked_prefill = false }}
reason = "off"
[knob.serve.1]
methods = ["dflash2"]
arguments = {{ enable_chunked_prefill = true }}
reason = "it needs it"
[knob.witness.0]
resolved = {{}}
[knob.witness.1]
resolved = {{ newer = true }}
[[target]]
version = "0.29.0"
builds = ["cpu"]
[[target.file]]
path = "vllm/envs.py"
preimage_sha256 = "{"0" * 64}"
postimage_sha256 = "{"0" * 64}"
"""


def test_a_prompt_that_leaves_no_room_is_named_with_its_file_and_line(compose, tmp_path: Path) -> None:
    file = tmp_path / "long.jsonl"
    short = '{"id": "a", "prompt": "x", "max_tokens": 8, "check": {"kind": "numeric", "value": 1}}'
    file.write_text(f"{short}\n\n{short.replace('8', '4096').replace('a', 'b', 1)}\n")
    sentence = f"{file}:3: prompt b: max_tokens 4096 leaves no room for a prompt in max_model_len 2048; ask for fewer"
    with pytest.raises(ConfigError, match=re.escape(sentence)):
        planned(compose, "exp=exp8", f"gates.quality.prompts={file}")
