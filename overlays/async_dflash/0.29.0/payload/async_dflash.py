"""Added by the overlay async_dflash: whether DFlash may be scheduled asynchronously, and what became of it.

The decision is made in several places of the configuration. Each place leaves a mark here; the line is written after
the last of them, so that it never claims what a later place takes back. `admits` is asked only where the stock engine
is about to refuse: a configuration in which it took nothing back was admitted by the engine itself.
"""

import os
from typing import TYPE_CHECKING

from vllm.logger import init_logger

if TYPE_CHECKING:
    from vllm.config.vllm import VllmConfig

VARIABLE = "VLLM_GLM53_ASYNC_DFLASH"
MARKS = "_async_dflash_marks"

logger = init_logger(__name__)
_decided: list[bool] = []  # one a configuration of this process


def knob() -> str:
    """The knob as asked. Raises ValueError for anything but 0 and 1."""
    value = os.environ.get(VARIABLE, "0")
    if value not in ("0", "1"):
        raise ValueError(f"{VARIABLE} is {value!r}, but must be '0' or '1'; unset it for '0'")
    return value


def admits(config: "VllmConfig") -> bool:
    """Whether the refusal that the engine is about to make is taken back: the knob is on and the method is dflash."""
    admitted = knob() == "1" and _method(config) == "dflash"
    if admitted and config.scheduler_config.async_scheduling is not False:
        _marks(config)["took back"] = True
    return admitted


def begin(config: "VllmConfig") -> None:
    """Refuse a wrong value before anything is decided, and remember what was asked. Raises ValueError."""
    knob()
    mark(config, "asked")


def mark(config: "VllmConfig", place: str) -> None:
    """Remember what async scheduling is at this place of the configuration."""
    _marks(config)[place] = config.scheduler_config.async_scheduling


def mark_allow_list(config: "VllmConfig", executor_can: bool) -> None:
    """Remember what the allow-list said, and whether the executor can schedule asynchronously at all."""
    mark(config, "allow-list")
    _marks(config)["executor"] = executor_can


def log_decision(config: "VllmConfig") -> None:
    """One line: what async scheduling is now that nothing of the configuration is left to change it, and why."""
    marks = config.__dict__.pop(MARKS, {})
    resolved = bool(config.scheduler_config.async_scheduling)
    _publish(config, decided=resolved and bool(marks.get("took back")))
    logger.info(
        "[async_dflash] knob=%s method=%s async_scheduling=%s (%s; batches in flight may reach %d)",
        knob(),
        _method(config),
        resolved,
        _because(config, marks, resolved),
        config.max_concurrent_batches,
    )


def _publish(config: "VllmConfig", *, decided: bool) -> None:
    """Tell engine_report, where it is staged, whether this overlay itself turned async scheduling on in this process.

    A worker makes configurations of its own for the drafter: one that this overlay decided is enough. A configuration
    of another method says nothing of it.
    """
    if _method(config) != "dflash":
        return
    _decided.append(decided)
    try:
        from campaign_engine_report.state import publish  # noqa: PLC0415  (another overlay, which may not be staged)
    except ImportError:
        return
    publish("async_dflash", lambda: {"decided": any(_decided)})


def _because(config: "VllmConfig", marks: dict[str, bool | None], resolved: bool) -> str:
    if resolved:
        return "admitted" if marks.get("took back") else "on by the engine's own rules"
    if marks.get("asked") is False:
        return "off as asked"
    if not marks.get("allow-list"):
        return f"vetoed: {_refusal(config, marks)}"
    if not marks.get("platform"):
        return "vetoed: the platform's configuration hook"
    return "vetoed: after the platform's configuration hook"


def _refusal(config: "VllmConfig", marks: dict[str, bool | None]) -> str:
    speculative = config.speculative_config
    if speculative is not None and speculative.disable_padded_drafter_batch:
        return "disable_padded_drafter_batch"
    if not marks.get("executor"):
        return "the executor does not support it"
    return "the engine's own list of methods"


def _marks(config: "VllmConfig") -> dict[str, bool | None]:
    marks: dict[str, bool | None] = config.__dict__.setdefault(MARKS, {})
    return marks


def _method(config: "VllmConfig") -> str | None:
    return config.speculative_config.method if config.speculative_config is not None else None
