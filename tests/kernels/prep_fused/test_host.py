"""The host's words of a step."""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernels.prep_fused.guard import PlanError
from kernels.prep_fused.host import host_step, seq_lens_upper_bound, staged_words

MAX_REQS = 5


def step(drafts=(3, 0), rows=None, tokens=0, longer=0):
    """Requests r0, r1, ... in slots 10, 11, ...; `longer` more tokens than logits each."""
    names = [f"r{row}" for row in range(len(drafts))]
    scheduled = np.array([count + 1 + longer for count in drafts], dtype=np.int32)
    batch = SimpleNamespace(
        req_ids=names, num_scheduled_tokens=scheduled, num_tokens=int(scheduled.sum()),
        idx_mapping_np=np.arange(10, 10 + len(drafts), dtype=np.intp),
    )  # fmt: skip
    drafted = {name: [-1] * count for name, count in zip(names, drafts, strict=True) if count}
    return host_step(drafted, batch, SimpleNamespace(num_reqs=rows, num_tokens=tokens), MAX_REQS, 1)


@pytest.mark.parametrize(("rows", "wanted"), [(None, 2), (2, 2), (4, 4)], ids=["PIECEWISE", "unpadded", "padded"])
def test_p_rows_are_the_graphs_and_without_padding_the_batchs(rows, wanted):
    found = step(rows=rows)
    assert found.num_reqs_padded == wanted
    assert found.query_start_loc.tolist() == [0, 4, 5, 5, 5][: wanted + 1]


def test_words_are_staged_one_after_another():
    into = np.zeros(staged_words(MAX_REQS), dtype=np.int32)
    assert step(longer=1).stage(into).tolist() == [10, 11, 0, 5, 7, 0, 4, 5]


def test_tokens_are_padded_and_never_cut():
    assert step(tokens=9).num_tokens_padded == 9
    assert step(tokens=1).num_tokens_padded == 5


@given(st.lists(st.integers(0, 8), min_size=1, max_size=MAX_REQS), st.integers(0, 3))
def test_starts_rise_by_the_lengths_and_fit_the_staging(drafts, longer):
    found = step(tuple(drafts), longer=longer)
    assert np.diff(found.cu_num_logits).tolist() == [count + 1 for count in drafts]
    assert np.diff(found.query_start_loc).tolist() == [count + 1 + longer for count in drafts]
    assert found.num_logits == sum(drafts) + len(drafts)
    assert len(found.stage(np.zeros(staged_words(MAX_REQS), dtype=np.int32))) == 3 * len(drafts) + 2


def test_the_bound_of_seq_lens_is_zero_for_dummy_rows():
    optimistic = np.arange(100, 120, dtype=np.int32)
    computed, bound = seq_lens_upper_bound(step(rows=4), np.array([4, 1], dtype=np.int32), optimistic)
    assert computed.tolist() == [110, 111]
    assert bound.tolist() == [114, 112, 0, 0]


def test_a_query_that_is_shorter_than_its_logits_is_refused_before_anything_is_launched():
    with pytest.raises(PlanError, match="shorter than its logits"):
        step(longer=-1)
