"""Somebody else's server: healthy, not ours, and on a port that a run wants."""

import http.server
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager

MODEL = "yesterday"


class Neighbour(http.server.BaseHTTPRequestHandler):
    """Lists its model, whatever is asked."""

    def do_GET(self) -> None:
        """The model list."""
        body = json.dumps({"data": [{"id": MODEL}]}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Silent."""


@contextmanager
def foreign_server(port: int) -> Iterator[None]:
    """It was there before us, and holds the port."""
    server = http.server.HTTPServer(("127.0.0.1", port), Neighbour)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
