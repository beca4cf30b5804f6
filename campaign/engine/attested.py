"""The attested layer: the overlaid code as the engine's processes loaded it, against the staged files."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from campaign.engine.reports import Report
from campaign.evidence import WitnessRow

SHOWN = 12  # characters of a hash that a person compares


class StagedModule(Protocol):
    """A staged file, as overlays.stage lists it."""

    @property
    def path(self) -> str: ...
    @property
    def module(self) -> str: ...
    @property
    def sha256(self) -> str: ...


def rows(staged: Iterable[StagedModule], reports: Sequence[Report], stage_path: str) -> list[WitnessRow]:
    """One row a staged module: each process that loaded it has it from the stage, with the staged bytes."""
    return [_row(file, reports, stage_path) for file in staged if file.module]


def _row(file: StagedModule, reports: Sequence[Report], stage_path: str) -> WitnessRow:
    wanted = f"{file.sha256[:SHOWN]} below {stage_path}"
    loaded = {report: report.modules[file.module] for report in reports if file.module in report.modules}
    if not loaded:
        return _attested(
            file.module, wanted, "loaded by no process that answered: the patch did not run", False, reports
        )
    wrong = {r: m for r, m in loaded.items() if not _is(m, file, stage_path)}
    told = wrong or loaded
    words = ", ".join(dict.fromkeys(_words(m) for m in told.values()))
    return _attested(file.module, wanted, words, not wrong, list(told))


def _is(loaded: Mapping[str, str], file: StagedModule, stage_path: str) -> bool:
    """The staged file by path and hash, and the code in memory is what that file says (where the process tells)."""
    same_code = loaded.get("code", "same") == "same"
    places = {loaded["file"], loaded.get("origin", loaded["file"])}
    return loaded["sha256"] == file.sha256 and places == {f"{stage_path}/{file.path}"} and same_code


def _words(loaded: Mapping[str, str]) -> str:
    code = loaded.get("code", "same")
    return f"{loaded['sha256'][:SHOWN]} from {loaded['file']}{'' if code == 'same' else f', but {code}'}"


def _attested(module: str, wanted: str, found: str, ok: bool, reports: Sequence[Report]) -> WitnessRow:
    return WitnessRow("engine", "attested", module, wanted, found, ok, ", ".join(map(str, reports)))
