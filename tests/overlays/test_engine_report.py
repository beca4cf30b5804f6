"""engine_report's payload in a real process: asks are answered, batches are counted, loaded code is attested.

The payload runs inside the engine and is not importable here, so it is laid out as a stage would and run by a child.
"""

import json
import shutil
import subprocess
import sys
import textwrap
from hashlib import sha256
from pathlib import Path

import pytest

from overlays.manifest import BUILT_IN

PAYLOAD = BUILT_IN / "engine_report" / "payload"
TIMEOUT_S = 60

ENGINE = """
    import os, sys, time
    from types import SimpleNamespace as Object
    from pathlib import Path

    def config():
        return Object(
            scheduler_config=Object(async_scheduling=True, max_num_seqs=4, max_num_batched_tokens=2048),
            max_concurrent_batches=2, num_speculative_tokens=5, speculative_config=Object(method="dflash"),
            cache_config=Object(enable_prefix_caching=True, num_gpu_blocks=682, block_size=128),
            model_config=Object(max_model_len=1024, dtype="torch.float32", enforce_eager=True),
            parallel_config=Object(world_size=1, data_parallel_rank=3))

    def batch(tokens):
        return Object(total_num_scheduled_tokens=tokens)

    def wait_for(pattern, seconds=20):
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if found := list(Path(os.environ["VLLM_CAMPAIGN_REPORT_DIR"]).glob(pattern)):
                return found[0]
            time.sleep(0.05)
        sys.exit(f"no {pattern}")
"""


