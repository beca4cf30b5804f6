"""Launching the compiled kernel without Triton's dispatcher (trap h), through a cache that misses on any difference.

The dispatcher costs the host about 20 us a launch. A wrong hit would be silent wrong numbers, so the key holds all that
the dispatcher looks at: device, dtype, alignment and scalar class of each argument, constants, options, what the kernel
captured. A hook that somebody attached, and Triton's interpreter, always take the normal path (case J4).
"""

from collections.abc import Sequence
from typing import Any

import torch
import triton
from triton import knobs

from .outputs import ALIGNMENT

INT32_END = 2**31
Argument = torch.Tensor | int | bool
Grid = tuple[int, int]


def argument_class(value: Argument) -> Any:
    """What Triton compiles for: a tensor's dtype and alignment, an integer's width (no value is specialised)."""
    if isinstance(value, torch.Tensor):
        return value.dtype, value.data_ptr() % ALIGNMENT == 0
    return bool if isinstance(value, bool) else -INT32_END <= value < INT32_END


def hooked(kernel: Any) -> bool:
    """Whether somebody wants to see a launch: a profiler attached late must not be passed by."""
    runtime = knobs.runtime
    chains = (runtime.launch_enter_hook, runtime.launch_exit_hook)
    return (
        any(chain is not None and getattr(chain, "calls", True) for chain in chains)
        or bool(kernel.pre_run_hooks)
        or runtime.add_stages_inspection_hook is not None
    )


class Launcher:
    """Launches one kernel. `direct` and `dispatched` count how."""

    def __init__(self, kernel: Any, constants: dict[str, Any], options: dict[str, Any] | None = None) -> None:
        self.kernel, self.constants, self.options = kernel, constants, options or {}
        self._constants = tuple(constants.values())
        self._compiled: dict[Any, Any] = {}
        self.direct = self.dispatched = 0
        self.interpreted = not isinstance(kernel, triton.JITFunction)

    def __call__(self, grid: Grid, arguments: Sequence[Argument]) -> None:
        """Launch on the current device and stream."""
        if self.interpreted or hooked(self.kernel):
            self._dispatch(grid, arguments)
            return
        driver = triton.runtime.driver.active
        device = driver.get_current_device()
        key = self._key(device, arguments)
        compiled = self._compiled.get(key)
        if compiled is None:
            self._remember(key, self._dispatch(grid, arguments))
            return
        self.direct += 1
        compiled.run(
            grid[0], grid[1], 1, driver.get_current_stream(device), compiled.function, compiled.packed_metadata,
            None, None, None, *arguments, *self._constants,
        )  # fmt: skip

    def _key(self, device: int, arguments: Sequence[Argument]) -> Any:
        captured = tuple(space.get(name) for (name, _), (_, space) in self.kernel.used_global_vals.items())
        compilation = (knobs.runtime.debug, knobs.compilation.instrumentation_mode)
        return (
            device,
            captured,
            compilation,
            self._constants,
            tuple(self.options.items()),
            *map(argument_class, arguments),
        )

    def _dispatch(self, grid: Grid, arguments: Sequence[Argument]) -> Any:
        self.dispatched += 1
        return self.kernel[grid](*arguments, **self.constants, **self.options)

    def _remember(self, key: Any, compiled: Any) -> None:
        if compiled is not None:  # a hook may have prevented the compilation
            self._compiled[key] = compiled
