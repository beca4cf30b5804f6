"""The rows of the bit-equality contract, and which of them a step exercises: a row that none reaches proves nothing."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

from .trial import Outcome
from .world import INT32_END, World

ROWS = {
    "1 tails of query_start_loc and seq_lens": "fewer requests than the buffers hold",
    "2 positions and input_ids behind the tokens stay": "fewer tokens than the buffers hold",
    "2 they stay under graph padding too": "padded tokens",
    "3 is_padding marked": "padded tokens, marks on",
    "3 is_padding left alone": "padded tokens, marks off",
    "4 a row's columns behind num_blocks stay": "a row not full",
    "4 a row without blocks": "no block at all",
    "4 dummy rows zeroed": "padded requests",
    "4 rows behind the padding stay": "fewer padded requests than the buffers hold",
    "5 slots padded to the end": "fewer tokens than the buffers hold, every group",
    "5 a group without slots": "slot mapping off",
    "6 product of block and size leaves 32 bits": "a block id that large is used",
    "7 still inside the prompt: nothing written": "seq_len <= prefill_len",
    "7 drafts without the sampled token": "the first logit stands inside the prompt",
    "7 sampled token and drafts": "behind the prompt",
    "7 no sampled token a step": "num_new_sampled_tokens is 0",
    "8 fresh tensors' types, ragged drafts": "requests with unlike numbers of drafts",
    "8 a request without drafts": "beside others that have some",
    "9 a slot from a column that was not gathered": "source and gathered table differ there",
    "8 logits of a query's last tokens only": "a query longer than its logits",
    "10 host words": "every batch",
    "(a) num_blocks moved on by two": "a step without tokens lay between",
    "(k) the host's mirror runs ahead": "num_computed_tokens_np is not the device's",
    "(p) no requests are padded": "the descriptor says None",
    "one request": "C=1",
    "several requests": "C>1",
}
ENOUGH = 20


def exercised(world: World, outcome: Outcome) -> Counter[str]:
    """Which rows this trial exercised; each counts once a trial."""
    batch, step, shape = outcome.stock, outcome.step, world.shape
    padded = batch.num_tokens_after_padding > batch.num_tokens
    drafts = batch.num_draft_tokens_per_req
    slots = batch.idx_mapping_np
    ahead = world.states.num_computed_tokens_np[slots] != world.states.num_computed_tokens.gpu.cpu().numpy()[slots]
    facts = {
        "1 tails of query_start_loc and seq_lens": batch.num_reqs < shape.max_reqs,
        "2 positions and input_ids behind the tokens stay": batch.num_tokens < shape.max_tokens,
        "2 they stay under graph padding too": padded,
        "3 is_padding marked": padded and shape.mark_padding,
        "3 is_padding left alone": padded and not shape.mark_padding,
        "4 dummy rows zeroed": batch.num_reqs_after_padding > batch.num_reqs,
        "4 rows behind the padding stay": batch.num_reqs_after_padding < shape.max_reqs,
        "5 slots padded to the end": batch.num_tokens < shape.max_tokens,
        "5 a group without slots": not all(group[3] for group in shape.groups),
        "7 no sampled token a step": shape.new_sampled == 0,
        "8 fresh tensors' types, ragged drafts": len(set(drafts.tolist())) > 1,
        "8 a request without drafts": bool((drafts == 0).any()),
        "8 logits of a query's last tokens only": batch.num_tokens > batch.cu_num_logits_np[-1],
        "10 host words": True,
        "(a) num_blocks moved on by two": step.applied == 2,
        "(k) the host's mirror runs ahead": bool(ahead.any()),
        "(p) no requests are padded": step.descriptor.num_reqs is None,
        "one request": batch.num_reqs == 1,
        "several requests": batch.num_reqs > 1,
    }
    reached = {name for name, so in facts.items() if so} | set(_of_rows(world, batch)) | set(_of_tables(world, batch))
    return Counter(reached)


def _of_rows(world: World, batch: Any) -> Iterator[str]:
    seq_lens = batch.seq_lens.cpu().tolist()
    for row, slot in enumerate(batch.idx_mapping_np):
        known = int(world.states.prefill_len.np[slot])
        logits = int(batch.num_draft_tokens_per_req[row]) + world.shape.new_sampled
        if seq_lens[row] <= known:
            yield "7 still inside the prompt: nothing written"
        elif world.shape.new_sampled and seq_lens[row] - logits >= known:
            yield "7 sampled token and drafts"
        elif world.shape.new_sampled and logits > 1:
            yield "7 drafts without the sampled token"


def _of_tables(world: World, batch: Any) -> Iterator[str]:
    positions = batch.positions.cpu().tolist()
    for group, (_, size, _, slots) in enumerate(world.shape.groups):
        table = world.tables.block_tables[group].gpu.cpu()
        for row, slot in enumerate(batch.idx_mapping_np):
            filled = int(world.tables.num_blocks.np[group, slot])
            if filled < table.shape[1]:
                yield "4 a row's columns behind num_blocks stay" if filled else "4 a row without blocks"
            query = range(int(batch.query_start_loc_np[row]), int(batch.query_start_loc_np[row + 1]))
            columns = {positions[token] // size for token in query} if slots else set()
            if any(column >= filled for column in columns):
                yield "9 a slot from a column that was not gathered"
            if any(int(table[slot, column]) * size >= INT32_END for column in columns):
                yield "6 product of block and size leaves 32 bits"
