"""Who listens on a port. The answer names a process and a model, so that a person can act on it."""

import contextlib
import errno
import http.client
import json
import socket
from dataclasses import dataclass
from itertools import pairwise

import psutil

from campaign.engine import processes
from campaign.engine.spec import RUN_MARKER

ASK_TIMEOUT_S = 2.0
HEAD_CHARS = 120
HELD = "a process that has bound it and does not listen yet"


@dataclass(frozen=True)
class Listener:
    """One listening process; pid is None where the system does not say whose the socket is."""

    pid: int | None
    name: str
    cmdline_head: str
    models: tuple[str, ...] | None  # what /v1/models names; None when it is not asked like that
    run: str = ""  # whose engine it is, by the marker that every process of a run of ours carries

    def __str__(self) -> str:
        who = f"pid {self.pid} ({self.name})" if self.pid else self.name
        what = f", serving {', '.join(self.models) or 'no model'}" if self.models is not None else ""
        return f"{who}{what}{f', an engine of run {self.run}' if self.run else ''}"


def listener(port: int) -> Listener | None:
    """Who holds the port now; None when a server could take it. A socket that is bound but not listening counts."""
    pids = listening_pids(port)
    if pids:
        return _described(next(iter(sorted(pids, key=lambda pid: pid or 0))), models(port))
    if _held(port):
        asked = next((pid for pid in processes.table() if run_of(pid) and _asks_for(pid, port)), None)
        return Listener(None, f"{HELD}{f', pid {asked}' if asked else ''}", "", None, run_of(asked) if asked else "")
    return None


def run_of(pid: int) -> str:
    """The run whose engine a process is, by its marker; empty where it has none, or we may not look."""
    marker = f"{RUN_MARKER}=".encode()
    found = (entry for entry in processes.environ(pid) if entry.startswith(marker))
    return next((entry.removeprefix(marker).decode("utf-8", "replace") for entry in found), "")


def _asks_for(pid: int, port: int) -> bool:
    """Whether a process was told to serve on this port: the kernel does not say who has bound it."""
    return ("--port", str(port)) in pairwise(processes.cmdline(pid))


def listening_pids(port: int) -> frozenset[int | None]:
    """The owners of every listening TCP socket of the port (several may share one by SO_REUSEPORT)."""
    found = (c for c in psutil.net_connections("tcp") if c.status == psutil.CONN_LISTEN)
    return frozenset(c.pid for c in found if c.laddr.port == port)


def models(port: int, headers: dict[str, str] | None = None) -> tuple[str, ...] | None:
    """The model ids that 127.0.0.1:port lists; None when it does not answer in that way."""
    status, body = get(port, "/v1/models", ASK_TIMEOUT_S, headers)
    return model_ids(body) if status == http.client.OK else None


def model_ids(body: str) -> tuple[str, ...] | None:
    """The ids in an answer of /v1/models; None when it is no such answer."""
    try:
        answer = json.loads(body)
        return tuple(str(entry["id"]) for entry in answer["data"])
    except (ValueError, TypeError, KeyError):
        return None


def get(port: int, path: str, timeout_s: float, headers: dict[str, str] | None = None) -> tuple[int, str]:
    """A GET of the local port: status and body. Status 0 with a reason when nobody answers."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=timeout_s)
    try:
        connection.request("GET", path, headers=headers or {})
        response = connection.getresponse()
        return response.status, response.read().decode("utf-8", "replace")
    except (OSError, http.client.HTTPException) as error:
        return 0, f"{type(error).__name__}: {error}"
    finally:
        connection.close()


def _described(pid: int | None, ids: tuple[str, ...] | None) -> Listener:
    name, head, run = "a process of another user", "", ""
    if pid is not None:
        with contextlib.suppress(psutil.Error):
            process = psutil.Process(pid)
            name, head, run = process.name(), " ".join(process.cmdline())[:HEAD_CHARS], run_of(pid)
    return Listener(pid, name, head, ids, run)


def _held(port: int) -> bool:
    """Bound but not listening, which the kernel does not list: an engine binds its port before it loads its weights.

    Closed connections that still wait look the same to bind(), so they are ruled out first.
    """
    if any(c.laddr and c.laddr.port == port for c in psutil.net_connections("tcp")):
        return False
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as error:
            return error.errno == errno.EADDRINUSE
    return False
