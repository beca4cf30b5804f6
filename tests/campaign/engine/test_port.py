"""Who holds a port."""

import http.server
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from campaign.engine import port as ports
from campaign.engine.port import Listener, listener
from campaign.engine.spec import RUN_MARKER


def test_a_free_port_has_no_listener(port: int) -> None:
    assert listener(port) is None


def test_a_listener_that_speaks_no_http_is_named_by_its_process(port: int) -> None:
    with socket.socket() as server:
        server.bind(("127.0.0.1", port))
        server.listen()
        server.settimeout(0.1)
        found = listener(port)
    assert found is not None
    assert (found.pid, found.models) == (os.getpid(), None)
    assert f"pid {os.getpid()}" in str(found)


def test_a_socket_that_is_bound_but_does_not_listen_yet_counts(port: int) -> None:
    with socket.socket() as server:
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        server.bind(("127.0.0.1", port))
        assert listener(port) == Listener(None, "a process that has bound it and does not listen yet", "", None)
    assert listener(port) is None


def test_a_closed_connection_that_still_waits_does_not_hold_the_port(port: int) -> None:
    with socket.socket() as server:
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        server.bind(("127.0.0.1", port))
        server.listen()
        with socket.create_connection(("127.0.0.1", port)) as client:
            accepted, _ = server.accept()
            accepted.close()  # the server's side closes first, so its side waits
            assert client.recv(1) == b""
    assert listener(port) is None


class NoModels(http.server.BaseHTTPRequestHandler):
    """Answers everything with 200 and a text."""

    def do_GET(self) -> None:
        """Not a model list."""
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"hi")

    def log_message(self, *_: object) -> None:
        """Silent."""


def test_an_answer_that_is_no_model_list_names_no_model(port: int) -> None:
    server = http.server.HTTPServer(("127.0.0.1", port), NoModels)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        assert ports.models(port) is None
        assert ports.get(port, "/x", 2.0) == (200, "hi")
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def test_nobody_there_is_status_zero_with_a_reason(port: int) -> None:
    status, reason = ports.get(port, "/v1/models", 1.0)
    assert (status, "ConnectionRefusedError" in reason) == (0, True)


def test_model_ids_are_read_from_the_engines_answer() -> None:
    assert ports.model_ids('{"data": [{"id": "a"}, {"id": "b"}]}') == ("a", "b")
    assert ports.model_ids('{"data": 3}') is None


HOLD = """import socket, sys
held = socket.socket()
held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
held.bind(("127.0.0.1", int(sys.argv[2])))
if "--silent" not in sys.argv:
    held.listen()
print("held", flush=True)
sys.stdin.read()
"""


@contextmanager
def engine_of_a_run(port: int, *words: str) -> Iterator[int]:
    """A process that holds the port, marked as every process of a run is; its pid."""
    command = [sys.executable, "-c", HOLD, "--port", str(port), *words]
    marked = os.environ | {RUN_MARKER: "exp8-20261201-010203-abcd"}
    with subprocess.Popen(command, env=marked, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        yield process.pid
        process.communicate()  # ends its reading, and with it the process


@pytest.mark.case("A9")
@pytest.mark.parametrize("words", [(), ("--silent",)], ids=["it listens", "it has bound the port, and loads"])
def test_an_engine_of_a_run_of_ours_is_named_with_its_pid_and_its_run(port: int, words: tuple[str, ...]) -> None:
    with engine_of_a_run(port, *words) as pid:
        found = listener(port)
    assert found is not None
    assert found.run == "exp8-20261201-010203-abcd"
    assert f"pid {pid}" in str(found)
    assert str(found).endswith(", an engine of run exp8-20261201-010203-abcd")


def test_a_process_of_nobodys_run_has_none() -> None:
    assert ports.run_of(os.getpid()) == ""
