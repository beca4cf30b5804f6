"""The store behind an address: made once, probed, and its failures told as ours."""

import fcntl
import os
import platform
import sqlite3
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from ipaddress import ip_address
from pathlib import Path

from mlflow.entities import Experiment, Run, ViewType
from mlflow.exceptions import MlflowException
from mlflow.tracking import MlflowClient
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, SQLAlchemyError

from campaign.alphabet import to_key
from campaign.errors import TrackingError
from campaign.names import TAG_CAMPAIGN
from campaign.tracking import owner

FAILURES = (MlflowException, SQLAlchemyError, sqlite3.Error, OSError)
FAULTS = (TypeError, ValueError, KeyError, AttributeError)  # ours, or an answer that is none
LOCAL_NAMES = ("localhost", "")
CREDENTIALS = ("MLFLOW_TRACKING_USERNAME", "MLFLOW_TRACKING_TOKEN")
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
        owner.reap(client)


def _probe(client: MlflowClient, uri: str, experiment_id: str) -> None:
    wanted = f"{platform.node()} {os.getpid()} {time.time_ns()}"
    client.set_experiment_tag(experiment_id, PROBE_TAG, wanted)
    found = client.get_experiment(experiment_id).tags.get(PROBE_TAG)
    if found != wanted and (found is None or found.split()[:2] == wanted.split()[:2]):
        raise TrackingError(f"{_public(uri)}: wrote {wanted!r}, read {found!r}; give the address of the writing server")


def exposure(uri: str, environment: Mapping[str, str]) -> str:
    """What is open about a server that is not on loopback, one sentence; empty where nothing is (case G11)."""
    url = _url(uri)
    if url.drivername != "http" or _is_loopback(url.host or ""):
        return ""
    found = f"tracking.uri {_public(uri)} is not on loopback and not encrypted"
    if any(environment.get(name) for name in CREDENTIALS):
        return f"{found}: whoever is on the way can read its password; use https"
    return (
        f"{found}, and no password is given: whoever reaches it can change results; bind it to 127.0.0.1 or use https"
    )


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host in LOCAL_NAMES


def runs_of(client: MlflowClient, experiment_id: str, campaign_id: str) -> list[Run]:
    """The runs that a campaign has there, of any status; deleted ones are gone."""
    return runs_tagged(client, [experiment_id], TAG_CAMPAIGN, campaign_id)


def runs_tagged(client: MlflowClient, experiments: list[str], tag: str, value: str) -> list[Run]:
    """All runs with a tag of this value, deleted ones left out. The value holds no quote (ids of ours do not)."""
    found, token, wanted = list[Run](), None, f"tags.{tag} = '{value}'"
    while True:
        page = client.search_runs(experiments, wanted, ViewType.ACTIVE_ONLY, page_token=token)
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
    patient = _patient(uri)
    return MlflowClient(tracking_uri=patient, registry_uri=patient)


def _patient(uri: str) -> str:
    """The same SQLite file with a longer wait for another writer than the driver's five seconds (case G7)."""
    url = _url(uri)
    if _sqlite_file(url) is None or "timeout" in url.query:
        return uri
    return f"{uri}{'&' if '?' in uri else '?'}timeout={LOCK_DEADLINE_S:.0f}"


def _prepare(uri: str, database: Path) -> None:
    """Make the tables once, one process at a time, and switch to WAL (cases G7). sqlite3 first: it fails at once."""
    database.parent.mkdir(parents=True, exist_ok=True)
    with database.with_name(f"{database.name}.lock").open("w") as lock:
        _take(lock.fileno(), database)
        with closing(sqlite3.connect(database, timeout=LOCK_DEADLINE_S)) as connection:
            connection.execute("PRAGMA journal_mode=WAL")
        MlflowClient(_patient(uri), _patient(uri)).search_experiments(max_results=1)


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
    """The address as it may be shown: its query is no part of that."""
    return _url(uri).set(query={}).render_as_string(hide_password=True)


@contextmanager
def failures_told(uri: str) -> Iterator[None]:
    """Any failure of the tracker as a TrackingError: what it said, and what to do."""
    try:
        yield
    except FAILURES as error:
        raise TrackingError(f"{_public(uri)}: {_said(uri, error)}; {_advice(str(error))}; {ON_DISK}") from error
    except FAULTS as error:  # a measurement that is done is never lost for it (case G2)
        raise TrackingError(
            f"{_public(uri)}: {type(error).__name__}: {_said(uri, error)}; no tracker answers there, or it is a fault "
            f"of ours: please report it; {ON_DISK}"
        ) from error


def _said(uri: str, error: Exception) -> str:
    """An error's first line, the address's password masked."""
    password = _url(uri).password
    return _first_line(error).replace(str(password), "***") if password else _first_line(error)


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
