"""What `import` was asked for, from its words. Imports no tracker: a wrong word is told at once."""

from dataclasses import dataclass
from pathlib import Path

from campaign import door
from campaign.asked import confidential
from campaign.errors import ConfigError

OPTIONS = ("--supersedes", "--corrects", "--because")
URI = "tracking.uri="
WANTED = "import RUN... [--supersedes OTHER] [--corrects OTHER --because TEXT] [tracking.uri=URI]"
LONGEST_BECAUSE = 1000


@dataclass(frozen=True)
class ImportRequest:
    """Runs by their folders, what the one run says of another, and another tracker than the plan's."""

    folders: tuple[Path, ...]
    supersedes: str = ""
    corrects: str = ""
    because: str = ""
    uri: str | None = None

    @property
    def relates(self) -> bool:
        """Whether something is said of another run."""
        return bool(self.supersedes or self.corrects)


def parse(words: list[str]) -> ImportRequest:
    """The words after `import`. Raises ConfigError with the word that is wrong."""
    given, runs, uri = dict[str, str](), list[str](), None
    waiting = list(words)
    while waiting:
        word = waiting.pop(0)
        name, equals, value = word.partition("=")
        if name in OPTIONS:
            value = value if equals else (waiting.pop(0) if waiting else "")
            given[name.removeprefix("--")] = _text(name, value)
        elif word.startswith(URI):
            uri = _uri(value)
        elif word.startswith("-"):
            raise ConfigError(f"import has no option {word}; wanted {WANTED}")
        else:
            runs.append(word)
    if not runs:
        raise ConfigError(f"import takes the run ids (or the paths of their folders), found none; wanted {WANTED}")
    folders = tuple(door.run_reference("import", [run]).folder for run in runs)
    request = ImportRequest(folders, **{name: _other(name, text) for name, text in given.items()}, uri=uri)
    _check(request)
    return request


def _text(name: str, value: str) -> str:
    if not value.strip() or value.startswith("--"):
        raise ConfigError(
            f"{name} takes {'a sentence' if name == '--because' else 'a run id'}, found {value or 'nothing'}"
        )
    return value.strip()


def _other(name: str, text: str) -> str:
    """The other run's id; of a path the last part. `because` is any text, in one line."""
    if name == "because":
        confidential.refuse_urls("--because", text)
        if len(text) > LONGEST_BECAUSE:
            raise ConfigError(f"--because: found {len(text)} characters, wanted at most {LONGEST_BECAUSE}")
        return " ".join(text.split())
    run_id = Path(text).name if "/" in text else text
    if not door.RUN_ID.fullmatch(run_id) or ".." in run_id:
        raise ConfigError(f"--{name}: {run_id!r} is no run id: letters, digits, '_', '-', '.' only")
    return run_id


def _uri(value: str) -> str:
    if not value:
        raise ConfigError(
            "tracking.uri: found an empty text, wanted an address, for instance sqlite:////path/mlflow.db"
        )
    confidential.refuse_urls("tracking.uri", value)
    return value


def _check(request: ImportRequest) -> None:
    if request.relates and len(request.folders) > 1:
        raise ConfigError(f"one run stands in the place of another, found {len(request.folders)} runs; import it alone")
    if request.corrects and not request.because:
        raise ConfigError('--corrects takes --because "what was wrong" beside it: the ledger tells it')
    if request.because and not request.relates:
        raise ConfigError("--because says why a run stands in another's place; give --supersedes or --corrects too")
