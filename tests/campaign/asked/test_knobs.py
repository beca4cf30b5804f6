"""Knobs without an overlay: prefix_cache and model_runner, from the value to what the engine is given and must show."""

import re

import pytest

from campaign.asked import knobs
from campaign.asked.arms import resolve
from campaign.asked.knobs import KnobValue, without_overlay
from campaign.bracket.proof import asked
from campaign.config import Arm, Campaign
from campaign.errors import ConfigError


def value(name: str, text: str, method: str | None = "dflash") -> KnobValue:
    """A knob of knobs.toml at a value."""
    return KnobValue(next(k for k in without_overlay() if k.name == name), text, "test", (), method)


OFF, ON, NOTHING = {"enable_prefix_caching": False}, {"enable_prefix_caching": True}, {}


@pytest.mark.parametrize(
    ("text", "method", "given"),
    [
        ("auto", "dflash", OFF),
        ("auto", "dflash2", OFF),
        ("auto", "dspark", OFF),
        ("auto", "eagle3", NOTHING),
        ("auto", "mtp", NOTHING),
        ("auto", None, NOTHING),
        ("0", "dflash", OFF),
        ("0", None, OFF),
        ("1", "dflash", ON),
        ("1", "eagle3", ON),
        ("1", None, ON),
    ],
)
def test_prefix_cache_gives_its_flag_by_value_and_drafting_method(
    exp8: Campaign, text: str, method: str | None, given: dict[str, bool]
) -> None:
    exp8.model.method = method
    exp8.engine.knobs = {"prefix_cache": text}
    for name in exp8.arms:
        found = {k: v for k, v in resolve(exp8, name).serve if k == "enable_prefix_caching"}
        assert found == given


@pytest.mark.parametrize(
    ("text", "method", "resolved"),
    [("auto", "dflash", False), ("0", "eagle3", False), ("1", "dflash", True), ("auto", "eagle3", None)],
)
def test_prefix_cache_must_show_what_it_asked_for_and_nothing_where_it_asked_for_nothing(
    text: str, method: str, resolved: bool | None
) -> None:
    found = value("prefix_cache", text, method)
    assert (found.witness.resolved if found.witness else None) == (
        None if resolved is None else {"prefix_caching": resolved}
    )
    assert found.asks is (resolved is not None)


@pytest.mark.parametrize(
    ("text", "method", "reason"),
    [
        ("auto", "dflash", "auto: dflash reads KV that cache hits never wrote"),
        ("auto", "eagle3", "auto: method eagle3 leaves it to the engine"),
        ("0", "dflash", "0: off whatever the method"),
        ("1", "dflash", "1: on whatever the method: for workloads that do reuse prefixes"),
    ],
)
def test_prefix_cache_says_why_its_value_means_its_flag(text: str, method: str, reason: str) -> None:
    assert value("prefix_cache", text, method).reason.startswith(reason)


@pytest.mark.case("F1")
@pytest.mark.parametrize("given", [True, False, "on", "off", "yes", "AUTO", "2", None, 0.0, ["auto"]], ids=repr)
def test_prefix_cache_takes_nothing_else(exp8: Campaign, given: object) -> None:
    exp8.arms["base"].knobs["prefix_cache"] = given
    with pytest.raises(ConfigError, match=r"arms\.base\.knobs\.prefix_cache: found .*wanted .*one of \"auto\", \"0\""):
        resolve(exp8, "base")


@pytest.mark.parametrize("where", ["engine", "arm"])
@pytest.mark.parametrize("given", [True, False, None])
def test_the_argument_of_a_knob_is_set_by_the_knob_alone(exp8: Campaign, where: str, given: object) -> None:
    serve = exp8.engine.serve if where == "engine" else exp8.arms["base"].serve
    serve["enable_prefix_caching"] = given
    with pytest.raises(ConfigError, match=r"enable_prefix_caching: knob prefix_cache sets .*arms\.base\.knobs\.prefix"):
        resolve(exp8, "base")