@pytest.fixture
def run(tmp_path):
    """Run code with the payload importable; the reports' folder comes back."""
    shutil.copytree(PAYLOAD, tmp_path / "stage" / "campaign_engine_report")
    (tmp_path / "stage" / "campaign_engine_report" / "__init__.py").write_text("")
    reports = tmp_path / "reports"
    reports.mkdir()

    def run(code: str, **environment: str) -> Path:
        script = tmp_path / "script.py"
        script.write_text(textwrap.dedent(ENGINE) + textwrap.dedent(code))
        done = subprocess.run(
            [sys.executable, str(script)], capture_output=True, text=True, timeout=TIMEOUT_S, check=False,
            env={"PYTHONPATH": str(tmp_path / "stage"), "VLLM_CAMPAIGN_REPORT_DIR": str(reports), **environment},
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return reports

    return run


def only(reports: Path, role: str) -> dict:
    """The one report of a role."""
    (file,) = reports.glob(f"report-{role}-*.json")
    return json.loads(file.read_text())


ANSWERING = """
    from campaign_engine_report import facts
    from campaign_engine_report.answer import Answering, Role
    from campaign_engine_report.state import Counters, publish

    counters = Counters()
    answering = Answering()
    answering.take(Role("EngineCore", lambda: 3, lambda: facts.of_config(config()), counters.read))
    ask = Path(os.environ["VLLM_CAMPAIGN_REPORT_DIR"]) / "ask"
"""


def test_an_ask_is_answered_with_the_nonce_the_role_and_what_was_resolved(run):
    reports = run(ANSWERING + '    ask.write_text("n-1\\n"); wait_for("report-EngineCore-3-*.json")')
    report = only(reports, "EngineCore")
    assert (report["schema"], report["nonce"], report["role"], report["rank"]) == (1, "n-1", "EngineCore", 3)
    assert report["resolved"] == {
        "async_scheduling": True, "max_concurrent_batches": 2, "prefix_caching": True, "spec_method": "dflash",
        "spec_tokens": 5, "kv_blocks": 682, "kv_block_size": 128, "max_model_len": 1024, "max_num_seqs": 4,
        "max_num_batched_tokens": 2048, "dtype": "float32", "enforce_eager": True, "world_size": 1,
    }  # fmt: skip
    assert not list(reports.glob(".report*"))


def test_every_new_nonce_is_answered_once_more(run):
    code = """
    ask.write_text("one"); first = wait_for("report-EngineCore-3-*.json"); first.unlink()
    time.sleep(0.7); assert not list(first.parent.glob("report-*"))
    counters.submitted(2, 30, 20)
    ask.write_text("two"); wait_for("report-EngineCore-3-*.json")
    """
    report = only(run(ANSWERING + code), "EngineCore")
    assert (report["nonce"], report["behaved"]["batches_in_flight"]) == ("two", {"2": 1})


def test_a_secret_is_not_written_down(run):
    code = ANSWERING + '    ask.write_text("n"); wait_for("report-*.json")'
    report = only(run(code, VLLM_API_KEY="hidden", VLLM_GLM53_ASYNC_DFLASH="1", OTHER="x"), "EngineCore")
    assert report["environment"]["VLLM_API_KEY"] == "(set)"
    assert report["environment"]["VLLM_GLM53_ASYNC_DFLASH"] == "1"
    assert "OTHER" not in report["environment"]


def test_what_cannot_be_read_is_an_error_in_the_report_and_the_rest_stands(run):
    code = """
    publish("broken", lambda: 1 / 0)
    publish("slow_step", lambda: {"added_s": 0.5})
    answering.roles["EngineCore"].resolved = lambda: facts.of_config(None)
    ask.write_text("n"); wait_for("report-*.json")
    """
    report = only(run(ANSWERING + code, VLLM_CAMPAIGN_OVERLAID_MODULES="{not json"), "EngineCore")
    assert report["overlays"] == {
        "broken": {"error": "ZeroDivisionError: division by zero"},
        "slow_step": {"added_s": 0.5},
    }
    assert report["resolved"]["error"].startswith("AttributeError")
    assert report["modules"][0]["error"].startswith("FileNotFoundError")
    assert report["behaved"]["steps"] == 0


COUNTING = """
    from collections import deque
    from campaign_engine_report.plugin import count_submissions
    from campaign_engine_report.state import Counters

    class Executor:
        def execute_model(self, scheduler_output, non_block=False):
            return ("ran", scheduler_output, non_block)

    counters, engine = Counters(), Object(model_executor=Executor(), batch_queue=None)
    count_submissions(engine, counters)
    submit = lambda tokens: engine.model_executor.execute_model(batch(tokens), non_block=True)
"""


def test_the_plain_step_has_one_batch_in_flight(run):
    code = """
    assert submit(6)[0] == "ran"
    submit(7)
    seen = {"steps": 2, "tokens": 13, "batches_in_flight": {"1": 2}, "tokens_in_flight_max": 7}
    assert counters.read() == seen
    """
    run(COUNTING + code)


def test_the_batch_queue_counts_what_has_not_come_back(run):
    code = """
    engine.batch_queue = deque(maxlen=2)
    for tokens in (10, 6, 6):
        submit(tokens)
        engine.batch_queue.appendleft(("future", batch(tokens), "future"))
        if len(engine.batch_queue) == 2:
            engine.batch_queue.pop()
    seen = {"steps": 3, "tokens": 22, "batches_in_flight": {"1": 1, "2": 2}, "tokens_in_flight_max": 16}
    assert counters.read() == seen
    """
    run(COUNTING + code)


def test_a_batch_without_tokens_is_neither_a_step_nor_in_flight(run):
    code = """
    engine.batch_queue = deque([("future", batch(0), "future")], maxlen=2)
    submit(0); submit(5)
    assert counters.read() == {"steps": 1, "tokens": 5, "batches_in_flight": {"1": 1}, "tokens_in_flight_max": 5}
    """
    run(COUNTING + code)


def test_without_a_report_folder_nothing_is_wrapped(run):
    code = """
    del os.environ["VLLM_CAMPAIGN_REPORT_DIR"]
    class EngineArgs:
        def create_engine_config(self): return 1
    sys.modules["vllm.engine.arg_utils"] = Object(EngineArgs=EngineArgs)
    from campaign_engine_report.plugin import register
    before = EngineArgs.create_engine_config
    register()
    assert EngineArgs.create_engine_config is before
    """
    run(code)


def test_a_fault_of_the_plugin_does_not_reach_the_engine(run):
    code = """
    class WorkerBase:
        def __init__(self): self.made = True
    sys.modules["vllm.v1.worker.worker_base"] = Object(WorkerBase=WorkerBase)
    from campaign_engine_report import plugin
    plugin.answering.take = lambda role: 1 / 0
    plugin.register()
    assert WorkerBase().made
    """
    run(code)


MODULE = """import functools

class Box:
    @property
    def size(self):
        return {n}

def twice(x):
    return 2 * x
"""


@pytest.mark.parametrize(
    ("now", "code"),
    [
        (MODULE.format(n=1), "same"),
        (MODULE.format(n=2), "differs: Box.size (line 4) was loaded from other code"),
        (MODULE.format(n=1).replace("2 * x", "x * 2"), "differs: twice (line 8) was loaded from other code"),
    ],
    ids=["the same file", "another constant", "another expression"],
)
def test_code_that_was_loaded_from_another_text_is_seen(run, tmp_path, now, code):
    """E6: the file's hash alone would attest what was never run."""
    folder = tmp_path / "lib"
    folder.mkdir()
    (folder / "patched.py").write_text(MODULE.format(n=1))
    (folder / "now").write_text(now)
    script = (
        ANSWERING
        + f"""
    sys.path.insert(0, {str(folder)!r})
    import patched
    Path(patched.__file__).write_text(Path({str(folder / "now")!r}).read_text())
    ask.write_text("n"); wait_for("report-*.json")
    """
    )
    names = json.dumps([{"module": "patched"}, "never_loaded"])
    (entry,) = only(run(script, VLLM_CAMPAIGN_OVERLAID_MODULES=names), "EngineCore")["modules"]
    assert (entry["module"], entry["file"], entry["code"]) == ("patched", str(folder / "patched.py"), code)


def test_the_list_of_modules_may_be_a_file(run, tmp_path):
    names = tmp_path / "modules.json"
    names.write_text('["json"]')
    code = ANSWERING + '    import json; ask.write_text("n"); wait_for("report-*.json")'
    report = only(run(code, VLLM_CAMPAIGN_OVERLAID_MODULES=str(names)), "EngineCore")
    assert [(entry["module"], entry["code"]) for entry in report["modules"]] == [("json", "same")]


PATCHED = """import functools
import json

def wrapping(function):
    @functools.wraps(function)
    def around(*args):
        return function(*args)
    return around

def plain(x):
    return x

@wrapping
def decorated(x):
    return x

def bound_twice(x):
    return x
bound_twice = functools.partial(bound_twice, 1)

loads = json.loads

class Placeholder:
    def __getattr__(self, name):
        raise RuntimeError(name)

missing = Placeholder()

class Mode:
    def __init_subclass__(cls):
        cls.dispatch = around(cls.dispatch)

from patcher import around

class OwnMode(Mode):
    def dispatch(self):
        return 5

class Box:
    def size(self):
        return 1

    @property
    def width(self):
        return 2

    @functools.lru_cache
    def cached(self):
        return 3

    @staticmethod
    def static():
        return 4
"""
PATCHER = """
import functools

def other(*args):
    return 9

def around(function):
    @functools.wraps(function)
    def wrapper(*args):
        return function(*args)
    return wrapper

class Box:
    pass
"""


@pytest.mark.parametrize(
    ("patch", "functions"),
    [
        ("", []),
        ("patched.plain = patcher.other", ["plain"]),
        ("patched.plain = patcher.around(patched.plain)", ["plain"]),
        ("patched.plain.__code__ = patcher.other.__code__", ["plain"]),
        ("patched.plain = patcher.functools.partial(patched.plain, 1)", ["plain"]),
        ("patched.Box.size = patcher.other", ["Box.size"]),
        ("patched.Box.width = property(patcher.other)", ["Box.width"]),
        ("patched.Box.static = staticmethod(patcher.other)", ["Box.static"]),
        ("patched.decorated = patcher.other", ["decorated"]),
        ("patched.Box = patcher.Box", ["Box"]),
        ("patched.extra = patcher.other", []),
    ],
)
def test_code_from_elsewhere_that_stands_for_a_function_of_the_file_is_named(run, tmp_path, patch, functions):
    """A monkeypatch leaves file and hash as they are; decorators and names bound again in the file are none."""
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "patched.py").write_text(PATCHED)
    (tmp_path / "lib" / "patcher.py").write_text(PATCHER)
    script = (
        ANSWERING
        + f"""
    sys.path.insert(0, {str(tmp_path / "lib")!r})
    import patched, patcher
    {patch}
    ask.write_text("n"); wait_for("report-*.json")
    """
    )
    (entry,) = only(run(script, VLLM_CAMPAIGN_OVERLAID_MODULES='["patched"]'), "EngineCore")["modules"]
    assert [found["function"] for found in entry.get("replaced", [])] == functions
    assert all("patcher.py" in found["file"] or "functools" in found["file"] for found in entry.get("replaced", []))


