"""Requests to end: they unwind, and they wait while a stop runs."""

import os
import signal
import threading

import pytest

from campaign.engine.signals import held, interruptible


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP], ids=lambda n: n.name)
def test_a_request_to_end_unwinds_like_ctrl_c(number: signal.Signals) -> None:
    with pytest.raises(KeyboardInterrupt, match=number.name), interruptible():
        signal.raise_signal(number)
    assert signal.getsignal(number) is signal.SIG_DFL


def test_a_handler_that_somebody_set_is_left_alone() -> None:
    seen: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, _: seen.append(number))
    try:
        with interruptible():
            os.kill(os.getpid(), signal.SIGTERM)
        assert seen == [signal.SIGTERM]
    finally:
        signal.signal(signal.SIGTERM, before)


def test_a_request_that_comes_while_held_is_raised_afterwards() -> None:
    done = []

    def hold() -> None:
        with held():
            os.kill(os.getpid(), signal.SIGINT)
            os.kill(os.getpid(), signal.SIGTERM)
            done.append("the stop ran to its end")

    with pytest.raises(KeyboardInterrupt, match="SIGINT"):
        hold()
    assert done == ["the stop ran to its end"]


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGINT, signal.SIGTERM], ids=lambda n: n.name)
def test_a_signal_that_is_ignored_stays_ignored(number: signal.Signals) -> None:
    """Below nohup, or in the background of a script."""
    before = signal.signal(number, signal.SIG_IGN)
    try:
        with interruptible(), held():
            signal.raise_signal(number)
        assert signal.getsignal(number) is signal.SIG_IGN
    finally:
        signal.signal(number, before)


def test_outside_the_main_thread_signals_are_left_as_they_are() -> None:
    seen = []

    def run() -> None:
        with interruptible(), held():
            seen.append(True)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert seen == [True]
