"""Asking an engine's own processes what they run. The engine_report overlay answers, one JSON file a process."""

import json
import os
import secrets
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from campaign.errors import InvalidError

POLL_S = 0.05
SCHEMA = 1
Place = tuple[str, int]  # role and rank
CORE_AND_WORKER: tuple[Place, ...] = (("EngineCore", 0), ("Worker", 0))
EVERY_ROLE: tuple[Place, ...] = (("APIServer", 0), *CORE_AND_WORKER)


@dataclass(frozen=True)
class Report:
    """One process's answer; raw is the whole of it."""

    role: str
    rank: int
    pid: int
    raw: dict[str, Any] = field(compare=False)

    @property
    def place(self) -> Place:
        """What identifies the process over its restarts."""
        return (self.role, self.rank)

    def section(self, name: str) -> dict[str, Any]:
        """A section: environment, resolved, behaved, serve, arguments or overlays; empty where the role has none."""
        found = self.raw.get(name, {})
        return found if isinstance(found, dict) else {}

    @property
    def modules(self) -> dict[str, dict[str, Any]]:
        """The overlaid modules loaded there, by name: file, sha256, and whether the code in memory is that file's."""
        return {entry["module"]: entry for entry in self.raw.get("modules", ()) if "module" in entry}

    @property
    def files(self) -> dict[str, dict[str, Any]]:
        """The overlaid data files as that process would open them, by path below the package root: file, sha256."""
        return {entry["file_path"]: entry for entry in self.raw.get("modules", ()) if "file_path" in entry}

    def __str__(self) -> str:
        return f"{self.role} {self.rank} (pid {self.pid})"


def ask(report_dir: Path, nonce: str, expected: Iterable[Place], deadline_s: float = 10.0) -> tuple[Report, ...]:
    """Put one new question and collect the answers to it, at most deadline_s seconds, ordered by role and rank.

    Returns as soon as every expected place answered, and then everybody who did; who is missing is for the witness to
    say. Raises InvalidError for an answer that is no report.
    """
    question = f"{nonce}:{secrets.token_hex(4)}"
    aside = report_dir / ".ask"
    aside.write_text(question, encoding="utf-8")
    os.replace(aside, report_dir / "ask")  # noqa: PTH105  (atomic: no process reads half a question)
    wanted = set(expected)
    deadline = time.monotonic() + deadline_s
    while True:
        answers = _answers(report_dir, question)
        if wanted <= {report.place for report in answers} or time.monotonic() > deadline:
            return answers
        time.sleep(POLL_S)


def places(reports: Iterable[Report]) -> tuple[Place, ...]:
    """Who answered: what the next question expects."""
    return tuple(sorted({report.place for report in reports}))


def _answers(report_dir: Path, question: str) -> tuple[Report, ...]:
    found = [parse(path) for path in report_dir.glob("report-*.json")]
    return tuple(sorted((r for r in found if r.raw["nonce"] == question), key=lambda r: (r.role, r.rank, r.pid)))


def parse(path: Path) -> Report:
    """One report file. Raises InvalidError naming the file when it is not what the schema says."""
    try:
        raw = json.loads(path.read_text(encoding="utf-8"))
        if raw["schema"] != SCHEMA or not isinstance(raw["nonce"], str):
            raise InvalidError(f"{path} has schema {raw['schema']!r}, wanted {SCHEMA}: another engine_report wrote it")
        return Report(str(raw["role"]), int(raw["rank"]), int(raw["pid"]), raw)
    except (ValueError, TypeError, KeyError) as error:
        raise InvalidError(f"{path} is no engine report: {type(error).__name__}: {error}") from error
