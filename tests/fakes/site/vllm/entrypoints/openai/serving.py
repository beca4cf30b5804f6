"""The HTTP side: the engine's routes that a campaign uses."""

import json
import os
import socket
import socketserver
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from vllm import faults
from vllm.entrypoints.openai import protocol
from vllm.logger import uvicorn
from vllm.profiler import Profiler
from vllm.v1.engine.core import EngineCore, Step

JSON = "application/json"


class Server(ThreadingHTTPServer):
    """Binds first (as the engine does, before it loads weights) and listens once the core is there."""

    daemon_threads = True
    request_queue_size = 64
    allow_reuse_address = True
    core: EngineCore
    profiler: Profiler

    def server_bind(self) -> None:
        """Without HTTPServer's reverse look-up of the host, which may ask a name server."""
        socketserver.TCPServer.server_bind(self)

    def serve(self, core: EngineCore) -> None:
        """Answer until the process ends."""
        self.core = core
        self.server_activate()
        self.serve_forever(poll_interval=0.05)


class Handler(BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"
    server: Server
    wbufsize = 0

    def setup(self) -> None:
        """No waiting for more bytes: a step's tokens go out at once."""
        self.request.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        super().setup()

    def do_GET(self) -> None:
        """The routes that only look."""
        self._block_if_hanging()
        path = self.path.partition("?")[0]
        if path in ("/health", "/ping"):
            return self._send(200, b"")
        if not self._allowed():
            return None
        routes = {"/v1/models": self._models, "/metrics": self._metrics, "/server_info": self._server_info}
        if path == "/version":
            return self._json({"version": "0.0.0"})
        return routes[path]() if path in routes else self._error(404, "Not Found")

    def do_POST(self) -> None:
        """The routes that do something."""
        self._block_if_hanging()
        raw = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if not self._allowed():
            return None
        if self.path == "/reset_prefix_cache":
            self.server.core.forget()
            return self._send(200, b"")
        if self.server.profiler.answer(self.path):
            return self._send(200, b"")
        if self.path not in ("/v1/completions", "/v1/chat/completions"):
            return self._error(404, "Not Found")
        try:
            ask = protocol.parse(json.loads(raw), chat=self.path.endswith("chat/completions"))
        except (ValueError, KeyError, TypeError, IndexError) as error:
            return self._error(400, f"{type(error).__name__}: {error}")
        return self._generate(ask)

    def _generate(self, ask: protocol.Ask) -> None:
        faults.count_request()
        self._block_if_hanging()
        config = self.server.core.config
        if faults.on("health_only") or faults.due("http_500"):
            return self._error(500, "EngineCore encountered an issue. See stack trace (above) for the root cause.")
        if ask.model != config.served_model_name:
            return self._error(404, f"The model `{ask.model}` does not exist.")
        if len(ask.request.prompt) + 1 > config.max_model_len:
            longest = f"This model's maximum context length is {config.max_model_len} tokens"
            return self._error(400, f"{longest}, but the prompt holds {len(ask.request.prompt)}.")
        if ask.stream:
            return self._stream(ask)
        return self._send(200, protocol.whole(ask, list(self.server.core.generate(ask.request))))

    def _stream(self, ask: protocol.Ask) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream; charset=utf-8")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        if ask.chat:
            self._chunk(protocol.role_chunk(ask))
        given = 0
        for step in self._steps(ask):
            self._chunk(protocol.chunk(ask, step, given=given))
            given += len(step.ids)
        if ask.usage:
            self._chunk(protocol.usage_chunk(ask, given))
        self._chunk(b"data: [DONE]\n\n")
        self._chunk(b"")

    def _steps(self, ask: protocol.Ask) -> Iterator[Step]:
        """The steps as they come; or, of a parser that holds back, all of them at the end in two events."""
        steps = self.server.core.generate(ask.request)
        if not faults.on("bursts"):
            yield from steps
            return
        held = list(steps)
        for some in (held[: len(held) // 2], held[len(held) // 2 :]):
            if some:
                yield Step([i for step in some for i in step.ids], some[-1].finish_reason)

    def _chunk(self, data: bytes) -> None:
        self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")

    def _models(self) -> None:
        name = "other-model" if faults.on("wrong_model_name") else self.server.core.config.served_model_name
        self._json({"object": "list", "data": [{"id": name, "object": "model", "owned_by": "vllm"}]})

    def _metrics(self) -> None:
        self._send(200, self.server.core.metrics.render().encode(), "text/plain; version=0.0.4; charset=utf-8")

    def _server_info(self) -> None:
        config = self.server.core.config
        self._json({"vllm_config": {"scheduler_config": {"async_scheduling": config.async_scheduling}}})

    def _allowed(self) -> bool:
        key = os.environ.get("VLLM_API_KEY")
        given = self.headers.get("Authorization")
        if faults.on("unauthorized") or (key and given != f"Bearer {key}"):
            self._json({"error": "Unauthorized"}, 401)
            return False
        return True

    def _block_if_hanging(self) -> None:
        if faults.on("hang_at_boot") or faults.due("hang"):
            faults.block()

    def _json(self, body: dict[str, Any], status: int = 200) -> None:
        self._send(status, json.dumps(body, ensure_ascii=False).encode())

    def _error(self, status: int, message: str) -> None:
        self._json({"error": {"message": message, "type": "fake", "code": status}}, status)

    def _send(self, status: int, body: bytes, kind: str = JSON) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_request(self, code: Any = "-", size: Any = "-") -> None:
        """The web server's access line."""
        del size
        words = "OK" if str(code) == "200" else "ERROR"
        uvicorn(f'{self.client_address[0]}:{self.client_address[1]} - "{self.requestline}" {int(code)} {words}')
