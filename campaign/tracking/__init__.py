"""MLflow as a projection of the run folder: it can be dropped and built again. The only room of campaign with mlflow.

An MLflow experiment has the campaign's name; its runs are nested campaign > experiment > boot. Runs are named by id
through MlflowClient: there is no active run (cases G12). Whatever the tracker says, the results are on disk.
"""

import os
from typing import TYPE_CHECKING

# Set before the import, because mlflow reads some of them on import. Retries: a dead server costs seconds, not minutes.
os.environ |= {
    "MLFLOW_TRUNCATE_LONG_VALUES": "false",  # an error instead of a value cut in silence
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false",
    "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true",  # the console is the one voice
    "MLFLOW_LOGGING_LEVEL": os.environ.get("MLFLOW_LOGGING_LEVEL", "WARNING"),
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": os.environ.get("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "1"),
    "MLFLOW_HTTP_REQUEST_BACKOFF_FACTOR": os.environ.get("MLFLOW_HTTP_REQUEST_BACKOFF_FACTOR", "1"),
    "MLFLOW_HTTP_REQUEST_TIMEOUT": os.environ.get("MLFLOW_HTTP_REQUEST_TIMEOUT", "20"),
}
if TYPE_CHECKING:
    from campaign.tracking.relations import Relation, register
    from campaign.tracking.runs import Links, publish
    from campaign.tracking.store import exposure, ready

__all__ = ["Links", "Relation", "exposure", "publish", "ready", "register"]


def __getattr__(name: str) -> object:
    """mlflow takes two seconds to import: it enters with the first of our names that is asked for."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from campaign.tracking import relations, runs, store

    return next(vars(room)[name] for room in (relations, runs, store) if name in vars(room))
