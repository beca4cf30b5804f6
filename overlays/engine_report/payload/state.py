"""What this process counts and what other overlays publish: written by the engine's thread, read by ours."""

from collections.abc import Callable, Mapping
from typing import Any

State = Mapping[str, Any]

_published: dict[str, Callable[[], State]] = {}
_counted: dict[str, Callable[[], State]] = {}


class Counters:
    """Steps and batches in flight since the start. One dict increment a step; never reset, readers take deltas."""

    def __init__(self) -> None:
        self.steps = 0
        self.tokens = 0
        self.tokens_in_flight_max = 0
        self.batches_in_flight: dict[str, int] = {}

    def submitted(self, in_flight: int, tokens_in_flight: int, tokens: int) -> None:
        """A batch of `tokens` went to the workers and is one of `in_flight` that have not come back."""
        key = str(in_flight)
        self.steps += 1
        self.tokens += tokens
        self.batches_in_flight[key] = self.batches_in_flight.get(key, 0) + 1
        self.tokens_in_flight_max = max(self.tokens_in_flight_max, tokens_in_flight)

    def read(self) -> dict[str, Any]:
        """The counters as the report carries them."""
        return {
            "steps": self.steps,
            "tokens": self.tokens,
            "batches_in_flight": dict(self.batches_in_flight),
            "tokens_in_flight_max": self.tokens_in_flight_max,
        }


def publish(overlay: str, read: Callable[[], State]) -> None:
    """Show an overlay's own state under `overlays` in every report of this process; `read` is called at each ask."""
    _published[overlay] = read


def published() -> dict[str, State]:
    """What the overlays of this process show now; an overlay that fails to is shown with its error."""
    return {name: guarded(read) for name, read in list(_published.items())}


def count(overlay: str, read: Callable[[], State]) -> None:
    """Show an overlay's own counters under `behaved`, as OVERLAY.NAME; they only grow, readers take deltas."""
    _counted[overlay] = read


def counted() -> State:
    """The counters of this process's overlays."""
    return {f"{o}.{name}": n for o, read in list(_counted.items()) for name, n in guarded(read).items()}


def guarded(read: Callable[[], State]) -> State:
    """`read()`, or its error as a value: a report must never stop the engine."""
    try:
        return dict(read())
    except Exception as error:  # noqa: BLE001 - whatever it is, it belongs into the report and not into the engine
        return {"error": f"{type(error).__name__}: {error}"}
