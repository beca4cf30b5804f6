"""Asks a live engine for its counters: one scrape, and what a request that gets no token means."""

from pathlib import Path

from campaign.errors import CampaignError, EngineFailedError, HostUnfitError, InvalidError
from campaign.journal import write_text
from campaign.traffic.client import Client, Silence
from campaign.traffic.metrics import Counters, parse
from campaign.traffic.series import series
from verdict.words import number_of

LOOKS_AGAIN = 4  # scrapes after a counter fell
METRICS_TIMEOUT_S = 10.0  # an engine that is silent need not answer this either


def scrape(client: Client, timeout_s: float, keep: Path | None = None) -> Counters:
    """The engine's counters now; the text is kept when asked."""
    text = client.get_text("/metrics", timeout_s)
    if keep is not None:
        write_text(keep, text)
    return parse(text)


def elapsed(client: Client, before: Counters, after: Counters, timeout_s: float) -> Counters:
    """The window between two scrapes. A counter that fell is looked at again, to tell what it was (cases B8).

    Raises InvalidError: several processes that answer in turn, each with a registry of its own, or a restart.
    """
    try:
        return after.since(before)
    except InvalidError as error:
        found = series([before, after, *(scrape(client, timeout_s) for _ in range(LOOKS_AGAIN))])
        raise InvalidError(found.refusal or str(error)) from error


class StallWatch:
    """For `Client`'s on_silence: a request that gets no token, by what the engine's counters did since the last look.

    Stalled is an engine of which no counter moved while a request waits and none runs. One that moves, or runs a
    request (a long prefill is one step, and shows nothing before its end), is waited for up to `longest_s`; a request
    without a token for so long has failed too, and so has an engine that shows no counters.
    """

    def __init__(self, longest_s: float) -> None:
        self.longest_s = longest_s
        self.last: Counters | None = None

    def __call__(self, client: Client, silence: Silence) -> CampaignError | None:
        """The error, once it is one: EngineFailedError, or HostUnfitError when others are served meanwhile."""
        before, self.last = None if silence.first else self.last, None
        try:
            self.last = now = scrape(client, min(METRICS_TIMEOUT_S, max(1.0, silence.allowed_s)))
            return self._judged(silence, now, now.since(before)) if silence.over and before is not None else None
        except CampaignError as error:
            hangs = EngineFailedError(f"engine hangs: {silence}, and it shows no metrics either ({error})")
            return hangs if silence.over else None

    def _judged(self, silence: Silence, now: Counters, delta: Counters) -> CampaignError | None:
        shown = f"/metrics shows {now.running:g} running, {now.waiting:g} waiting"
        moved, tokens = delta.moved(), delta.total("generation_tokens")
        if tokens and now.running + now.waiting > 1:
            others = f"{number_of(tokens, 'token')} went to other requests"
            return HostUnfitError(f"contended: {silence}, while {others}; {shown}")
        if (moved or now.running) and silence.seconds < self.longest_s:
            return None
        flat = f"generation tokens flat at {now.total('generation_tokens'):g}"
        if not moved:
            return EngineFailedError(f"engine stalled: {silence}; {shown}, {flat}, and no other counter moved")
        if not tokens:
            return EngineFailedError(f"engine stalled: {silence}; {shown}, {flat}, although {', '.join(moved)} moved")
        return EngineFailedError(f"engine stalled for us: {silence}, although {tokens:g} tokens were counted; {shown}")
