"""The engine's side of the proof: real objects and unbound stock methods of its V2 runner. The only module with vllm.

`ready` is called before anything else here, in a process that has not imported vllm: on a CPU it lets the engine's own
kernels run under Triton's interpreter and takes the engine's CPU buffers, as the overlay `cpu_v2_interpreter` does for
a whole engine.
"""

import importlib
import os
import sys
from collections.abc import Callable
from types import ModuleType, SimpleNamespace
from typing import Any

import torch

IMPORTING = "vllm.triton_utils.importing"


class _Placeholder:
    """The stock module's names, never used while Triton is there."""


def ready(device: torch.device) -> None:
    """Import the engine for `device`: "cpu" (interpreted) or "cuda"."""
    os.environ.setdefault("VLLM_LOGGING_LEVEL", "ERROR")
    if device.type != "cpu":
        return
    if IMPORTING not in sys.modules:
        module = ModuleType(IMPORTING)
        vars(module).update(HAS_TRITON=True, TritonPlaceholder=_Placeholder, TritonLanguagePlaceholder=_Placeholder)
        sys.modules[IMPORTING] = module
    importlib.import_module("vllm.v1.worker.cpu.shm")


def _module(name: str) -> Any:
    return importlib.import_module(f"vllm.v1.worker.gpu.{name}")


def pad_slot_id() -> int:
    """The engine's padding slot."""
    value: int = importlib.import_module("vllm.v1.attention.backends.utils").PAD_SLOT_ID
    return value


def version() -> str:
    """The engine's version."""
    return str(importlib.import_module("importlib.metadata").version(_distribution()))


def _distribution() -> str:
    names = importlib.import_module("importlib.metadata").packages_distributions().get("vllm", ["vllm"])
    return str(names[0])


def pool(words: int, depth: int | None = None) -> Any:
    """One of the engine's own staging pools, int32."""
    return _module("buffer_utils").UvaBufferPool(words, torch.int32, depth)


def request_state(max_reqs: int, max_model_len: int, max_tokens: int, drafts: int, device: torch.device) -> Any:
    """The engine's `RequestState`."""
    return _module("states").RequestState(max_reqs, max_model_len, max_tokens, drafts, 1000, device)


def block_tables(**arguments: Any) -> Any:
    """The engine's `BlockTables`."""
    return _module("block_table").BlockTables(**arguments)


def input_buffers(max_reqs: int, max_tokens: int, device: torch.device) -> Any:
    """The engine's `InputBuffers`."""
    return _module("input_batch").InputBuffers(max_reqs, max_tokens, device)


def input_batch(fields: dict[str, Any]) -> Any:
    """The engine's `InputBatch` of our fields: a field too many or too few is an error."""
    return _module("input_batch").InputBatch(**fields)


def descriptor(num_tokens: int, num_reqs: int | None) -> Any:
    """What the engine's graph dispatch answers."""
    mode = importlib.import_module("vllm.config").CUDAGraphMode
    found = mode.PIECEWISE if num_reqs is None else mode.FULL
    return _module("cudagraph_utils").BatchExecutionDescriptor(found, num_tokens, num_reqs)


def runner(states: Any, tables: Any, buffers: Any, new_sampled: int, decode_query_len: int) -> Any:
    """What the stock methods read of a runner, made of real parts."""
    return SimpleNamespace(
        req_states=states, block_tables=tables, input_buffers=buffers, device=buffers.device,
        max_num_reqs=buffers.max_num_reqs, decode_query_len=decode_query_len,
        model_state=SimpleNamespace(num_new_sampled_tokens_per_step=new_sampled),
        model_config=SimpleNamespace(rswa_window=None),
        adaptive_verification=None, pcp_manager=None, use_dcp=False, use_pp=False,
    )  # fmt: skip


def gather(runner: Any, scheduler_output: Any) -> Any:
    """The stock `gather_batch_req_state`."""
    found, _ = _module("model_runner").GPUModelRunner.gather_batch_req_state(runner, scheduler_output, False)
    return found


def prepare(runner: Any, scheduler_output: Any, batch: Any, batch_descriptor: Any) -> Any:
    """The stock `prepare_inputs`."""
    return _module("model_runner").GPUModelRunner.prepare_inputs(runner, scheduler_output, batch, batch_descriptor)


def prepare_launches(runner: Any, batch: Any) -> Callable[[], None]:
    """The three launches of the stock `prepare_inputs` over a batch that it has prepared; no copies."""
    module, states, buffers = _module("input_batch"), runner.req_states, runner.input_buffers
    sampled = runner.model_state.num_new_sampled_tokens_per_step
    num_logits = int(batch.cu_num_logits_np[-1])

    def launches() -> None:
        module.expand_idx_mapping(batch.idx_mapping, num_logits, batch.cu_num_logits, runner.decode_query_len)
        module.prepare_pos_seq_lens(
            batch.idx_mapping, batch.query_start_loc, states.num_computed_tokens.gpu,
            buffers.positions, buffers.seq_lens,
        )  # fmt: skip
        module.combine_sampled_and_draft_tokens(
            buffers.input_ids, batch.idx_mapping, states.last_sampled_tokens, batch.query_start_loc, batch.seq_lens,
            states.prefill_len.gpu, states.draft_tokens, batch.cu_num_logits, num_logits, sampled,
        )  # fmt: skip

    return launches


def prepare_attn(runner: Any, batch: Any) -> Any:
    """The stock `prepare_attn`."""
    return _module("model_runner").GPUModelRunner.prepare_attn(runner, batch)
