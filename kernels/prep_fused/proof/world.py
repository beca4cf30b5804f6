"""Worlds: an engine's buffers of one shape, and the random steps that happen in them."""

import os
import random
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import torch

from ..host import staged_words
from ..plan import Constants, Plan
from ..shadow import INPUTS, Copies
from . import engine

BATCHES_IN_FLIGHT = 2  # async scheduling without pipeline ranks
LONGER = 2  # tokens by which a query may be longer than its logits
INT32_END = 2**31


@dataclass(frozen=True)
class Shape:
    """What a world is like. `groups`: KV block, kernel block, table columns in KV blocks, slot mapping on."""

    name: str
    groups: tuple[tuple[int, int, int, bool], ...]
    drafts: int
    max_reqs: int = 6
    max_tokens: int = 96
    new_sampled: int = 1
    mark_padding: bool = True


SHAPES = (
    Shape("1 group, 5 drafts", ((16, 16, 40, True),), drafts=5, max_tokens=1100),
    Shape("1 group, 8 drafts, nothing sampled, no padding marks", ((16, 16, 40, True),), drafts=8,
          new_sampled=0, mark_padding=False),
    Shape("3 groups, 2 drafts", ((32, 16, 30, True), (16, 16, 70, True), (64, 32, 9, True)), drafts=2),
    Shape("4 groups, 7 drafts, one without slots", (
        (16, 16, 1100, True), (48, 16, 13, True), (16, 16, 1, False), (32, 8, 17, True),
    ), drafts=7),
    Shape("6 groups, 3 drafts", tuple((16, 16, 33 + 7 * g, True) for g in range(6)), drafts=3, max_reqs=9),
)  # fmt: skip


@dataclass
class Step:
    """One random step, as the scheduler would hand it over."""

    scheduler_output: Any
    descriptor: Any
    batch: Any = None
    applied: int = 1  # how often the block tables were applied before it: a step without tokens applies them too


