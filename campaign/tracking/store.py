"""The store behind an address: made once, probed, and its failures told as ours."""

import fcntl
import os
import platform
import sqlite3
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path

import psutil
from mlflow.entities import Experiment, Run, ViewType
from mlflow.exceptions import MlflowException
from mlflow.tracking import MlflowClient
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, SQLAlchemyError

from campaign.alphabet import to_key
from campaign.errors import TrackingError
from campaign.names import TAG_CAMPAIGN
from campaign.tracking.projection import OWNER_HOST, OWNER_PID, OWNER_START

FAILURES = (MlflowException, SQLAlchemyError, sqlite3.Error, OSError)
SCHEMES = ("sqlite", "http", "https", "postgresql", "mysql", "mssql")
LOCK_DEADLINE_S = 120.0
POLL_S = 0.1
LONGEST_SAYING = 300
PROBE_TAG = "campaign.probe"
ON_DISK = "the results are on disk and can be imported later"


def ready(uri: str) -> None:
    """The preflight probe: prepare the store, write and read back, close what dead owners left open.

    Raises TrackingError with the fix named.
    """
    with failures_told(uri):
        client = open_store(uri)
        for experiment in client.search_experiments(max_results=1):
            _probe(client, uri, experiment.experiment_id)
        _reap(client)


def _probe(client: MlflowClient, uri: str, experiment_id: str) -> None:
    wanted = f"{platform.node()} {os.getpid()} {time.time_ns()}"
    client.set_experiment_tag(experiment_id, PROBE_TAG, wanted)
    found = client.get_experiment(experiment_id).tags.get(PROBE_TAG)
    if found != wanted and (found is None or found.split()[:2] == wanted.split()[:2]):
        raise TrackingError(f"{_public(uri)}: wrote {wanted!r}, read {found!r}; give the address of the writing server")


def _reap(client: MlflowClient) -> None:
    """Close runs that say RUNNING although the process of ours that opened them is gone (cases G4)."""
    experiments = [experiment.experiment_id for experiment in client.search_experiments()]
    for run in client.search_runs(experiments, "attributes.status = 'RUNNING'") if experiments else []:
        tags = run.data.tags
        if TAG_CAMPAIGN in tags and tags.get(OWNER_HOST) == platform.node() and not _lives(tags):
            client.set_terminated(run.info.run_id, "KILLED")


def _lives(tags: Mapping[str, str]) -> bool:
    """Whether the very process that opened a run is there: an id may have been given again."""
    try:
        started = psutil.Process(int(tags.get(OWNER_PID, ""))).create_time()
    except (ValueError, psutil.NoSuchProcess):
        return False
    return f"{started:.2f}" == tags.get(OWNER_START)


def runs_of(client: MlflowClient, experiment_id: str, campaign_id: str) -> list[Run]:
    """The runs that a campaign has there, of any status; deleted ones are gone."""
    found, token, wanted = list[Run](), None, f"tags.{TAG_CAMPAIGN} = '{campaign_id}'"
    while True:
        page = client.search_runs([experiment_id], wanted, ViewType.ACTIVE_ONLY, page_token=token)
        found += page
        token = page.token
        if not token:
            return found


def experiment_of(client: MlflowClient, uri: str, name: str) -> Experiment:
    """The experiment of this name; made if it is not there, its artifacts beside the database."""
    found, refused = client.get_experiment_by_name(name), "it is deleted there"
    if found is None:
        try:
            client.create_experiment(name, artifact_location=_artifacts(uri, name))
        except MlflowException as error:  # another process may have made it in between: then it is there now
            refused = _first_line(error)
        found = client.get_experiment_by_name(name)
    if found is None or found.lifecycle_stage != "active":
        raise TrackingError(
            f"{_public(uri)}: experiment {name!r} is not to be had: {refused}; restore it (mlflow experiments restore) "
            f"or set tracking.experiment_prefix; {ON_DISK}"
        )
    return found


