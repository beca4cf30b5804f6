"""The bench's stand-ins: the kernel prepares over them what the reference prepares."""

import pytest
import torch

from kernels.prep_fused.reference import Step, prep_reference
from kernels.prep_fused.stand import PinnedPool, Stand

CPU = torch.device("cpu")


@pytest.mark.parametrize(("requests", "groups"), [(1, 1), (3, 2)])
def test_over_stand_ins_the_kernel_writes_what_the_reference_writes(requests, groups):
    stand = Stand(requests=requests, groups=groups, drafts=3, computed=40, max_reqs=4, max_tokens=32, max_len=128)
    plan, (output, batch, descriptor) = stand.plan(CPU), stand.step()
    expected = stand.plan(CPU)
    prepared = plan.prepare(output, batch, descriptor)
    starts = [4 * row for row in range(requests + 1)]
    step = Step(list(range(requests)), starts, starts, requests, batch.num_tokens)
    sinks = Sinks(expected)
    fresh = prep_reference(expected.states, expected.tables, sinks, step, expected.constants)
    for name, value in fresh.items():
        assert torch.equal(prepared.fields[name], value), name
    for name in ("input_ids", "positions", "is_padding", "query_start_loc", "seq_lens"):
        assert torch.equal(getattr(plan.inputs, name), getattr(sinks, name)), name
    assert torch.equal(plan.outputs.slot_mappings, sinks.slot_mappings)
    assert all(map(torch.equal, plan.outputs.input_block_tables, sinks.input_block_tables))


class Sinks:
    """What a plan writes, in one object."""

    def __init__(self, plan):
        vars(self).update(vars(plan.inputs))
        self.slot_mappings, self.input_block_tables = plan.outputs.slot_mappings, plan.outputs.input_block_tables


def test_the_pool_goes_round_as_the_engines_does():
    pool = PinnedPool(8, 2, CPU)
    first, second, third = (pool.copy_to_uva([value] * 3) for value in (1, 2, 3))
    assert first.tolist() == third.tolist() == [3, 3, 3]
    assert second.tolist() == [2, 2, 2]
