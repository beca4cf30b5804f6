"""What lies beside an engine's log: what its boot was given, and which variables overlays of its run read."""

import json
from pathlib import Path
from typing import Any, TypeVar

from campaign.errors import ConfigError
from overlays.errors import OverlayError
from overlays.manifest import known

T = TypeVar("T")
BOOTS = "boots"  # RUN/boots/01-A/engine.log


def given(file: Path, name: str, nothing: T) -> T:
    """What a boot of ours was given, where it lies beside its log; `nothing` where it does not.

    Raises ConfigError for a file that cannot be read or holds something of another kind.
    """
    beside = file.with_name(name)
    if not beside.is_file():
        return nothing
    try:
        found = json.loads(beside.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"{beside} beside the log cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{beside} beside the log is no JSON: {error}") from error
    if not isinstance(found, type(nothing)):
        raise ConfigError(f"{beside} beside the log holds {type(found).__name__}, wanted {type(nothing).__name__}")
    return found


def declared(file: Path) -> frozenset[str]:
    """Variables that an overlay of ours or of the run's own reads: the engine does not know them, and that is right."""
    search = [Path(path) for path in _overlay_path(file.absolute())]
    try:
        overlays = known([path for path in search if path.is_dir()])
    except OverlayError as error:
        raise ConfigError(str(error)) from error
    return frozenset(name for overlay in overlays.values() for name in overlay.variables)


def _overlay_path(log: Path) -> list[str]:
    """host.overlay_path of the run that a boot's log belongs to; empty for a log of somebody else's."""
    run = next((folder.parent for folder in log.parents if folder.name == BOOTS), None)
    if run is None:
        return []
    plan = run / "plan.json"
    nothing: dict[str, Any] = {}
    found: Any = given(plan, plan.name, nothing)
    for key in ("config", "host", "overlay_path"):
        if not isinstance(found, dict):
            raise ConfigError(f"{plan}: what holds {key} is {type(found).__name__}, wanted a map")
        found = found.get(key, [] if key == "overlay_path" else nothing)
    if not isinstance(found, list) or not all(isinstance(path, str) for path in found):
        raise ConfigError(f"{plan}: config.host.overlay_path is {found!r}, wanted a list of folders")
    return found
