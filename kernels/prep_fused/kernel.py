"""The kernel: what five stock launches, three copies and two fills write, written by one launch.

Grid (1 + groups, padded requests + 1). Axis 0: the step's metadata, then one KV group each. Axis 1: a request, a dummy
row of graph padding, and last the tails. No program reads what another writes, so there is nothing to wait for: what a
stock kernel takes from an earlier one is computed again from the staged words and `num_computed`.
"""

import triton
import triton.language as tl

# Only values that a step changes: a specialised integer would compile again while serving (case J3).
UNSPECIALISED = (
    "draft_stride",
    "num_blocks_stride",
    "slot_stride",
    "num_reqs",
    "num_reqs_padded",
    "num_tokens",
    "num_tokens_padded",
    "max_reqs",
    "max_tokens",
)


@triton.jit
def _row_of(pointers, group):
    """The int32 table whose address stands in `pointers`; tables are aligned to 16 bytes."""
    address = tl.load(pointers + group)
    return tl.multiple_of(tl.cast(address, tl.pointer_type(tl.int32)), 16)


@triton.jit
def _fill(start_ptr, first, end, value, BLOCK: tl.constexpr):
    """start_ptr[first:end] = value."""
    for begin in tl.range(first, end, BLOCK):
        at = begin + tl.arange(0, BLOCK)
        tl.store(start_ptr + at, value, mask=at < end)


@triton.jit
def _tokens(
    req, query_end, seq_len, num_logits, prefill_len, last_sampled, draft_tokens, draft_stride, input_ids,
    BLOCK_Q: tl.constexpr, NEW_SAMPLED: tl.constexpr,
):  # fmt: skip
    """The sampled token and the drafts into input_ids; a position inside the prompt keeps the prompt's token."""
    at = tl.arange(0, BLOCK_Q)
    drafts = num_logits - NEW_SAMPLED
    known = tl.load(prefill_len + req)
    if seq_len > known:
        if NEW_SAMPLED > 0:
            if seq_len - num_logits >= known:
                tl.store(input_ids + query_end - num_logits, tl.load(last_sampled + req).to(tl.int32))
        # widened before the multiply: requests x stride passes 2**31 (case J2)
        source = draft_tokens + req.to(tl.int64) * draft_stride + at
        mask = at < drafts
        tl.store(input_ids + query_end - drafts + at, tl.load(source, mask=mask, other=0).to(tl.int32), mask=mask)


@triton.jit
def _request(
    row, num_reqs, staged, num_computed, prefill_len, last_sampled, draft_tokens, draft_stride,
    input_ids, positions, query_start_loc, seq_lens,
    idx_out, cu_out, expanded_idx, local_pos, logits_indices,
    BLOCK_Q: tl.constexpr, NEW_SAMPLED: tl.constexpr,
):  # fmt: skip
    """One request's share of the metadata."""
    at = tl.arange(0, BLOCK_Q)
    req = tl.load(staged + row)
    query_start = tl.load(staged + num_reqs + row)
    query_end = tl.load(staged + num_reqs + row + 1)
    logits_start = tl.load(staged + 2 * num_reqs + 1 + row)
    num_logits = tl.load(staged + 2 * num_reqs + 2 + row) - logits_start
    computed = tl.load(num_computed + req)
    seq_len = computed + query_end - query_start

    tl.store(idx_out + row, req.to(tl.int64))
    tl.store(cu_out + row, logits_start)
    tl.store(query_start_loc + row, query_start)
    tl.store(seq_lens + row, seq_len)
    tl.store(positions + query_start + at, (computed + at).to(tl.int64), mask=at < query_end - query_start)

    mask = at < num_logits
    tl.store(expanded_idx + logits_start + at, req.to(tl.int64), mask=mask)
    tl.store(local_pos + logits_start + at, at, mask=mask)
    tl.store(logits_indices + logits_start + at, (query_end - num_logits + at).to(tl.int64), mask=mask)
    _tokens(
        req, query_end, seq_len, num_logits, prefill_len, last_sampled, draft_tokens, draft_stride, input_ids,
        BLOCK_Q, NEW_SAMPLED,
    )  # fmt: skip