@dataclass
class World:
    """The engine's objects, and beside them one plan with its copies and the reference's copies."""

    shape: Shape
    device: torch.device
    random: random.Random
    requests: dict[str, int] = field(default_factory=dict)
    born: int = 0
    steady: tuple[int, int] | None = None  # requests and their computed tokens: a plain decode step, for timing
    applies: tuple[int, ...] = (1, 1, 2)  # how often the block tables are applied before a step, drawn from these

    def __post_init__(self) -> None:
        shape = self.shape
        self.max_len = min(columns * block for block, _, columns, slots in shape.groups if slots)
        self.states = engine.request_state(shape.max_reqs, self.max_len, shape.max_tokens, shape.drafts, self.device)
        self.tables = engine.block_tables(
            block_sizes=[group[0] for group in shape.groups],
            kernel_block_sizes=[group[1] for group in shape.groups],
            max_num_blocks_per_group=[group[2] for group in shape.groups],
            slot_mapping_enabled=[group[3] for group in shape.groups],
            max_num_reqs=shape.max_reqs, max_num_batched_tokens=shape.max_tokens, device=self.device,
        )  # fmt: skip
        self.buffers = engine.input_buffers(shape.max_reqs, shape.max_tokens, self.device)
        verified = shape.drafts + shape.new_sampled
        self.max_query = verified + LONGER
        self.runner = engine.runner(self.states, self.tables, self.buffers, shape.new_sampled, verified)
        self.constants = Constants(
            engine.pad_slot_id(), shape.new_sampled, shape.mark_padding, BATCHES_IN_FLIGHT, self.max_query
        )
        self.ours, self.reference = Copies(self.buffers, self.tables), Copies(self.buffers, self.tables)

    def plan(self, **arguments: Any) -> Plan:
        """A plan over this world's objects that writes into the copies `ours`."""
        staging = engine.pool(staged_words(self.shape.max_reqs))
        given = {"sinks": self.ours} | arguments
        return Plan(self.states, self.tables, self.buffers, staging, self.constants, **given)

    def garbage(self) -> None:
        """Random bits into everything that a step writes, the same for all three sides."""
        for name in INPUTS:
            _scramble(getattr(self.buffers, name), self.random)
        for buffer in (self.tables.slot_mappings, *self.tables.input_block_tables):
            _scramble(buffer, self.random)
        self.ours.refresh()
        self.reference.refresh()

    def step(self) -> Step:
        """Requests come and go, the device's state moves on, and a decode batch is scheduled."""
        os.environ["VLLM_MOE_SKIP_PADDING"] = str(int(self.shape.mark_padding))  # read by the engine in each step
        if self.steady:
            return self._steady_step(*self.steady)
        self._change_requests()
        self._change_state()
        count = self.random.choice((1, self.random.randint(1, len(self.requests)), len(self.requests)))
        names = self.random.sample(sorted(self.requests), count)
        drafts = self._drafts(names)
        logits = {name: self.shape.new_sampled + len(drafts.get(name, ())) for name in names}
        scheduled = {name: count + self.random.choice((0, 0, LONGER)) for name, count in logits.items()}
        return self._scheduled(scheduled, drafts, self._descriptor(len(names), sum(scheduled.values())))

    def _scheduled(self, scheduled: dict[str, int], drafts: dict[str, list[int]], descriptor: Any) -> Step:
        output = SimpleNamespace(
            num_scheduled_tokens=scheduled, total_num_scheduled_tokens=sum(scheduled.values()),
            scheduled_spec_decode_tokens=drafts, has_structured_output_requests=self.random.random() < 0.2,
        )  # fmt: skip
        step = Step(output, descriptor, applied=self.random.choice(self.applies))
        for _ in range(step.applied):
            self.tables.apply_staged_writes()
        step.batch = engine.gather(self.runner, output)
        return step

    def _steady_step(self, requests: int, computed: int) -> Step:
        """Every request with all its drafts and as much behind it, no padding."""
        names = [f"r{row}" for row in range(requests)]
        for name in names:
            self.states.add_request(name, computed // 2, [1] * (computed // 2), computed // 2, 64)
        self.states.apply_staged_writes()
        self.states.num_computed_tokens.gpu.fill_(computed)
        query = self.shape.drafts + self.shape.new_sampled
        for group, (_, size, _, _) in enumerate(self.shape.groups):
            self.tables.num_blocks.np[group, :] = -(-(computed + query) // size)
        drafts = {name: [-1] * self.shape.drafts for name in names}
        return self._scheduled(dict.fromkeys(names, query), drafts, engine.descriptor(query * requests, requests))

    def _drafts(self, names: list[str]) -> dict[str, list[int]]:
        least = 0 if self.shape.new_sampled else 1  # a request with no token is not scheduled
        counts = [self.random.randint(least, self.shape.drafts) for _ in names]
        if not any(counts):
            counts[0] = self.shape.drafts
        return {name: [-1] * count for name, count in zip(names, counts, strict=True) if count}

    def _descriptor(self, num_reqs: int, total: int) -> Any:
        tokens = self.random.randint(total, self.shape.max_tokens) if self.random.random() < 0.85 else total
        rows = self.random.choice((None, num_reqs, self.random.randint(num_reqs, self.shape.max_reqs)))
        return engine.descriptor(tokens, rows)

    def _change_requests(self) -> None:
        """A request that comes rebinds `prefill_len.gpu`; one that goes frees a slot that the next one takes."""
        while len(self.requests) > 1 and self.random.random() < 0.3:
            gone = self.random.choice(sorted(self.requests))
            self.states.remove_request(gone)
            del self.requests[gone]
        came = False
        while not self.requests or (len(self.requests) < self.shape.max_reqs and self.random.random() < 0.5):
            name, self.born = f"r{self.born}", self.born + 1
            prompt = self.random.randint(1, self.max_len // 2)
            self.states.add_request(name, prompt, [1] * prompt, prompt, 64)
            self.requests[name] = self.states.req_id_to_index[name]
            came = True
        if came:
            self.states.apply_staged_writes()

    def _change_state(self) -> None:
        """What kernels between two steps would have written; the host's mirror runs ahead of the device."""
        states, limit = self.states, self.max_len - self.max_query
        for slot in self.requests.values():
            prefill = int(states.prefill_len.np[slot])
            near = self.random.randint(max(0, prefill - self.max_query - 1), prefill + 1)
            computed = self.random.choice((near, self.random.randint(0, limit)))
            states.num_computed_tokens.gpu[slot] = min(computed, limit)
            states.num_computed_tokens_np[slot] = computed + self.random.randint(0, self.max_query)
            states.last_sampled_tokens[slot] = self.random.randrange(INT32_END)
            for at in range(self.shape.drafts):
                states.draft_tokens[slot, at] = self.random.randrange(INT32_END)
        self._change_tables()

    def _change_tables(self) -> None:
        """Block ids of all 31 bits, so that the product with the block size leaves 32; rows only partly filled."""
        for group, table in enumerate(self.tables.block_tables):
            _scramble(table.gpu, self.random, positive=True)
            for slot in range(self.shape.max_reqs):
                self.tables.num_blocks.np[group, slot] = self.random.randint(0, table.gpu.shape[1])


def _scramble(buffer: torch.Tensor, source: random.Random, positive: bool = False) -> None:
    """Random bits, seeded; bools are random truths."""
    generator = torch.Generator().manual_seed(source.randrange(2**62))
    if buffer.dtype == torch.bool:
        buffer.copy_(torch.randint(0, 2, buffer.shape, generator=generator).bool())
        return
    least = 0 if positive else -INT32_END
    buffer.copy_(torch.randint(least, INT32_END, buffer.shape, generator=generator, dtype=torch.int64).to(buffer.dtype))
