"""Counts what is in flight; nothing is really scheduled."""

import threading
from collections import Counter


class Scheduler:
    """One batch at a time."""

    def __init__(self, max_batches: int) -> None:
        self.max_batches = max_batches
        self.lock = threading.Lock()
        self.reset()

    def reset(self) -> None:
        """Counters as a new process has them."""
        self.steps = 0
        self.batches_in_flight: Counter[int] = Counter()
        self.tokens_in_flight_max = 0

    def batches(self, step: int) -> int:
        """How many batches are in flight in this step of a request."""
        del step
        return 1

    def note(self, step: int, tokens: int) -> int:
        """Count a step; returns the batches that were in flight."""
        with self.lock:
            batches = self.batches(step)
            self.steps += 1
            self.batches_in_flight[batches] += 1
            self.tokens_in_flight_max = max(self.tokens_in_flight_max, tokens * batches)
            return batches
