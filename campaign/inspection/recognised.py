"""What kind of file this is, by its content: nobody has to say it, and nothing is guessed from a name."""

import json
import re
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from campaign.errors import ConfigError
from campaign.inspection import log

LARGEST_MB = 256
PAGES = (".md", ".html", ".json", ".jsonl", ".py", ".toml", ".yaml", ".yml")  # they may quote a log
PAGE = re.compile(
    r"\s*(?:# (?:PASS|FAIL|INCONCLUSIVE|VOID|INVALID): |<!doctype|<html|\{\s*\"(?!log\")|\[\s*[{\"])", re.I
)
METRICS_LINE = re.compile(r"^(?:# (?:HELP|TYPE) |vllm:\w+[{ ])", re.MULTILINE)
KINDS = (
    "an engine's log, what GET /metrics answered, a boot's texts.jsonl or samples.jsonl, a bracket record, "
    "a run's result.json, a benchmark's JSON, a stream's chunk times (docs/inspect.md shows each)"
)


class Kind(StrEnum):
    """The kinds of files that are read."""

    LOG = "log"
    METRICS = "metrics"
    TEXTS = "texts"
    RECORD = "record"
    RESULT = "result"
    BENCHMARK = "benchmark"
    STREAM = "stream"


KEYS: tuple[tuple[Kind, frozenset[str]], ...] = (  # a JSON object is of the first kind whose keys it all has
    (Kind.RECORD, frozenset({"claim", "letters", "readings"})),
    (Kind.RESULT, frozenset({"run_id", "verdict", "gates"})),
    (Kind.BENCHMARK, frozenset({"completed"})),
    (Kind.STREAM, frozenset({"chunks"})),
    (Kind.STREAM, frozenset({"chunk_ns", "chunk_tokens"})),
    (Kind.TEXTS, frozenset({"text", "finish_reason"})),
)


@dataclass(frozen=True)
class Source:
    """A file that was recognised. `data` holds its JSON: the objects, one a line or the only one; empty for a text."""

    file: Path
    kind: Kind
    text: str
    data: tuple[dict[str, Any], ...] = ()

    @property
    def name(self) -> str:
        """How it is called in what is told."""
        return self.file.name


def recognise(file: Path) -> Source:
    """The file with its kind. Raises ConfigError for one that is too large, no text, or of no kind that is read."""
    text = _text(file)
    if not text.strip():
        raise ConfigError(f"{file} is empty: the engine wrote nothing, so nothing can be read in it")
    objects = _objects(text)
    if objects:
        kind = _kind(objects)
        if kind is not None:
            return Source(file, kind, text, objects)
    if file.suffix in PAGES or PAGE.match(text):
        raise ConfigError(
            f"{file} is neither an engine's log nor a /metrics text, though it may quote one{_near(objects)}; "
            f"read are {KINDS}"
        )
    if METRICS_LINE.search(text):
        return Source(file, Kind.METRICS, text)
    if log.is_one(text):
        return Source(file, Kind.LOG, text)
    raise ConfigError(
        f"{file} is neither an engine's log nor a /metrics text: no line of it is one that is read here; "
        f"read are {KINDS}"
    )


def _text(file: Path) -> str:
    try:
        size_mb = file.stat().st_size / 2**20
        if size_mb > LARGEST_MB:
            raise ConfigError(
                f"{file} has {size_mb:.0f} MiB; inspect reads up to {LARGEST_MB}: cut out the part of one boot"
            )
        content = file.read_bytes()
    except OSError as error:
        raise ConfigError(f"{file} cannot be read: {error.strerror}") from error
    if b"\0" in content:
        raise ConfigError(f"{file} is no text; read are {KINDS}")
    text = content.decode("utf-8-sig", "replace")
    if text.lstrip().startswith("{") and not _is_utf8(content):  # what we put in would be taken for an engine's damage
        raise ConfigError(f"{file} is no UTF-8, as JSON is; save it again as it came")
    return text


def _is_utf8(content: bytes) -> bool:
    try:
        content.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _objects(text: str) -> tuple[dict[str, Any], ...]:
    """The JSON objects of a file that holds one, or one a line; empty where it holds anything else."""
    if not text.lstrip().startswith("{"):
        return ()
    for parts in ([text], [line for line in text.split("\n") if line.strip()]):
        try:
            found = [json.loads(part) for part in parts]
        except (ValueError, RecursionError):
            continue
        return tuple(found) if all(isinstance(one, dict) for one in found) else ()
    return ()


def _kind(objects: tuple[dict[str, Any], ...]) -> Kind | None:
    """The kind that all objects are of; None where one is of none, or where they differ."""
    kinds = {next((kind for kind, keys in KEYS if keys <= one.keys()), None) for one in objects}
    (kind, *others) = kinds
    many = len(objects) > 1 and kind in (Kind.RECORD, Kind.RESULT, Kind.BENCHMARK)
    return None if others or many else kind


def _near(objects: tuple[dict[str, Any], ...]) -> str:
    """Which keys a JSON file lacks to be of the kind that it is nearest to; empty for what is no JSON object."""
    if not objects:
        return ""
    there = objects[0].keys()
    kind, keys = max(KEYS, key=lambda row: len(row[1] & there) / len(row[1]))
    missing = sorted(keys - there)
    if len(missing) == len(keys) or not missing:
        return ""
    return f" (as a {kind} it lacks {', '.join(missing)})"
