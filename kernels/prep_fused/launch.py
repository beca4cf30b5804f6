"""Launching the compiled kernel without Triton's dispatcher (trap h), through a cache that misses on any difference.

A wrong hit would be silent wrong numbers, so the key holds all that the dispatcher looks at: device, dtypes, switches,
what the kernel captured. Arguments of another class than the kernel's own (a pointer that is not aligned, a wide
integer, a bool), a hook that somebody attached, and Triton's interpreter always take the normal path (case J4).
"""

from collections.abc import Sequence
from functools import reduce
from operator import attrgetter, or_
from typing import Any

import torch
import triton
from triton import knobs

from .outputs import ALIGNMENT

DTYPE = attrgetter("dtype")
INT32_END = 2**31
Grid = tuple[int, int]


def hooked(kernel: Any) -> bool:
    """Whether somebody wants to see a launch: a profiler attached late must not be passed by."""
    runtime = knobs.runtime
    chains = (runtime.launch_enter_hook, runtime.launch_exit_hook)
    return (
        any(chain is not None and getattr(chain, "calls", True) for chain in chains)
        or bool(kernel.pre_run_hooks)
        or runtime.add_stages_inspection_hook is not None
    )


def ordinary(tensors: Sequence[torch.Tensor], integers: Sequence[int]) -> bool:
    """All pointers aligned to 16 bytes, all integers of 32 bits: the one class that is launched directly."""
    if set(map(type, integers)) != {int} or min(integers) < -INT32_END or max(integers) >= INT32_END:
        return False
    return bool(reduce(or_, map(torch.Tensor.data_ptr, tensors)) % ALIGNMENT == 0)


class Launcher:
    """Launches one kernel. `direct` and `dispatched` count how."""

    def __init__(self, kernel: Any, constants: dict[str, Any], options: dict[str, Any] | None = None) -> None:
        self.kernel, self.constants, self.options = kernel, constants, options or {}
        self._constants = tuple(constants.values())
        self._compiled: dict[Any, Any] = {}
        self.direct = self.dispatched = 0
        self.interpreted = not isinstance(kernel, triton.JITFunction)

    def __call__(self, grid: Grid, tensors: Sequence[torch.Tensor], integers: Sequence[int]) -> None:
        """Launch on the current device and stream. Tensors and integers each in the kernel's order."""
        if self.interpreted or hooked(self.kernel) or not ordinary(tensors, integers):
            self.dispatch(grid, tensors, integers)
            return
        driver = triton.runtime.driver.active
        device = driver.get_current_device()
        compiled = self._compiled.get(self._key(device, tensors))
        if compiled is None:
            compiled = self.dispatch(grid, tensors, integers)
            if compiled is not None:  # a hook may have prevented the compilation
                self._compiled[self._key(device, tensors)] = compiled  # anew: compiling finds what is captured
            return
        self.direct += 1
        compiled.run(
            grid[0], grid[1], 1, driver.get_current_stream(device), compiled.function, compiled.packed_metadata,
            None, None, None, *tensors, *integers, *self._constants,
        )  # fmt: skip

    def _key(self, device: int, tensors: Sequence[torch.Tensor]) -> tuple[Any, ...]:
        """All that a compilation depends on and that is not fixed here: also globals that the kernel captured."""
        captured = [space.get(name) for (name, _), (_, space) in self.kernel.used_global_vals.items()]
        switches = (self.kernel.debug, knobs.runtime.debug, knobs.compilation.instrumentation_mode)
        return (device, *switches, *captured, *map(DTYPE, tensors))

    def dispatch(self, grid: Grid, tensors: Sequence[torch.Tensor], integers: Sequence[int]) -> Any:
        """The normal path; what was compiled, None in the interpreter."""
        self.dispatched += 1
        return self.kernel[grid](*tensors, *integers, **self.constants, **self.options)