def _artifacts(uri: str, name: str) -> str | None:
    database = _sqlite_file(_url(uri))
    if database is None:
        return None
    safe = to_key(name).replace("/", ":2f:").replace(":", "_")
    return (database.parent / f"{database.stem}-artifacts" / safe).as_uri()


def page_of(uri: str, experiment: Experiment, run_id: str) -> str:
    if _url(uri).drivername in ("http", "https"):
        return f"{_public(uri).rstrip('/')}/#/experiments/{experiment.experiment_id}/runs/{run_id}"
    return f"experiment {experiment.name}, run {run_id} in {_public(uri)}"


def open_store(uri: str) -> MlflowClient:
    """A client of a store that is prepared."""
    database = _sqlite_file(_url(uri))
    if database is not None:
        _prepare(uri, database)
    return MlflowClient(tracking_uri=uri, registry_uri=uri)


def _prepare(uri: str, database: Path) -> None:
    """Make the tables once, one process at a time, and switch to WAL (cases G7). sqlite3 first: it fails at once."""
    database.parent.mkdir(parents=True, exist_ok=True)
    with database.with_name(f"{database.name}.lock").open("w") as lock:
        _take(lock.fileno(), database)
        with closing(sqlite3.connect(database, timeout=LOCK_DEADLINE_S)) as connection:
            connection.execute("PRAGMA journal_mode=WAL")
        MlflowClient(tracking_uri=uri, registry_uri=uri).search_experiments(max_results=1)


def _take(lock: int, database: Path) -> None:
    deadline = time.monotonic() + LOCK_DEADLINE_S
    while time.monotonic() < deadline:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(POLL_S)
        else:
            return
    raise TrackingError(f"{database}.lock is held by another process for {LOCK_DEADLINE_S:.0f} s; end it and try again")


def _url(uri: str) -> URL:
    """The address in parts. Raises TrackingError for a store that MLflow 3 does not write to (cases G9)."""
    try:
        url = make_url(uri)
    except ArgumentError:
        url = URL.create(uri.partition(":")[0] or "none")
    if url.drivername.partition("+")[0] not in SCHEMES:
        raise TrackingError(
            f"tracking.uri is {uri!r}: MLflow 3 writes to a database or a server; "
            "set tracking.uri=sqlite:////absolute/path/mlflow.db, http://HOST:PORT, or null"
        )
    return url


def _sqlite_file(url: URL) -> Path | None:
    if url.drivername.partition("+")[0] != "sqlite":
        return None
    if not url.database or url.database == ":memory:":
        raise TrackingError("tracking.uri names no database file; set tracking.uri=sqlite:////absolute/path/mlflow.db")
    return Path(url.database).absolute()


def _public(uri: str) -> str:
    return _url(uri).render_as_string(hide_password=True)


@contextmanager
def failures_told(uri: str) -> Iterator[None]:
    """Any failure of the tracker as a TrackingError: what it said, and what to do."""
    try:
        yield
    except FAILURES as error:
        password = _url(uri).password
        said = _first_line(error).replace(password, "***") if password else _first_line(error)
        raise TrackingError(f"{_public(uri)}: {said}; {_advice(str(error))}; {ON_DISK}") from error


def _first_line(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0][:LONGEST_SAYING] if lines else type(error).__name__


def _advice(said: str) -> str:
    known = {
        "Invalid Host header": "start the server with --allowed-hosts naming this address",
        "out-of-date": "run `mlflow db upgrade` on this address",
        "Max retries": "start the server (make ui) or set tracking.uri to a sqlite file",
        "refused": "start the server (make ui) or set tracking.uri to a sqlite file",
        "readonly": "make the database and its folder writable",
        "unable to open": "make the folder writable or name another file in tracking.uri",
        "not a database": "the file is something else: name another one in tracking.uri",
    }
    return next((advice for sign, advice in known.items() if sign in said), "check tracking.uri")
