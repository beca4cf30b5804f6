"""The traps of the study, each stepped into once. Those of pure functions stand beside their functions' tests."""

import ast
import inspect
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from kernels.prep_fused import plan as planning
from kernels.prep_fused.guard import PlanError
from kernels.prep_fused.host import staged_words
from kernels.prep_fused.proof import engine
from kernels.prep_fused.proof.mutants import MUTANTS, forget, mutated
from kernels.prep_fused.proof.trial import trial
from kernels.prep_fused.shadow import Copies

PACKAGE = Path(planning.__file__).parent
SERVING = ("plan.py", "host.py", "launch.py", "outputs.py")  # what runs in a step


class Kept:
    """An owner whose handle was kept: the mistake of trap a."""

    def __init__(self, tables):
        self._tables, self.num_blocks = tables, SimpleNamespace(gpu=tables.num_blocks.gpu)

    def __getattr__(self, name):
        return getattr(self._tables, name)


def with_kept_handle(world):
    """A plan that goes on reading the num_blocks of its first step."""
    plan = world.plan()
    plan.tables = Kept(world.tables)
    return plan


@pytest.mark.parametrize(
    ("applies", "kept_is_wrong"),
    [((1,), True), ((2,), False)],
    ids=["the pool moves by one", "by two: back where it was"],
)
def test_a_an_address_that_was_kept_is_right_every_second_step(worlds, applies, kept_is_wrong):
    world = worlds(applies=applies)
    kept, plan = with_kept_handle(world), world.plan()
    drifted = [bool(trial(world, kept).differences) for _ in range(8)]
    assert any(drifted) is kept_is_wrong
    assert not all(drifted)
    assert [trial(world, plan).differences for _ in range(8)] == [()] * 8


@pytest.mark.case("J5")
@pytest.mark.parametrize(("depth", "ahead"), [(1, 0), (2, 1), (3, 2)])
def test_c_a_late_reader_sees_its_own_words_as_long_as_the_pool_is_deep(worlds, depth, ahead):
    """The device reads what was staged only when `ahead` later steps have been staged too; one more is too many."""
    world = worlds(4)
    plan = world.plan()
    plan.staging = engine.pool(staged_words(world.shape.max_reqs), depth)
    submitted = []
    plan.launch = lambda _grid, tensors, _integers: submitted.append((tensors[0], tensors[0].clone()))
    for _ in range(ahead + 2):
        step = world.step()
        plan.prepare(step.scheduler_output, step.batch, step.descriptor)
    in_time, too_late = submitted[-1 - ahead], submitted[-2 - ahead]
    assert torch.equal(*in_time)
    assert not torch.equal(*too_late)


@pytest.mark.case("J5")
def test_c_a_pool_that_is_shallower_than_the_batches_in_flight_is_refused(worlds):
    world = worlds()
    shallow = engine.pool(staged_words(world.shape.max_reqs), 1)
    with pytest.raises(PlanError, match="has 1 buffers, wanted 2, one a batch in flight"):
        planning.Plan(world.states, world.tables, world.buffers, shallow, world.constants)


def test_c_a_pool_for_fewer_words_is_refused(worlds):
    world = worlds()
    with pytest.raises(PlanError, match=r"holds 19 x torch\.int32, wanted 20 x int32"):
        planning.Plan(world.states, world.tables, world.buffers, engine.pool(19, 2), world.constants)


def test_c_a_step_takes_one_buffer_of_the_pool(worlds):
    world = worlds()
    plan = world.plan()
    before = plan.staging._curr
    trial(world, plan)
    assert plan.staging._curr == (before + 1) % plan.staging.max_concurrency


def test_c_the_engines_pools_are_as_deep_as_its_batches_in_flight():
    """Read in the engine's source: the depth is set from the configuration before any pool is made."""
    source = inspect.getsource(engine._module("model_runner"))
    assert "set_default_max_concurrency(" in source
    assert "max_concurrent_batches" in source


def test_g_a_group_without_slots_is_padded_whole_and_its_table_is_gathered(worlds):
    world = worlds(3)
    plan, group = world.plan(), 2
    outcome = trial(world, plan)
    assert outcome.differences == ()
    assert not world.shape.groups[group][3]
    assert (world.ours.slot_mappings[group] == -1).all()
    assert (world.ours.slot_mappings[0, : outcome.stock.num_tokens] != -1).any()


def test_i_slots_that_the_drafter_wrote_behind_the_tokens_are_padded_again(worlds):
    """The drafter writes its query's slots into the same rows, behind what the last step padded from."""
    world = worlds()
    plan = world.plan()
    for _ in range(3):
        tokens = trial(world, plan).stock.num_tokens
        assert (world.ours.slot_mappings[:, tokens:] == -1).all()
        world.tables.slot_mappings[:, tokens : tokens + world.shape.drafts] = 77


def test_k_positions_come_from_the_device_and_not_from_the_mirror_that_runs_ahead(worlds):
    world = worlds()
    plan = world.plan()
    outcome = trial(world, plan)
    slot = outcome.step.batch.idx_mapping_np[0]
    world.states.num_computed_tokens_np[:] += 1000
    prepared = plan.prepare(outcome.step.scheduler_output, outcome.step.batch, outcome.step.descriptor)
    assert int(world.ours.positions[0]) == int(world.states.num_computed_tokens.gpu[slot])
    assert int(prepared.fields["seq_lens_cpu_upper_bound"][0]) > 1000


