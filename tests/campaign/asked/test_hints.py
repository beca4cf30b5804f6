"""What a new user types, and what the sentence offers instead."""

import re
import shlex

import pytest

from campaign import door
from campaign.asked import hints
from campaign.config import ROOT
from campaign.errors import ConfigError
from campaign.planning.plan import make

OFFERED = [  # command line, what the sentence must offer
    ("exp=exp8 max_model_len=1024", r"did you mean engine\.serve\.max_model_len=\.\.\."),
    ("exp=exp8 serve.max_model_len=1024", r"did you mean engine\.serve\.max_model_len=\.\.\."),
    ("exp=exp8 engine.max_num_seqs=2", r"did you mean engine\.serve\.max_num_seqs=\.\.\."),
    ("exp=exp8 prefix_cache=1", r"did you mean engine\.knobs\.prefix_cache=\.\.\."),
    ("exp=exp8 async_dflash=1", r"did you mean arms\.candidate\.knobs\.async_dflash=\.\.\."),
    ("exp=exp8 VLLM_USE_V2_MODEL_RUNNER=1", r"did you mean engine\.knobs\.model_runner=\.\.\."),
    ("exp=exp8 OMP_NUM_THREADS=4", r"""did you mean engine\.env\.OMP_NUM_THREADS='"\.\.\."'"""),
    ("exp=exp8 profile=team.env", r"did you mean engine\.profile=\.\.\."),
    ("exp=exp8 max_tokens=64", r"did you mean workload\.max_tokens=\.\.\."),
    ("exp=exp8 claims.step_rate.gate=-5", r"did you mean 'gate_pct'"),
    ("exp=exp8 arms.candidate.knob=1", r"did you mean 'knobs'"),
    ("exp=exp8 --max-model-len 1024", r"no option --max-model-len \(here it is typed engine\.serve\.max_model_len="),
    ("exp=exp8 --max-num-seqs=2", r"here it is typed engine\.serve\.max_num_seqs=\.\.\."),
    ("exp=exp8 --profile team.env", r"here it is typed engine\.profile=\.\.\."),
    ("exp=exp8 --port 8300", r"here it is typed host\.port=\.\.\."),
    ("--dry-run exp=exp8", r"here it is typed dry_run=true"),
    ("--exp exp8", r"here it is typed exp=\.\.\."),
    ("exp8", r"'exp8' is no override; wanted key=value \(did you mean exp=exp8\?\)"),
    ("exp=exp8 screen", r"did you mean bracket=screen"),
    ("exp=exp8 dry_run", r"did you mean dry_run=true"),
    ("exp=exp8 bracket.schedule=ABBA BAAB", r"a value with a space needs quotes: bracket\.schedule='ABBA BAAB'"),
    ("exp=exp8 hypothesis=one two", r"a value with a space needs quotes"),
    ("exp=exp8 boot", r"a verb comes first: python -m campaign boot"),
    ("rseume x", r"did you mean 'resume'"),
    ("exp=exp8 engine.env.OMP_NUM_THREADS=4", r"""engine\.env\.OMP_NUM_THREADS='"4"' on the command line"""),
    ("exp=exp8 engine.env.OMP_DYNAMIC=true", r"""engine\.env\.OMP_DYNAMIC='"true"' on the command line"""),
    ("exp=exp8 arms.base.serve.revision=83", r"""arms\.base\.serve\.revision='"83"' on the command line"""),
    ("exp=exp8 arms.base.knobs.async_dflash=1", r"'arms\.base\.overlays=\[async_dflash\]'"),
    ("exp=exp8 arms.candidat.knobs.async_dflash=1", r"no arm 'candidat' \(did you mean 'candidate'\?\)"),
    ("exp=exp8 bracket.mirror=maybe", r"bracket\.mirror: found 'maybe', wanted true or false"),
    ("exp=exp8 engine.boot_timeout_s=soon", r"engine\.boot_timeout_s: found 'soon', wanted a number"),
    ("exp=exp8 host.port=abc", r"host\.port.*found 'abc', wanted a whole number"),
    ("exp=exp8 'engine.profile=[a,b]'", r"engine\.profile.*found .*\[.*a.*b.*\].*, wanted text"),
    ("exp=exp8 engine.profile=", r"engine\.profile: found an empty text"),
    ("exp=exp8 host.runs_dir=", r"host\.runs_dir: found an empty text"),
]  # fmt: skip


@pytest.mark.parametrize(("line", "offered"), OFFERED, ids=[line for line, _ in OFFERED])
def test_what_is_typed_wrongly_is_answered_with_what_works(compose, line: str, offered: str) -> None:
    with pytest.raises(ConfigError, match=offered) as caught:
        make(compose(*shlex.split(line)), "run-1")
    assert "\n" not in str(caught.value)
    assert not re.search("full_key|object_type|ListConfig|of type|Error merging", str(caught.value))


@pytest.mark.parametrize(
    "line",
    ["""engine.env.OMP_NUM_THREADS='"4"'""", """engine.env.OMP_DYNAMIC='"true"'""",
     """arms.base.serve.revision='"83"'""", "engine.serve.max_model_len=1024", "engine.knobs.prefix_cache=1"],
)  # fmt: skip
def test_what_a_sentence_offers_is_taken(compose, line: str) -> None:
    make(compose("exp=exp8", *shlex.split(line)), "run-1")


@pytest.mark.parametrize("name", ["nosuch", "max_model_lem", "api_key", ""])
def test_a_name_that_belongs_nowhere_has_no_place(name: str) -> None:
    assert hints.meant(name) == ""


# what inspect is given


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("nosuch.log", "no such file or run: nosuch.log"),
        ("folder/nosuch.log", "no such file or run: folder/nosuch.log"),
        ("x" * 300, "no such file or run: x"),
        (
            "http://127.0.0.1:8000/metrics",
            "save it with curl first: curl -s http://127.0.0.1:8000/metrics > metrics.txt",
        ),
        ("/dev/null", "is no regular file"),
        (str(ROOT), "no such file or run"),
    ],
    ids=["a file", "a path", "a long name", "an address", "a device", "a folder"],
)
def test_what_inspect_cannot_find_is_told_with_what_to_give(text: str, sentence: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(sentence)):
        door.run_reference("inspect", [text])


def test_the_folder_of_a_boot_names_its_log(tmp_path) -> None:
    (tmp_path / "engine.log").write_text("")
    with pytest.raises(ConfigError, match=f"is the folder of a boot; its log is {tmp_path}/engine.log: inspect that"):
        door.run_reference("inspect", [str(tmp_path)])
