"""Which files of a run folder may leave it, and how much of each. Knows nothing of where they go.

Names and links in a run folder are not trusted: an engine writes there (cases G11).
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

MAX_BYTES = 2 * 2**20
OF_CAMPAIGN = ("plan.json", "journal.jsonl", "result.json", "mechanism.json", "report.md", "report.html")
NEVER = ("env.json",)  # holds what was passed through to the engine, which may be a token
SAFE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,119}")


@dataclass(frozen=True)
class Upload:
    """One file: itself while it is small, else the text of its end."""

    path: Path
    name: str
    is_whole: bool

    def tail(self) -> str:
        """The last MAX_BYTES, from the start of a line on."""
        with self.path.open("rb") as file:
            file.seek(-MAX_BYTES, 2)
            text = file.read().decode("utf-8", "replace")
        return text.partition("\n")[2] or text


def of_campaign(run_dir: Path) -> tuple[Upload, ...]:
    """The files that belong to the whole run, as far as they are there."""
    return tuple(_inside(run_dir, (run_dir / name for name in OF_CAMPAIGN)))


def of_boot(run_dir: Path, name: str) -> tuple[Upload, ...]:
    """The files of one boot's folder (`03-B`, or `03-B/void-1`), without sub-folders and without its environment."""
    folder = run_dir / "boots" / name
    found = sorted(folder.iterdir()) if folder.is_dir() else []
    return tuple(_inside(run_dir, (path for path in found if path.name not in NEVER)))


def _inside(run_dir: Path, paths: Iterator[Path]) -> Iterator[Upload]:
    """Regular files with a plain name that really lie in the run folder, links followed."""
    root = run_dir.resolve()
    for path in paths:
        if path.is_file() and SAFE_NAME.fullmatch(path.name) and path.resolve().is_relative_to(root):
            is_whole = path.stat().st_size <= MAX_BYTES
            yield Upload(path, path.name if is_whole else f"{path.stem}.tail{path.suffix}", is_whole)
