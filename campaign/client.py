"""Sends prompts to the engine and stamps what comes back. It judges nothing.

At C=1 a synchronous http.client thread has about half the lag of the asynchronous clients (technology.md section 5).
Chunks are stamped before they are parsed, and parsed after the last one.
"""

import codecs
import http.client
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from campaign.checks import Prompt
from campaign.errors import CampaignError, EngineFailedError, InvalidError


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

    @property
    def ttft_s(self) -> float:
        """Seconds from sending to the first chunk that holds a token."""
        return (self.chunk_ns[0] - self.sent_ns) / 1e9

    @property
    def decode_s(self) -> float:
        """Seconds from the first to the last chunk that holds a token."""
        return (self.chunk_ns[-1] - self.chunk_ns[0]) / 1e9


@dataclass(frozen=True)
class Ask:
    """How a prompt is sent: the length limit in tokens, and whether an end token may end it before."""

    max_tokens: int
    ignore_eos: bool
    timeout_s: float


class Client:
    """One engine at one address, asked by its nonce. One request at a time.

    `on_silence` is asked for the error while a request that got no token in time still waits in the engine.
    """

    def __init__(
        self, url: str, model: str, headers: Mapping[str, str] | None = None, on_silence: "OnSilence | None" = None
    ) -> None:
        parts = urlsplit(url)
        self.host, self.port, self.model = parts.hostname or "127.0.0.1", parts.port or 80, model
        self.headers = dict(headers or {})
        self.on_silence = on_silence or _silent

    def get_text(self, path: str, timeout_s: float) -> str:
        """A GET. Raises EngineFailedError unless it answers 200."""
        connection = http.client.HTTPConnection(self.host, self.port, timeout=timeout_s)
        try:
            connection.request("GET", path, headers=self.headers)
            response = connection.getresponse()
            body = response.read().decode("utf-8", "replace")
        except (OSError, http.client.HTTPException) as error:
            raise EngineFailedError(f"GET {path} failed: {type(error).__name__}: {error}") from error
        finally:
            connection.close()
        if response.status != http.client.OK:
            raise EngineFailedError(f"GET {path} answered {response.status}: {body[:200]}")
        return body

    def stream(self, prompt: Prompt, ask: Ask) -> Sample:
        """Send one prompt greedily and read its stream.

        Raises EngineFailedError when the engine is gone, answers an error (also one inside the stream), stops in the
        middle, or sends nothing for ask.timeout_s (what on_silence makes of it).
        """
        path = "/v1/chat/completions" if prompt.messages else "/v1/completions"
        connection = http.client.HTTPConnection(self.host, self.port, timeout=ask.timeout_s)
        try:
            sent_ns = time.perf_counter_ns()
            body = json.dumps(self._body(prompt, ask)).encode()
            connection.request("POST", path, body, self.headers | {"Content-Type": "application/json"})
            response = connection.getresponse()
            if response.status != http.client.OK:
                raise _refused(prompt.id, path, response)
            stamped = _stamped_lines(response)
        except TimeoutError as error:
            raise self.on_silence(self, f"no token came for prompt {prompt.id} in {ask.timeout_s:g} s") from error
        except (OSError, http.client.HTTPException) as error:
            raise EngineFailedError(f"prompt {prompt.id}: {type(error).__name__}: {error}") from error
        finally:
            connection.close()
        return _sample(prompt.id, sent_ns, stamped)

    def _body(self, prompt: Prompt, ask: Ask) -> dict[str, Any]:
        what = {"messages": list(prompt.messages)} if prompt.messages else {"prompt": prompt.prompt}
        return what | {
            "model": self.model,
            "max_tokens": ask.max_tokens,
            "temperature": 0,
            "seed": 0,
            "ignore_eos": ask.ignore_eos,
            "stream": True,
            "stream_options": {"include_usage": True},
            "return_token_ids": True,
        }


OnSilence = Callable[[Client, str], CampaignError]


def _silent(_: Client, sentence: str) -> CampaignError:
    return EngineFailedError(f"{sentence}: timed out")


def _refused(prompt_id: str, path: str, response: http.client.HTTPResponse) -> CampaignError:
    """An answer in the 400s says that the question is wrong; all others that the engine is."""
    told = f"prompt {prompt_id}: {path} answered {response.status}: {response.read().decode('utf-8', 'replace')[:300]}"
    if http.client.BAD_REQUEST <= response.status < http.client.INTERNAL_SERVER_ERROR:
        return InvalidError(f"the engine refuses our question, not what was asked can be measured: {told}")
    return EngineFailedError(told)


def _stamped_lines(response: http.client.HTTPResponse) -> list[tuple[int, bytes]]:
    """Every event line with the time at which it was complete."""
    stamped = []
    while line := response.readline():
        stamped.append((time.perf_counter_ns(), line))
    return stamped


def _sample(prompt_id: str, sent_ns: int, stamped: list[tuple[int, bytes]]) -> Sample:
    events = [(at, line[5:].strip()) for at, line in stamped if line.startswith(b"data:")]
    if not events or events[-1][1] != b"[DONE]":
        raise EngineFailedError(f"prompt {prompt_id}: the stream ended before [DONE], after {len(events)} events")
    chunks = [(at, _event(prompt_id, data)) for at, data in events[:-1]]
    choices = [(at, event["choices"][0]) for at, event in chunks if event.get("choices")]
    usage: dict[str, Any] = next((event["usage"] for _, event in reversed(chunks) if event.get("usage")), {})
    held = [(at, tuple(choice.get("token_ids") or ())) for at, choice in choices]
    held = [(at, ids) for at, ids in held if ids]
    tokens = tuple(token for _, ids in held for token in ids)
    _check_count(prompt_id, tokens, usage)
    return Sample(
        prompt_id,
        "".join(_text(choice) for _, choice in choices),
        tokens,
        next((c["finish_reason"] for _, c in reversed(choices) if c.get("finish_reason")), ""),
        int(usage.get("prompt_tokens", 0)),
        sent_ns,
        tuple(at for at, _ in held),
        tuple(len(ids) for _, ids in held),
    )


def _event(prompt_id: str, data: bytes) -> dict[str, Any]:
    try:
        event = json.loads(codecs.decode(data, "utf-8"))
    except ValueError as error:
        raise EngineFailedError(f"prompt {prompt_id}: an event of the stream is no JSON: {data[:120]!r}") from error
    if not isinstance(event, dict) or "error" in event:
        raise EngineFailedError(f"prompt {prompt_id}: the stream carried an error: {str(event)[:300]}")
    return event


def _text(choice: dict[str, Any]) -> str:
    """The visible text of a chunk, of either endpoint."""
    delta = choice.get("delta")
    return str((delta.get("content") if isinstance(delta, dict) else choice.get("text")) or "")


def _check_count(prompt_id: str, tokens: tuple[int, ...], usage: dict[str, Any]) -> None:
    said = usage.get("completion_tokens")
    if not tokens or said != len(tokens):
        raise EngineFailedError(
            f"prompt {prompt_id}: the stream held {len(tokens)} token ids, its usage says {said}; "
            "wanted return_token_ids and include_usage to agree"
        )
