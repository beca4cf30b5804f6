"""The attested layer: the overlaid files as the engine's processes have them, against the staged ones."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

from campaign.engine.reports import Report
from campaign.evidence import WitnessRow

SHOWN = 12  # characters of a hash that a person compares


class StagedModule(Protocol):
    """A staged file, as overlays.stage lists it; `module` is empty for a data file."""

    @property
    def path(self) -> str: ...
    @property
    def module(self) -> str: ...
    @property
    def sha256(self) -> str: ...
    @property
    def overlay(self) -> str: ...


def rows(
    staged: Iterable[StagedModule],
    reports: Sequence[Report],
    stage_path: str,
    wraps: Mapping[str, Sequence[str]] | None = None,
) -> list[WitnessRow]:
    """One row a staged file: each process that has it has it from the stage, with the staged bytes, and runs them.

    `wraps` are the engine files, by overlay, whose functions a staged plugin declares to replace.
    """
    files = tuple(staged)
    owners = {f"{stage_path}/{file.path}": file.overlay for file in files}
    found = []
    for file in files:
        allowed = {place for place, owner in owners.items() if file.path in (wraps or {}).get(owner, ())}
        found.append(_module(file, reports, stage_path, allowed) if file.module else _data(file, reports, stage_path))
    return found


def _module(file: StagedModule, reports: Sequence[Report], stage_path: str, allowed: set[str]) -> WitnessRow:
    wanted = f"{file.sha256[:SHOWN]} below {stage_path}"
    loaded = {report: report.modules[file.module] for report in reports if file.module in report.modules}
    if not loaded:
        words = "loaded by no process that answered: the patch did not run"
        return _attested(file.module, wanted, words, False, reports)
    told = {report: _words(entry, allowed) for report, entry in loaded.items()}
    wrong = {r: told[r] for r, m in loaded.items() if not _is(m, file, stage_path) or _foreign(m, allowed)}
    words = ", ".join(dict.fromkeys((wrong or told).values()))
    return _attested(file.module, wanted, words, not wrong, list(wrong or told))


def _data(file: StagedModule, reports: Sequence[Report], stage_path: str) -> WitnessRow:
    """Nothing imports a data file: every process that answers has the staged one where its own package root is."""
    wanted = f"{file.sha256[:SHOWN]} below {stage_path}"
    found = {report: report.files.get(file.path, {}) for report in reports}
    wrong = {r: entry for r, entry in found.items() if not entry or not _is(entry, file, stage_path)}
    words = ", ".join(dict.fromkeys(_place(entry) if entry else "not told" for entry in (wrong or found).values()))
    return _attested(file.path, wanted, words or "nobody answered", bool(found) and not wrong, list(wrong or found))


def _is(loaded: Mapping[str, Any], file: StagedModule, stage_path: str) -> bool:
    """The staged file by path and hash, and the code in memory is what that file says (where the process tells)."""
    same_code = loaded.get("code", "same") == "same"
    places = {loaded["file"], loaded.get("origin", loaded["file"])}
    return loaded["sha256"] == file.sha256 and places == {f"{stage_path}/{file.path}"} and same_code


def _foreign(loaded: Mapping[str, Any], allowed: set[str]) -> list[str]:
    """Functions of the module for which code stands that no staged plugin declares to put there."""
    replaced = loaded.get("replaced", ())
    return [f"{entry['function']} is replaced by {entry['file']}" for entry in replaced if entry["file"] not in allowed]


def _words(loaded: Mapping[str, Any], allowed: set[str]) -> str:
    code = loaded.get("code", "same")
    doubts = [*([] if code == "same" else [code]), *_foreign(loaded, allowed)]
    return f"{_place(loaded)}{f', but {doubts[0]}' if doubts else ''}"


def _place(entry: Mapping[str, Any]) -> str:
    origin = entry.get("origin", entry["file"])
    link = "" if origin == entry["file"] else f" (really {origin})"
    return f"{entry['sha256'][:SHOWN] or 'no such file'} from {entry['file']}{link}"


def _attested(module: str, wanted: str, found: str, ok: bool, reports: Sequence[Report]) -> WitnessRow:
    return WitnessRow("engine", "attested", module, wanted, found, ok, ", ".join(map(str, reports)))
