"""The ladder: each way in which an engine is not ready has a sentence of its own."""

import http.server
import re
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from campaign.engine.local import serve
from campaign.engine.readiness import Ladder, Rung
from campaign.engine.spec import EngineSpec
from campaign.errors import CampaignError, EngineFailedError, InvalidError
from tests.fakes.neighbour import Neighbour

Make = Callable[..., EngineSpec]

FAULTS = {
    "it dies at boot": ("die_at_boot", EngineFailedError, r"exited with 1 while booting.*No available memory"),
    "it dies with another code": ("die_at_boot:3", EngineFailedError, r"exited with 3 while booting"),
    "it is killed at boot": (
        "die_at_boot:SIGKILL",
        EngineFailedError,
        r"killed by SIGKILL, sender unknown while booting",
    ),
    "it exits as a shell reports a kill": ("die_at_boot:137", EngineFailedError, r"killed by SIGKILL, sender unknown"),
    "it dies on its first request": ("die_on_first_request", EngineFailedError, r"exited with 1 on its first request"),
    "AMX kills it": (
        "die_on_first_request:SIGILL",
        EngineFailedError,
        r"SIGILL, on CPUs with AMX.* on its first request",
    ),
    "it serves another name": ("wrong_model_name", InvalidError, r"wrong model: our own engine .* serves other-model"),
    "only its health is good": ("health_only", EngineFailedError, r"health only: the first generation answered 500"),
    "it wants a key": ("unauthorized", EngineFailedError, r"auth required: /v1/models answers 401.*pass_env"),
    "its core says it timed out": ("engine_timeout", EngineFailedError, r"engine-ready timeout: .*own limit.*S=60"),
    "its core failed with nobody to blame": ("core_timeout", EngineFailedError, r"engine-ready timeout: .*not ours"),
}


@pytest.mark.case("A3", "A6", "A7", "A13")
@pytest.mark.parametrize(("fault", "error", "words"), FAULTS.values(), ids=FAULTS)
def test_a_boot_that_fails_says_how(make: Make, fault: str, error: type[CampaignError], words: str) -> None:
    spec = make(fault)
    with pytest.raises(error, match=words) as raised, serve(spec):
        pass
    assert str(spec.log_file) in str(raised.value)


@pytest.mark.parametrize(
    ("fault", "missing"),
    [
        ("slow_boot", "its process lives, but .*; it took process [12].\\d s"),
        ("loads_forever", "it is loading, but the port does not answer; it took process .* s, loading .* s"),
        (
            "hang_at_boot",
            "its port is open, but /v1/models .*TimeoutError.*; it took process .*, loading .*, port .* s",
        ),
        ("stalls_at_boot", "lists our model, but a generation does not come .*port .* s, models .* s"),
    ],
)
def test_a_deadline_that_passes_says_how_far_the_boot_came(make: Make, fault: str, missing: str) -> None:
    with (
        pytest.raises(EngineFailedError, match=f"not ready after 2 s, our own limit .*: .*{missing}"),
        serve(make(fault, boot_timeout_s=2.0)),
    ):
        pass


def test_every_rung_of_a_good_boot_is_climbed_in_order_and_timed(make: Make) -> None:
    ladder = Ladder()
    with serve(make(env={"FAKE_BOOT_S": "0.3"}), ladder) as engine:
        times = list(ladder.reached.values())
        assert [rung for rung in ladder.reached if rung is not Rung.loading] == [
            Rung.process,
            Rung.port,
            Rung.models,
            Rung.ready,
        ]
        assert times == sorted(times)
        assert engine.boot_s >= times[-1]
    assert re.fullmatch(r"(\w+ \d+\.\d s(, )?){3,4}", str(ladder))


@pytest.mark.case("A9")
def test_a_foreign_server_that_shares_the_port_and_answers_nonsense_is_invalid(make: Make) -> None:
    """The kernel deals out connections between two servers of one port: half of the answers would be another's."""
    spec = make("reuse_port", env={"FAKE_BOOT_S": "1"})
    words = "foreign server: port .* is shared with pid"
    with sharing_the_port(spec), pytest.raises(InvalidError, match=words), serve(spec) as engine:
        engine.check_listeners()


