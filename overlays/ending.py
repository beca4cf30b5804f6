"""A request to end (Ctrl-C, SIGTERM, SIGHUP) unwinds the stack, so that what was started is ended and tidied away."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn

REQUESTS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
BY_DEFAULT = (signal.SIG_DFL, signal.default_int_handler)


@contextmanager
def ending_cleanly() -> Iterator[None]:
    """Within it the first request raises KeyboardInterrupt with its name; later ones wait for the tidying.

    What somebody handles or ignores (nohup) is left alone. Only the main thread may enter.
    """
    before = {number: signal.getsignal(number) for number in REQUESTS}
    ours = [number for number in REQUESTS if before[number] in BY_DEFAULT]

    def end(number: int, _frame: FrameType | None) -> NoReturn:
        for other in ours:
            signal.signal(other, signal.SIG_IGN)
        raise KeyboardInterrupt(signal.Signals(number).name)

    for number in ours:
        signal.signal(number, end)
    try:
        yield
    finally:
        for number in ours:
            signal.signal(number, before[number])
