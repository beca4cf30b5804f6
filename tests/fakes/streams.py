"""A scripted engine over HTTP: it sends exactly the bytes it is told, when it is told, and counts what it is told.

    with serving(Reply([chunk("안", [7]), usage(1), DONE])) as server: Client(server.url, "m").stream(...)

`Drafting` answers by itself instead: it drafts with given accepted counts, streams one chunk a step, and shows the
counters of vLLM 0.29.0 for what it did.
"""

import json
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from campaign.traffic.sample import Sample

DONE = b"data: [DONE]\n\n"
SECOND = 1_000_000_000  # nanoseconds

Piece = bytes | float  # what is sent at once, or seconds of silence


def event(data: dict[str, Any]) -> bytes:
    """One server-sent event; Korean as it is, not escaped."""
    return b"data: " + json.dumps(data, ensure_ascii=False).encode() + b"\n\n"


def chunk(text: str, ids: Iterable[int] = (), finish: str | None = None, *, chat: bool = True) -> bytes:
    """A step's tokens, as one of the two endpoints streams them."""
    what = {"delta": {"content": text}} if chat else {"text": text}
    return event({"choices": [{"index": 0, **what, "token_ids": list(ids), "finish_reason": finish}]})


def role() -> bytes:
    """The first event of a chat: no token yet."""
    return event({"choices": [{"index": 0, "delta": {"role": "assistant", "content": ""}, "finish_reason": None}]})


def usage(completion: int, prompt: int = 12) -> bytes:
    """The last event before [DONE]."""
    return event({"choices": [], "usage": {"prompt_tokens": prompt, "completion_tokens": completion}})


@dataclass(frozen=True)
class Reply:
    """How one request is answered. `writes_of` cuts the stream into TCP writes of so many bytes."""

    pieces: tuple[Piece, ...]
    status: int = 200
    writes_of: int | None = None
    torn: bool = False  # the connection is closed in the middle of the stream

    @classmethod
    def of(cls, *pieces: Piece, **more: Any) -> "Reply":
        """The pieces in their order."""
        return cls(pieces, **more)


class Server(ThreadingHTTPServer):
    """Answers GET from `texts`, POST from `answer`."""

    daemon_threads = True
    answer: Callable[[dict[str, Any]], Reply | Iterator[Piece]]
    texts: dict[str, Callable[[], str]]
    leaving: threading.Event
    asked: list[tuple[str, dict[str, Any]]]
    keys: list[str | None]  # the Authorization header of every request

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self.server_address[1]}"


class Handler(BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = 0
    server: Server

    def do_GET(self) -> None:
        """A text, or 404."""
        self.server.keys.append(self.headers["Authorization"])
        found = self.server.texts.get(self.path)
        body = found().encode() if found else b'{"detail": "Not Found"}'
        self.send_response(200 if found else 404)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self) -> None:
        """A stream."""
        self.server.keys.append(self.headers["Authorization"])
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])) or b"{}")
        self.server.asked.append((self.path, body))
        found = self.server.answer(body)
        reply = found if isinstance(found, Reply) else Reply.of()
        self.send_response(reply.status)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for piece in reply.pieces if isinstance(found, Reply) else found:
            self._play(piece, reply.writes_of)
        if reply.torn:
            self.close_connection = True
        else:
            self.wfile.write(b"0\r\n\r\n")

    def _play(self, piece: Piece, writes_of: int | None) -> None:
        if isinstance(piece, float):
            self.server.leaving.wait(piece)
            return
        framed = f"{len(piece):x}\r\n".encode() + piece + b"\r\n"
        for start in range(0, len(framed), writes_of or len(framed)):
            self.wfile.write(framed[start : start + (writes_of or len(framed))])

    def log_message(self, *_: object) -> None:
        """Silent."""


@contextmanager
def serving(
    answer: Reply | Callable[[dict[str, Any]], Reply | Iterator[Piece]],
    texts: dict[str, Callable[[], str]] | None = None,
) -> Iterator[Server]:
    """A server on a free port of loopback, gone afterwards."""
    server = Server(("127.0.0.1", 0), Handler)
    server.answer = (lambda _: answer) if isinstance(answer, Reply) else answer
    server.texts, server.leaving, server.asked, server.keys = texts or {}, threading.Event(), [], []
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield server
    finally:
        server.leaving.set()
        server.shutdown()
        server.server_close()
        thread.join()


