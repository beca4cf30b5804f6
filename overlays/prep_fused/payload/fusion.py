"""One runner's steps: off, in shadow, armed, disarmed or inert. Whatever goes wrong, the engine prepares the same step.

Shadow: fused into copies, then the whole stock chain with its metadata builders; all is compared. On a clean check the
batch that the armed path would build, over the live buffers, flows on; else the engine's own does. Armed: the fused
batch flows on, and every so many steps, the first one too, such a check goes before it; a difference or an exception
disarms for good. Inert: no plan can be built for this runner; it is not tried again.
"""

import logging
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Any

from campaign_prep_fused import compared, station
from campaign_prep_fused.asked import Asked
from campaign_prep_fused.counters import Counters
from campaign_prep_fused.prep_fused.guard import PlanError
from campaign_prep_fused.prep_fused.knob import Mode
from campaign_prep_fused.prep_fused.plan import Prepared

logger = logging.getLogger("vllm.campaign_prep_fused")
NOTHING = ""


class State(Enum):
    """What the steps of a runner are prepared by."""

    OFF = "OFF"
    SHADOW = "SHADOW"
    ARMED = "ARMED"
    DISARMED = "DISARMED"
    INERT = "INERT"


FROM_MODE = {
    Mode.OFF: State.OFF,
    Mode.SHADOW: State.SHADOW,
    Mode.ARMED: State.ARMED,
    Mode.DISARMED: State.DISARMED,
}
ACTIVE = (State.SHADOW, State.ARMED)


@dataclass(frozen=True)
class Stock:
    """The engine's own methods, as they were before they were wrapped, and the class of its batches."""

    prepare_inputs: Callable[..., Any]
    prepare_attn: Callable[..., Any]
    input_batch: Callable[..., Any]


@dataclass(frozen=True)
class Step:
    """What the engine calls prepare_inputs with."""

    scheduled: Any
    requests: Any
    descriptor: Any


@dataclass(frozen=True)
class Attn:
    """What prepare_attn is to answer for one batch, by its identity."""

    batch: Any
    block_tables: Any
    slot_mappings: Any


