"""Planted mistakes: each a text of this package that becomes another. The proof must notice every one.

A mutant is a copy of the package under a name of its own; the imports are relative, so all of the copy is the mutant.
"""

import importlib
import multiprocessing
import random
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from triton.runtime.errors import InterpreterError

FORK = multiprocessing.get_context("fork")
PACKAGE = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class Mutant:
    """`find` in `file` becomes `put`; `wrong` says what that breaks."""

    wrong: str
    file: str
    find: str
    put: str


def _kernel(wrong: str, find: str, put: str) -> Mutant:
    return Mutant(wrong, "kernel.py", find, put)


MUTANTS = (
    _kernel("position one too far", "(computed + at).to(tl.int64)", "(computed + at + 1).to(tl.int64)"),
    _kernel("seq_len without the query", "seq_len = computed + query_end - query_start", "seq_len = computed"),
    _kernel("a stray position", "mask=at < query_end - query_start)", "mask=at <= query_end - query_start)"),
    _kernel("prompt's end off by one", "if seq_len > known:", "if seq_len >= known:"),
    _kernel("sampled token inside the prompt", "seq_len - num_logits >= known", "seq_len - num_logits >= known - 1"),
    _kernel("sampled token missing at the edge", "seq_len - num_logits >= known", "seq_len - num_logits > known"),
    _kernel("sampled token one row late", "query_end - num_logits, tl", "query_end - num_logits + 1, tl"),
    _kernel("drafts of another slot", "draft_tokens + req.to(tl.int64)", "draft_tokens + 0 * req.to(tl.int64)"),
    _kernel("one draft too few", "mask = at < drafts", "mask = at < drafts - 1"),
    _kernel("logits row off by one", "(query_end - num_logits + at).to", "(query_end - num_logits + at + 1).to"),
    _kernel("local position not counted", "+ at, at, mask=mask)", "+ at, at * 0, mask=mask)"),
    _kernel("batch row in place of the slot", "tl.store(idx_out + row, req", "tl.store(idx_out + row, row"),
    _kernel("last cu_num_logits missing", "tl.store(cu_out + num_reqs, tl", "tl.store(cu_out + num_reqs - 1, tl"),
    _kernel("query_start_loc's tail is 0", "max_reqs + 1, num_tokens, BLOCK)", "max_reqs + 1, 0, BLOCK)"),
    _kernel("query_start_loc one short", "num_reqs, max_reqs + 1, num_tokens", "num_reqs, max_reqs, num_tokens"),
    _kernel("seq_lens' tail stale", "_fill(seq_lens, num_reqs, max_reqs, 0", "_fill(seq_lens, num_reqs, num_reqs, 0"),
    _kernel("padding not marked", "num_tokens, num_tokens_padded, 1", "num_tokens, num_tokens, 1"),
    _kernel("tokens marked as padding", "_fill(is_padding, 0, num_tokens, 0", "_fill(is_padding, 0, num_tokens, 1"),
    _kernel("the row's stale end copied", "_copy_row(source, target, filled", "_copy_row(source, target, columns"),
    _kernel("dummy rows stale", "_fill(target, 0, columns, 0, BLOCK)", "_fill(target, 0, 0, 0, BLOCK)"),
    _kernel("dummy rows one short of their width", "_fill(target, 0, columns, 0", "_fill(target, 0, columns - 1, 0"),
    _kernel("slots padded to the graph only", "num_tokens, max_tokens, PAD_ID", "num_tokens, num_reqs_padded, PAD_ID"),
    _kernel("slots padded from the graph's end", "_fill(slot_row, num_tokens,", "_fill(slot_row, num_tokens + 1,"),
    _kernel("pad slot 0", "tl.where(enabled, slot, PAD_ID)", "tl.where(enabled, slot, 0)"),
    _kernel("slot mapping always on", "tl.where(enabled, slot, PAD_ID)", "slot"),
    _kernel("product in 64 bits", "slot = block * block_size", "slot = block.to(tl.int64) * block_size"),
    _kernel("slots of the gathered row", "source, block_size, enabled", "target, block_size, enabled"),
    _kernel("blocks of another request", "_row_of(table_ptrs, group) + req", "_row_of(table_ptrs, group) + row"),
    _kernel("num_blocks of another group", "group.to(tl.int64) * num_blocks_stride", "0 * num_blocks_stride"),
    _kernel("a stray write", "tl.store(seq_lens + row, seq_len)",
            "tl.store(seq_lens + row, seq_len)\n    tl.store(positions + 90, computed.to(tl.int64))"),
    Mutant("trap a: an address kept", "plan.py", "            tables.num_blocks.gpu,",
           "            self.__dict__.setdefault('kept', tables.num_blocks.gpu),"),
    Mutant("trap a: prefill_len kept", "plan.py", "            states.prefill_len.gpu,",
           "            self.__dict__.setdefault('known', states.prefill_len.gpu),"),
    Mutant("trap k: positions of the host's mirror", "plan.py", "            states.num_computed_tokens.gpu,",
           "            torch.from_numpy(states.num_computed_tokens_np),"),
    Mutant("trap p: rows of the buffers, not of the batch", "host.py", "descriptor.num_reqs or num_reqs",
           "descriptor.num_reqs or max_reqs"),
    Mutant("dummy rows unknown to the launch", "host.py", "descriptor.num_reqs or num_reqs", "num_reqs"),
    Mutant("staged words swapped", "host.py", "into[2 * r + 1 : 3 * r + 2] = self.cu_num_logits",
           "into[2 * r + 1 : 3 * r + 2] = self.query_start_loc[: r + 1]"),
    Mutant("drafts counted as logits", "host.py", "_starts(per_req + new_sampled,", "_starts(per_req + 0,"),
    Mutant("the bound without the query", "host.py", "np.add(computed, scheduled,", "np.add(computed, 0,"),
    Mutant("trap i: padded up to the first step's tokens", "plan.py", "            self.limits.max_tokens,\n        ]",
           "            self.__dict__.setdefault('high', step.num_tokens),\n        ]"),
    Mutant("trap d: a block that is no power of two", "guard.py", "return 1 << (longest - 1).bit_length()",
           "return longest"),
    Mutant("another integer type", "outputs.py", "num_logits), torch.int32,", "num_logits), torch.int64,"),
)  # fmt: skip


