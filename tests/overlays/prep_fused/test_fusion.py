"""The states of a fused runner: whatever happens, the step is prepared as the engine prepares it."""

from dataclasses import replace
from typing import Any

import pytest

STATES = {"": "OFF", "0": "OFF", "shadow": "SHADOW", "1": "ARMED", "on": "DISARMED"}


@pytest.mark.parametrize(("word", "state"), STATES.items())
def test_every_state_prepares_what_the_engine_prepares(bench, word, state):
    runner = bench(word)
    assert runner.steps(6) == []
    assert runner.fusion.shown()["state"] == state


@pytest.mark.parametrize("world", [0, 1, 2, 4])
def test_in_shadow_every_step_is_compared_and_the_fused_batch_flows_on(bench, world):
    runner = bench("shadow", world=world)
    assert runner.steps(12) == []
    counted = {name: runner.count(name) for name in ("decode_steps", "fused_steps", "checks", "clean", "drift")}
    assert counted == {"decode_steps": 12, "fused_steps": 12, "checks": 12, "clean": 12, "drift": 0}
    assert runner.count("live_launches") == 12
    assert runner.runner.model_state.built == 24  # both batches' metadata, each step
    assert runner.count("check_us") > 0


def test_armed_the_first_step_and_every_so_many_are_checked(bench):
    runner = bench("1", every=4)
    assert runner.steps(9) == []
    assert (runner.count("fused_steps"), runner.count("checks"), runner.count("clean")) == (9, 3, 3)
    assert runner.fusion.shown()["rank"] == 3


def test_the_drafters_group_is_told_by_membership(bench):
    runner = bench("1", world=2)
    runner.step()
    assert runner.fusion.shown()["groups"] == "target target draft"


def spoil(runner: Any, which: str) -> None:
    """Our launch writes one wrong element, from now on."""
    plan = getattr(runner.fusion.station, which)
    launch = plan.launch

    def wrong(grid: Any, tensors: Any, integers: Any) -> None:
        launch(grid, tensors, integers)
        plan.inputs.seq_lens[0] += 1

    plan.launch = wrong


def test_a_difference_in_shadow_is_described_and_the_engines_batch_flows_on(bench):
    runner = bench("shadow")
    runner.step()
    spoil(runner, "aside")
    assert runner.steps(3) == []
    assert (runner.count("drift"), runner.count("clean"), runner.count("fused_steps")) == (3, 1, 1)
    assert runner.fusion.shown()["state"] == "SHADOW"
    assert runner.fusion.shown()["first_mismatch"].startswith("decode step 2: seq_lens: 1 differ, first at (0,)")


def test_a_difference_at_an_armed_check_disarms_and_the_same_step_is_the_engines(bench):
    runner = bench("1", every=2)
    runner.step()
    spoil(runner, "aside")
    assert runner.steps(6) == []
    shown = runner.fusion.shown()
    assert shown["state"] == "DISARMED"
    assert shown["reason"].startswith("drift: decode step 3: seq_lens")
    assert (runner.count("fused_steps"), runner.count("fallbacks"), runner.count("drift")) == (2, 1, 1)
    assert runner.count("decode_steps") == 7


@pytest.mark.parametrize(("word", "state"), [("shadow", "SHADOW"), ("1", "DISARMED")])
def test_metadata_that_differs_is_named_and_the_engines_batch_flows_on(bench, word, state):
    runner = bench(word, every=1)
    runner.step()

    def plant(number: int, metadata: Any) -> None:
        metadata.longest += number % 2

    runner.runner.model_state.plant = plant
    assert runner.steps(2) == []
    assert runner.fusion.shown()["state"] == state
    assert "metadata: model.layers.0: longest:" in runner.fusion.shown()["first_mismatch"]
    assert (runner.count("metadata_drift") > 0, runner.count("drift")) == (True, 0)
    assert runner.count("fused_steps") == 1


def test_what_cannot_be_compared_by_value_is_counted_and_not_compared(bench):
    runner = bench("shadow")
    assert runner.steps(2) == []
    assert (runner.count("opaque"), runner.count("clean")) == (2, 2)


def raising(*_given: Any, **_more: Any) -> None:
    raise RuntimeError("an illegal memory access was encountered")


def test_a_launch_that_fails_while_armed_is_the_engines_in_the_same_step_and_never_ours_again(bench):
    runner = bench("1")
    runner.steps(2)
    runner.fusion.station.live.launch = raising
    assert runner.steps(3) == []
    assert runner.fusion.shown()["state"] == "DISARMED"
    assert "the fused launch failed: RuntimeError: an illegal memory access" in runner.fusion.shown()["reason"]
    assert (runner.count("fused_steps"), runner.count("fallbacks")) == (2, 1)


