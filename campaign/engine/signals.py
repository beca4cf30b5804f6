"""Signals to a runner that has an engine: a request to end becomes KeyboardInterrupt, and never cuts a stop short."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def interruptible() -> Iterator[None]:
    """Within it SIGTERM and SIGHUP unwind the stack like Ctrl-C, so that every `finally` runs.

    Handlers that somebody set are left alone; so is everything when called outside the main thread.
    """
    by_default = [n for n in ENDING if signal.getsignal(n) is signal.SIG_DFL] if _in_main_thread() else []
    for number in by_default:
        signal.signal(number, _interrupt)
    try:
        yield
    finally:
        for number in by_default:
            signal.signal(number, signal.SIG_DFL)


@contextmanager
def held() -> Iterator[None]:
    """Within it a request to end waits; it is raised as KeyboardInterrupt on leaving.

    A signal that is ignored (SIGHUP below nohup, SIGINT of a script's background job) stays ignored.
    """
    if not _in_main_thread():
        yield
        return
    came: list[str] = []
    before = {n: handler for n in ENDING if (handler := signal.getsignal(n)) is not signal.SIG_IGN}
    for number in before:
        signal.signal(number, lambda found, _frame: came.append(signal.Signals(found).name))
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler if handler is not None else signal.SIG_DFL)
    if came:
        raise KeyboardInterrupt(came[0])


def _interrupt(number: int, _frame: FrameType | None) -> NoReturn:
    raise KeyboardInterrupt(signal.Signals(number).name)


def _in_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()
