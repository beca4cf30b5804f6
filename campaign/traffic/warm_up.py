"""The requests before anything is measured: one cold one, then warm ones until the speed is steady.

How many is decided by the requests that are thrown away, never by one that is measured. No boot sends fewer than the
steady boots before it did, so that no arm is warmer than the other; the number is in every boot's facts.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median

from campaign.config import Workload
from campaign.evidence import BootRecord, DraftCounts
from campaign.names import STEADY_AFTER_WARM_UP, WARM_UP_REQUESTS
from campaign.prompting.checks import Prompt
from campaign.traffic.client import Ask, Client
from campaign.traffic.sample import Sample
from campaign.traffic.timing import by_chunks

WARM_UP_TOKENS = 64
STEADY_TOLERANCE = 0.1  # ln: so near are the fastest and the slowest of the requests that are called steady
SUCCESSIVE = 3
COLD_S = "cold_request_s"  # fact of a boot


@dataclass(frozen=True)
class WarmUp:
    """The cold request apart, how many warm ones were thrown away, and whether the last ones agreed on the speed."""

    cold_s: float  # sending to last chunk, client's clock
    requests: int
    steady: bool
    counted: dict[str, DraftCounts]  # acceptance of the cold request and of the warm ones, by the stream's chunks

    @property
    def facts(self) -> dict[str, str]:
        """For the boot's record."""
        return {
            WARM_UP_REQUESTS: str(self.requests),
            STEADY_AFTER_WARM_UP: str(self.steady).lower(),
            COLD_S: f"{self.cold_s:.3f}",
        }


def least(workload: Workload, before: Iterable[BootRecord], concurrency: int = 1) -> int:
    """Warm requests that a boot sends at least: the workload's, one for each stream, and what steady boots needed."""
    steady = [b.facts for b in before if b.status == "ok" and b.facts.get(STEADY_AFTER_WARM_UP) == "true"]
    needed = [int(facts[WARM_UP_REQUESTS]) for facts in steady]
    return max([workload.warm_up_requests, concurrency, *needed])


def steady_after(rates: Sequence[float], at_least: int, concurrency: int = 1) -> int | None:
    """Requests to throw away, of a speed each in the order they were sent; None where they never agree.

    They come in cohorts of `concurrency` sent at once, of which the first is cold as a whole: its members agree with
    each other and say nothing (cases D9). Steady are three cohorts in a row within the tolerance (cases D8).
    """
    whole = len(rates) // concurrency
    speeds = [median(rates[i * concurrency : (i + 1) * concurrency]) for i in range(whole)]
    for end in range(1 + SUCCESSIVE, whole + 1):
        last = speeds[end - SUCCESSIVE : end]
        if end * concurrency > at_least and min(last) > 0 and math.log(max(last) / min(last)) < STEADY_TOLERANCE:
            return end * concurrency
    return None


def warm_up(
    client: Client,
    prompts: tuple[Prompt, ...],
    workload: Workload,
    timeout_s: float,
    *,
    at_least: int | None = None,
    draft_tokens: int = 0,
) -> WarmUp:
    """One cold request, then `at_least` warm ones (the workload's), and more until steady or the cap is reached."""
    at_least = workload.warm_up_requests if at_least is None else at_least
    ask = Ask(min(WARM_UP_TOKENS, workload.max_tokens), ignore_eos=True, timeout_s=timeout_s)
    samples: list[Sample] = []
    while not _done(samples, at_least, workload.max_warm_up_requests):
        samples.append(client.stream(prompts[len(samples) % len(prompts)], ask))
    cold, *warm = samples
    counted = {"cold": by_chunks([cold], draft_tokens), "warm up": by_chunks(warm, draft_tokens)}
    return WarmUp(cold.ttft_s + cold.decode_s, len(warm), _steady(samples, at_least), counted)


def _done(samples: Sequence[Sample], at_least: int, at_most: int) -> bool:
    warm = len(samples) - 1
    return warm >= at_least and (warm >= at_most or _steady(samples, at_least))


def _steady(samples: Sequence[Sample], at_least: int) -> bool:
    speeds = [(len(s.chunk_ns) - 1) / s.decode_s if s.decode_s > 0 else 0.0 for s in samples]
    return steady_after(speeds, at_least) is not None