def mutated(mutant: Mutant, folder: Path) -> str:
    """Copy the package into `folder` with the mistake in it; the copy's import name. `folder` must be on sys.path."""
    name = f"mutant_{abs(hash((mutant.file, mutant.find, mutant.put)))}"
    shutil.copytree(PACKAGE, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    path = folder / name / mutant.file
    text = path.read_text(encoding="utf-8")
    if text.count(mutant.find) != 1:
        raise ValueError(
            f"{mutant.find!r} stands {text.count(mutant.find)} times in {mutant.file}, wanted once: "
            f"the mutant {mutant.wrong!r} must follow the code"
        )
    path.write_text(text.replace(mutant.find, mutant.put), encoding="utf-8")
    return name


def noticed(name: str, seed: int, batches: int, device: torch.device) -> tuple[int, str]:
    """(batches until the copy `name` was found out, how); batches and "" when it never was.

    In a forked process: a mistake may write outside of its buffers, which nothing in the interpreter prevents, and
    would break this one later. Its death by a signal is a way of being noticed; any other end of it is an error.
    """
    receiver, sender = FORK.Pipe(duplex=False)
    process = FORK.Process(target=_tell, args=(sender, name, seed, batches, device))
    process.start()
    sender.close()
    try:
        found: tuple[int, str] | None = receiver.recv()
    except EOFError:
        found = None
    process.join()
    if found is None and (process.exitcode or 0) >= 0:
        raise RuntimeError(f"the process of {name} ended with {process.exitcode} and said nothing: see its traceback")
    return found or (batches, f"its process died of signal {-(process.exitcode or 0)}")


def _tell(sender: Any, name: str, seed: int, batches: int, device: torch.device) -> None:
    sender.send(_found(name, seed, batches, device))


def _found(name: str, seed: int, batches: int, device: torch.device) -> tuple[int, str]:
    """An exception of the kernel counts. World after world, so that each feature comes early."""
    world = importlib.import_module(f"{name}.proof.world")
    trial = importlib.import_module(f"{name}.proof.trial").trial
    worlds: list[Any] = []
    for number in range(batches):
        if number < len(world.SHAPES):
            made = world.World(world.SHAPES[number], device, random.Random(seed + number))
            worlds.append((made, made.plan()))
        try:
            found = [text for text in trial(*worlds[number % len(worlds)]).differences if text.startswith("fused")]
        except InterpreterError as error:
            found = [repr(error)]
        if found:
            return number + 1, found[0]
    return batches, ""


def forget(name: str) -> None:
    """Take the copy out of the imported modules."""
    for module in [module for module in sys.modules if module == name or module.startswith(f"{name}.")]:
        del sys.modules[module]
