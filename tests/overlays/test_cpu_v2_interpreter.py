"""The overlay cpu_v2_interpreter in the real engine's interpreter: what Triton and the choice of the runner become.

No engine is booted here; tests/campaign/test_v2_line.py does that.
"""

import json
import os
import subprocess
from pathlib import Path

import pytest

from overlays.base import base_tree
from overlays.manifest import load, with_required
from overlays.stage import stage

OVERLAY = "cpu_v2_interpreter"
TIMEOUT_S = 600
PROGRAM = """
import json
import torch
from vllm.triton_utils import HAS_TRITON
answer = {"has_triton": HAS_TRITON}
if HAS_TRITON:
    import vllm.v1.worker.cpu.shm
    from vllm.v1.worker.gpu.block_table import _compute_slot_mappings_kernel as kernel
    from vllm.v1.worker.gpu.buffer_utils import StagedWriteTensor
    answer["kernel"] = type(kernel).__name__
    from vllm.v1.attention.backends.cpu_attn import CPUAttentionBackendImpl
    unwritten = torch.full((2, 4), float("nan"))
    warmed = CPUAttentionBackendImpl.forward(None, None, None, None, None, None, None, unwritten)
    answer["warm_up"] = warmed.flatten().tolist()
from campaign_engine_report import state
answer["published"] = state.published()
answer["before"] = dict(state.counted())
if HAS_TRITON:
    table = StagedWriteTensor((4, 8), dtype=torch.int32, device=torch.device("cpu"))
    table.stage_write(1, 2, [5, 6, 7])
    table.apply_write()
    answer["row"] = table.gpu[1].tolist()
answer["after"] = dict(state.counted())
print(json.dumps(answer))
"""


@pytest.fixture(scope="module")
def interpreted(answer):
    """The answer with TRITON_INTERPRET=1; a dozen seconds, so all look at one."""
    return answer("1")


@pytest.fixture(scope="module")
def answer(engine_python, stage_cache, tmp_path_factory):
    """What the staged engine answers with TRITON_INTERPRET at some value (None: not set)."""
    made = stage(base_tree(engine_python), with_required([OVERLAY]), stage_cache)
    folder = tmp_path_factory.mktemp("engine")

    def ask(value):
        environment = {
            "PATH": os.environ["PATH"], "HOME": str(folder), "PYTHONPATH": str(made.path), "PYTHONSAFEPATH": "1",
            "PYTHONDONTWRITEBYTECODE": "1", "VLLM_CACHE_ROOT": str(folder / "vllm"),
            **({} if value is None else {"TRITON_INTERPRET": value}),
        }  # fmt: skip
        done = subprocess.run(
            [str(engine_python), "-c", PROGRAM],
            capture_output=True, text=True, env=environment, cwd=folder, timeout=TIMEOUT_S, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr[-3000:]
        return json.loads(done.stdout.splitlines()[-1])

    return ask


@pytest.mark.engine
def test_under_the_interpreter_the_engine_keeps_triton_and_counts_what_it_interprets(interpreted):
    found = interpreted
    assert found["has_triton"]
    assert found["kernel"] == "InterpretedFunction"
    assert found["published"][OVERLAY]["interpreter"] is True
    assert found["row"] == [0, 0, 5, 6, 7, 0, 0, 0]
    assert found["before"] == {}
    assert found["after"] == {f"{OVERLAY}.launches": 1}


@pytest.mark.engine
def test_the_warm_up_reads_no_memory_that_nobody_wrote(interpreted):
    """Seen: by chance all NaN, and the interpreter's argmax killed the boot."""
    assert interpreted["warm_up"] == [0.0] * 8


@pytest.mark.engine
@pytest.mark.parametrize("value", ["0", None], ids=["switched off", "not set"])
def test_without_the_interpreter_the_stock_check_decides(answer, value):
    found = answer(value)
    assert not found["has_triton"]
    assert found["published"][OVERLAY]["interpreter"] is False
    assert found["after"] == {}


def test_the_witness_asks_for_the_runner_the_interpreter_and_launches():
    (knob,) = load(OVERLAY).knobs
    assert knob.witness["1"].resolved == {"runner": "V2", f"overlays.{OVERLAY}.interpreter": True}
    assert knob.witness["1"].behaved == {f"{OVERLAY}.launches": {"min": 1.0}}
    assert knob.witness["0"].resolved["runner"] == "V1"


@pytest.mark.parametrize(("patch", "lines"), [("importing", 3), ("cpu_attn", 2)])
def test_a_patch_is_a_line_or_two_and_the_logic_lies_in_the_added_file(patch, lines):
    text = (Path(load(OVERLAY).folder) / "0.29.0" / f"{patch}.patch").read_text(encoding="utf-8")
    changed = [line for line in text.splitlines() if line[:1] in "+-" and line[:3] not in ("+++", "---")]
    assert len(changed) == lines