@triton.jit
def _tails(
    staged, query_start_loc, seq_lens, is_padding, cu_out,
    num_reqs, num_tokens, num_tokens_padded, max_reqs, BLOCK: tl.constexpr, MARK_PADDING: tl.constexpr,
):  # fmt: skip
    """What lies behind the requests: graphs are captured over whole buffers, so their tails are written each step."""
    tl.store(cu_out + num_reqs, tl.load(staged + 3 * num_reqs + 1))
    _fill(query_start_loc, num_reqs, max_reqs + 1, num_tokens, BLOCK)
    _fill(seq_lens, num_reqs, max_reqs, 0, BLOCK)
    if MARK_PADDING:
        # another block shape: bytes from an aligned start would give the table rows' loads their layout, eight
        # elements a thread, which the rows' stores cannot have: a trip through shared memory with barriers
        _fill(is_padding, 0, num_tokens, 0, BLOCK // 2)
        _fill(is_padding, num_tokens, num_tokens_padded, 1, BLOCK // 2)


@triton.jit
def _slots(
    row, req, num_reqs, staged, num_computed, table_row, block_size, enabled, slot_row,
    BLOCK_Q: tl.constexpr, PAD_ID: tl.constexpr,
):  # fmt: skip
    """The KV slots of one request's tokens, from the source table: the gathered row may be behind it."""
    at = tl.arange(0, BLOCK_Q)
    query_start = tl.load(staged + num_reqs + row)
    mask = at < tl.load(staged + num_reqs + row + 1) - query_start
    position = tl.where(mask, tl.load(num_computed + req) + at, 0).to(tl.int64)
    block = tl.load(table_row + tl.where(enabled, position // block_size, 0), mask=mask, other=0)
    # the product in 32 bits and the sum in 64, as the engine has it: other widths differ in large pools
    slot = block * block_size + position % block_size
    tl.store(slot_row + query_start + at, tl.where(enabled, slot, PAD_ID).to(tl.int64), mask=mask)


@triton.jit
def _copy_row(source, target, columns, BLOCK: tl.constexpr):
    """target[:columns] = source[:columns]; what follows in the target stays."""
    for begin in tl.range(0, columns, BLOCK):
        at = begin + tl.arange(0, BLOCK)
        mask = at < columns
        tl.store(target + at, tl.load(source + at, mask=mask, other=0), mask=mask)


@triton.jit
def _group(
    group, row, num_reqs, num_reqs_padded, num_tokens, max_tokens, staged, num_computed,
    table_ptrs, gathered_ptrs, table_strides, block_sizes, slot_enabled, num_blocks, num_blocks_stride,
    slot_mappings, slot_stride,
    BLOCK_Q: tl.constexpr, BLOCK: tl.constexpr, PAD_ID: tl.constexpr,
):  # fmt: skip
    """One row of one KV group: the gathered block table and the slots."""
    columns = tl.load(table_strides + group)  # int64, so every row's offset is
    target = _row_of(gathered_ptrs, group) + row * columns
    slot_row = slot_mappings + group.to(tl.int64) * slot_stride
    if row < num_reqs:
        req = tl.load(staged + row)
        source = _row_of(table_ptrs, group) + req * columns
        filled = tl.load(num_blocks + group.to(tl.int64) * num_blocks_stride + req)
        _copy_row(source, target, filled, BLOCK)
        block_size = tl.load(block_sizes + group)
        enabled = tl.load(slot_enabled + group)
        _slots(row, req, num_reqs, staged, num_computed, source, block_size, enabled, slot_row, BLOCK_Q, PAD_ID)
    elif row < num_reqs_padded:
        _fill(target, 0, columns, 0, BLOCK)
    else:
        # to the end each step: the drafter and dummy runs write into the same rows
        _fill(slot_row, num_tokens, max_tokens, PAD_ID, BLOCK)


@triton.jit(do_not_specialize=list(UNSPECIALISED))
def prep_fused(
    staged,  # int32 [idx R | query_start_loc R+1 | cu_num_logits R+1]
    num_computed,  # int32 [max_reqs]
    prefill_len,  # int32 [max_reqs]
    last_sampled,  # int64 [max_reqs, 1]
    draft_tokens,  # int64 [max_reqs, K]
    table_ptrs,  # uint64 [groups], of int32 [max_reqs, W_g]
    gathered_ptrs,  # uint64 [groups], of int32 [max_reqs, W_g]
    table_strides,  # int64 [groups], W_g
    block_sizes,  # int32 [groups], the kernel's
    slot_enabled,  # bool [groups]
    num_blocks,  # int32 [groups, max_reqs]
    input_ids,  # int32 [max_tokens]
    positions,  # int64 [max_tokens]
    is_padding,  # bool [max_tokens]
    query_start_loc,  # int32 [max_reqs + 1]
    seq_lens,  # int32 [max_reqs]
    slot_mappings,  # int64 [groups, max_tokens]
    idx_out,  # int64 [R]
    cu_out,  # int32 [R + 1]
    expanded_idx,  # int64 [L]
    local_pos,  # int32 [L]
    logits_indices,  # int64 [L]
    draft_stride,
    num_blocks_stride,
    slot_stride,
    num_reqs,
    num_reqs_padded,
    num_tokens,
    num_tokens_padded,
    max_reqs,
    max_tokens,
    BLOCK_Q: tl.constexpr,  # a power of two, at least the longest query
    BLOCK: tl.constexpr,
    NEW_SAMPLED: tl.constexpr,  # 0 or 1 sampled tokens beside the drafts
    PAD_ID: tl.constexpr,
    MARK_PADDING: tl.constexpr,
):
    """All of one decode step's inputs; the contract stands in the package's README."""
    part = tl.program_id(0)
    row = tl.program_id(1)
    if part > 0:
        _group(
            part - 1, row, num_reqs, num_reqs_padded, num_tokens, max_tokens, staged, num_computed,
            table_ptrs, gathered_ptrs, table_strides, block_sizes, slot_enabled, num_blocks, num_blocks_stride,
            slot_mappings, slot_stride, BLOCK_Q, BLOCK, PAD_ID,
        )  # fmt: skip
    elif row < num_reqs:
        _request(
            row, num_reqs, staged, num_computed, prefill_len, last_sampled, draft_tokens, draft_stride,
            input_ids, positions, query_start_loc, seq_lens,
            idx_out, cu_out, expanded_idx, local_pos, logits_indices, BLOCK_Q, NEW_SAMPLED,
        )  # fmt: skip
    elif row == num_reqs_padded:
        _tails(
            staged, query_start_loc, seq_lens, is_padding, cu_out,
            num_reqs, num_tokens, num_tokens_padded, max_reqs, BLOCK, MARK_PADDING,
        )  # fmt: skip
