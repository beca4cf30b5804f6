"""Streamed answers out of a file: what a boot kept (samples.jsonl), or chunk times that somebody else wrote down.

One request a line: {"chunks": [[ms, tokens], ...], "sent_ms": 0, "usage": {"completion_tokens": 10}, ...}. Times are of
the client's clock; without `sent_ms` there is no time to the first token.
"""

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from campaign import typed
from campaign.errors import ConfigError
from campaign.inspection.recognised import Source
from campaign.traffic.sample import Sample

NS_PER_MS = 1_000_000
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
    _check(times, tokens, where)
    sample = Sample(
        str(data.get("prompt_id", where)), typed.text(data, "text", where), ids,
        typed.text(data, "finish_reason", where), _count(data, "prompt_tokens", where) or 0, sent, times, tokens,
        _count(data, "completion_tokens", where) or 0,
    )  # fmt: skip
    return Request(sample, sent=True)


def _written(data: dict[str, Any], where: str) -> Request:
    typed.known(data, KEYS, where)
    chunks = typed.items(data, "chunks", where) or []
    if not all(isinstance(c, list) and len(c) == len(("ms", "tokens")) for c in chunks):
        raise ConfigError(f"{where}: chunks holds something else than [ms, tokens]")
    times = [typed.number({"ms": ms}, "ms", where) or 0.0 for ms, _ in chunks]
    tokens = typed.whole({"tokens": [tokens for _, tokens in chunks]}, "tokens", where) or ()
    _check(tuple(times), tokens, where)
    usage = typed.mapping(data, "usage", where) if data.get("usage") is not None else {}
    typed.known(usage, USAGE_KEYS, f"{where}: usage")
    sent_ms = typed.number(data, "sent_ms", where)
    sample = Sample(
        str(data.get("id", where)), typed.text(data, "text", where), (), typed.text(data, "finish_reason", where),
        _count(usage, "prompt_tokens", where) or 0, round((sent_ms if sent_ms is not None else times[0]) * NS_PER_MS),
        tuple(round(ms * NS_PER_MS) for ms in times), tokens, _count(usage, "completion_tokens", where) or sum(tokens),
        reasoning_tokens=_count(usage, "reasoning_tokens", where) or 0,
    )  # fmt: skip
    return Request(
        sample,
        sent_ms is not None,
        _count(data, "asked_tokens", where),
        _count(data, "draft_tokens", where),
        _count(data, "client_tokens", where),
        typed.text(data, "error", where),
    )


def _check(times: tuple[float, ...], tokens: tuple[int, ...], where: str) -> None:
    if not times or len(times) != len(tokens) or min(tokens) < 1:
        raise ConfigError(f"{where}: wanted a chunk or more, each with its time and one token or more")
    if any(later < sooner for sooner, later in pairwise(times)):
        raise ConfigError(f"{where}: a chunk's time is before that of the chunk before it")


def _count(data: dict[str, Any], key: str, where: str) -> int | None:
    found = data.get(key)
    if found is not None and (not isinstance(found, int) or isinstance(found, bool) or found < 0):
        raise ConfigError(f"{where}: {key} is {found!r}, wanted a whole number")
    return found
