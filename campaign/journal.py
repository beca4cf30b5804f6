"""The run folder, and the journal that makes a run resumable. Files are written aside and renamed.

The journal is one JSON object a line; a line that a kill cut short is dropped on reading, so its boot runs again.
"""

import fcntl
import json
import os
import re
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from campaign.errors import CampaignError, ConfigError, SkippedError
from campaign.evidence import Answer, BootRecord, DraftCounts, KvFacts, WitnessRow

LONE_SURROGATE = re.compile("[\ud800-\udfff]")


def dumps(value: object, indent: int | None = None) -> str:
    """JSON in which Korean stays Korean; a lone surrogate (of a broken engine) is escaped, so that the text is kept."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, indent=indent)
    return json.dumps(value, allow_nan=False, indent=indent) if LONE_SURROGATE.search(text) else text


def write_text(path: Path, text: str) -> None:
    """Write aside, flush to disk, rename: a reader never sees half a file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    aside = Path(name)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        aside.chmod(0o666 & ~_umask())  # a temporary file is private; a colleague wants to read the report
        aside.replace(path)
    finally:
        aside.unlink(missing_ok=True)


def _umask() -> int:
    """The process's umask; it can only be read by setting it."""
    mask = os.umask(0)
    os.umask(mask)
    return mask


def write_json(path: Path, value: object) -> None:
    """`write_text` of readable JSON; Korean stays Korean."""
    write_text(path, dumps(value, indent=1) + "\n")


def read_json(path: Path) -> Any:
    """A file of ours. Raises ConfigError when it is missing or no JSON."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise ConfigError(f"no such file: {path}") from error
    except ValueError as error:
        raise ConfigError(f"{path} is not JSON: {error}") from error


class RunFolder:
    """Every path of a run is a property of this object; no caller builds one."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.plan = path / "plan.json"
        self.journal = path / "journal.jsonl"
        self.result = path / "result.json"

    @classmethod
    def create(cls, runs_dir: Path, run_id: str) -> "RunFolder":
        """Make it exclusively. Raises CampaignError when it is there already: two runs never share a folder."""
        path = runs_dir / run_id
        try:
            path.mkdir(parents=True)
        except FileExistsError as error:
            raise CampaignError(f"run folder {path} exists already; start again for a new id") from error
        return cls(path)

    @contextmanager
    def held(self) -> Iterator[None]:
        """One runner a run. The kernel holds the lock, so a dead runner never blocks. Raises SkippedError."""
        with (self.path / ".lock").open("w") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise SkippedError(f"run {self.path.name} is still being run by a living process") from error
            yield

    def boot(self, name: str) -> Path:
        """The folder of one boot, `boots/01-A`."""
        return self.path / "boots" / name

    def append(self, event: Mapping[str, object]) -> None:
        """One line, flushed to disk before it counts. A torn line before it (a kill) is cut off first."""
        line = dumps(event) + "\n"
        with self.journal.open("ab+") as file:
            file.seek(0)
            whole = file.read().rfind(b"\n") + 1
            file.truncate(whole)
            file.write(line.encode())
            file.flush()
            os.fsync(file.fileno())

    def keep(self, boot: BootRecord) -> None:
        """A finished boot in the journal; from here on no kill can lose it."""
        self.append({"event": "boot", "time_unix_s": time.time(), "boot": plain(boot)})

    def events(self) -> list[dict[str, Any]]:
        """All whole lines; a torn last line is dropped."""
        if not self.journal.exists():
            return []
        whole = self.journal.read_bytes().split(b"\n")[:-1]  # split first: a torn line may end inside a syllable
        return [json.loads(line) for line in whole if line.strip()]

    def records(self) -> tuple[BootRecord, ...]:
        """The finished boots, in order; a boot that ran twice (after a kill) counts by its last line."""
        boots = {e["boot"]["index"]: record(e["boot"]) for e in self.events() if e["event"] == "boot"}
        return tuple(boots[index] for index in sorted(boots))


def plain(boot: BootRecord) -> dict[str, Any]:
    """A boot's record as JSON data."""
    return asdict(boot)


def record(data: dict[str, Any]) -> BootRecord:
    """The inverse of `plain`. Raises ConfigError on a record of another schema."""
    wanted = {f.name for f in fields(BootRecord)}
    if data.keys() != wanted:
        raise ConfigError(
            f"a boot record has keys {sorted(data.keys() ^ wanted)} too many or too few: another version?"
        )
    nested = dict(data)
    nested["natural"] = _counts(data["natural"])
    nested["window"] = _counts(data["window"])
    nested["by_prompt"] = {key: _counts(value) for key, value in data["by_prompt"].items()}
    nested["answers"] = tuple(_answer(item) for item in data["answers"])
    nested["kv"] = KvFacts(**data["kv"]) if data["kv"] else None
    nested["witness"] = tuple(WitnessRow(**row) for row in data["witness"])
    nested["log_tail"] = tuple(data["log_tail"])
    return BootRecord(**nested)


def _counts(data: dict[str, Any] | None) -> DraftCounts | None:
    return DraftCounts(data["drafts"], tuple(data["accepted"])) if data else None


def _answer(data: dict[str, Any]) -> Answer:
    return Answer(**(data | {"token_ids": tuple(data["token_ids"])}))
