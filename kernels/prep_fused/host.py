"""A step's host words: what the engine computes with NumPy for a decode batch, and the words staged for the kernel."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .guard import PlanError

Ints = NDArray[np.int32]


@dataclass(frozen=True)
class HostStep:
    """The words of one step. Lengths: R requests, L logits rows."""

    num_reqs: int
    num_reqs_padded: int
    num_tokens: int
    num_tokens_padded: int
    num_logits: int
    drafts_per_req: Ints  # [R]
    query_start_loc: Ints  # [R_pad + 1], a view of the whole buffer's
    cu_num_logits: Ints  # [R + 1]
    idx_mapping: NDArray[np.intp]  # [R]

    def stage(self, into: Ints) -> Ints:
        """[idx R | query_start_loc R+1 | cu_num_logits R+1] at the start of `into`; that start."""
        r = self.num_reqs
        into[:r] = self.idx_mapping
        into[r : 2 * r + 1] = self.query_start_loc[: r + 1]
        into[2 * r + 1 : 3 * r + 2] = self.cu_num_logits
        return into[: 3 * r + 2]


def staged_words(max_reqs: int) -> int:
    """How many int32 a step stages at most."""
    return 3 * max_reqs + 2


def _starts(lengths: Any, size: int, tail: int) -> Ints:
    """[0, running sums of `lengths`, tail, tail, ...], `size` long."""
    starts = np.empty(size, dtype=np.int32)
    starts[0] = 0
    np.cumsum(lengths, out=starts[1 : len(lengths) + 1])
    starts[len(lengths) + 1 :] = tail
    return starts


def host_step(
    drafts: Mapping[str, Sequence[int]], batch: Any, descriptor: Any, max_reqs: int, new_sampled: int
) -> HostStep:
    """From the scheduler's drafts, the engine's `BatchReqState` and its `BatchExecutionDescriptor`.

    Raises PlanError for a query shorter than its logits, which the engine asserts too: rows of another request would be
    read.
    """
    num_reqs = len(batch.req_ids)
    # num_reqs is None for PIECEWISE graphs, which pad no request (trap p)
    num_reqs_padded = descriptor.num_reqs or num_reqs
    per_req = np.fromiter((len(drafts.get(name, ())) for name in batch.req_ids), dtype=np.int32, count=num_reqs)
    if np.count_nonzero(batch.num_scheduled_tokens < per_req + new_sampled):  # host words, both
        raise PlanError(
            f"queries of {batch.num_scheduled_tokens} tokens for {per_req} drafts and {new_sampled} sampled: a query "
            "is shorter than its logits; the stock chain says what is wrong"
        )
    cu_num_logits = _starts(per_req + new_sampled, num_reqs + 1, 0)
    query_start_loc = _starts(batch.num_scheduled_tokens, max_reqs + 1, batch.num_tokens)
    return HostStep(
        num_reqs=num_reqs,
        num_reqs_padded=num_reqs_padded,
        num_tokens=batch.num_tokens,
        num_tokens_padded=max(batch.num_tokens, descriptor.num_tokens),
        num_logits=int(cu_num_logits[-1]),
        drafts_per_req=per_req,
        query_start_loc=query_start_loc[: num_reqs_padded + 1],
        cu_num_logits=cu_num_logits,
        idx_mapping=batch.idx_mapping_np,
    )


def seq_lens_upper_bound(step: HostStep, scheduled: Ints, optimistic: Ints) -> tuple[Ints, Ints]:
    """(computed tokens of the rows, their seq_lens' bound padded with 0). For the host's consumers only.

    `optimistic` runs ahead of the device under async scheduling: positions never come from it (trap k).
    """
    computed = optimistic[step.idx_mapping]
    bound = np.zeros(step.num_reqs_padded, dtype=np.int32)
    np.add(computed, scheduled, out=bound[: step.num_reqs])
    return computed, bound
