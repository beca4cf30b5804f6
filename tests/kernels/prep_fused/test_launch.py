"""The direct launch, with Triton's real compiler and a driver that launches nothing."""

import gc

import pytest
import torch
import triton
import triton.language as tl
from triton import knobs

from kernels.prep_fused.dispatch import StubLaunch, stub_driver
from kernels.prep_fused.guard import block_for
from kernels.prep_fused.host import host_step
from kernels.prep_fused.kernel import prep_fused
from kernels.prep_fused.launch import Launcher
from kernels.prep_fused.outputs import allocate
from kernels.prep_fused.stand import Stand

CPU = torch.device("cpu")
OFFSET: tl.constexpr = tl.constexpr(3)
GRID = (2, 3)


@triton.jit(do_not_specialize=["number"])
def small_kernel(first, second, number, BLOCK: tl.constexpr):  # noqa: N803 - a constant
    """Something that compiles fast."""
    at = tl.arange(0, BLOCK)
    tl.store(second + at, tl.load(first + at) + number + OFFSET)


@pytest.fixture(scope="module", autouse=True)
def somebody_to_unload_for():
    """Compiled kernels ask a driver when they go; the last of them go after their test."""
    with stub_driver():
        yield
        forget_compiled()
        gc.collect()


def forget_compiled():
    """Nothing is compiled any more."""
    small_kernel.device_caches.clear()
    prep_fused.device_caches.clear()


@pytest.fixture
def driver(tmp_path, monkeypatch):
    """A stub driver, and a compile cache of its own."""
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    StubLaunch.keep, StubLaunch.last = True, ()
    forget_compiled()
    with stub_driver() as found:
        yield found
    StubLaunch.keep = False


@pytest.fixture
def launch():
    """A launcher of the small kernel."""
    return Launcher(small_kernel, {"BLOCK": 8})


def tensors(kind=torch.int32, shift=0):
    """Two vectors; shifted ones start between multiples of 16 bytes."""
    return [torch.zeros(16, dtype=kind)[shift : shift + 8], torch.zeros(16, dtype=kind)[shift : shift + 8]]


def warm(launch, driver):
    """Launch twice: the second goes directly."""
    driver.get_current_device()
    given = tensors()
    launch(GRID, given, [1])
    launch(GRID, given, [1])
    assert (launch.direct, launch.dispatched) == (1, 1)
    return given


@pytest.mark.case("J4")
def test_h_a_direct_launch_gives_the_driver_what_the_dispatcher_gives_it(driver, launch):
    given = warm(launch, driver)
    direct = StubLaunch.last
    small_kernel[GRID](*given, 1, BLOCK=8)
    dispatched = StubLaunch.last
    hooks = slice(6, 9)  # launch metadata and both hooks: what only a hook would read
    assert direct[:6] == dispatched[:6]
    assert direct[9:] == dispatched[9:]
    assert direct[hooks] == (None, None, None)
    assert direct[:4] == (2, 3, 1, driver.get_current_stream(driver.device))


@pytest.mark.case("J4")
@pytest.mark.parametrize(
    ("changed", "integers"),
    [
        (tensors(torch.int64), [1]),
        (tensors(torch.float32), [1]),
        (tensors(shift=1), [1]),
        (tensors(), [2**31]),
        (tensors(), [-(2**31) - 1]),
        (tensors(), [True]),
        (tensors(), [1.5]),
    ],
    ids=["int64", "float32", "not aligned", "wide", "wide below", "bool", "float"],
)
def test_arguments_of_another_class_take_the_normal_path_and_its_kernel(driver, launch, changed, integers):
    warm(launch, driver)
    known = StubLaunch.last[4]
    launch(GRID, changed, integers)
    assert (launch.direct, launch.dispatched) == (1, 2)
    slow = StubLaunch.last
    small_kernel[GRID](*changed, *integers, BLOCK=8)
    assert slow[4] == StubLaunch.last[4] != known


@pytest.mark.case("J4")
def test_another_device_takes_the_normal_path_and_its_own_stream(driver, launch):
    given = warm(launch, driver)
    driver.device += 1
    launch(GRID, given, [1])
    assert launch.dispatched == 2
    launch(GRID, given, [1])
    assert (launch.direct, StubLaunch.last[3]) == (2, driver.get_current_stream(driver.device))


