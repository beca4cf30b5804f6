"""Answering asks: a thread polls <dir>/ask and writes one report for each role of this process.

Only a report's absence is an error for the one who asks; nothing in here may raise into the engine.
"""

import json
import logging
import os
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from campaign_engine_report.facts import environment
from campaign_engine_report.loaded import attest
from campaign_engine_report.state import counted, guarded, published

SCHEMA = 1
DIRECTORY = "VLLM_CAMPAIGN_REPORT_DIR"
POLL_S = 0.25

logger = logging.getLogger("vllm.campaign_engine_report")


@dataclass
class Role:
    """One thing that this process is (EngineCore, Worker, APIServer), and how to read it."""

    name: str
    rank: Callable[[], int]
    resolved: Callable[[], Mapping[str, Any]]
    behaved: Callable[[], Mapping[str, Any]] = dict
    serve: Callable[[], Mapping[str, Any]] = dict
    arguments: Mapping[str, Any] = field(default_factory=dict)  # as parsed; they do not change any more
    answered: str = ""


@dataclass
class Answering:
    """The roles of this process and the thread that answers for them. A forked child starts a thread of its own."""

    roles: dict[str, Role] = field(default_factory=dict)
    pid: int = 0

    def take(self, role: Role) -> None:
        """Answer for `role` from now on; a second object in the same role replaces the first."""
        if self.pid != os.getpid():
            self.pid = os.getpid()
            self.roles.clear()
            threading.Thread(target=self.serve, name="campaign-engine-report", daemon=True).start()
        self.roles[role.name] = role
        logger.info("[engine_report] %s answers asks in %s", role.name, os.environ[DIRECTORY])

    def serve(self) -> None:
        """Poll for a new nonce until the process ends."""
        folder = Path(os.environ[DIRECTORY])
        while True:
            try:
                self.answer_all(folder)
            except Exception:
                logger.exception("[engine_report] an ask could not be answered")
            time.sleep(POLL_S)

    def answer_all(self, folder: Path) -> None:
        """Write a report for every role that has not yet answered the nonce in <folder>/ask."""
        ask = folder / "ask"
        nonce = ask.read_text(encoding="utf-8").strip() if ask.exists() else ""
        for role in list(self.roles.values()):
            if nonce and nonce != role.answered:
                role.answered = nonce
                _write(folder, report(role, nonce))


def report(role: Role, nonce: str) -> dict[str, Any]:
    """The report; a part that cannot be read carries its error instead."""
    rank = guarded(lambda: {"rank": role.rank()})
    modules = guarded(lambda: {"modules": attest()})
    return {
        "schema": SCHEMA,
        "nonce": nonce,
        "role": role.name,
        "rank": rank.get("rank", 0),
        "pid": os.getpid(),
        "time_unix_s": time.time(),
        "environment": guarded(environment),
        "resolved": guarded(role.resolved),
        "serve": guarded(role.serve),
        "arguments": role.arguments,
        "behaved": {**guarded(role.behaved), **counted()},
        "modules": modules.get("modules", [dict(modules)]),
        "overlays": published(),
    }


def _write(folder: Path, content: dict[str, Any]) -> None:
    name = f"report-{content['role']}-{content['rank']}-{content['pid']}.json"
    aside = folder / f".{name}"
    aside.write_text(json.dumps(content, indent=1, default=str), encoding="utf-8")
    aside.replace(folder / name)