@pytest.mark.case("J8")
def test_l_inside_a_graph_capture_nothing_is_staged_and_nothing_launched(worlds):
    world = worlds()
    plan = world.plan(capturing=lambda: True)
    step, before = world.step(), plan.staging._curr
    with pytest.raises(PlanError, match="a CUDA graph is being captured"):
        plan.prepare(step.scheduler_output, step.batch, step.descriptor)
    assert (plan.staging._curr, plan.launch.dispatched) == (before, 0)


@pytest.mark.case("J8")
def test_l_a_launch_that_is_replayed_reads_the_words_of_another_step(worlds):
    """Why: the launch of one step, done again as a graph would, has the pool's address of then."""
    world = worlds()
    plan, launched = world.plan(), []
    launch = plan.launch
    plan.launch = lambda *arguments: launched.append(arguments)
    for _ in range(3):  # the pool is two deep: the third step stages where the first one did
        step = world.step()
        plan.prepare(step.scheduler_output, step.batch, step.descriptor)
    first, third = launched[0][1][0], launched[2][1][0]
    assert first.data_ptr() == third.data_ptr()
    assert launch.dispatched == 0


def test_m_a_step_without_tokens_moves_the_handle_and_the_plan_follows(worlds):
    world = worlds()
    plan = world.plan()
    step = world.step()
    seen = []
    plan.launch = lambda _grid, tensors, _integers: seen.append(tensors[10].data_ptr())
    plan.prepare(step.scheduler_output, step.batch, step.descriptor)
    world.tables.apply_staged_writes()  # an execute_model with no tokens does this and returns
    plan.prepare(step.scheduler_output, step.batch, step.descriptor)
    assert seen[0] != seen[1]
    assert seen[1] == world.tables.num_blocks.gpu.data_ptr()


def test_n_two_staged_writes_of_one_row_overflow_the_engines_pool(worlds):
    world = worlds()
    for _ in range(world.shape.max_reqs + 1):
        world.states.total_len.stage_write_elem(0, 1)
    with pytest.raises(ValueError, match="could not broadcast"):
        world.states.apply_staged_writes()


def test_n_the_worlds_stage_no_row_twice_between_two_applies(worlds):
    world = worlds()
    staged, states = [], world.states
    apply = states.apply_staged_writes

    def watched():
        staged.append(list(states.total_len._staged_write_indices))
        apply()

    states.apply_staged_writes = watched
    for _ in range(60):
        world._change_requests()
    assert len(staged) > 10
    assert all(len(rows) == len(set(rows)) for rows in staged)


def stray_package(folder, monkeypatch):
    """The package with a write that no side asked for."""
    monkeypatch.syspath_prepend(str(folder))
    return mutated(next(mutant for mutant in MUTANTS if mutant.wrong == "a stray write"), folder)


def test_o_over_the_same_live_buffers_a_stray_write_is_seen_by_nobody(worlds, tmp_path, monkeypatch):
    name = stray_package(tmp_path, monkeypatch)
    kernel = __import__(f"{name}.kernel", fromlist=["prep_fused"]).prep_fused
    world = worlds()
    careless = world.plan(sinks=None, kernel=kernel)
    step = world.step()
    world.garbage()
    careless.prepare(step.scheduler_output, step.batch, step.descriptor)
    world.ours.refresh()  # what fused left in the live buffers
    stock = engine.prepare(world.runner, step.scheduler_output, step.batch, step.descriptor)
    engine.prepare_attn(world.runner, stock)
    assert world.ours.differences() == []
    careful = world.plan(kernel=kernel)
    assert any("positions" in text for text in trial(world, careful).differences)
    forget(name)


def test_o_copies_share_no_memory_with_the_live_buffers(worlds):
    world = worlds()
    copies = Copies(world.buffers, world.tables)
    for ours, live in copies._pairs().values():
        assert ours.data_ptr() != live.data_ptr()
        assert torch.equal(ours, live)
    assert copies.input_block_table_ptrs.tolist() == [table.data_ptr() for table in copies.input_block_tables]


def test_q_rows_behind_the_targets_padding_stay_and_their_lengths_are_zero(worlds):
    """The drafter's graph may have more rows than the target's: what stands there is stale, so its length must be 0."""
    world = worlds(4)
    plan, reached = world.plan(), 0
    for _ in range(6):
        outcome = trial(world, plan)
        rows = outcome.stock.num_reqs_after_padding
        reached += rows < world.shape.max_reqs
        assert outcome.differences == ()
        assert (world.ours.seq_lens[outcome.stock.num_reqs :] == 0).all()
    assert reached


@pytest.mark.case("J6")
def test_nothing_is_read_back_from_the_device_in_a_step():
    """No copy that could be read too early: the host needs nothing of what the launch writes."""
    reading = {"item", "tolist", "cpu", "numpy", "nonzero", "any", "all", "max"}
    called = {
        f"{name}:{node.lineno} {node.func.attr}"
        for name in SERVING
        for node in ast.walk(ast.parse((PACKAGE / name).read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in reading
    }
    assert called == set()
