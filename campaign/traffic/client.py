"""Sends prompts to the engine and stamps what comes back. It judges nothing.

At C=1 a synchronous http.client thread has about half the lag of the asynchronous clients (technology.md section 5).
Chunks are stamped before they are parsed, and parsed after the last one.
"""

import http.client
import io
import json
import math
import re
import select
import socket
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlsplit

from campaign.errors import CampaignError, EngineFailedError, InvalidError
from campaign.prompting.checks import Prompt
from campaign.traffic.sample import Sample, sample_of, shaped

LOOKS = 2  # at a silence, within what is allowed of it: the second one can tell what moved since the first
TOKENS = re.compile(rb'"token_ids":\s*\[\s*\d')  # of an event that brings tokens; prompt_token_ids is another name


@dataclass(frozen=True)
class Ask:
    """How a prompt is sent: the length limit in tokens, and whether an end token may end it before."""

    max_tokens: int
    ignore_eos: bool
    timeout_s: float  # without a token, whatever else may come


@dataclass(frozen=True)
class Silence:
    """A request that gets no token: for how many seconds now, and how many Ask allows."""

    prompt_id: str
    seconds: float
    allowed_s: float
    first: bool  # nobody was asked about it before

    @property
    def over(self) -> bool:
        """Whether it lasts longer than is allowed."""
        return self.seconds >= self.allowed_s

    def __str__(self) -> str:
        return f"no token came for prompt {self.prompt_id} in {self.seconds:g} s"


class Client:
    """One engine at one address, asked by its nonce. One request at a time.

    `on_silence` is asked about a request that gets no token, while it still waits in the engine: LOOKS times within
    what is allowed, and as often thereafter. It answers with an error, or with None: then it is waited on.
    """

    def __init__(
        self,
        url: str,
        model: str,
        headers: Mapping[str, str] | None = None,
        on_silence: "OnSilence | None" = None,
        chat_template: Mapping[str, Any] | None = None,
    ) -> None:
        parts = urlsplit(url)
        self.host, self.port, self.model = parts.hostname or "127.0.0.1", parts.port or 80, model
        self.headers = dict(headers or {})
        self.on_silence = on_silence or _silent
        self.chat_template = dict(chat_template or {})  # arguments of the template, sent with every chat

    def get_text(self, path: str, timeout_s: float) -> str:
        """A GET. Raises EngineFailedError unless it answers 200."""
        return self._plain("GET", path, timeout_s)

    def post(self, path: str, timeout_s: float) -> str:
        """A POST without a body, to a route that does something: what it answers. Raises as get_text."""
        return self._plain("POST", path, timeout_s)

    def _plain(self, method: str, path: str, timeout_s: float) -> str:
        connection = http.client.HTTPConnection(self.host, self.port, timeout=timeout_s)
        try:
            connection.request(method, path, headers=self.headers)
            response = connection.getresponse()
            body = response.read().decode("utf-8", "replace")
        except (OSError, http.client.HTTPException) as error:
            raise EngineFailedError(f"{method} {path} failed: {type(error).__name__}: {error}") from error
        finally:
            connection.close()
        if response.status != http.client.OK:
            raise EngineFailedError(f"{method} {path} answered {response.status}: {body[:200]}")
        return body

    def whole(self, prompt: Prompt, ask: Ask, /, **more: Any) -> dict[str, Any]:
        """Send one prompt and read its answer in one piece, as JSON; for what is asked outside of any window.

        Raises EngineFailedError when the engine is gone or answers an error.
        """
        path = "/v1/chat/completions" if prompt.messages else "/v1/completions"
        body = {k: v for k, v in self.body(prompt, ask).items() if k != "stream_options"} | {"stream": False} | more
        connection = http.client.HTTPConnection(self.host, self.port, timeout=ask.timeout_s)
        try:
            headers = self.headers | {"Content-Type": "application/json"}
            connection.request("POST", path, json.dumps(body).encode(), headers)
            response = connection.getresponse()
            if response.status != http.client.OK:
                raise _refused(prompt, path, response)
            return shaped(prompt.id, dict(json.loads(response.read().decode("utf-8"))))
        except (OSError, http.client.HTTPException, ValueError, TypeError, RecursionError) as error:
            raise EngineFailedError(f"prompt {prompt.id}: {type(error).__name__}: {error}") from error
        finally:
            connection.close()

    def stream(self, prompt: Prompt, ask: Ask) -> Sample:
        """Send one prompt and read its stream.

        Raises EngineFailedError when the engine is gone, answers an error (also one inside the stream), stops in the
        middle, or sends no token for ask.timeout_s (what on_silence makes of it). The text is never tokenised again.
        """
        path = "/v1/chat/completions" if prompt.messages else "/v1/completions"
        connection = http.client.HTTPConnection(self.host, self.port, timeout=ask.timeout_s)
        try:
            sent_ns = time.perf_counter_ns()
            body = self.body(prompt, ask)
            connection.request(
                "POST", path, json.dumps(body).encode(), self.headers | {"Content-Type": "application/json"}
            )
            patience = _Patience(prompt.id, ask.timeout_s, lambda silence: self.on_silence(self, silence))
            response = _response(connection, patience)
            if response.status != http.client.OK:
                raise _refused(prompt, path, response)
            stamped = _stamped_lines(response, patience)
        except (OSError, http.client.HTTPException) as error:
            raise EngineFailedError(f"prompt {prompt.id}: {type(error).__name__}: {error}") from error
        finally:
            connection.close()
        asked = {name: value for name, value in body.items() if name not in ("messages", "prompt")}
        return replace(sample_of(prompt.id, sent_ns, stamped), asked=json.dumps(asked, ensure_ascii=False))

    def body(self, prompt: Prompt, ask: Ask) -> dict[str, Any]:
        """What is sent for a prompt: greedy, unless the prompt says how it is drawn."""
        what: dict[str, Any] = {"messages": list(prompt.messages)} if prompt.messages else {"prompt": prompt.prompt}
        if prompt.messages and self.chat_template:
            what["chat_template_kwargs"] = self.chat_template
        drawn = vars(prompt.sampling) if prompt.sampling else {"temperature": 0, "seed": 0}
        return {
            **what,
            **drawn,
            "model": self.model,
            "max_tokens": ask.max_tokens,
            "ignore_eos": ask.ignore_eos,
            "stream": True,
            "stream_options": {"include_usage": True},
            "return_token_ids": True,
        }


