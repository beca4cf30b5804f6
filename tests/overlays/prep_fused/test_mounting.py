"""How the plugin comes into a process: asked, awaited, mounted; and what a process shows that never mounts it."""

import importlib
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest


@pytest.mark.parametrize(
    ("mode", "every", "wanted"),
    [
        (None, None, ("off", 64, "")),
        ("shadow", "1", ("shadow", 1, "")),
        (" Shadow ", "16", ("shadow", 16, "")),
        ("1", "0", ("disarmed", 64, "VLLM_GLM53_PREP_FUSED_CHECK_EVERY is '0'")),
        ("1", "-4", ("disarmed", 64, "VLLM_GLM53_PREP_FUSED_CHECK_EVERY is '-4'")),
        ("1", "\u0664", ("disarmed", 64, "VLLM_GLM53_PREP_FUSED_CHECK_EVERY is")),
        ("0", "often", ("off", 64, "VLLM_GLM53_PREP_FUSED_CHECK_EVERY is 'often'")),
        ("true", "64", ("disarmed", 64, "the knob is 'true'")),
    ],
    ids=["unset", "shadow", "blanks, capitals", "zero", "negative", "another script's digit", "off anyway", "a word"],
)  # fmt: skip
def test_what_is_asked_is_read_or_disarms_with_the_word(package, monkeypatch, mode, every, wanted):
    for name, value in (("MODE", mode), ("CHECK_EVERY", every)):
        variable = getattr(package("asked"), name)
        monkeypatch.delenv(variable, raising=False)
        if value is not None:
            monkeypatch.setenv(variable, value)
    found = package("asked").from_environment()
    assert (found.mode.value, found.every) == wanted[:2]
    assert found.reason.startswith(wanted[2])


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """module(text): the name of an importable module of that text."""
    monkeypatch.syspath_prepend(str(tmp_path))
    made = []

    def write(text: str) -> str:
        name = f"awaited_{len(made)}_{tmp_path.name.replace('-', '_')}"
        (tmp_path / f"{name}.py").write_text(text, encoding="utf-8")
        made.append(name)
        return name

    yield write
    for name in made:
        sys.modules.pop(name, None)


def test_a_module_is_told_of_when_it_has_run_and_is_not_imported_for_it(package, module):
    name, told = module("value = 1"), []
    finders = list(sys.meta_path)
    package("importing").after_import(name, lambda found: told.append(found.value))
    assert (told, name in sys.modules) == ([], False)
    importlib.import_module(name)
    assert told == [1]
    assert sys.meta_path == finders
    assert sys.modules[name].__spec__.loader is sys.modules[name].__loader__
    importlib.reload(sys.modules[name])
    assert told == [1]


def test_a_module_that_is_there_already_is_told_of_at_once(package, module):
    name, told = module("value = 2"), []
    importlib.import_module(name)
    package("importing").after_import(name, lambda found: told.append(found.value))
    assert told == [2]


def test_a_mount_that_fails_leaves_the_module_as_it_is(package, module, caplog):
    name = module("value = 3")
    package("importing").after_import(name, lambda _: 1 / 0)
    assert importlib.import_module(name).value == 3
    assert "was not mounted: the stock chain runs" in caplog.text


def test_a_module_that_fails_fails_as_ever(package, module):
    name = module("raise ValueError('own')")
    package("importing").after_import(name, lambda _: None)
    with pytest.raises(ValueError, match="own"):
        importlib.import_module(name)


@pytest.mark.parametrize(("word", "state"), [("0", "OFF"), ("shadow", "SHADOW"), ("1", "ARMED"), ("2", "DISARMED")])
def test_a_mounted_runner_shows_its_state_before_its_first_step_and_after(package, monkeypatch, word, state):
    monkeypatch.setenv("VLLM_GLM53_PREP_FUSED", word)
    report = importlib.import_module("campaign_engine_report.state")

    class GPUModelRunner:
        vllm_config = SimpleNamespace(parallel_config=SimpleNamespace(rank=0))

        def prepare_inputs(self, *given):
            return given

        def prepare_attn(self, batch):
            return batch, "slots"

    package("mounting").mount(SimpleNamespace(GPUModelRunner=GPUModelRunner, InputBatch=dict))
    assert report.published()["prep_fused"]["state"] == state
    runner = GPUModelRunner()
    assert runner.prepare_attn("batch") == ("batch", "slots")
    shown = report.published()["prep_fused"]
    assert (shown["state"], shown["rank"], shown["groups"]) == (state, 0, "")
    assert report.counted()["prep_fused.fused_steps"] == 0


def test_registering_waits_for_the_runner_and_imports_no_kernel(package, monkeypatch):
    plugin = package("plugin")
    monkeypatch.setattr(plugin, "MODEL_RUNNER", "vllm.no_such_runner")
    before = set(sys.modules)
    plugin.register()
    assert not {name for name in set(sys.modules) - before if "prep_fused.plan" in name}
    sys.meta_path[:] = [finder for finder in sys.meta_path if getattr(finder, "name", "") != "vllm.no_such_runner"]
