"""A campaign's runs, written in place of the ones it already has."""

import hashlib
import json
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from mlflow.entities import Param
from mlflow.tracking import MlflowClient
from mlflow.utils.mlflow_tags import MLFLOW_PARENT_RUN_ID, MLFLOW_RUN_NOTE

from campaign.config import Campaign, to_plain
from campaign.disclosure import shown
from campaign.evidence import BootRecord, Evidence
from campaign.gates.base import GateResult
from campaign.journal import RunFolder
from campaign.names import TAG_LEVEL
from campaign.tracking import owner, projection, relations
from campaign.tracking.numbers import log_numbers
from campaign.tracking.store import FAILURES, experiment_of, failures_told, open_store, page_of, runs_of
from campaign.tracking.upload import Upload, of_boot, of_campaign
from verdict.words import Verdict


@dataclass(frozen=True)
class Links:
    """Where a campaign is found in the tracker."""

    experiment_id: str
    campaign_run_id: str
    experiment_run_id: str
    boot_run_ids: tuple[str, ...]
    page: str


@dataclass(frozen=True)
class Tree:
    """The runs of one campaign while they are written; `made` grows from the outermost run inwards."""

    client: MlflowClient
    experiment_id: str
    common_tags: dict[str, str]
    made: list[str] = field(default_factory=list)

    def start(self, name: str, parent: str | None, start_ms: int, tags: Mapping[str, str]) -> str:
        """A new run below its parent; the run's id."""
        nested = {MLFLOW_PARENT_RUN_ID: parent} if parent else {}
        short, whole = projection.fitting(self.common_tags | nested | dict(tags))
        run = self.client.create_run(self.experiment_id, start_time=start_ms, run_name=name, tags=short)
        self.made.append(run.info.run_id)
        for artifact, text in whole.items():
            self.client.log_text(self.made[-1], text, artifact)
        return self.made[-1]

    def fell(self) -> None:
        """Take back what a failure left half written, as far as the tracker still answers."""
        with suppress(*FAILURES):
            for run_id in self.made:
                owner.end(self.client, run_id, "KILLED")
                self.client.delete_run(run_id)


def publish(
    run_dir: Path,
    campaign: Campaign,
    evidence: Evidence,
    results: tuple[GateResult, ...],
    verdict: Verdict,
    uri: str,
) -> Links:
    """Write a campaign's runs, finished or not, in place of any that it already has there.

    The folder's name is the campaign's id. Its new runs name the ones that they replace, which keep their status, and
    which are deleted (not purged). Raises TrackingError with the fix named; then nothing new is left there.
    """
    told = shown(results, verdict, evidence)
    with failures_told(uri):
        client = open_store(uri)
        experiment = experiment_of(client, uri, f"{campaign.tracking.experiment_prefix}{campaign.name}")
        earlier = runs_of(client, experiment.experiment_id, run_dir.name)
        tags = projection.common_tags(run_dir.name, evidence.experiment) | _replaced(
            [run.info.run_id for run in earlier if run.data.tags.get(TAG_LEVEL) == "campaign"]
        )
        tree = Tree(client, experiment.experiment_id, tags)
        try:
            _grow(tree, run_dir, campaign, evidence, told, verdict)
            relations.write(client, experiment.experiment_id, run_dir, tree.made[:2])
        except BaseException:
            tree.fell()
            raise
        for run in earlier:
            client.delete_run(run.info.run_id)
    top, middle, *boots = tree.made
    page = page_of(uri, experiment, top)
    return Links(experiment.experiment_id, top, middle, tuple(boots), page)


def _grow(
    tree: Tree,
    run_dir: Path,
    campaign: Campaign,
    evidence: Evidence,
    results: tuple[GateResult, ...],
    verdict: Verdict,
) -> None:
    """Campaign, experiment and boots, each with its terminal status."""
    client, ended_ms = tree.client, _ended_ms(run_dir)
    spans = projection.spans_ms(evidence, ended_ms)
    first_ms = spans[0][0] if spans else ended_ms
    judged = projection.verdict_tags(results, verdict) | {MLFLOW_RUN_NOTE: projection.note(campaign, results, verdict)}
    judged |= projection.engine_tags(campaign, evidence) | projection.claim_tags(results)
    top = tree.start(run_dir.name, None, first_ms, projection.level_tag("campaign") | judged)
    _log_config(client, top, run_dir, campaign)
    middle = tree.start(evidence.experiment, top, first_ms, projection.level_tag("experiment") | judged)
    log_numbers(client, middle, projection.experiment_numbers(evidence, results, verdict))
    for boot, (start_ms, end_ms) in zip(evidence.boots, spans, strict=True):
        name, aside = projection.boot_name(boot), _set_aside(run_dir, boot)
        called = " ".join(word for word in (name, boot.arm, aside) if word)
        run_id = tree.start(called, middle, start_ms, projection.boot_tags(boot))
        log_numbers(client, run_id, projection.boot_numbers(boot, verdict, evidence))
        _log_files(client, run_id, of_boot(run_dir, f"{name}/{aside}"))
        owner.end(client, run_id, projection.boot_status(boot), end_ms)
    for run_id in (middle, top):
        owner.end(client, run_id, projection.status(evidence), ended_ms)


def _set_aside(run_dir: Path, boot: BootRecord) -> str:
    """The folder in a void boot's folder with its files, after it was run again (bracket/attempts.py); else empty."""
    if boot.status != "void":
        return ""
    of_place = [b for group in RunFolder(run_dir).voided() for b in group if b.index == boot.index]
    name = f"void-{of_place.index(boot) + 1}" if boot in of_place else ""
    return name if (run_dir / "boots" / projection.boot_name(boot) / name).is_dir() else ""


def _replaced(earlier: list[str]) -> dict[str, str]:
    """A run that is written again is a new one, linked to the one before: nothing of that one is changed (case G6)."""
    return {"replaces": ", ".join(earlier)} if earlier else {}


def _ended_ms(run_dir: Path) -> int:
    """When the last boot was journaled, so that a run imported later stands at its own time; else now."""
    times = [event.get("time_unix_s") for event in RunFolder(run_dir).events()]
    return round(1000 * max((t for t in times if isinstance(t, int | float)), default=time.time()))


def _log_config(client: MlflowClient, run_id: str, run_dir: Path, campaign: Campaign) -> None:
    """The whole configuration as artifacts, its digest as a parameter (cases G5)."""
    resolved = json.dumps(to_plain(campaign), ensure_ascii=False, indent=1, sort_keys=True)
    contents = {"config_sha256": resolved.encode("utf-8", "replace")}
    client.log_text(run_id, contents["config_sha256"].decode(), "config.json")
    uploads = of_campaign(run_dir)
    _log_files(client, run_id, uploads)
    plans = [upload.path.read_bytes() for upload in uploads if upload.name == "plan.json"]
    contents |= {"plan_sha256": plans[0]} if plans else {}
    params = [Param(name, hashlib.sha256(content).hexdigest()) for name, content in contents.items()]
    client.log_batch(run_id, params=params)


def _log_files(client: MlflowClient, run_id: str, uploads: tuple[Upload, ...]) -> None:
    for upload in uploads:
        if upload.is_whole:
            client.log_artifact(run_id, str(upload.path))
        else:
            client.log_text(run_id, upload.tail(), upload.name)
