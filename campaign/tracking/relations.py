"""One run in another's place: it supersedes it (a better measurement), or corrects it (that one was wrong).

Kept beside the run's results (`ledger.json`), so that MLflow can be built again from the folders in any order. The
other run keeps all that it has, and is only marked.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from mlflow.entities import Run
from mlflow.tracking import MlflowClient

from campaign.asked import confidential
from campaign.errors import ConfigError
from campaign.journal import read_json, write_json
from campaign.names import (
    TAG_BECAUSE,
    TAG_CAMPAIGN,
    TAG_CORRECTED_BY,
    TAG_CORRECTS,
    TAG_LEVEL,
    TAG_SUPERSEDED_BY,
    TAG_SUPERSEDES,
)
from campaign.tracking.store import experiment_of, failures_told, open_store, runs_tagged

FILE = "ledger.json"
BACK = {TAG_SUPERSEDES: TAG_SUPERSEDED_BY, TAG_CORRECTS: TAG_CORRECTED_BY}


@dataclass(frozen=True)
class Relation:
    """What a run says of others, by campaign id; `because` is told in the ledger."""

    supersedes: str = ""
    corrects: str = ""
    because: str = ""

    def tags(self) -> dict[str, str]:
        """As tags of the run itself; none for what is not said."""
        found = {TAG_SUPERSEDES: self.supersedes, TAG_CORRECTS: self.corrects, TAG_BECAUSE: self.because}
        return {tag: text for tag, text in found.items() if text}


def read(run_dir: Path) -> Relation:
    """What the folder holds. Raises ConfigError for a file that is none of ours."""
    path = run_dir / FILE
    if not path.exists():
        return Relation()
    data = read_json(path)
    names = {entry.name for entry in fields(Relation)}
    if not isinstance(data, dict) or not data.keys() <= names or not all(isinstance(v, str) for v in data.values()):
        raise ConfigError(
            f"{path}: wanted a map of texts with the keys {', '.join(sorted(names))}; delete it, import again"
        )
    return Relation(**data)


def register(run_dir: Path, experiment: str, asked: Relation, uri: str) -> None:
    """Keep in the folder what is said now beside what it said before.

    Raises ConfigError, with nothing written, for a run that is not in the tracker or belongs to another experiment.
    """
    before = read(run_dir)
    with failures_told(uri):
        client = open_store(uri)
        wanted = experiment_of(client, uri, experiment).experiment_id
        for tag, other in asked.tags().items():
            if tag in BACK:
                _check(run_dir.name, tag, other, before.tags().get(tag, ""))
                _check_there(client, run_dir.name, other, wanted, experiment)
    confidential.refuse("--because", asked.because)
    told = {name: text for name, text in asdict(asked).items() if text}
    write_json(run_dir / FILE, asdict(before) | told)


def _check(run_id: str, tag: str, other: str, before: str) -> None:
    if other == run_id:
        raise ConfigError(f"--{tag} {other}: a run cannot stand in its own place; name the earlier one")
    if before not in ("", other):
        raise ConfigError(f"{run_id} {tag} {before} already, found {other}; a run stands in the place of one other")


def _check_there(client: MlflowClient, run_id: str, other: str, wanted: str, experiment: str) -> None:
    everywhere = [found.experiment_id for found in client.search_experiments()]
    found = runs_tagged(client, everywhere, TAG_CAMPAIGN, other)
    here = [run for run in found if run.info.experiment_id == wanted]
    if not found:
        raise ConfigError(
            f"there is no run {other} in the tracker; `python -m campaign import {other}` brings it there first"
        )
    if not here:
        names = {client.get_experiment(run.info.experiment_id).name for run in found}
        raise ConfigError(f"{other} is a run of {', '.join(sorted(names))}, wanted one of {experiment}")
    if run_id in _replaced(client, wanted, here):
        raise ConfigError(f"{other} itself stands in the place of {run_id}, at once or by others; not both can")


def _replaced(client: MlflowClient, experiment_id: str, runs: list[Run]) -> set[str]:
    """The campaigns in whose place these runs stand, and those in whose place they stand, and so on."""
    found: set[str] = set()
    while names := {run.data.tags[tag] for run in runs for tag in BACK if tag in run.data.tags} - found:
        found |= names
        runs = [run for name in names for run in runs_tagged(client, [experiment_id], TAG_CAMPAIGN, name)]
    return found


def write(client: MlflowClient, experiment_id: str, run_dir: Path, run_ids: list[str]) -> None:
    """Mark this campaign's runs, and both ways those that it names and those that name it, as far as they are there."""
    own = read(run_dir).tags()
    for tag, back in BACK.items():
        if other := own.get(tag):
            _mark(client, _upper(runs_tagged(client, [experiment_id], TAG_CAMPAIGN, other)), {back: run_dir.name})
        for run in runs_tagged(client, [experiment_id], tag, run_dir.name):
            own[back] = run.data.tags[TAG_CAMPAIGN]
    for run_id in run_ids:
        _tag(client, run_id, own)


def _upper(runs: list[Run]) -> list[Run]:
    return [run for run in runs if run.data.tags.get(TAG_LEVEL) != "boot"]


def _mark(client: MlflowClient, runs: list[Run], tags: Mapping[str, str]) -> None:
    for run in runs:
        _tag(client, run.info.run_id, tags)


def _tag(client: MlflowClient, run_id: str, tags: Mapping[str, str]) -> None:
    for tag, text in tags.items():
        client.set_tag(run_id, tag, text)
