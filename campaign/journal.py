"""The run folder, and the journal that makes a run resumable. Files are written aside and renamed.

The journal is one JSON object a line; a line that a kill cut short is dropped on reading, so its boot runs again.
"""

import fcntl
import json
import os
import re
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from campaign.boot_records import kind_of, plain, record
from campaign.errors import CampaignError, ConfigError, DriftError, SkippedError
from campaign.evidence import BootRecord

LONE_SURROGATE = re.compile("[\ud800-\udfff]")
REGISTERED: dict[str, type] = {"run_id": str, "claims_digest": str, "config": dict, "arms": dict}
BOOTS_A_PAIR = 2
VOIDED = "voided"  # an event of the journal
_KINDS = {str: "text", dict: "a map"}


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
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{path} is not JSON: {error}") from error


class RunFolder:
    """Every path of a run is a property of this object; no caller builds one."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.plan = path / "plan.json"
        self.journal = path / "journal.jsonl"
        self.result = path / "result.json"
        self.manifest = path / "overlays.json"

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

    def append(self, *events: Mapping[str, object]) -> None:
        """A line each, flushed to disk before they count. A torn line before them (a kill) is cut off first."""
        line = "".join(dumps(event) + "\n" for event in events)
        with self.journal.open("ab+") as file:
            file.seek(0)
            whole = file.read().rfind(b"\n") + 1
            file.truncate(whole)
            file.write(line.encode())
            file.flush()
            os.fsync(file.fileno())

    def keep(self, *boots: BootRecord, prefix: str = "") -> None:
        """A finished boot, or the two of a pair, in the journal; from here on no kill can lose them."""
        self.append(*({"event": f"{prefix}boot", "time_unix_s": time.time(), "boot": plain(boot)} for boot in boots))

    def events(self) -> list[dict[str, Any]]:
        """All whole lines; a torn last line is dropped. Raises ConfigError with the number of a line that is broken."""
        return [event for _, event in self._numbered()]

    def _numbered(self) -> Iterator[tuple[int, dict[str, Any]]]:
        if not self.journal.exists():
            return
        whole = self.journal.read_bytes().split(b"\n")[:-1]  # split first: a torn line may end inside a syllable
        for number, line in enumerate(whole, 1):
            if line.strip():
                try:
                    event = json.loads(line)
                except (ValueError, RecursionError) as error:
                    raise self._broken(number, "it is no JSON") from error
                if not isinstance(event, dict):
                    raise self._broken(number, f"it holds {kind_of(event)}, wanted a map")
                yield number, event

    def _broken(self, number: int, why: str) -> ConfigError:
        return ConfigError(f"{self.journal}:{number}: {why}; put the line back as it was, or start a new run")

    def records(self, prefix: str = "") -> tuple[BootRecord, ...]:
        """The finished boots, in order; a boot that ran twice (after a kill) counts by its last line.

        `prefix` asks for those that are no boots of the bracket. Half a pair (a kill) is none.
        Raises ConfigError with the number of a line that is no event, or no boot of this version.
        """
        boots: dict[int, BootRecord] = {}
        for number, event in self._numbered():
            if "event" not in event:
                raise self._broken(number, "it is no event")
            if event["event"] == "boot" or "boot" in event:
                try:
                    found = record(event.get("boot"))
                except ConfigError as error:
                    raise self._broken(number, str(error)) from error
                if event["event"] == f"{prefix}boot":
                    boots[found.index] = found
            elif event["event"] == f"{prefix}{VOIDED}":
                for index in self._voided(number, event)[0]:
                    boots.pop(index, None)
        sizes = Counter(boot.pair for boot in boots.values())
        return tuple(boots[i] for i in sorted(boots) if not boots[i].pair or sizes[boots[i].pair] == BOOTS_A_PAIR)

    def void(self, indexes: Sequence[int], reason: str, prefix: str = "") -> None:
        """These finished boots no longer count; what they gave stays in the journal. One line, so all or none."""
        event = f"{prefix}{VOIDED}"
        self.append({"event": event, "time_unix_s": time.time(), "indexes": list(indexes), "reason": reason})

    def voided(self, prefix: str = "") -> tuple[tuple[BootRecord, ...], ...]:
        """The boots that were voided, by each time that some were, as `records` no longer gives them.

        One that was void itself keeps its own reason; `reason` is why the others no longer count.
        """
        boots: dict[int, BootRecord] = {}
        found = []
        for number, event in self._numbered():
            if event.get("event") == f"{prefix}boot":
                boots[event["boot"]["index"]] = record(event["boot"])
            elif event.get("event") == f"{prefix}{VOIDED}":
                indexes, reason = self._voided(number, event)
                found.append(tuple(_voided(boots[i], reason) for i in indexes if i in boots))
        return tuple(found)

    def _voided(self, number: int, event: Mapping[str, Any]) -> tuple[list[int], str]:
        indexes, reason = event.get("indexes"), event.get("reason")
        if not isinstance(indexes, list) or not all(type(i) is int for i in indexes) or not isinstance(reason, str):
            raise self._broken(number, "it names no voided boots")
        return indexes, reason

    def registered(self) -> dict[str, Any]:
        """plan.json, with all in it that a run is gone on with. Raises ConfigError with what is missing."""
        data = read_json(self.plan)
        if not isinstance(data, dict):
            raise ConfigError(f"{self.plan} holds {kind_of(data)}, wanted the plan of a run")
        arms = data.get("arms")
        found = data | ({f"arms.{name}": arm for name, arm in arms.items()} if isinstance(arms, dict) else {})
        for name, kind in (REGISTERED | {key: dict for key in found if key.startswith("arms.")}).items():
            if not isinstance(found.get(name), kind):
                there = kind_of(found[name]) if name in found else "missing"
                raise ConfigError(f"{self.plan}: {name} is {there}, wanted {_KINDS[kind]}; it is not the plan of a run")
        return data

    def keep_manifest(self, rows: Mapping[str, object]) -> None:
        """overlays.json: the composed manifest of each arm, as verified first. Raises DriftError if it is now other."""
        if not self.manifest.exists():
            write_json(self.manifest, rows)
        elif read_json(self.manifest) != json.loads(dumps(rows)):
            raise DriftError(
                f"{self.manifest}: the overlays, or the files of the engine under them, are no longer what this run "
                "began with; put them back, or start a new run"
            )


def _voided(boot: BootRecord, reason: str) -> BootRecord:
    return boot if boot.status == "void" else replace(boot, status="void", reason=reason)