@pytest.mark.parametrize("given", [0, 1, "0", "1"], ids=repr)
def test_prefix_cache_takes_a_number_for_its_text(exp8: Campaign, given: object) -> None:
    exp8.arms["base"].knobs["prefix_cache"] = given
    assert dict(resolve(exp8, "base").serve)["enable_prefix_caching"] is bool(int(str(given)))


@pytest.mark.case("C10")
@pytest.mark.parametrize(("text", "variable", "runner"), [("unset", None, None), ("0", "0", "V1"), ("1", "1", "V2")])
def test_the_three_states_of_the_model_runner_are_kept_apart(
    exp8: Campaign, text: str, variable: str | None, runner: str | None
) -> None:
    exp8.engine.knobs = {"model_runner": text}
    arm = resolve(exp8, "base")
    assert arm.environment.get("VLLM_USE_V2_MODEL_RUNNER") == variable
    assert arm.asked["knobs"]["model_runner"] == text
    (found,) = [k for k in asked(arm, exp8.model) if k.name == "model_runner"]
    assert (found.value, found.variable) == (variable, "VLLM_USE_V2_MODEL_RUNNER")
    assert found.resolved == ({} if runner is None else {"runner": runner})


def test_the_model_runner_has_no_value_unless_it_is_given(exp8: Campaign) -> None:
    found = {k.knob.name: (k.value, k.origin) for k in resolve(exp8, "base").knobs}
    assert found["model_runner"] == ("unset", "default of knobs.toml")
    assert found["prefix_cache"] == ("auto", "default of knobs.toml")


def test_the_variable_of_a_knob_is_set_by_the_knob_alone(exp8: Campaign) -> None:
    exp8.engine.env["VLLM_USE_V2_MODEL_RUNNER"] = "1"
    with pytest.raises(ConfigError, match=r"knob model_runner sets this variable .*engine\.knobs\.model_runner"):
        resolve(exp8, "base")


def test_arms_may_differ_by_a_knob_without_an_overlay_alone(exp8: Campaign) -> None:
    exp8.arms = {"base": Arm(), "candidate": Arm(knobs={"prefix_cache": "1"})}
    assert resolve(exp8, "base").digest != resolve(exp8, "candidate").digest


def test_a_misspelt_knob_is_refused_with_the_nearest(exp8: Campaign) -> None:
    exp8.arms["base"].knobs["prefix_cash"] = "1"
    with pytest.raises(ConfigError, match=re.escape("knob 'prefix_cash' (did you mean 'prefix_cache'?)")):
        resolve(exp8, "base")


def test_a_knob_for_the_engine_that_nobody_declares_is_refused(exp8: Campaign) -> None:
    exp8.engine.knobs["nosuch"] = "1"
    with pytest.raises(ConfigError, match=r"engine\.knobs\.nosuch: no staged overlay declares knob 'nosuch'"):
        resolve(exp8, "base")


def test_a_knob_for_the_engine_goes_to_the_arms_that_have_it(exp8: Campaign) -> None:
    exp8.engine.knobs["async_dflash"] = "0"
    base, candidate = resolve(exp8, "base"), resolve(exp8, "candidate")
    assert base.notes == (
        "engine.knobs.async_dflash=0 is not given to arm base, which stages no overlay with knob async_dflash",
    )
    assert (candidate.notes, candidate.knobs[0].value) == ((), "1")  # the arm's own word


def test_the_knobs_of_knobs_toml_have_a_way_to_the_engine_and_a_witness() -> None:
    assert [k.name for k in without_overlay()] == ["prefix_cache", "model_runner"]
    for knob in without_overlay():
        assert set(knob.witness) == set(knob.values)
        assert knob.variable or set(knob.served) == set(knob.values)


def test_a_knob_is_declared_once() -> None:
    found = knobs.declared(())
    assert {name: owner for name, (_, owner) in found.items()} == {
        "prefix_cache": "knobs.toml", "model_runner": "knobs.toml",
    }  # fmt: skip