@pytest.mark.case("J4")
def test_a_captured_global_that_has_changed_is_refused_as_the_dispatcher_refuses_it(driver, launch, monkeypatch):
    given = warm(launch, driver)
    monkeypatch.setitem(small_kernel.fn.__globals__, "OFFSET", tl.constexpr(4))
    with pytest.raises(RuntimeError, match="OFFSET has changed since we compiled"):
        launch(GRID, given, [1])
    assert launch.direct == 1


@pytest.mark.case("J4")
@pytest.mark.parametrize("chain", ["launch_enter_hook", "launch_exit_hook"])
def test_a_profilers_hook_that_comes_later_sees_the_launch(driver, launch, chain):
    given, seen = warm(launch, driver), []
    hooks = getattr(knobs.runtime, chain)
    hooks.add(seen.append)
    try:
        launch(GRID, given, [1])
        assert launch.dispatched == 2
        assert StubLaunch.last[6] is not None
    finally:
        hooks.remove(seen.append)
    launch(GRID, given, [1])
    assert launch.direct == 2


@pytest.mark.case("J4")
def test_a_plain_function_in_the_hooks_place_and_a_pre_run_hook_are_hooks_too(driver, launch, monkeypatch):
    given = warm(launch, driver)
    with monkeypatch.context() as patched:
        patched.setattr(knobs.runtime, "launch_enter_hook", lambda metadata: metadata)
        launch(GRID, given, [1])
    seen = []
    small_kernel.pre_run_hooks.append(lambda *arguments, **_: seen.append(arguments))
    try:
        launch(GRID, given, [1])
    finally:
        small_kernel.pre_run_hooks.clear()
    assert (launch.direct, launch.dispatched, len(seen)) == (1, 3, 1)


def test_a_compilation_that_a_hook_prevented_is_not_remembered(driver, launch, monkeypatch):
    with monkeypatch.context() as patched:
        patched.setattr(knobs.runtime, "jit_cache_hook", lambda **_: True)
        launch(GRID, tensors(), [1])
    assert StubLaunch.last == ()
    launch(GRID, tensors(), [1])
    assert (launch.direct, launch.dispatched) == (0, 2)
    assert driver.utils.loaded == 1


def given_for(stand, plan):
    """What the plan's launch of one step is given."""
    output, batch, descriptor = stand.step()
    words = host_step(output.scheduled_spec_decode_tokens, batch, descriptor, stand.max_reqs, 1)
    return plan.tensors(words, allocate(words.num_reqs, words.num_logits, CPU)), plan.integers(words)


@pytest.mark.case("J3")
def test_no_batch_size_context_or_number_of_logits_compiles_again(driver):
    """Triton's classes for an integer (1, divisible by 16, other) and for a pointer: one kernel for all of them."""
    launched = None
    for requests, computed in [(1, 16), (1, 17), (2, 4096), (3, 1), (16, 5), (32, 31), (64, 32752)]:
        stand = Stand(requests=requests, computed=computed, max_tokens=1024)
        plan = stand.plan(CPU)
        plan.launch = launched = launched or plan.launch
        plan.prepare(*stand.step())
    assert (launched.dispatched, launched.direct) == (1, 6)
    assert driver.utils.loaded == 1


@pytest.mark.case("J3")
def test_the_engines_own_way_of_launching_would_compile_again_for_a_class(driver):
    """The same kernel with specialised integers: what the plan avoids."""
    specialised = triton.jit(small_kernel.fn)
    for number in (1, 3, 16):
        specialised[GRID](*tensors(), number, BLOCK=8)
    assert driver.utils.loaded == 3


@pytest.mark.case("J4")
def test_the_plans_own_launch_is_what_the_dispatcher_would_have_launched(driver):
    stand = Stand(requests=3, groups=2, max_tokens=256)
    plan = stand.plan(CPU)
    given, integers = given_for(stand, plan)
    for _ in range(2):
        plan.launch(GRID, given, integers)
    direct = StubLaunch.last
    plan.launch.dispatch(GRID, given, integers)
    assert direct[:6] + direct[9:] == StubLaunch.last[:6] + StubLaunch.last[9:]
    assert len(direct) == 9 + len(plan.launch.kernel.arg_names)
    assert driver.utils.loaded == 1


@pytest.mark.case("J1")
@pytest.mark.parametrize("drafts", [1, 2, 3, 5, 7, 8])
def test_d_the_plan_asks_for_a_power_of_two_for_any_number_of_drafts(drafts):
    plan = Stand(drafts=drafts).plan(CPU)
    assert plan.launch.constants["BLOCK_Q"] == block_for(drafts + 1)
