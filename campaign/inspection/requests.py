"""Streamed answers out of a file: what a boot kept (samples.jsonl), or chunk times that somebody else wrote down.

One request a line: {"chunks": [[ms, tokens], ...], "sent_ms": 0, "usage": {"completion_tokens": 10}, ...}. Times are of
the client's clock; without `sent_ms` there is no time to the first token.
"""

import json
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from campaign import typed
from campaign.errors import ConfigError
from campaign.inspection.recognised import Source
from campaign.traffic.sample import Sample

NS_PER_MS = 1_000_000
LARGEST = 1e18  # ns: thirty years
KEYS = (
    "chunks", "id", "sent_ms", "done_ms", "usage", "text", "finish_reason", "asked_tokens", "draft_tokens",
    "client_tokens", "error",
)  # fmt: skip
USAGE_KEYS = ("completion_tokens", "reasoning_tokens", "prompt_tokens", "completion_tokens_details", "total_tokens")


@dataclass(frozen=True)
class Request:
    """One request: its sample, and what else was written down. None is not known."""

    sample: Sample
    sent: bool  # whether the time of sending is known
    asked_tokens: int | None = None
    draft_tokens: int | None = None
    client_tokens: int | None = None
    error: str = ""

    @property
    def total_s(self) -> float:
        """Seconds from sending (or the first chunk) to the last chunk that holds a token, not to [DONE]."""
        start = self.sample.sent_ns if self.sent else self.sample.chunk_ns[0]
        return (self.sample.chunk_ns[-1] - start) / 1e9

    @property
    def chunk_tokens(self) -> int:
        """Tokens that the chunks hold."""
        return sum(self.sample.chunk_tokens)


def of(source: Source) -> list[Request]:
    """The requests of a file. Raises ConfigError with the line that is none."""
    return [_request(data, f"{source.name}:{number}") for number, data in enumerate(source.data, 1)]


def _request(data: dict[str, Any], where: str) -> Request:
    return _kept(data, where) if "chunk_ns" in data else _written(data, where)


def _kept(data: dict[str, Any], where: str) -> Request:
    """A line of a boot's samples.jsonl."""
    times, tokens = typed.whole(data, "chunk_ns", where) or (), typed.whole(data, "chunk_tokens", where) or ()
    ids = typed.whole(data, "token_ids", where) or ()
    sent = data.get("sent_ns")
    if not isinstance(sent, int):
        raise ConfigError(f"{where}: sent_ns is {sent!r}, wanted the nanoseconds at which it was sent")
    _check((sent, *times), (1, *tokens), where)
    sample = Sample(
        str(data.get("prompt_id", where)), typed.text(data, "text", where), ids,
        typed.text(data, "finish_reason", where), typed.count(data, "prompt_tokens", where) or 0, sent, times, tokens,
        typed.count(data, "completion_tokens", where) or 0, reasoning=typed.text(data, "reasoning", where),
        reasoning_tokens=typed.count(data, "reasoning_tokens", where) or 0,
    )  # fmt: skip
    return Request(sample, sent=True, asked_tokens=_asked(data, where))


def _asked(data: dict[str, Any], where: str) -> int | None:
    """Tokens of a request that was asked for a fixed length, by its body as the boot kept it; None for any other."""
    try:
        body = json.loads(typed.text(data, "asked", where) or "{}")
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{where}: asked is no JSON ({error})") from error
    if not isinstance(body, dict) or body.get("ignore_eos") is not True:
        return None
    return typed.count(body, "max_tokens", f"{where}: asked")


def _written(data: dict[str, Any], where: str) -> Request:
    typed.known(data, KEYS, where)
    chunks = typed.items(data, "chunks", where) or []
    if not all(isinstance(c, list) and len(c) == len(("ms", "tokens")) for c in chunks):
        raise ConfigError(f"{where}: chunks holds something else than [ms, tokens]")
    times = [typed.number({"ms": ms}, "ms", where) or 0.0 for ms, _ in chunks]
    tokens = typed.whole({"tokens": [tokens for _, tokens in chunks]}, "tokens", where) or ()
    sent_ms = typed.number(data, "sent_ms", where)
    _check(tuple(times), tokens, where)
    if sent_ms is not None and sent_ms > times[0]:
        raise ConfigError(f"{where}: sent_ms is {sent_ms:g}, after its first chunk ({times[0]:g} ms)")
    usage = typed.mapping(data, "usage", where) if data.get("usage") is not None else {}
    typed.known(usage, USAGE_KEYS, f"{where}: usage")
    details = usage.get("completion_tokens_details") or {}
    if not isinstance(details, dict):
        raise ConfigError(f"{where}: usage: completion_tokens_details is {str(details)[:80]}, wanted a map")
    sample = Sample(
        str(data.get("id", where)), typed.text(data, "text", where), (), typed.text(data, "finish_reason", where),
        typed.count(usage, "prompt_tokens", where) or 0,
        round((sent_ms if sent_ms is not None else times[0]) * NS_PER_MS), tuple(round(ms * NS_PER_MS) for ms in times),
        tokens, typed.count(usage, "completion_tokens", where) or sum(tokens),
        reasoning_tokens=typed.count(details | usage, "reasoning_tokens", where) or 0,
    )  # fmt: skip
    return Request(
        sample,
        sent_ms is not None,
        typed.count(data, "asked_tokens", where),
        typed.count(data, "draft_tokens", where),
        typed.count(data, "client_tokens", where),
        typed.text(data, "error", where),
    )


def _check(times: tuple[float, ...], tokens: tuple[int, ...], where: str) -> None:
    if not times or len(times) != len(tokens) or min(tokens) < 1:
        raise ConfigError(f"{where}: wanted a chunk or more, each with its time and one token or more")
    if max(map(abs, (*times, *tokens))) > LARGEST:
        raise ConfigError(f"{where}: a chunk's time or tokens are beyond {LARGEST:.0e}: no clock gives that")
    if any(later < sooner for sooner, later in pairwise(times)):
        raise ConfigError(f"{where}: a chunk's time is before that of the chunk before it")
