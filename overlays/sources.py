"""Where the text of an engine version is read from: an interpreter, or a folder of unpacked sources."""

import re
from pathlib import Path

from overlays.base import BaseTree, base_tree, build_name
from overlays.errors import OverlayError
from overlays.manifest import VERSION

ROOT = Path(__file__).parents[1]
ENGINE = ROOT / ".venv-engine" / "bin" / "python"
UNPACKED = ROOT / "build" / "engine-sources"
METADATA = re.compile(r"^(vllm(?:_[a-z0-9]+)*)-(\d.*)\.dist-info$")


def engine_of(where: str, unpacked: Path = UNPACKED, installed: Path = ENGINE) -> BaseTree:
    """The engine that `where` names: a version, an interpreter, or a folder with vllm/ and its dist-info.

    A version is the installed engine if that is its version, else build/engine-sources/VERSION. Raises OverlayError.
    """
    if re.fullmatch(VERSION, where):
        return _of_version(where, unpacked, installed)
    path = Path(where)
    if path.is_dir():
        return unpacked_tree(path)
    if not path.is_file():
        raise OverlayError(f"{where} is no version, no interpreter and no folder with vllm/; name one of them")
    return base_tree(path)


def unpacked_tree(folder: Path) -> BaseTree:
    """A folder that a wheel was unpacked into. Raises OverlayError unless it holds vllm/ and one dist-info of it."""
    found = [match for path in sorted(folder.glob("vllm*.dist-info")) if (match := METADATA.match(path.name))]
    if not (folder / "vllm" / "__init__.py").is_file() or len(found) != 1:
        raise OverlayError(
            f"{folder} must hold vllm/ and one vllm*.dist-info, as a wheel is unpacked; found "
            f"{[match.string for match in found] or 'no dist-info'}; `make engine-sources` unpacks them"
        )
    version, _, local = found[0][2].partition("+")
    build = build_name(found[0][1].replace("_", "-"), local)
    return BaseTree(folder.absolute() / "vllm", version, build)


def _of_version(version: str, unpacked: Path, installed: Path) -> BaseTree:
    if (unpacked / version).is_dir():
        return unpacked_tree(unpacked / version)
    here = base_tree(installed) if installed.exists() else None
    if here and here.version == version:
        return here
    there = sorted(path.name for path in unpacked.glob("*") if path.is_dir())
    raise OverlayError(
        f"the sources of vLLM {version} are not here; found {', '.join(there) or 'none'} in {unpacked}"
        f"{f' and {here.version} in {installed}' if here else ''}; `make engine-sources` fetches those that are "
        "pinned, or give the path of an interpreter or of an unpacked wheel"
    )
