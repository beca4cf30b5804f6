"""A campaign's runs, written in place of the ones it already has."""

import hashlib
import json
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from math import isfinite
from pathlib import Path

from mlflow.entities import Metric, Param, RunTag
from mlflow.tracking import MlflowClient
from mlflow.utils.mlflow_tags import MLFLOW_PARENT_RUN_ID, MLFLOW_RUN_NOTE

from campaign.alphabet import to_key
from campaign.config import Campaign, to_plain
from campaign.disclosure import shown
from campaign.evidence import Evidence
from campaign.gates.base import GateResult
from campaign.tracking import projection
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
        run = self.client.create_run(
            self.experiment_id, start_time=start_ms, run_name=name, tags=self.common_tags | nested | dict(tags)
        )
        self.made.append(run.info.run_id)
        return self.made[-1]

    def fell(self) -> None:
        """Take back what a failure left half written, as far as the tracker still answers."""
        with suppress(*FAILURES):
            for run_id in self.made:
                self.client.set_terminated(run_id, "KILLED")
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

    The folder's name is the campaign's id. Raises TrackingError with the fix named; then nothing new is left there.
    """
    told = shown(results, verdict, evidence)
    with failures_told(uri):
        client = open_store(uri)
        experiment = experiment_of(client, uri, f"{campaign.tracking.experiment_prefix}{campaign.name}")
        earlier = runs_of(client, experiment.experiment_id, run_dir.name)
        tree = Tree(client, experiment.experiment_id, projection.common_tags(run_dir.name, evidence.experiment))
        try:
            _grow(tree, run_dir, campaign, evidence, told, verdict)
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
    client, now_ms = tree.client, time.time_ns() // 1_000_000
    spans = projection.spans_ms(evidence, now_ms)
    first_ms = spans[0][0] if spans else now_ms
    judged = projection.verdict_tags(results, verdict) | {MLFLOW_RUN_NOTE: projection.note(campaign, results, verdict)}
    judged = projection.bounded(judged)
    top = tree.start(run_dir.name, None, first_ms, projection.level_tag("campaign") | judged)
    _log_config(client, top, run_dir, campaign)
    middle = tree.start(evidence.experiment, top, first_ms, projection.level_tag("experiment") | judged)
    _log_numbers(client, middle, projection.experiment_numbers(evidence, results, verdict))
    for boot, (start_ms, end_ms) in zip(evidence.boots, spans, strict=True):
        name = projection.boot_name(boot)
        run_id = tree.start(f"{name} {boot.arm}", middle, start_ms, projection.boot_tags(boot))
        _log_numbers(client, run_id, projection.boot_numbers(boot, verdict, evidence))
        _log_files(client, run_id, of_boot(run_dir, name))
        client.set_terminated(run_id, projection.boot_status(boot), end_time=end_ms)
    for run_id in (middle, top):
        client.set_terminated(run_id, projection.status(evidence), end_time=now_ms)


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


def _log_numbers(client: MlflowClient, run_id: str, numbers: projection.Numbers) -> None:
    """One batch. What MLflow would bend or refuse is left out, and a tag says so (cases G1, G2, G8)."""
    now_ms, metrics, left_out = time.time_ns() // 1_000_000, [], {}
    for name, value, step in numbers:
        try:
            key = to_key(name)
        except ValueError as error:
            left_out[f"left_out.{hashlib.sha256(name.encode()).hexdigest()[:12]}"] = str(error)
            continue
        if isfinite(value):
            metrics.append(Metric(key, float(value), now_ms, step))
        else:
            left_out[f"left_out.{key}"[:200]] = f"{value} is no finite number"
    client.log_batch(run_id, metrics=metrics, tags=[RunTag(key, text) for key, text in left_out.items()])
