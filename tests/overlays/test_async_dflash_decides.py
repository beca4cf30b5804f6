"""async_dflash's own word on who turned async scheduling on, in engines of every kind; the payload as it is staged.

What each kind of engine calls, in order, is what the two patches insert (overlays/async_dflash/0.29.0): `begin`,
`admits` only where the engine is about to refuse, the marks, and the line at the end.
"""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from overlays.manifest import BUILT_IN

PAYLOAD = BUILT_IN / "async_dflash" / "0.29.0" / "payload" / "async_dflash.py"
REPORT = BUILT_IN / "engine_report" / "payload"
LOGGER = """
import logging
logging.basicConfig(level="INFO", format="%(message)s")
init_logger = logging.getLogger
"""
SCRIPT = """
import json, sys
from types import SimpleNamespace as Object
from vllm.config import async_dflash

def engine(method, asked, listed, cpu):
    scheduler = Object(async_scheduling=asked)
    config = Object(scheduler_config=scheduler, max_concurrent_batches=2,
                    speculative_config=Object(method=method, disable_padded_drafter_batch=False))
    async_dflash.begin(config)
    if asked is None:
        scheduler.async_scheduling = bool(listed or async_dflash.admits(config))
    elif asked and not listed and not async_dflash.admits(config):
        sys.exit("refused")
    async_dflash.mark_allow_list(config, True)
    if cpu and not async_dflash.admits(config):
        scheduler.async_scheduling = False
    async_dflash.mark(config, "platform")
    async_dflash.log_decision(config)

for arguments in json.loads(sys.argv[1]):
    engine(*arguments)
try:
    from campaign_engine_report.state import published
    print(json.dumps(published().get("async_dflash")))
except ImportError:
    print("null")
"""
GPU_STOCK = ["dflash", None, True, False]  # the public GPU wheel, and 0.31.0: dflash is on the list
FLEET = ["dflash", None, False, False]
CPU = ["dflash", None, True, True]


@pytest.fixture
def decides(tmp_path: Path):
    """decides(engine, ..., knob=...): what was published in a process that made these configurations, and its lines."""
    config = tmp_path / "vllm" / "config"
    config.mkdir(parents=True)
    for file in (config / "__init__.py", config.parent / "__init__.py"):
        file.write_text("")
    (config.parent / "logger.py").write_text(LOGGER)
    shutil.copy(PAYLOAD, config)

    def decided(*engines, knob="1", report=True):
        if report:
            shutil.copytree(REPORT, tmp_path / "campaign_engine_report")
        done = subprocess.run(
            [sys.executable, "-c", SCRIPT, json.dumps(engines)], capture_output=True, text=True, check=False,
            cwd=tmp_path, env={"PYTHONPATH": str(tmp_path), "VLLM_GLM53_ASYNC_DFLASH": knob},
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout.splitlines()[-1]), done.stderr

    return decided


@pytest.mark.parametrize(
    ("engine", "knob", "decided", "line"),
    [
        (FLEET, "1", True, "async_scheduling=True (admitted"),
        (CPU, "1", True, "async_scheduling=True (admitted"),
        (["dflash", True, False, False], "1", True, "async_scheduling=True (admitted"),
        (GPU_STOCK, "1", False, "async_scheduling=True (on by the engine's own rules"),
        (GPU_STOCK, "0", False, "async_scheduling=True (on by the engine's own rules"),
        (FLEET, "0", False, "async_scheduling=False (vetoed"),
        (CPU, "0", False, "async_scheduling=False (vetoed: the platform"),
        (["dflash", False, True, True], "1", False, "async_scheduling=False (off as asked"),
    ],
    ids=["the fleet", "the CPU", "asked on", "the GPU wheel", "the GPU wheel, off", "the fleet, off", "the CPU, off",
         "asked off"],
)  # fmt: skip
def test_it_says_whether_the_stock_engine_would_have_refused(decides, engine, knob, decided, line):
    published, lines = decides(engine, knob=knob)
    assert published == {"decided": decided}
    assert line in lines


def test_one_decided_configuration_of_a_process_is_enough(decides):
    assert decides(FLEET, GPU_STOCK)[0] == {"decided": True}


def test_another_method_says_nothing(decides):
    assert decides(["ngram", None, True, False])[0] is None


def test_without_engine_report_the_decision_is_the_same(decides):
    published, lines = decides(FLEET, report=False)
    assert published is None
    assert "async_scheduling=True (admitted" in lines