@dataclass
class Drafting:
    """An engine that drafts K tokens a step and accepts `accepts` of them in turn; every field may be a fault."""

    k: int = 5
    accepts: tuple[int, ...] = (5, 2, 0, 3)
    step_s: float = 0.01
    natural: tuple[int, ...] = ()  # lengths in tokens at which answers end by themselves, in turn
    early: int = 0  # tokens by which an answer is too short even with ignore_eos
    foreign: int = 0  # requests of somebody else that finish with each of ours
    running: int = 0
    clock: float = 1.0  # what the engine's clock says for a second
    miscounted: int = 0  # accepted tokens that it counts too many, a request
    merged: int = 0  # first answers in which the prefill's token and the first step come in one chunk
    counted: dict[str, float] = field(default_factory=lambda: {"drafts": 0, "tokens": 0, "finished": 0, "decode_s": 0})
    accepted: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.accepted = [0] * self.k

    def answer(self, body: dict[str, Any]) -> Iterator[Piece]:
        """One request: the prefill's token, then a chunk a step, until the limit or the natural end."""
        length = body["max_tokens"] - self.early
        ends = bool(self.natural) and not body["ignore_eos"]
        if ends:
            length = min(length, self.natural[int(self.counted["finished"]) % len(self.natural)])
        waiting = 1 if self.counted["finished"] < self.merged else 0
        yield role()
        yield self.step_s
        if not waiting:
            yield chunk("가", [1])
        started, given = time.monotonic(), 1
        while given < length:
            yield self.step_s
            shown = min(self._drafted() + 1, length - given)
            given += shown
            text, ids = "가" * waiting + "나" * shown, [1] * waiting + [2] * shown
            yield chunk(text, ids, ("stop" if ends else "length") if given == length else None)
            waiting = 0
        self._finished(given, time.monotonic() - started)
        yield usage(given)
        yield DONE

    def _drafted(self) -> int:
        found = self.accepts[int(self.counted["drafts"]) % len(self.accepts)] if self.k else 0
        self.counted["drafts"] += 1
        self.accepted = [a + (position < found) for position, a in enumerate(self.accepted)]
        return found

    def _finished(self, tokens: int, decode_s: float) -> None:
        self.counted["tokens"] += tokens
        self.counted["finished"] += 1 + self.foreign
        self.counted["decode_s"] += decode_s * self.clock
        if self.miscounted:
            self.accepted[0] += self.miscounted

    def metrics(self) -> str:
        """The exposition; without speculation there are no counters of drafts."""
        counters = {
            "generation_tokens_total": self.counted["tokens"],
            "prompt_tokens_total": 12 * self.counted["finished"],
            "request_success_total": self.counted["finished"],
        }
        if self.k:
            counters["spec_decode_num_drafts_total"] = self.counted["drafts"]
        lines = [f'# TYPE vllm:{name} counter\nvllm:{name}{{engine="0"}} {value}\n' for name, value in counters.items()]
        name = "vllm:spec_decode_num_accepted_tokens_per_pos_total"
        lines += [f'{name}{{engine="0",position="{p}"}} {value}\n' for p, value in enumerate(self.accepted)]
        lines += [f'vllm:num_requests_running{{engine="0"}} {self.running}\n']
        lines += [f'vllm:request_decode_time_seconds_sum{{engine="0"}} {self.counted["decode_s"]}\n']
        steps = self.counted["drafts"] + self.counted["finished"]
        return "".join([*lines, f'vllm:iteration_tokens_total_count{{engine="0"}} {steps}\n'])


def sample(
    chunk_tokens: tuple[int, ...] = (), chunk_ns: tuple[int, ...] = (), sent_ns: int = 0, text: str = "", **fields: Any
) -> Sample:
    """What a client would have seen; times and tokens are filled where a test does not care for them."""
    tokens = chunk_tokens or (1,) * len(chunk_ns)
    times = chunk_ns or tuple(SECOND * i for i in range(len(tokens)))
    plain = {"prompt_id": "p1", "finish_reason": "length", "prompt_tokens": 12}
    ids = tuple(range(sum(tokens)))
    return Sample(text=text, token_ids=ids, sent_ns=sent_ns, chunk_ns=times, chunk_tokens=tokens, **(plain | fields))
