"""The common window of two live engines: the same prompts to each, request by request in turn A B B A ..., never both.

What slows the machine down for some seconds slows both; each engine's numbers are then made as those of a boot alone.
Before the other engine's turn there is a rest, because an engine that has answered is not yet idle: its processes look
for the next message in a busy loop for 1 s (`SpinCondition`, vllm/distributed/device_communicators/shm_broadcast.py,
vLLM 0.29.0), and on few cores the other engine would wait for them.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path

from campaign.config import Workload
from campaign.prompting.checks import Prompt
from campaign.traffic.client import Client
from campaign.traffic.polling import elapsed, scrape
from campaign.traffic.sample import Sample
from campaign.traffic.window import Measured, asking, closed, opened, turns_of, undisturbed


@dataclass(frozen=True)
class Side:
    """One engine of the window; within `watched` whatever goes wrong is this engine's."""

    client: Client
    folder: Path
    watched: Callable[[], AbstractContextManager[None]] = nullcontext


def measure_in_turn(
    sides: Sequence[Side],
    prompts: tuple[Prompt, ...],
    workload: Workload,
    timeout_s: float,
    *,
    rest_s: float = 0.0,
    drafting: bool = True,
) -> tuple[Measured, ...]:
    """A window for each side, made at once; for all again when one was disturbed. Raises as `window.measure` does.

    `rest_s` lies before every request to another engine than the last one.
    """
    found, discarded = undisturbed(lambda: _window(sides, prompts, workload, timeout_s, rest_s, drafting))
    return tuple(replace(measured, discarded=discarded) for measured in found)


def order(turns: int, prompts: int, sides: int = 2) -> Iterator[tuple[int, int]]:
    """(place among all requests of a side, side): A B B A ... and, in the next turn of a prompt, the other way."""
    for place in range(turns * prompts):
        turned = (place % prompts + place // prompts) % 2
        for side in reversed(range(sides)) if turned else range(sides):
            yield place, side


def _window(
    sides: Sequence[Side],
    prompts: tuple[Prompt, ...],
    workload: Workload,
    timeout_s: float,
    rest_s: float,
    drafting: bool,
) -> tuple[Measured, ...]:
    before = []
    for side in sides:
        with side.watched():
            before.append(opened(side.client, timeout_s, side.folder))
    asked, ask = turns_of(prompts, workload.repeats), asking(workload, timeout_s)
    samples: tuple[list[Sample], ...] = tuple([] for _ in sides)
    last = len(sides) - 1  # the one that was scraped last
    for place, number in order(workload.repeats, len(prompts), len(sides)):
        if number != last:
            time.sleep(rest_s)
        last = number
        with sides[number].watched():
            samples[number].append(sides[number].client.stream(asked[place], ask))
    found = []
    for side, first, own in zip(sides, before, samples, strict=True):
        with side.watched():
            after = scrape(side.client, timeout_s, side.folder / "metrics-after.txt")
            delta = elapsed(side.client, first, after, timeout_s)
            found.append(closed(delta, tuple(own), prompts, workload.max_tokens, drafting=drafting))
    return tuple(found)
