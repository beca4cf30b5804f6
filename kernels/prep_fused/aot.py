"""`python -m kernels.prep_fused.aot`: compile for the fleet's GPUs without one, and look at what a launch would cost.

Wanted on every target: at most 64 registers, nothing spilled, no shared memory, no barrier. Two tools are asked,
`ptxas -v` and `cuobjdump`, both from Triton's own package; one that is missing is a failure. No driver is touched and
nothing runs: it says what the compiler made, not that it is right. Exit codes: 0 within the limits, 1 not, 2 the
command line.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

MOST_REGISTERS = 64
TARGETS = {90: "sm_90a", 100: "sm_100a", 120: "sm_120a", 121: "sm_121a"}
POINTERS = {
    "staged": "*i32", "num_computed": "*i32", "prefill_len": "*i32", "last_sampled": "*i64", "draft_tokens": "*i64",
    "table_ptrs": "*u64", "gathered_ptrs": "*u64", "table_strides": "*i64", "block_sizes": "*i32",
    "slot_enabled": "*i1", "num_blocks": "*i32", "input_ids": "*i32", "positions": "*i64", "is_padding": "*i1",
    "query_start_loc": "*i32", "seq_lens": "*i32", "slot_mappings": "*i64", "idx_out": "*i64", "cu_out": "*i32",
    "expanded_idx": "*i64", "local_pos": "*i32", "logits_indices": "*i64",
}  # fmt: skip
CONSTANTS = {"BLOCK_Q": 8, "BLOCK": 1024, "NEW_SAMPLED": 1, "PAD_ID": -1, "MARK_PADDING": True}
BARRIER = re.compile(r"\b(?:bar|barrier)\.(?:cta\.)?(?:sync|red|arrive)")


class AotError(Exception):
    """A tool is missing or said what nobody can read: the check has not been made."""


@dataclass(frozen=True)
class Compiled:
    """What the compiler made for one target. Spills and shared memory in bytes."""

    target: str
    registers: int
    registers_by_cuobjdump: int
    spilled: int
    stack: int
    shared: int
    barriers: int

    def faults(self) -> list[str]:
        """What is over the limits."""
        limits = {"registers": MOST_REGISTERS, "registers_by_cuobjdump": MOST_REGISTERS}
        amounts = {name: amount for name, amount in vars(self).items() if name != "target"}
        return [
            f"{self.target}: {name} is {amount}, wanted at most {limits.get(name, 0)}"
            for name, amount in amounts.items()
            if amount > limits.get(name, 0)
        ]


def signature(kernel: Any, constants: Mapping[str, Any]) -> dict[str, str]:
    """Parameter -> Triton's type; every integer is 32 bits wide. Raises AotError for a pointer nobody typed."""
    scalars = set(kernel.arg_names) - set(POINTERS) - set(constants)
    if pointers := set(POINTERS) - set(kernel.arg_names):
        raise AotError(f"aot.POINTERS names {sorted(pointers)}, which the kernel does not have: follow the kernel")
    return {
        name: POINTERS.get(name, "constexpr" if name in constants else "i32" if name in scalars else "")
        for name in kernel.arg_names
    }


def compiled_for(architecture: int, constants: Mapping[str, Any] = CONSTANTS, kernel: Any = None) -> Any:
    """The compiled kernel for one compute capability (90, 100, ...); every pointer is aligned to 16 bytes."""
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    if kernel is None:
        from .kernel import prep_fused as kernel
    if not isinstance(kernel, triton.JITFunction):
        raise AotError("TRITON_INTERPRET is set, so Triton compiles nothing here: unset it")
    types = signature(kernel, constants)
    aligned = {(at,): [["tt.divisibility", 16]] for at, kind in enumerate(types.values()) if kind.startswith("*")}
    chosen = {(kernel.arg_names.index(name),): value for name, value in constants.items()}
    source = ASTSource(kernel, types, chosen, aligned)
    return triton.compile(source, target=GPUTarget("cuda", architecture, 32))