OnSilence = Callable[[Client, Silence], CampaignError | None]


def _silent(_: Client, silence: Silence) -> CampaignError | None:
    return EngineFailedError(f"{silence}: timed out") if silence.over else None


class _Patience:
    """Counts the silence of one request, and asks about it when it is time to."""

    def __init__(self, prompt_id: str, allowed_s: float, about: Callable[[Silence], CampaignError | None]) -> None:
        self.prompt_id, self.allowed_s, self.about = prompt_id, allowed_s, about
        self.looks = 0
        self.since_s = time.monotonic()

    def heard(self) -> None:
        """A token came."""
        self.looks, self.since_s = 0, time.monotonic()

    def left_s(self) -> float:
        """Seconds to the next look, after one that is due. Raises what was answered."""
        every_s = self.allowed_s / LOOKS
        passed = int((time.monotonic() - self.since_s) / every_s)
        if passed > self.looks:
            silence = Silence(self.prompt_id, passed * every_s, self.allowed_s, first=not self.looks)
            self.looks = passed
            if (error := self.about(silence)) is not None:
                raise error
        return max(0.0, self.since_s + (self.looks + 1) * every_s - time.monotonic())


class _Reader(io.RawIOBase):
    """The reading end of a connection. Bytes that bring no token do not end a silence."""

    def __init__(self, sock: socket.socket, patience: _Patience) -> None:
        sock.settimeout(None)  # the patience waits
        self.sock, self.patience = sock, patience
        self.poll = select.poll()
        self.poll.register(sock, select.POLLIN)

    def readable(self) -> bool:
        """Nothing else."""
        return True

    def readinto(self, buffer: Any) -> int:
        """What is there, as soon as anything is."""
        while not self.poll.poll(math.ceil(1000 * self.patience.left_s())):
            pass
        return self.sock.recv_into(buffer)


def _response(connection: http.client.HTTPConnection, patience: _Patience) -> http.client.HTTPResponse:
    """The answer of a request that was sent, its headers read; read with patience."""
    assert connection.sock is not None
    response = http.client.HTTPResponse(connection.sock, method="POST")
    response.fp.close()
    response.fp = io.BufferedReader(_Reader(connection.sock, patience))
    response.begin()
    return response


def _refused(prompt: Prompt, path: str, response: http.client.HTTPResponse) -> CampaignError:
    """An answer in the 400s says that the question is wrong; all others that the engine is."""
    name = f"prompt {prompt.id}{f' ({prompt.where})' if prompt.where else ''}"
    told = f"{name}: {path} answered {response.status}: {response.read().decode('utf-8', 'replace')[:300]}"
    if http.client.BAD_REQUEST <= response.status < http.client.INTERNAL_SERVER_ERROR:
        return InvalidError(f"the engine refuses our question, not what was asked can be measured: {told}")
    return EngineFailedError(told)


def _stamped_lines(response: http.client.HTTPResponse, patience: _Patience) -> list[tuple[int, bytes]]:
    """Every event line with the time at which it was complete."""
    stamped = []
    while line := response.readline():
        stamped.append((time.perf_counter_ns(), line))
        if TOKENS.search(line):
            patience.heard()
    return stamped
