"""Verdicts out of MLflow. The only room of analysis with mlflow; reads, and changes nothing."""

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

os.environ |= {  # before the import: mlflow reads them then
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "MLFLOW_LOGGING_LEVEL": os.environ.get("MLFLOW_LOGGING_LEVEL", "WARNING"),
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": os.environ.get("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "1"),
    "MLFLOW_HTTP_REQUEST_TIMEOUT": os.environ.get("MLFLOW_HTTP_REQUEST_TIMEOUT", "20"),
}
from mlflow.entities import Run
from mlflow.exceptions import MlflowException
from mlflow.tracking import MlflowClient

from analysis.row import AnalysisError, Row
from campaign import names

SQLITE = "sqlite:///"
USER_INFO = re.compile(r"(?<=://)[^/\s]*@")
QUERY = re.compile(r"(://[^\s?]*)\?\S*")
ORDER = ["attributes.start_time DESC"]


def verdicts(uri: str) -> list[Row]:
    """The verdict of every campaign there, newest first; one row a campaign. Raises AnalysisError."""
    _check_there(uri)
    try:
        found = [_row(run) for run in _runs(MlflowClient(uri)) if names.TAG_VERDICT in run.data.tags]
    except MlflowException as error:
        raise AnalysisError(f"{masked(uri)}: {_said(uri, error)}; check --uri") from error
    newest = {row.campaign_id: row for row in reversed(found)}  # of two of one campaign the later one counts
    return sorted(newest.values(), key=lambda row: (row.began_ms, row.campaign_id), reverse=True)


def masked(text: str) -> str:
    """A text whose addresses show neither who asks nor their query: a password or a key may stand in both."""
    return QUERY.sub(r"\1", USER_INFO.sub("", text))


def _said(uri: str, error: Exception) -> str:
    """An error's first line without the address's secrets, wherever it repeats them."""
    first = masked((str(error).splitlines() or [type(error).__name__])[0])
    for secret in re.findall(r"://[^/\s:@]*:([^/\s]+)@|[?&][^=&]+=([^&\s]{6,})", uri):
        for part in filter(None, secret):
            first = first.replace(part, "***")
    return first[:300]


def _check_there(uri: str) -> None:
    """MLflow would make an empty database where there is none."""
    path = Path(uri.removeprefix(SQLITE).partition("?")[0])
    if uri.startswith(SQLITE) and not path.is_file():
        raise AnalysisError(f"no database at {path}; `python -m campaign import RUN` makes one, or give --uri")


def _runs(client: MlflowClient) -> Iterator[Run]:
    experiments = [found.experiment_id for found in client.search_experiments()]
    token = None
    while experiments:
        wanted = f"tags.{names.TAG_LEVEL} = 'experiment' and attributes.status != 'RUNNING'"
        page = client.search_runs(experiments, wanted, order_by=ORDER, page_token=token)
        yield from page
        token = page.token
        if not token:
            return


def _row(run: Run) -> Row:
    tags: Mapping[str, str] = run.data.tags
    return Row(
        campaign_id=tags.get(names.TAG_CAMPAIGN, run.info.run_id),
        experiment=tags.get(names.TAG_EXPERIMENT, ""),
        began_ms=int(run.info.start_time),
        engine=tags.get(names.TAG_ENGINE, ""),
        verdict=tags[names.TAG_VERDICT],
        boots=tags.get(names.TAG_BOOTS, ""),
        voided=int(tags.get(names.TAG_VOIDED, "0")),
        claims=_below(tags, names.TAG_CLAIM_PREFIX),
        gates=_below(tags, names.TAG_GATE_PREFIX),
        supersedes=tags.get(names.TAG_SUPERSEDES, ""),
        superseded_by=tags.get(names.TAG_SUPERSEDED_BY, ""),
        corrects=tags.get(names.TAG_CORRECTS, ""),
        corrected_by=tags.get(names.TAG_CORRECTED_BY, ""),
        because=tags.get(names.TAG_BECAUSE, ""),
    )


def _below(tags: Mapping[str, str], prefix: str) -> dict[str, str]:
    return {tag.removeprefix(prefix): text for tag, text in sorted(tags.items()) if tag.startswith(prefix)}