def test_an_overlaid_data_file_is_told_as_this_process_sees_it_below_its_package(run, tmp_path):
    package = tmp_path / "lib" / "small"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "table.json").write_text("{}")
    (tmp_path / "elsewhere.json").write_text("{}")
    (package / "link.json").symlink_to(tmp_path / "elsewhere.json")
    script = (
        ANSWERING
        + f"""
    sys.path.insert(0, {str(tmp_path / "lib")!r})
    import small
    ask.write_text("n"); wait_for("report-*.json")
    """
    )
    names = [{"file": f"small/{name}.json"} for name in ("table", "link", "absent")] + [{"file": "unseen/table.json"}]
    found = only(run(script, VLLM_CAMPAIGN_OVERLAID_MODULES=json.dumps(names)), "EngineCore")["modules"]
    empty = sha256(b"{}").hexdigest()
    assert [(entry["file_path"], entry["sha256"]) for entry in found] == [
        ("small/table.json", empty), ("small/link.json", empty), ("small/absent.json", ""), ("unseen/table.json", ""),
    ]  # fmt: skip
    assert found[0]["file"] == str(package / "table.json")
    assert found[1]["origin"] == str(tmp_path / "elsewhere.json")


def test_serve_arguments_are_shown_as_parsed_and_as_the_configuration_holds_them(run):
    """Names in several places with several values are left out; a drafter's settings are not the engine's."""
    code = """
    import enum
    from dataclasses import dataclass, field
    from campaign_engine_report import arguments

    class Backend(enum.Enum):
        FLASH = 1

    @dataclass
    class Uva:
        cpu_offload_gb: float = 12.0
    @dataclass
    class Offload:
        uva: Uva = field(default_factory=Uva)
    @dataclass
    class Model:
        max_model_len: int = 2000
        seed: int = 1
        hf_token: str = "secret"
    @dataclass
    class Attention:
        backend: Backend = Backend.FLASH
        callback: object = len
    @dataclass
    class Speculative:
        max_model_len: int = 7
    @dataclass
    class Other:
        seed: int = 2
        maps: dict = field(default_factory=lambda: {"mode": Backend.FLASH, "odd": len})
    @dataclass
    class Config:
        model_config: Model = field(default_factory=Model)
        offload_config: Offload = field(default_factory=Offload)
        attention_config: Attention = field(default_factory=Attention)
        speculative_config: Speculative = field(default_factory=Speculative)
        other_config: Other = field(default_factory=Other)
    @dataclass
    class Arguments:
        max_model_len: int = 2000
        attention_backend: object = Backend.FLASH
        hf_token: str = "secret"
        hook: object = len

    seen = arguments.resolved(Config())
    assert (seen["max_model_len"], seen["cpu_offload_gb"], seen["attention_backend"]) == (2000, 12.0, "FLASH")
    assert seen["maps"] == {"mode": "FLASH"} and "seed" not in seen and "callback" not in seen
    assert "secret" not in repr(seen) + repr(arguments.parsed(Arguments()))
    assert arguments.parsed(Arguments()) == {"max_model_len": 2000, "attention_backend": "FLASH"}
    """
    run(code)


def test_the_arguments_are_noted_before_the_engine_resolves_them(run):
    code = """
    from dataclasses import dataclass

    @dataclass
    class EngineArgs:
        async_scheduling: object = None
        def create_engine_config(self):
            self.async_scheduling = True
            return config()
    sys.modules["vllm.engine.arg_utils"] = Object(EngineArgs=EngineArgs)
    from campaign_engine_report import plugin
    plugin.register()
    EngineArgs(async_scheduling=False).create_engine_config()
    (Path(os.environ["VLLM_CAMPAIGN_REPORT_DIR"]) / "ask").write_text("n"); wait_for("report-APIServer-0-*.json")
    """
    report = only(run(code), "APIServer")
    assert report["arguments"] == {"async_scheduling": False}
    assert report["resolved"]["async_scheduling"] is True
    assert report["serve"]["error"].startswith("TypeError")  # this configuration is none of dataclasses
