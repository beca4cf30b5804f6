"""Small real things: an engine package of a few files, overlays in tmp_path, and the real engine's interpreter."""

import base64
import difflib
import sys
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import pytest

from overlays.base import BaseTree

ROOT = Path(__file__).parents[2]
FAULTY = Path(__file__).parent / "faulty"
CPU = "vllm/platforms/cpu.py"
TEXT = "# fast path\nasync_scheduling = False\nname = 'cpu'\n"


def digest(text: str) -> str:
    """The sha256 (hex) of a text."""
    return sha256(text.encode()).hexdigest()


def diff(before: str, after: str, path: str) -> str:
    """A unified diff without context, as diff -U0 writes it (both texts end with a newline)."""
    made = difflib.unified_diff(
        [line + "\n" for line in before.split("\n")[:-1]],
        [line + "\n" for line in after.split("\n")[:-1]],
        f"a/{path}", f"b/{path}", n=0,
    )  # fmt: skip
    return "".join(made)


def payload_digest(package: str, files: dict[str, str]) -> str:
    """What a manifest pins: the sha256 over each path and text, each with its length before it."""
    parts = [part.encode() for path in sorted(files) for part in (f"{package}/{path}", files[path])]
    return sha256(b"".join(f"{len(part)}:".encode() + part for part in parts)).hexdigest()


EMPTY_TARGET = '[[target]]\nversion = "0.29.0"\nbuilds = ["cpu"]\nfile = []\n'


@dataclass(frozen=True)
class Workshop:
    """Writes overlays for the small engine into one folder."""

    folder: Path

    def overlay(self, name: str, body: str = "", **changes: str) -> Path:
        """An overlay whose `body` is the manifest's end; `changes` replaces top-level lines."""
        lines = {
            "why": '"to test"',
            "owner": '"tests"',
            "async_safe": "true",
            "async_reason": '"touches nothing"',
            **changes,
        }
        head = "\n".join(f"{key} = {value}" for key, value in lines.items())
        upstream = '[upstream]\nlink = "none"\nstatus = "none"\ndrop_when = "never"'
        self.write(name, "manifest.toml", f"{head}\n{upstream}\n{body}\n")
        return self.folder / name

    def write(self, name: str, file: str, text: str) -> None:
        """A file beside the manifest."""
        path = self.folder / name / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def plugin(self, name: str, files: dict[str, str], rest: str = EMPTY_TARGET, **changes: str) -> Path:
        """A plugin overlay with these files as its payload, rightly pinned; `changes` replaces lines of [plugin]."""
        (self.folder / name / "pay").mkdir(parents=True, exist_ok=True)
        for path, text in files.items():
            self.write(name, f"pay/{path}", text)
        package = changes.pop("package", "hook_pkg")
        lines = {
            "entry_point": '"hook"',
            "object": f'"{package}.wrap:register"',
            "payload": '"pay"',
            "payload_sha256": f'"{payload_digest(package, files)}"',
            "wraps": "[]",
            **{key: changes.pop(key) for key in ("entry_point", "wraps") if key in changes},
        }
        body = "\n".join(f"{key} = {value}" for key, value in lines.items())
        return self.overlay(name, f"[plugin]\n{body}\n{rest}", **changes)

    def patching(self, name: str, after: str, before: str = TEXT, path: str = CPU, **changes: str) -> Path:
        """An overlay that turns `before` into `after`, rightly pinned."""
        self.write(name, "one.patch", diff(before, after, path))
        return self.overlay(name, target(path, before, after), **changes)


def target(path: str, before: str, after: str) -> str:
    """A [[target]] with one patched file, pinned to these texts."""
    return (
        '[[target]]\nversion = "0.29.0"\nbuilds = ["cpu"]\n[[target.file]]\n'
        f'path = "{path}"\npatch = "one.patch"\n'
        f'preimage_sha256 = "{digest(before)}"\npostimage_sha256 = "{digest(after)}"\n'
    )


@pytest.fixture
def workshop(tmp_path: Path) -> Workshop:
    """Overlays go to tmp_path/overlays."""
    (tmp_path / "overlays").mkdir()
    return Workshop(tmp_path / "overlays")


@pytest.fixture
def small_engine(tmp_path: Path) -> BaseTree:
    """An engine package of six files with a RECORD, as a wheel would have installed it."""
    site = tmp_path / "site"
    for path, text in {
        "vllm/__init__.py": "",
        CPU: TEXT,
        "vllm/platforms/__init__.py": "",
        "vllm/tuned/__init__.py": (
            "import os\nwith open(os.path.join(os.path.dirname(os.path.realpath(__file__)), 'table.json')) as file:\n"
            "    table = file.read()\n"
        ),
        "vllm/tuned/table.json": '{"stock": 1}\n',
        "vllm/_C.abi3.so": "compiled",
    }.items():
        (site / path).parent.mkdir(parents=True, exist_ok=True)
        (site / path).write_text(text)
    record = site / "vllm-0.29.0.dist-info" / "RECORD"
    record.parent.mkdir()
    record.write_text(record_text(site))
    (site / "vllm" / "__pycache__").mkdir()
    (site / "vllm" / "__pycache__" / "stale.pyc").write_bytes(b"stale")
    return BaseTree(site / "vllm", "0.29.0", "cpu", Path(sys.executable), record)


def record_text(site: Path) -> str:
    """A wheel's RECORD for everything under vllm/."""
    rows = []
    for file in sorted(path for path in (site / "vllm").rglob("*") if path.is_file()):
        content = file.read_bytes()
        encoded = base64.urlsafe_b64encode(sha256(content).digest()).rstrip(b"=").decode()
        rows.append(f"{file.relative_to(site)},sha256={encoded},{len(content)}\n")
    return "".join(rows)


@pytest.fixture
def make_diff() -> Callable[[str, str, str], str]:
    """The diff writer."""
    return diff


@pytest.fixture(scope="session")
def engine_python() -> Path:
    """The reference engine's interpreter (make setup)."""
    return ROOT / ".venv-engine" / "bin" / "python"


@pytest.fixture(scope="session")
def stage_cache() -> Path:
    """Stages of the real engine are kept between test runs: they are content-addressed and verified on every use."""
    return ROOT / "build" / "test-stages"


@pytest.fixture(scope="session")
def faulty() -> Path:
    """The folder of planted faults."""
    return FAULTY
