"""What one runner's steps came to. The engine's thread counts; the reporting thread reads whole steps only."""

from collections.abc import Mapping

NAMES = (
    "decode_steps",  # steps without a prefill row, whoever prepared them
    "fused_steps",  # steps whose batch is the fused one
    "live_launches",  # fused launches over the engine's own buffers
    "checks",  # steps prepared both ways and compared whole, builders included
    "clean",
    "drift",  # checks in which buffers, fresh tensors or host words differ
    "metadata_drift",  # checks in which only the attention metadata differs
    "fallbacks",  # steps that the engine prepared because ours failed or differed while armed
    "opaque",  # metadata fields that cannot be compared by value
    "plans_built",
    "check_us",  # host time of the checks beyond the stock chain's own
    "live_us",  # host time of the live launches
)


class Counters:
    """Counts by name; they only grow."""

    def __init__(self) -> None:
        self._now = dict.fromkeys(NAMES, 0.0)
        self._shown: Mapping[str, float] = dict(self._now)

    def add(self, name: str, amount: float = 1) -> None:
        """Count. A reason's own name (`declined_prefill`) begins with its first step."""
        self._now[name] = self._now.get(name, 0.0) + amount

    def __getitem__(self, name: str) -> float:
        return self._now[name]

    def step_done(self) -> None:
        """Show what the step added, all at once: no reader sees a check that is neither clean nor drift."""
        self._shown = dict(self._now)

    def shown(self) -> dict[str, float]:
        """As of the last whole step."""
        return {name: round(value, 1) for name, value in self._shown.items()}