def _said(*command: str) -> str:
    """What a tool says. Raises AotError when it is not there or fails."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    except FileNotFoundError as missing:
        raise AotError(f"{command[0]} is not there: the check needs it, reinstall triton") from missing
    except subprocess.CalledProcessError as failed:
        raise AotError(f"{command[0]} ended with {failed.returncode}: {failed.stderr.strip()[:300]}") from failed
    return done.stdout + done.stderr


def _number(pattern: str, text: str, tool: str, missing: int | None = None) -> int:
    found = re.search(pattern, text)
    if found is None and missing is None:
        raise AotError(f"{tool} does not say {pattern!r}: {text.strip()[:300]}")
    return int(found.group(1)) if found else int(missing or 0)


def inspect(architecture: int, compiled: Any, folder: Path, tools: Mapping[str, str] | None = None) -> Compiled:
    """Ask both tools about a compiled kernel. Raises AotError."""
    tools = tools or _tools(architecture)
    target, ptx, cubin = TARGETS[architecture], folder / "kernel.ptx", folder / "kernel.cubin"
    ptx.write_text(compiled.asm["ptx"], encoding="utf-8")
    cubin.write_bytes(compiled.asm["cubin"])
    told = _said(tools["ptxas"], "-v", f"--gpu-name={target}", str(ptx), "-o", os.devnull)
    listed = _said(tools["cuobjdump"], "--dump-resource-usage", str(cubin))
    if f".target {target}" not in compiled.asm["ptx"]:
        raise AotError(f"the PTX is not for {target}: {_targets(compiled.asm['ptx'])}")
    spilled = r"(\d+) bytes spill stores"
    return Compiled(
        target=target,
        registers=_number(r"Used (\d+) registers", told, "ptxas"),
        registers_by_cuobjdump=_number(r"REG:(\d+)", listed, "cuobjdump"),
        spilled=_number(spilled, told, "ptxas") + _number(r"(\d+) bytes spill loads", told, "ptxas"),
        stack=_number(r"STACK:(\d+)", listed, "cuobjdump") + _number(r"LOCAL:(\d+)", listed, "cuobjdump"),
        shared=_number(r"SHARED:(\d+)", listed, "cuobjdump") + int(compiled.metadata.shared),
        barriers=len(BARRIER.findall(compiled.asm["ptx"])) + _number(r"used (\d+) barriers", told, "ptxas", missing=0),
    )


def _targets(ptx: str) -> list[str]:
    return re.findall(r"^\.target .*", ptx, re.MULTILINE)


def _tools(architecture: int) -> dict[str, str]:
    """Triton's own assembler for this target (the older one refuses its PTX) and cuobjdump."""
    from triton import knobs
    from triton.backends.nvidia.compiler import get_ptxas

    return {"ptxas": get_ptxas(architecture).path, "cuobjdump": knobs.nvidia.cuobjdump.path}


def main(words: Sequence[str] | None = None) -> int:
    """Compile for every target and print the table."""
    argparse.ArgumentParser(prog="python -m kernels.prep_fused.aot", description=__doc__).parse_args(words)
    faults: list[str] = []
    print("compiled without a GPU, nothing ran")
    print(f"{'target':8} {'registers':>9} {'cuobjdump':>9} {'spilled':>7} {'stack':>5} {'shared':>6} {'barriers':>8}")
    with tempfile.TemporaryDirectory() as folder:
        os.environ["TRITON_CACHE_DIR"] = folder
        os.environ.setdefault("TRITON_DEFAULT_FP_FUSION", "1")  # said, so that Triton 3.9 does not ask; no float here
        for architecture in TARGETS:
            found = inspect(architecture, compiled_for(architecture), Path(folder))
            faults += found.faults()
            print(
                f"{found.target:8} {found.registers:9} {found.registers_by_cuobjdump:9} {found.spilled:7} "
                f"{found.stack:5} {found.shared:6} {found.barriers:8}"
            )
    print("\n".join(faults) or f"within the limits: {MOST_REGISTERS} registers, nothing else")
    return 1 if faults else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except AotError as error:
        print(f"the check was not made: {error}", file=sys.stderr)
        sys.exit(1)
