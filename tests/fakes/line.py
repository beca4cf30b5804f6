"""`python -m campaign` on the fake engine, as a real process with folders and a port of its own."""

import json
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from campaign.engine import processes, shared_memory
from campaign.engine.port import listener
from campaign.journal import RunFolder

ROOT = Path(__file__).resolve().parents[2]
WAIT_S = 300.0


@dataclass
class Line:
    """One command line of the runner; `env` is added to its own environment."""

    folder: Path
    cache: Path
    port: int
    env: dict[str, str] | None = None

    def command(self, *words: str) -> list[str]:
        """`python -m campaign` with these words."""
        return [sys.executable, "-m", "campaign", *words]

    def overrides(self, exp: str, *more: str) -> list[str]:
        """Where this test's runs, stages and port are."""
        places = [f"host.runs_dir={self.folder}", f"host.cache_dir={self.cache}", f"host.port={self.port}"]
        return ["--config-dir", str(ROOT / "tests/conf"), f"exp={exp}", *places, *more]

    def run(self, exp: str, *more: str) -> subprocess.CompletedProcess[str]:
        """Run to the end."""
        return self._done(self.command(*self.overrides(exp, *more)))

    def start(self, exp: str, *more: str) -> subprocess.Popen[str]:
        """Run, and do not wait."""
        words = self.command(*self.overrides(exp, *more))
        return subprocess.Popen(
            words, cwd=ROOT, env=self.env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )

    def resume(self, run: Path) -> subprocess.CompletedProcess[str]:
        """`resume` by path."""
        return self._done(self.command("resume", str(run)))

    def inspect(self, path: Path) -> subprocess.CompletedProcess[str]:
        """`inspect` of a run or a file."""
        return self._done(self.command("inspect", str(path)))

    def _done(self, words: list[str]) -> subprocess.CompletedProcess[str]:
        return subprocess.run(words, cwd=ROOT, env=self.env, capture_output=True, text=True, check=False)

    def only_run(self) -> Path:
        """The folder of the one run that was made."""
        (found,) = [path.parent for path in self.folder.glob("*/plan.json")]
        return found

    def boots(self) -> list[dict[str, Any]]:
        """The records of the only run's journal; of two of one boot the later counts."""
        boots = [event["boot"] for event in self.events() if event["event"] == "boot"]
        return list({boot["index"]: boot for boot in boots}.values())

    def events(self) -> list[dict[str, Any]]:
        """All lines of the only run's journal; none before it is there."""
        journal = self.only_run() / "journal.jsonl"
        text = journal.read_text(encoding="utf-8") if journal.exists() else ""
        return [json.loads(line) for line in text.splitlines()]

    def left_behind(self) -> list[str]:
        """What is there that a run of this line must not leave: processes, a listener, shared memory, a TMPDIR."""
        runs = [path.parent.name for path in self.folder.glob("*/plan.json")]
        found = [f"process {pid}" for run in runs for pid in marked(run)]
        found += [f"listener {holder}" for holder in [listener(self.port)] if holder]
        leaked = tuple(f"psm_fake_{run}" for run in runs)
        found += [f"shared memory {name}" for name in shared_memory.names() if name.startswith(leaked)]
        found += [str(path) for run in runs for path in Path(tempfile.gettempdir()).glob(f"campaign-{run}*")]
        return found + [str(path) for path in self.folder.glob("*/boots/*/processes.json")]


def marked(run_id: str) -> list[int]:
    """Living processes that carry a run's marker."""
    found = [pid for pid in processes.table() if processes.carries(pid, "CAMPAIGN_RUN_ID", run_id)]
    return [pid for pid in found if (proc := processes.read(pid)) and proc.alive]


def gates(text: str) -> dict[str, str]:
    """Gate label -> verdict word, from the console."""
    rows = re.findall(
        r"^(PASS|FAIL|INCONCLUSIVE|VOID|INVALID)\s+(KV|quality|Korean|outputs|accept pos1|step/s)", text, re.M
    )
    return {label: word for word, label in rows}


def until(condition: Callable[[], bool]) -> None:
    """Wait for a condition; a deadline only ends a test that would hang."""
    deadline = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.02)


def finished_boots(run: Path) -> int:
    """How many boots the journal holds, their memory waited for."""
    return sum("memory_back" in record.seconds for record in RunFolder(run).records())
