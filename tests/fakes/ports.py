"""Ports for tests that run beside each other, in this session and in any other one of this machine."""

import random
import socket
from contextlib import ExitStack

LOOPBACK = "127.0.0.1"
CANDIDATES = range(10240, 32768, 2)  # below the ports that Linux gives to outgoing connections
RESERVED = ExitStack()  # for as long as this process lives


def free_port() -> int:
    """A TCP port of loopback that, with the next one (a duet has two engines), nobody holds and no other test is given.

    What reserves them is their UDP twins, which are ours: the operating system frees them however we end.
    """
    while True:
        port = random.SystemRandom().choice(CANDIDATES)
        try:
            with ExitStack() as twins:
                for each in (port, port + 1):
                    twins.enter_context(socket.socket(type=socket.SOCK_DGRAM)).bind((LOOPBACK, each))
                    _bindable(each)
                RESERVED.push(twins.pop_all())
                return port
        except OSError:
            continue


def _bindable(port: int) -> None:
    """Raises OSError when the port is held."""
    with socket.socket() as probe:
        probe.bind((LOOPBACK, port))