class Fusion:
    """The state of one runner. Its methods stand where the engine's stood; they raise only what the engine raises."""

    def __init__(self, runner: Any, asked: Asked, stock: Stock) -> None:
        self.runner, self.asked, self.stock = runner, asked, stock
        self.state, self.reason = FROM_MODE[asked.mode], asked.reason
        self.counters = Counters()
        self.first_mismatch, self.groups = NOTHING, NOTHING
        self.station: station.Station | None = None
        self._attn: Attn | None = None
        if self.reason:
            logger.error("[prep_fused] DISARMED: %s", self.reason)

    def prepare_inputs(self, *given: Any) -> Any:
        """The batch of a step, by whoever may prepare it."""
        step, self._attn = Step(*given), None
        self.counters.add("decode_steps", int(not step.requests.has_prefill))
        try:
            return self._prepared(step) if self.state in ACTIVE else self._by_stock(step)
        finally:
            self.counters.step_done()

    def prepare_attn(self, batch: Any) -> Any:
        """Block tables and slots of a batch: those that were made with it, of any other the engine's."""
        attn, self._attn = self._attn, None
        if attn is not None and attn.batch is batch:
            return attn.block_tables, attn.slot_mappings
        return self.stock.prepare_attn(self.runner, batch)

    def shown(self) -> dict[str, object]:
        """For the report."""
        return {
            "state": self.state.value,
            "reason": self.reason,
            "rank": int(self.runner.vllm_config.parallel_config.rank),
            "check_every": self.asked.every,
            "groups": self.groups,
            "first_mismatch": self.first_mismatch,
        }

    # one step

    def _prepared(self, step: Step) -> Any:
        at = self._station()
        refusal = at.live.refusal(step.scheduled, step.requests, step.descriptor) if at else None
        if refusal is not None:
            self.counters.add(f"declined_{refusal.name}")
        if at is None or refusal is not None:
            return self._by_stock(step)
        due = self.counters["fused_steps"] % self.asked.every == 0 or not self.counters["checks"]
        if self.state is State.SHADOW or due:
            return self._checked(step, at)
        return self._or_stock(lambda: self._fused(step, at), step, "the fused launch failed")

    def _or_stock(self, ours: Callable[[], Any], step: Step, what: str) -> Any:
        """Ours; where it raises, the engine's own preparation of the same step, and never ours again."""
        try:
            return ours()
        except Exception as error:
            logger.exception("[prep_fused] %s", what)
            self._disarm(f"{what}: {type(error).__name__}: {error}")
            return self._fallen_back(step)

    def _fallen_back(self, step: Step) -> Any:
        self._attn = None
        self.counters.add("fallbacks")
        return self._by_stock(step)

    def _by_stock(self, step: Step) -> Any:
        return self.stock.prepare_inputs(self.runner, step.scheduled, step.requests, step.descriptor)

    def _fused(self, step: Step, at: station.Station) -> Any:
        began = time.perf_counter()
        prepared = at.live.prepare(step.scheduled, step.requests, step.descriptor)
        batch = self.stock.input_batch(**prepared.fields)
        self.counters.add("live_us", 1e6 * (time.perf_counter() - began))
        self.counters.add("live_launches")
        self.counters.add("fused_steps")
        self._attn = Attn(batch, prepared.block_tables, prepared.slot_mappings)
        return batch

    # a check

    def _checked(self, step: Step, at: station.Station) -> Any:
        """Both ways, compared. What is not clean is the engine's; armed, it is the end of ours."""
        what = "the self-check failed" if self.counters["checks"] else "the warm-up failed"
        return self._or_stock(lambda: self._both_ways(step, at), step, what)

    def _both_ways(self, step: Step, at: station.Station) -> Any:
        began = time.perf_counter()
        at.expect_slots()
        at.copies.refresh()
        aside = at.aside.prepare(step.scheduled, step.requests, step.descriptor)
        spent = time.perf_counter() - began
        batch = self._by_stock(step)
        tables, slots = self.stock.prepare_attn(self.runner, batch)
        began = time.perf_counter()
        told = next(self._unlike(at, aside, batch, tables, slots), NOTHING)
        kind = "drift"
        if not told:
            fused, kind = self._fused(step, at), "metadata_drift"
            told = self._metadata_unlike(step, fused, batch, tables, slots)
        self.counters.add("check_us", 1e6 * (spent + time.perf_counter() - began))
        self.counters.add("checks")
        if not told:
            self.counters.add("clean")
            return fused
        self._differs(kind, told)
        self._attn = Attn(batch, tables, slots)
        return batch

    def _unlike(self, at: station.Station, aside: Prepared, batch: Any, tables: Any, slots: Any) -> Iterator[str]:
        """Whole buffers, then the batch field by field, then what prepare_attn answers."""
        yield from at.copies.differences()
        yield from compared.unlike_fields(aside.fields, batch)
        for name, ours, stock in (
            ("block_tables", aside.block_tables, tables),
            ("slot_mappings", aside.slot_mappings, slots),
        ):
            if told := compared.difference(ours, stock):
                yield f"{name}: {told}"

    def _metadata_unlike(self, step: Step, fused: Any, batch: Any, tables: Any, slots: Any) -> str:
        """What the builders make of the fused batch, against what they make of the engine's own."""
        attn = self._attn
        assert attn is not None
        ours = self._metadata(step, fused, attn.block_tables, attn.slot_mappings)
        stock = self._metadata(step, batch, tables, slots)
        self.counters.add("opaque", compared.opaque(stock))
        told = compared.difference(ours, stock)
        return f"metadata: {told}" if told else NOTHING

    def _metadata(self, step: Step, batch: Any, tables: Any, slots: Any) -> Any:
        runner = self.runner
        return runner.model_state.prepare_attn(
            batch, step.descriptor.cg_mode, tables, slots, runner.attn_groups, runner.kv_cache_config, for_capture=False
        )

    def _differs(self, kind: str, told: str) -> None:
        self.counters.add(kind)
        if not self.first_mismatch:
            self.first_mismatch = f"decode step {self.counters['decode_steps']:.0f}: {told}"
            logger.error("[prep_fused] %s: %s", kind, self.first_mismatch)
        if kind == "metadata_drift":  # the fused batch was counted as it was made, and does not flow on
            self.counters.add("fused_steps", -1)
        if self.state is State.ARMED:
            self.counters.add("fallbacks")
            self._disarm(f"{kind}: {self.first_mismatch}")

    # state

    def _station(self) -> station.Station | None:
        """The plans; None where there are none, and then the state says why."""
        if self.station is not None and self.station.is_current:
            return self.station
        try:
            self.station = station.build(self.runner)
        except PlanError as error:
            self._end(State.INERT, str(error))
        except Exception as error:
            logger.exception("[prep_fused] no plan could be made")
            self._disarm(f"the plan failed: {type(error).__name__}: {error}")
        else:
            self.counters.add("plans_built")
            self.groups = station.groups_of(self.runner)
            logger.info("[prep_fused] plan built: %s, groups [%s]", self.state.value, self.groups)
        return self.station if self.state in ACTIVE else None

    def _disarm(self, reason: str) -> None:
        self._end(State.DISARMED, reason)

    def _end(self, state: State, reason: str) -> None:
        self.state, self.reason, self.station, self._attn = state, reason, None, None
        logger.error("[prep_fused] %s: %s", state.value, reason)
