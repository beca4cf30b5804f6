"""EXP-8's overlay on the real engine's configuration: what it resolves to, and that its last line never claims more."""

import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from overlays.base import base_tree
from overlays.manifest import with_required
from overlays.stage import stage

pytestmark = pytest.mark.engine
SCRIPT = Path(__file__).parent / "resolve_config.py"
TIMEOUT_S = 600

SHAPE = {
    "vocab_size": 1024, "hidden_size": 128, "intermediate_size": 384, "num_attention_heads": 4, "head_dim": 32,
    "num_key_value_heads": 2, "hidden_act": "silu", "max_position_embeddings": 4096, "rms_norm_eps": 1e-6,
    "model_type": "qwen3", "torch_dtype": "float32", "tie_word_embeddings": False, "eos_token_id": 1,
}  # fmt: skip
TARGET = {**SHAPE, "architectures": ["Qwen3ForCausalLM"], "num_hidden_layers": 4}
DRAFT = {
    **SHAPE, "architectures": ["DFlashDraftModel"], "num_hidden_layers": 2, "block_size": 6, "num_target_layers": 4,
    "dflash_config": {"mask_token_id": 3, "target_layer_ids": [0, 1, 2]},
}  # fmt: skip


@dataclass(frozen=True)
class Engine:
    """A staged engine whose configuration can be asked; every case of one test goes through one process."""

    python: Path
    cache: Path
    folder: Path
    faulty: Path

    def resolve(self, overlays, *cases):
        """One answer a case of `case()`."""
        made = stage(base_tree(self.python), with_required(overlays, [self.faulty]), self.cache)
        environment = {
            "PATH": os.environ["PATH"], "HOME": str(self.folder), "HF_HUB_OFFLINE": "1",
            "PYTHONPATH": str(made.path),
            "PYTHONSAFEPATH": "1", "PYTHONDONTWRITEBYTECODE": "1",
            "VLLM_CACHE_ROOT": str(self.cache.parent / "test-vllm"),
        }  # fmt: skip
        done = subprocess.run(
            [str(self.python), str(SCRIPT), json.dumps([self.arguments(**case) for case in cases])],
            capture_output=True, text=True, env=environment, cwd=self.folder, timeout=TIMEOUT_S, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr[-3000:]
        answers = json.loads(done.stdout.splitlines()[-1])
        assert all(answer.get("package", str(made.path)).startswith(str(made.path)) for answer in answers)
        return answers

    def arguments(self, knob=None, speculative=None, executor_without_async=False, **arguments):
        """One case: the reference engine's arguments, and what is different."""
        speculation = {"method": "dflash", "model": str(self.folder / "draft"), "num_speculative_tokens": 5}
        reference = {
            "model": str(self.folder / "target"), "load_format": "dummy", "skip_tokenizer_init": True,
            "dtype": "float32",
            "max_model_len": 1024, "max_num_seqs": 4, "enforce_eager": True,
            "speculative_config": {**speculation, **(speculative or {})},
        }  # fmt: skip
        return {
            "knob": knob,
            "executor_without_async": executor_without_async,
            "arguments": {**reference, **arguments},
        }


@pytest.fixture(scope="module")
def engine(tmp_path_factory, engine_python, stage_cache, faulty):
    folder = tmp_path_factory.mktemp("models")
    for name, config in (("target", TARGET), ("draft", DRAFT)):
        (folder / name).mkdir()
        (folder / name / "config.json").write_text(json.dumps(config))
    return Engine(engine_python, stage_cache, folder, faulty)


def state(answer):
    """Async scheduling, batches, scheduler."""
    return answer["async_scheduling"], answer["max_concurrent_batches"], answer["scheduler"]


def overlay_lines(answer):
    """The overlay's lines of one configuration."""
    return [line.removeprefix("[async_dflash] ") for line in answer["lines"] if line.startswith("[async_dflash]")]


ON = (True, 2, "AsyncScheduler")
OFF = (False, 1, "Scheduler")
ADMITTED = "knob=1 method=dflash async_scheduling=True (admitted; batches in flight may reach 2)"


def off(why, knob="1", method="dflash"):
    """The overlay's line where async scheduling is off."""
    return f"knob={knob} method={method} async_scheduling=False ({why}; batches in flight may reach 1)"


PLATFORM = "vetoed: the platform's configuration hook"
NGRAM = {"method": "ngram", "model": None, "prompt_lookup_max": 3}
DECIDED = {
    "the default": ({}, OFF, off(PLATFORM, knob="0")),
    "knob 0": ({"knob": "0"}, OFF, off(PLATFORM, knob="0")),
    "knob 0, asked on": ({"knob": "0", "async_scheduling": True}, OFF, off(PLATFORM, knob="0")),
    "knob 1": ({"knob": "1"}, ON, ADMITTED),
    "knob 1, asked on": ({"knob": "1", "async_scheduling": True}, ON, ADMITTED),
    "knob 1, asked off": ({"knob": "1", "async_scheduling": False}, OFF, off("off as asked")),
    "unpadded drafts": (
        {"knob": "1", "speculative": {"disable_padded_drafter_batch": True}},
        OFF,
        off("vetoed: disable_padded_drafter_batch"),
    ),
    "executor without async": (
        {"knob": "1", "executor_without_async": True},
        OFF,
        off("vetoed: the executor does not support it"),
    ),
    "another method": (
        {"knob": "1", "speculative": NGRAM},
        OFF,
        off("vetoed: the engine's own list of methods", method="ngram"),
    ),
}
REFUSED = ("2", "on", "", "true")


@pytest.fixture(scope="module")
def answers(engine):
    """Every case of the overlay alone, through one process (an engine import takes ten seconds)."""
    cases = {name: case for name, (case, _, _) in DECIDED.items()} | {value: {"knob": value} for value in REFUSED}
    return dict(zip(cases, engine.resolve(["async_dflash"], *cases.values()), strict=True))


@pytest.mark.parametrize("name", DECIDED)
def test_the_knob_decides_and_one_last_line_says_what_was_resolved(answers, name):
    _, wanted, line = DECIDED[name]
    assert (state(answers[name]), overlay_lines(answers[name])) == (wanted, [line])


@pytest.mark.parametrize("value", REFUSED)
def test_any_other_value_is_refused_with_variable_found_and_wanted(answers, value):
    assert f"VLLM_GLM53_ASYNC_DFLASH is {value!r}, but must be '0' or '1'" in answers[value]["refused"]


def test_the_engine_warns_of_no_variable_but_the_one_that_the_overlay_declares(answers):
    prefix = "Unknown vLLM environment variable detected: "
    lines = [line for answer in answers.values() for line in answer["lines"]]
    assert {line.removeprefix(prefix) for line in lines if line.startswith(prefix)} <= {"VLLM_GLM53_ASYNC_DFLASH"}


def test_the_fleets_decision_is_reproduced_and_both_conditions_are_opened(engine):
    warning = "Async scheduling not supported with dflash-based speculative decoding and will be disabled."
    stays_off, refused, on, on_as_asked = engine.resolve(
        ["async_dflash", "no_eagle_dflash"],
        {"knob": "0"},
        {"knob": "0", "async_scheduling": True},
        {"knob": "1"},
        {"knob": "1", "async_scheduling": True},
    )
    assert (state(stays_off), warning in stays_off["lines"]) == (OFF, True)
    assert overlay_lines(stays_off) == [off("vetoed: the engine's own list of methods", knob="0")]
    assert "async scheduling is only supported with EAGLE" in refused["refused"]
    assert [(state(answer), overlay_lines(answer)) for answer in (on, on_as_asked)] == [(ON, [ADMITTED])] * 2
    assert warning not in on["lines"]


def test_the_stock_engine_without_any_overlay_decides_as_it_did(engine):
    stock = engine.resolve([], {}, {"async_scheduling": True}, {"knob": "1"})
    assert [state(answer) for answer in stock] == [OFF, OFF, OFF]


def test_a_later_veto_is_what_the_last_line_says(engine):
    (answer,) = engine.resolve(["late_veto"], {"knob": "1"})
    line = off("vetoed: after the platform's configuration hook")
    assert (state(answer), overlay_lines(answer)) == (OFF, [line])


def test_it_publishes_whether_it_decided_itself(engine):
    """True only where the stock engine would have refused; without engine_report nothing is told."""
    report = ["engine_report", "async_dflash"]
    assert [a["decided"] for a in engine.resolve(report, {"knob": "0"}, {"knob": "1"})] == [False, True]
    assert [a["decided"] for a in engine.resolve([*report, "no_eagle_dflash"], {"knob": "1"})] == [True]
    refused = engine.resolve(report, {"knob": "1", "async_scheduling": False}, {"knob": "1", "speculative": NGRAM})
    assert [a["decided"] for a in refused] == [False, False]
    assert [a["decided"] for a in engine.resolve(["async_dflash"], {"knob": "1"})] == [None]


@pytest.mark.case("C4", "C5")
def test_a_drafters_folder_decides_the_method_unless_it_is_one_of_four(engine):
    """Why an experiment names its method, and why the witness compares it with what was resolved."""
    (engine.folder / "eagle-notes").mkdir()
    llama = {**TARGET, "architectures": ["LlamaForCausalLM"], "model_type": "llama", "num_hidden_layers": 1}
    (engine.folder / "llama").mkdir()
    (engine.folder / "llama" / "config.json").write_text(json.dumps(llama))
    (engine.folder / "eagle-notes" / "small").symlink_to(engine.folder / "llama")
    named = {"model": str(engine.folder / "eagle-notes" / "small"), "num_speculative_tokens": 3}
    asked = [{"speculative": {**named, "method": method}} for method in ("draft_model", None)]
    asked.append({"speculative": {"model": str(engine.folder / "llama"), "method": None, "num_speculative_tokens": 3}})
    found = engine.resolve([], *asked, {})
    methods = [answer.get("method", answer.get("refused")) for answer in found]
    assert methods == ["eagle", "eagle", "draft_model", "dflash"]


SHOWN = {  # an argument that is not at its default, and what the configuration must show under its name
    "async_scheduling": (False, False),
    "block_size": (64, 64),
    "cpu_offload_gb": (1, 1),
    "enable_chunked_prefill": (True, True),
    "enable_prefix_caching": (False, False),
    "gpu_memory_utilization": (0.5, 0.5),
    "kv_cache_memory_bytes": (2**27, 2**27),
    "max_num_batched_tokens": (4096, 4096),
    "scheduling_policy": ("priority", "priority"),
    "seed": (7, 7),
    "stream_interval": (4, 4),
    "distributed_executor_backend": ("uni", "mp"),  # the CPU platform has the last word: as a witness it is INVALID
    "compilation_config": ({"mode": 0}, {"mode": "NONE"}),
}


@pytest.mark.case("C9")
def test_a_serve_argument_is_shown_under_its_name_as_the_configuration_holds_it(engine):
    (answer,) = engine.resolve(["engine_report"], {name: asked for name, (asked, _) in SHOWN.items()})
    assert "serve" in answer, answer
    found = answer["serve"]
    assert found["compilation_config"].items() >= SHOWN["compilation_config"][1].items()
    wanted = {name: value for name, (_, value) in SHOWN.items() if name != "compilation_config"}
    assert {name: found.get(name) for name in wanted} == wanted
    assert found["max_model_len"] == 1024  # the target's; its drafter has another
    assert found["dtype"] == "float32"
    assert {"kv_cache_dtype", "attention_backend", "mamba_backend"} <= set(found)


def test_the_no_op_twin_leaves_the_engine_off_and_says_nothing(engine):
    (answer,) = engine.resolve(["noop_async"], {"knob": "1"})
    assert (state(answer), overlay_lines(answer)) == (OFF, [])
