"""Numbers on their way into the tracker: what it would bend or refuse is left out by itself, and a tag says why."""

import time
from collections.abc import Sequence
from math import isfinite
from typing import TypeVar

from mlflow.entities import Metric, RunTag
from mlflow.exceptions import MlflowException
from mlflow.tracking import MlflowClient

from campaign.alphabet import to_key
from campaign.tracking.projection import Numbers, left_out

T = TypeVar("T")
METRICS_A_BATCH, TAGS_A_BATCH = 1000, 100  # what MLflow takes in one call
REFUSED = "INVALID_PARAMETER_VALUE"


def log_numbers(client: MlflowClient, run_id: str, numbers: Numbers) -> None:
    """All that are finite, under a name that comes back (cases G1, G2, G8). Of the others a tag says why."""
    now_ms, metrics, tags = time.time_ns() // 1_000_000, list[Metric](), dict[str, str]()
    for name, value, step in numbers:
        try:
            key = to_key(name)
        except ValueError as error:
            tags[left_out(name)] = str(error)
            continue
        if isfinite(value):
            metrics.append(Metric(key, float(value), now_ms, step))
        else:
            tags[f"left_out.{key}"[:200]] = f"{value} is no finite number"
    tags |= logged(client, run_id, metrics)
    for some in _parts([RunTag(key, text) for key, text in tags.items()], TAGS_A_BATCH):
        client.log_batch(run_id, tags=some)


def logged(client: MlflowClient, run_id: str, metrics: list[Metric]) -> dict[str, str]:
    """Log them; where a server refuses one (another version, another alphabet), the others are logged all the same."""
    told = dict[str, str]()
    for some in _parts(metrics, METRICS_A_BATCH):
        try:
            client.log_batch(run_id, metrics=some)
        except MlflowException as error:
            if error.error_code != REFUSED:
                raise
            if len(some) == 1:
                told[left_out(some[0].key)] = f"{some[0].key} was refused: {str(error).splitlines()[0][:200]}"
            else:
                for one in some:
                    told |= logged(client, run_id, [one])
    return told


def _parts(items: Sequence[T], size: int) -> list[list[T]]:
    return [list(items[at : at + size]) for at in range(0, len(items), size)]
