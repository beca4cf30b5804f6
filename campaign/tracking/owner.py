"""Which process wrote a run, and the end of runs whose process is gone (cases G3, G4).

A pid alone is given out again, and two hosts may have one name: a run is closed for its owner only where the boot of
this very machine, the process namespace, the pid and its start all say that the owner is dead.
"""

import hashlib
import os
import platform
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from mlflow.entities import Run, RunStatus
from mlflow.tracking import MlflowClient

from campaign.engine import processes
from campaign.names import TAG_CAMPAIGN

Status = Literal["FINISHED", "FAILED", "KILLED"]
OWNER_HOST, OWNER_MACHINE, OWNER_BOOT = "owner.host", "owner.machine", "owner.boot"
OWNER_SPACE, OWNER_PID, OWNER_START = "owner.pid_space", "owner.pid", "owner.start"
WORSE_LAST = ("SCHEDULED", "RUNNING", "FINISHED", "KILLED", "FAILED")
BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
MACHINE_ID = Path("/etc/machine-id")


def tags() -> dict[str, str]:
    """Whose a run is: this process, so that a later one can tell whether it still lives."""
    own = processes.read(os.getpid())
    return _here() | {OWNER_PID: str(os.getpid()), OWNER_START: str(own.start_ticks if own else "")}


def end(client: MlflowClient, run_id: str, status: Status, end_time_ms: int | None = None) -> None:
    """The terminal status, always named. A run that has a worse one keeps it: it is never made better (case G3)."""
    found = client.get_run(run_id).info.status
    if WORSE_LAST.index(found) <= WORSE_LAST.index(status):
        client.set_terminated(run_id, status, end_time_ms)


def reap(client: MlflowClient) -> None:
    """End as KILLED what says RUNNING, carries our tags, and was written by a process of this host that is gone."""
    experiments = [experiment.experiment_id for experiment in client.search_experiments()]
    for run in _running(client, experiments):
        if TAG_CAMPAIGN in run.data.tags and is_dead(run.data.tags):
            end(client, run.info.run_id, "KILLED")


def is_dead(owner: Mapping[str, str]) -> bool:
    """Whether the process that these tags name is known to be gone; False for all that cannot be known from here."""
    here = _here()
    if owner.get(OWNER_HOST) != here[OWNER_HOST] or not owner.get(OWNER_BOOT):
        return False
    if owner[OWNER_BOOT] != here[OWNER_BOOT]:  # before this machine's last start, where it is this machine
        return bool(here[OWNER_MACHINE]) and owner.get(OWNER_MACHINE) == here[OWNER_MACHINE]
    if owner.get(OWNER_SPACE) != here[OWNER_SPACE] or not owner.get(OWNER_PID, "").isdecimal():
        return False
    found = processes.read(int(owner[OWNER_PID]))
    return found is None or not found.alive or str(found.start_ticks) != owner.get(OWNER_START)


def _running(client: MlflowClient, experiments: list[str]) -> list[Run]:
    found, token = list[Run](), None
    while experiments:
        wanted = f"attributes.status = '{RunStatus.to_string(RunStatus.RUNNING)}'"
        page = client.search_runs(experiments, wanted, page_token=token)
        found += page
        token = page.token
        if not token:
            break
    return found


def _here() -> dict[str, str]:
    machine = _text(MACHINE_ID)
    return {
        OWNER_HOST: platform.node(),
        OWNER_MACHINE: hashlib.sha256(machine.encode()).hexdigest()[:16] if machine else "",
        OWNER_BOOT: _text(BOOT_ID),
        OWNER_SPACE: _space(),
    }


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        return ""


def _space() -> str:
    try:
        return Path("/proc/self/ns/pid").readlink().name
    except OSError:
        return ""
