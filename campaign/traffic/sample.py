"""One answer as it came: its chunks with their times, its tokens by the server's own count, its text. Pure.

All times are the client's perf_counter on the host; a chunk is one server-sent event that brings token ids.
"""

import codecs
import json
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from campaign.errors import EngineFailedError


@dataclass(frozen=True)
class Sample:
    """One request. Times are perf_counter nanoseconds of the client; chunk i brought chunk_tokens[i] tokens."""

    prompt_id: str
    text: str
    token_ids: tuple[int, ...]
    finish_reason: str
    prompt_tokens: int
    sent_ns: int
    chunk_ns: tuple[int, ...]
    chunk_tokens: tuple[int, ...]
    completion_tokens: int = 0  # by the server's usage; 0 is not told
    reasoning: str = ""  # what a reasoning parser took out of the text
    reasoning_tokens: int = 0  # token ids of chunks that brought reasoning and no visible text
    asked: str = ""  # the request's body as JSON, without the prompt
    prompt_hash: str = ""  # of the rendered prompt's token ids; empty where the engine does not give them

    @property
    def tokens(self) -> int:
        """Tokens of the answer: the server's usage, which counts what its parsers show nowhere (cases D3, D5)."""
        return self.completion_tokens or len(self.token_ids)

    @property
    def ttft_s(self) -> float:
        """Seconds from sending to the first chunk that holds a token."""
        return (self.chunk_ns[0] - self.sent_ns) / 1e9

    @property
    def decode_s(self) -> float:
        """Seconds from the first to the last chunk that holds a token."""
        return (self.chunk_ns[-1] - self.chunk_ns[0]) / 1e9


def sample_of(prompt_id: str, sent_ns: int, stamped: list[tuple[int, bytes]]) -> Sample:
    """The lines of one stream, each with the time at which it was complete.

    Raises EngineFailedError for an error within it, an end before [DONE], and counts that contradict the usage.
    """
    events = _events(prompt_id, stamped)
    if not events or events[-1][1] != b"[DONE]":
        raise EngineFailedError(f"prompt {prompt_id}: the stream ended before [DONE], after {len(events)} events")
    chunks = [(at, _event(prompt_id, data)) for at, data in events[:-1]]
    choices = [(at, event["choices"][0]) for at, event in chunks if event.get("choices")]
    usage: dict[str, Any] = next((event["usage"] for _, event in reversed(chunks) if event.get("usage")), {})
    held = [(at, choice, tuple(choice.get("token_ids") or ())) for at, choice in choices]
    held = [(at, choice, ids) for at, choice, ids in held if ids]
    tokens = tuple(token for *_, ids in held for token in ids)
    return Sample(
        prompt_id,
        "".join(_text(choice) for _, choice in choices),
        tokens,
        next((c["finish_reason"] for _, c in reversed(choices) if c.get("finish_reason")), ""),
        int(usage.get("prompt_tokens", 0)),
        sent_ns,
        tuple(at for at, *_ in held),
        tuple(len(ids) for *_, ids in held),
        _count(prompt_id, tokens, usage),
        "".join(_reasoning(choice) for _, choice in choices),
        sum(len(ids) for _, choice, ids in held if _reasoning(choice) and not _text(choice)),
        prompt_hash=next((found for _, event in chunks if (found := _rendered(event))), ""),
    )


def _events(prompt_id: str, stamped: list[tuple[int, bytes]]) -> list[tuple[int, bytes]]:
    """The data of every event, stamped. Raises EngineFailedError for an event that calls itself an error."""
    events, is_error = [], False
    for at, line in stamped:
        if line.startswith(b"event:"):
            is_error = line[6:].strip() == b"error"
        elif line.startswith(b"data:"):
            data = line[5:].strip()
            if is_error:
                told = data.decode("utf-8", "replace")[:300]
                raise EngineFailedError(f"prompt {prompt_id}: the stream carried an error: {told}")
            events.append((at, data))
        elif not line.strip():
            is_error = False
    return events


def _event(prompt_id: str, data: bytes) -> dict[str, Any]:
    try:
        event = json.loads(codecs.decode(data, "utf-8"))
    except (ValueError, RecursionError) as error:
        raise EngineFailedError(f"prompt {prompt_id}: an event of the stream is no JSON: {data[:120]!r}") from error
    if not isinstance(event, dict) or "error" in event:
        raise EngineFailedError(f"prompt {prompt_id}: the stream carried an error: {str(event)[:300]}")
    return shaped(prompt_id, event)


def shaped(prompt_id: str, event: dict[str, Any]) -> dict[str, Any]:
    """An event, or an answer in one piece, whose parts are of the kinds that are read; else EngineFailedError."""
    choices, usage = event.get("choices") or [], event.get("usage") or {}
    is_right = isinstance(choices, list) and all(_is_choice(choice) for choice in choices)
    counts = [usage.get("prompt_tokens", 0), usage.get("completion_tokens", 0)] if isinstance(usage, dict) else [None]
    if not is_right or not all(type(count) is int and count >= 0 for count in counts):
        raise EngineFailedError(
            f"prompt {prompt_id}: the engine answered in another form: {str(event)[:300]}; wanted choices, a list of "
            "maps with token_ids of whole numbers, and usage, a map of counts"
        )
    return event


def _is_choice(choice: Any) -> bool:
    if not isinstance(choice, dict) or not isinstance(choice.get("finish_reason") or "", str):
        return False
    ids = choice.get("token_ids") or []
    return isinstance(ids, list) and all(type(token) is int for token in ids)


def _text(choice: dict[str, Any]) -> str:
    """The visible text of a chunk, of either endpoint."""
    delta = choice.get("delta")
    return str((delta.get("content") if isinstance(delta, dict) else choice.get("text")) or "")


def _reasoning(choice: dict[str, Any]) -> str:
    """What the engine's reasoning parser took out of a chunk's text, by either of its names."""
    delta = choice.get("delta")
    if not isinstance(delta, dict):
        return ""
    return str(delta.get("reasoning_content") or delta.get("reasoning") or "")


def _rendered(event: dict[str, Any]) -> str:
    """The hash of the prompt's token ids: a chat's first event holds them, of a completion its choice (cases H14)."""
    choices = event.get("choices") or [{}]
    ids = event.get("prompt_token_ids") or choices[0].get("prompt_token_ids")
    return sha256(json.dumps(ids).encode()).hexdigest()[:16] if ids else ""


def _count(prompt_id: str, tokens: tuple[int, ...], usage: dict[str, Any]) -> int:
    """The server's own count, which wins (cases D5). Fewer ids than it says are tokens that a parser showed nowhere."""
    said = usage.get("completion_tokens")
    if not tokens or type(said) is not int or said < len(tokens):
        raise EngineFailedError(
            f"prompt {prompt_id}: the stream held {len(tokens)} token ids, its usage says {said}; "
            "wanted return_token_ids and include_usage to agree"
        )
    return said