@pytest.mark.case("A4")
def test_our_budget_is_passed_on_and_an_explicit_limit_of_the_engine_wins(make: Make) -> None:
    assert make(boot_timeout_s=1800.0).env["VLLM_ENGINE_READY_TIMEOUT_S"] == "1800"
    spec = make("engine_timeout", env={"VLLM_ENGINE_READY_TIMEOUT_S": "600"}, boot_timeout_s=60.0)
    with pytest.raises(EngineFailedError, match="VLLM_ENGINE_READY_TIMEOUT_S=600"), serve(spec):
        pass


SHARING = """
import http.server, socket, sys
class Server(http.server.HTTPServer):
    allow_reuse_port = True
http.server.HTTPServer.allow_reuse_port = True
Server(("127.0.0.1", int(sys.argv[1])), http.server.BaseHTTPRequestHandler).serve_forever()
"""


@contextmanager
def sharing_the_port(spec: EngineSpec) -> Iterator[None]:
    """Another process that listens on the engine's port beside it, from the moment that the engine boots."""
    started: list[subprocess.Popen[bytes]] = []

    def take() -> None:
        while not (spec.log_file.exists() and "non-default args" in spec.log_file.read_text()):
            time.sleep(0.01)
        started.append(subprocess.Popen([sys.executable, "-c", SHARING, str(spec.port)], stderr=subprocess.DEVNULL))

    thread = threading.Thread(target=take)
    thread.start()
    try:
        yield
    finally:
        thread.join()
        started[0].kill()
        started[0].wait()


@contextmanager
def foreign_once_booting(spec: EngineSpec) -> Iterator[None]:
    """Somebody else takes the port after the engine was started and before it binds."""
    ready = threading.Event()
    servers: list[http.server.HTTPServer] = []

    def take() -> None:
        while not (spec.log_file.exists() and "non-default args" in spec.log_file.read_text()):
            time.sleep(0.01)
        servers.append(http.server.HTTPServer(("127.0.0.1", spec.port), Neighbour))
        ready.set()
        servers[0].serve_forever(poll_interval=0.02)

    thread = threading.Thread(target=take, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ready.wait()
        servers[0].shutdown()
        servers[0].server_close()
        thread.join()


@pytest.mark.case("A9")
def test_a_foreign_server_that_answers_while_ours_boots_is_invalid(make: Make) -> None:
    spec = make("bind_late", env={"FAKE_BOOT_S": "3"})
    words = "foreign server: port .* serves yesterday, wanted t-"
    with foreign_once_booting(spec), pytest.raises(InvalidError, match=words), serve(spec):
        pass


@pytest.mark.case("A8")
def test_startup_complete_before_a_failed_bind_is_port_in_use_and_names_the_holder(make: Make) -> None:
    spec = make("bind_late", env={"FAKE_BOOT_S": "1"})
    with socket.socket() as holder:
        thread = threading.Thread(target=lambda: _bind_once_booting(holder, spec))
        thread.start()
        words = f"port in use.*port {spec.port} is held by a process that has bound it"
        with pytest.raises(InvalidError, match=words), serve(spec):
            pass
        thread.join()
    assert "Application startup complete." in spec.log_file.read_text()


def _bind_once_booting(holder: socket.socket, spec: EngineSpec) -> None:
    while not (spec.log_file.exists() and "non-default args" in spec.log_file.read_text()):
        time.sleep(0.01)
    holder.bind(("127.0.0.1", spec.port))


@pytest.mark.case("A8")
def test_an_address_in_use_that_the_engine_gets_over_is_not_fatal(make: Make) -> None:
    with serve(make("another_port")) as engine:
        assert "[Errno 98]" in engine.log()


@pytest.mark.case("A8")
def test_an_address_in_use_is_not_blamed_for_an_engine_that_fails_otherwise(make: Make) -> None:
    words = "health only: the first generation answered 500"
    with pytest.raises(EngineFailedError, match=words), serve(make("another_port,health_only")):
        pass


def test_a_key_that_is_passed_on_opens_the_door(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VLLM_API_KEY", "s3cret")
    spec = make(pass_env=["VLLM_API_KEY"])
    assert "s3cret" not in " ".join(spec.argv)
    assert spec.public_env()["VLLM_API_KEY"] == "***"
    with serve(spec) as engine:
        engine.check()


def test_the_first_request_is_long_but_fits_a_short_model(make: Make) -> None:
    assert len(make().first_prompt) == 600
    assert len(make(serve={"max_model_len": 64}).first_prompt) == 32
