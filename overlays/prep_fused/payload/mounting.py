"""Two methods of the V2 runner wrapped, where it is loaded, and what the report shows of them."""

import functools
import logging
from types import ModuleType
from typing import Any

from campaign_engine_report import state
from campaign_prep_fused import asked
from campaign_prep_fused.fusion import Fusion, Stock

OVERLAY = "prep_fused"
MARK = "_campaign_prep_fused"

logger = logging.getLogger("vllm.campaign_prep_fused")


def mount(module: ModuleType) -> None:
    """Wrap prepare_inputs and prepare_attn; a subclass of the runner inherits them."""
    kind, knobs = module.GPUModelRunner, asked.from_environment()
    stock = Stock(kind.prepare_inputs, kind.prepare_attn, module.InputBatch)

    def fusion_of(runner: Any) -> Fusion:
        found: Fusion | None = getattr(runner, MARK, None)
        if found is None:
            found = Fusion(runner, knobs, stock)
            setattr(runner, MARK, found)
            _show(found)
        return found

    @functools.wraps(stock.prepare_inputs)
    def prepare_inputs(self: Any, scheduler_output: Any, batch_req_state: Any, batch_desc: Any) -> Any:
        return fusion_of(self).prepare_inputs(scheduler_output, batch_req_state, batch_desc)

    @functools.wraps(stock.prepare_attn)
    def prepare_attn(self: Any, input_batch: Any) -> Any:
        return fusion_of(self).prepare_attn(input_batch)

    kind.prepare_inputs, kind.prepare_attn = prepare_inputs, prepare_attn
    _before_the_first_step(knobs)
    logger.info("[prep_fused] mounted: %s, a self-check every %d steps", knobs.mode.value, knobs.every)


def _show(fusion: Fusion) -> None:
    state.publish(OVERLAY, fusion.shown)
    state.count(OVERLAY, fusion.counters.shown)


def _before_the_first_step(knobs: asked.Asked) -> None:
    """What the report shows until a runner has prepared its first step."""
    word = {"shadow": "SHADOW", "armed": "ARMED", "off": "OFF", "disarmed": "DISARMED"}[knobs.mode.value]
    shown = {"state": word, "reason": knobs.reason, "check_every": knobs.every}
    state.publish(OVERLAY, lambda: shown)
    state.count(OVERLAY, dict)