@pytest.mark.parametrize("word", ["shadow", "1"])
def test_a_warm_up_that_fails_disarms(bench, word, package, monkeypatch):
    runner = bench(word)
    monkeypatch.setattr(package("prep_fused.plan").Plan, "prepare", raising)
    assert runner.steps(3) == []
    assert runner.fusion.shown()["reason"].startswith("the warm-up failed: RuntimeError")
    assert (runner.count("fused_steps"), runner.count("fallbacks")) == (0, 1)


def test_a_runner_without_a_plan_is_inert_and_it_is_not_tried_again(bench, package, monkeypatch):
    runner = bench("1", world=3)  # a group without slots: a ring buffer
    tries = []
    build = package("station").build
    monkeypatch.setattr(package("station"), "build", lambda own: (tries.append(1), build(own))[1])
    assert runner.steps(4) == []
    assert runner.fusion.shown()["state"] == "INERT"
    assert runner.fusion.shown()["reason"].startswith("ring_buffer: KV group 2 maps no slots")
    assert (len(tries), runner.count("fused_steps"), runner.count("decode_steps")) == (1, 0, 4)


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("use_pp", True, "pipeline_parallel"),
        ("adaptive_verification", object(), "adaptive_verification"),
        ("model_state", object(), "model_state: object may move state"),
    ],
)
def test_what_no_step_may_be_fused_for_makes_the_runner_inert(bench, name, value, reason):
    runner = bench("shadow")
    setattr(runner.runner, name, value)
    fusion = runner.fusion
    assert fusion._station() is None
    assert (fusion.state.value, fusion.reason.startswith(reason)) == ("INERT", True)


def test_a_plan_that_breaks_unexpectedly_disarms(bench, package, monkeypatch):
    runner = bench("1")
    monkeypatch.setattr(package("station"), "_constants", raising)
    assert runner.steps(2) == []
    assert runner.fusion.shown()["reason"].startswith("the plan failed: RuntimeError")


def test_a_ring_buffer_that_comes_later_is_seen_at_the_next_check(bench):
    runner = bench("1", every=2)
    runner.steps(2)
    runner.world.tables._slot_mapping_enabled = [False]
    runner.step()
    assert runner.fusion.shown()["state"] == "DISARMED"
    assert "ring_buffer" in runner.fusion.shown()["reason"]


def test_buffers_that_were_allocated_anew_get_plans_of_their_own(bench):
    runner = bench("shadow")
    assert runner.steps(2) == []
    buffers = runner.world.buffers
    for name in ("input_ids", "positions", "query_start_loc", "seq_lens"):
        setattr(buffers, name, getattr(buffers, name).clone())
    runner.world.ours, runner.world.reference = (type(runner.world.ours)(buffers, runner.world.tables) for _ in "ab")
    assert runner.steps(2) == []
    assert (runner.count("plans_built"), runner.count("clean")) == (2, 4)


def test_a_step_that_is_not_eligible_is_the_engines_and_counted_by_its_reason(bench):
    runner = bench("1")
    runner.step()
    live = runner.fusion.station.live
    live.limits = replace(live.limits, max_query=3)
    assert runner.steps(8) == []
    declined = runner.count("declined_long_query")
    assert declined > 0
    assert declined + runner.count("fused_steps") == 9


def test_attention_of_another_batch_is_asked_of_the_engine(bench):
    runner = bench("1")
    runner.step()
    world = runner.world
    step = world.step()
    given = step.scheduler_output, step.batch, step.descriptor
    ours = runner.fusion.prepare_inputs(*given)
    other = runner.stock.prepare_inputs(runner.runner, *given)
    assert runner.fusion.prepare_attn(other)[1].data_ptr() == world.tables.slot_mappings.data_ptr()
    assert runner.fusion._attn is None  # and what was made for ours is not kept for a later step
    assert ours is not other


def test_readers_see_whole_steps_only(bench):
    runner = bench("shadow")
    seen = []
    runner.runner.model_state.plant = lambda *_: seen.append(runner.fusion.counters.shown())
    runner.steps(3)
    assert [one["checks"] - one["clean"] for one in seen] == [0.0] * 6
    assert [one["decode_steps"] for one in seen] == [0, 0, 1, 1, 2, 2]
