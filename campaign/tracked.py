"""A run and its tracker: probed before the first boot, told after the last, imported later. It never costs a result."""

import os
from collections.abc import Callable
from pathlib import Path

from campaign import console, tracking
from campaign.bracket.looks import Outcome
from campaign.errors import CampaignError, ConfigError, ExitCode, TrackingError, complain, interrupted, worst
from campaign.import_request import ImportRequest
from campaign.journal import RunFolder
from campaign.planning.plan import Plan

Judged = Callable[[RunFolder], tuple[Plan, Outcome]]


def check(plan: Plan) -> None:
    """A tracker that cannot take results is told before the first boot; the measurement goes to disk in any case.

    Raises ConfigError for an address that no server will make work.
    """
    uri = plan.campaign.tracking.uri
    if uri is None:
        return
    try:
        if is_open := tracking.exposure(uri, os.environ):
            console.show(f"note: {is_open}")
        tracking.ready(uri)
    except TrackingError as error:
        if not uri.startswith("http"):
            raise ConfigError(f"tracking.uri: {error}") from error
        console.show(f"note: the tracker does not answer ({error}); results go to disk, `import` brings them in later")


def publish(plan: Plan, folder: RunFolder, outcome: Outcome, import_later: str) -> None:
    """The results into the tracker. What it does not take is told with the command that brings it in later."""
    uri = plan.campaign.tracking.uri
    if uri is None:
        return
    try:
        with interrupted(f"MLflow has not taken the results: {import_later}"):
            _published(plan, folder, outcome, uri)
    except TrackingError as error:
        console.show(f"note: MLflow did not take the results ({error}); nothing is lost: {import_later}")


def bring_in(request: ImportRequest, judged: Judged) -> ExitCode:
    """All runs of an `import`; the worst code of all. What fails in one leaves the others be."""
    return worst([_tried(request, folder, judged) for folder in request.folders])


def _tried(request: ImportRequest, folder: Path, judged: Judged) -> ExitCode:
    """A single run's error is raised as it is."""
    try:
        _bring_one_in(request, RunFolder(folder), judged)
    except CampaignError as error:
        if len(request.folders) == 1:
            raise
        complain(f"{folder.name}: {error}", error.exit_code)
        return error.exit_code
    return ExitCode.PASS


def _bring_one_in(request: ImportRequest, folder: RunFolder, judged: Judged) -> None:
    plan, outcome = judged(folder)
    uri = request.uri or plan.campaign.tracking.uri or f"sqlite:///{folder.path.parent / 'mlflow.db'}"
    tracking.ready(uri)
    if request.relates:
        asked = tracking.Relation(request.supersedes, request.corrects, request.because)
        name = f"{plan.campaign.tracking.experiment_prefix}{plan.campaign.name}"
        tracking.register(folder.path, name, asked, uri)
    _published(plan, folder, outcome, uri)


def _published(plan: Plan, folder: RunFolder, outcome: Outcome, uri: str) -> None:
    links = tracking.publish(folder.path, plan.campaign, outcome.evidence, outcome.results, outcome.verdict, uri)
    console.show(f"mlflow  {links.page}")
