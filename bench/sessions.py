"""Simulated brackets in the set-up of statistics.md section 2.2. Simulated, not measured.

Boot sd 1 %, within-boot sd 3 % with AR(1) rho .6, 40 requests a boot; the drift shapes are ours (the section names them
and does not define them): each is in ln, reaches its size at the end of the session, and runs on through the requests.
"""

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
BOOT_SD, WITHIN_SD, RHO, REQUESTS = 0.01, 0.03, 0.6, 40
STEPS = 200.0
Drift = Callable[[np.random.Generator, int, Floats], Floats]


def _linear(size: float) -> Drift:
    return lambda _, n, t: np.asarray(np.broadcast_to(-size * t, (n, *t.shape)), dtype=np.float64)


def _thermal(size: float) -> Drift:
    """Fast at first, then level: a machine that warms up."""

    def drift(_: np.random.Generator, n: int, t: Floats) -> Floats:
        return np.asarray(np.broadcast_to(-size * (1 - np.exp(-t / 0.2)), (n, *t.shape)), dtype=np.float64)

    return drift


def _step(size: float) -> Drift:
    """Down at a moment that is uniform over the session."""
    return lambda random, n, t: np.asarray(-size * (t > random.random((n, 1, 1))), dtype=np.float64)


def _pulse(size: float) -> Drift:
    """Down for an eighth of the session, somewhere."""

    def drift(random: np.random.Generator, n: int, t: Floats) -> Floats:
        start = random.random((n, 1, 1)) * 7 / 8
        return np.asarray(-size * ((t > start) & (t <= start + 1 / 8)), dtype=np.float64)

    return drift


def _walk(size: float) -> Drift:
    """A random walk from request to request, with this sd at its end."""

    def drift(random: np.random.Generator, n: int, t: Floats) -> Floats:
        steps = random.standard_normal((n, t.size)) * size / np.sqrt(t.size)
        return np.asarray(np.cumsum(steps, axis=1).reshape(n, *t.shape), dtype=np.float64)

    return drift


SCENARIOS: dict[str, Drift] = {
    "none": _linear(0.0),
    "linear 1 %": _linear(0.01),
    "linear 2 %": _linear(0.02),
    "linear 3 %": _linear(0.03),
    "thermal 3 %": _thermal(0.03),
    "step 2 %": _step(0.02),
    "pulse 3 %": _pulse(0.03),
    "random walk 2 %": _walk(0.02),
}


def ln_rates(scenario: str, letters: str, effect: float, sessions: int, seed: int) -> Floats:
    """ln of each request's rate: session, boot, request. `effect` is of the candidate, in ln."""
    random = np.random.default_rng([seed, list(SCENARIOS).index(scenario), len(letters), int(1e6 * effect)])
    boots = len(letters)
    t = np.linspace(0, 1, boots * REQUESTS).reshape(boots, REQUESTS)
    rates = SCENARIOS[scenario](random, sessions, t) + BOOT_SD * random.standard_normal((sessions, boots, 1))
    noise = random.standard_normal((sessions, boots, REQUESTS))
    within = np.empty_like(noise)
    within[..., 0] = noise[..., 0]
    for at in range(1, REQUESTS):
        within[..., at] = RHO * within[..., at - 1] + np.sqrt(1 - RHO**2) * noise[..., at]
    arm = np.array([letter == "B" for letter in letters], dtype=np.float64)
    return np.asarray(rates + WITHIN_SD * within + effect * arm[:, None])


def readings(rates: Floats) -> Iterator[list[float]]:
    """Each session's boots: steps over seconds, both in total."""
    seconds = STEPS * np.exp(-rates) / 100
    totals = STEPS * rates.shape[-1] / seconds.sum(axis=-1)
    return ([float(value) for value in session] for session in totals)
