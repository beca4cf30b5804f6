"""prep_fused in the real V2 runner, interpreted: every state on one engine of six KV groups, sync and asynchronous."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from overlays import payload
from overlays.base import base_tree
from overlays.errors import OverlayError
from overlays.manifest import load, parse, with_required
from overlays.stage import stage

ROOT = Path(__file__).parents[2]
TIMEOUT_S = 1200


BOOTED_ONCE = [pytest.param(mode, marks=pytest.mark.alone) for mode in ("sync", "async")]  # and not by every worker


@pytest.fixture(scope="module", params=BOOTED_ONCE)
def told(request, engine_python, stage_cache, tmp_path_factory):
    """What fused_engine.py told of one engine."""
    named = ["cpu_v2_interpreter", "prep_fused", "async_dflash"]
    made = stage(base_tree(engine_python), with_required(named), stage_cache)
    folder = tmp_path_factory.mktemp(request.param)
    environment = {
        "PATH": os.environ["PATH"], "HOME": str(folder), "PYTHONPATH": str(made.path), "PYTHONSAFEPATH": "1",
        "PYTHONDONTWRITEBYTECODE": "1", "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "passive",
        "VLLM_ENABLE_V1_MULTIPROCESSING": "0", "VLLM_CACHE_ROOT": str(stage_cache.parent / "test-vllm"),
        "TRITON_INTERPRET": "1", "VLLM_USE_V2_MODEL_RUNNER": "1", "VLLM_GLM53_PREP_FUSED": "shadow",
        "VLLM_GLM53_ASYNC_DFLASH": "1" if request.param == "async" else "0",
    }  # fmt: skip
    script = Path(__file__).parent / "fused_engine.py"
    done = subprocess.run(
        [str(engine_python), str(script), str(ROOT / "testbed"), request.param],
        capture_output=True, text=True, env=environment, cwd=folder, timeout=TIMEOUT_S, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    return {"mode": request.param} | json.loads(done.stdout.splitlines()[-1])


@pytest.mark.engine
def test_it_is_mounted_in_a_runner_of_six_groups_and_two_batches_are_in_flight_where_asked(told):
    assert told["mounted"]["state"] == "SHADOW"
    assert told["mounted"]["groups"] == 6
    assert (told["async"], told["batches"]) == ((True, 2) if told["mode"] == "async" else (False, 1))
    assert told["shadow"]["groups"].split().count("draft") == 2


@pytest.mark.engine
def test_in_shadow_every_step_is_clean_also_of_a_shorter_second_prompt(told):
    counters = told["shadow"]["counters"]
    assert told["shadow"]["state"] == "SHADOW", told["shadow"]
    assert counters["checks"] == counters["clean"] == counters["fused_steps"] > 10, told["shadow"]
    assert counters["drift"] == counters["metadata_drift"] == 0
    left = sum(n for name, n in counters.items() if name.startswith("declined_"))
    assert counters["fused_steps"] + left - counters.get("declined_prefill", 0) == counters["decode_steps"]


@pytest.mark.engine
@pytest.mark.parametrize("scenario", ["armed", "armed again"])
def test_armed_the_checks_are_clean(told, scenario):
    counters = told[scenario]["counters"]
    assert told[scenario]["state"] == "ARMED", told[scenario]
    assert counters["fused_steps"] > counters["checks"] == counters["clean"] > 2
    assert counters["fallbacks"] == 0


@pytest.mark.engine
def test_a_steps_preparation_is_one_launch_and_one_pool_copy_instead_of_five_and_three(told):
    assert told["stock"]["per_step"] == [[5, 3, 0]]  # launches, copies to the device, pool copies
    assert [1, 0, 1] in told["armed"]["per_step"]
    checks = [step for step in told["armed"]["per_step"] if step != [1, 0, 1]]
    assert checks == [[7, 3, 2]]  # both ways: aside, the engine's own, and over the live buffers


@pytest.mark.engine
@pytest.mark.parametrize(
    ("scenario", "state", "reason"),
    [
        ("drift", "DISARMED", "drift: decode step "),
        ("launch", "DISARMED", "the fused launch failed: RuntimeError: planted"),
        ("warm-up", "DISARMED", "the warm-up failed: RuntimeError: planted"),
        ("plan", "INERT", "ring_buffer: KV group 0 maps no slots"),
    ],
)
def test_what_goes_wrong_has_its_state_its_reason_and_its_fallback_in_the_same_step(told, scenario, state, reason):
    found = told[scenario]
    assert found["state"] == state, found
    assert found["reason"].startswith(reason)
    assert found["counters"]["fallbacks"] == (0 if state == "INERT" else 1)
    assert found["counters"]["fused_steps"] < found["counters"]["decode_steps"]


@pytest.mark.engine
@pytest.mark.parametrize("scenario", ["shadow", "armed", "drift", "launch", "warm-up", "plan", "armed again"])
def test_tokens_are_those_of_the_stock_runner_whatever_happens(told, scenario):
    assert told[scenario]["tokens"] == told["stock"]["tokens"]


# the manifest


def test_the_kernels_own_files_are_staged_inside_of_the_plugins_package():
    plugin = load("prep_fused").plugin
    assert plugin is not None
    staged = dict(payload.files(plugin))
    for name in ("kernel", "plan", "guard"):
        own = (ROOT / "kernels" / "prep_fused" / f"{name}.py").read_bytes()
        assert staged[f"campaign_prep_fused/prep_fused/{name}.py"] == own
    assert not [name for name in staged if "proof" in name or "bench" in name]


@pytest.mark.parametrize(
    ("brings", "words"),
    [
        ('["kernels/prep_fused/no_such.py"]', "which is not there as a regular file"),
        ('["kernels/../overlays/pin.py"]', "must match"),
        ('["/etc/passwd"]', "must match"),
        ('["overlays/pin.py"]', "must match"),
        ('["kernels/prep_fused/plan.py", "kernels/prep_fused/plan.py"]', "names something twice"),
        ('"kernels/prep_fused/plan.py"', "must be an array"),
    ],
    ids=["missing", "a way out", "absolute", "another room", "twice", "no array"],
)
def test_what_is_brought_is_a_kernels_file_by_its_path(tmp_path, brings, words):
    folder = copied(tmp_path, brings)
    with pytest.raises(OverlayError, match=words):
        parse(folder)


def test_a_folder_of_the_payload_that_what_is_brought_would_hide_is_refused(tmp_path):
    folder = copied(tmp_path, '["kernels/prep_fused/plan.py"]')
    (folder / "payload" / "prep_fused").mkdir()
    with pytest.raises(OverlayError, match="would lie where"):
        parse(folder)


def test_a_kernel_that_changed_is_another_payload(tmp_path):
    plugin = load("prep_fused").plugin
    assert plugin is not None
    changed = tmp_path / "prep_fused" / "plan.py"
    changed.parent.mkdir()
    changed.write_bytes((ROOT / "kernels" / "prep_fused" / "plan.py").read_bytes() + b"\n")
    others = tuple(file for file in plugin.brings if file.name != "plan.py")
    assert payload.digest(type(plugin)(**{**vars(plugin), "brings": (*others, changed)})) != plugin.payload_sha256


def copied(folder: Path, brings: str) -> Path:
    """The overlay's own manifest with another list."""
    made = folder / "prep_fused"
    (made / "payload").mkdir(parents=True)
    text = (ROOT / "overlays" / "prep_fused" / "manifest.toml").read_text(encoding="utf-8")
    start, end = text.index("brings = ["), text.index("]\npayload_sha256")
    (made / "manifest.toml").write_text(f"{text[:start]}brings = {brings}{text[end + 1 :]}", encoding="utf-8")
    return made
