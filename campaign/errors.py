"""The error tree and the exit codes (house.md, "Exit codes").

CampaignError                 a fault of ours when nothing below fits            70
├── ConfigError               the operator's input is wrong                       2
├── DriftError                an engine file is not the one the overlay pins      6
├── InvalidError              not what was asked was (or would be) measured       5
├── HostUnfitError            this machine cannot measure now                     4
├── SkippedError              another run holds the lease                         7
├── EngineFailedError         an arm's engine died, hung or answered with errors  1
└── TrackingError             the tracker does not take the results (on disk)     4
"""

import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from enum import IntEnum
from types import TracebackType


class ExitCode(IntEnum):
    """What the process says to a script."""

    PASS = 0
    FAIL = 1
    CONFIG = 2
    INCONCLUSIVE = 3
    VOID = 4
    INVALID = 5
    DRIFT = 6
    SKIPPED = 7
    FAULT = 70
    INTERRUPTED = 130


OURS = ("", "campaign", "overlays", "verdict", "testbed")  # no name: nobody knows whose it is
WORST_FIRST = (
    ExitCode.INTERRUPTED,
    ExitCode.FAULT,
    ExitCode.CONFIG,
    ExitCode.DRIFT,
    ExitCode.INVALID,
    ExitCode.FAIL,
    ExitCode.VOID,
    ExitCode.INCONCLUSIVE,
    ExitCode.SKIPPED,
    ExitCode.PASS,
)


def worst(codes: list[ExitCode]) -> ExitCode:
    """The code that decides for a list of them; PASS only when the list is not empty and all passed."""
    return min(codes, key=WORST_FIRST.index) if codes else ExitCode.INCONCLUSIVE


class CampaignError(Exception):
    """Root of what this package raises on purpose."""

    exit_code = ExitCode.FAULT
    transient = ""  # why the same boot may well succeed a second time; set on an error of a boot


class ConfigError(CampaignError):
    """The operator's input is wrong; nothing was started."""

    exit_code = ExitCode.CONFIG


class DriftError(CampaignError):
    """A file of the engine is not the one that an overlay pins."""

    exit_code = ExitCode.DRIFT


class InvalidError(CampaignError):
    """Not what was asked was measured: a knob that is off, equal arms, a foreign server."""

    exit_code = ExitCode.INVALID


class HostUnfitError(CampaignError):
    """This machine cannot measure now; the experiment is not blamed."""

    exit_code = ExitCode.VOID


class SkippedError(CampaignError):
    """Another run holds the lease."""

    exit_code = ExitCode.SKIPPED


class EngineFailedError(CampaignError):
    """The engine died, hung or answered with an error. It is a result about its arm, never slow data."""

    exit_code = ExitCode.FAIL


class TrackingError(CampaignError):
    """The tracker refused the results. They are on disk and can be imported later."""

    exit_code = ExitCode.VOID


@contextmanager
def interrupted(words: str) -> Iterator[None]:
    """What an interruption in the block leaves, and how to go on: told by the Boundary, after what a stop left."""
    try:
        yield
    except KeyboardInterrupt as error:
        error.add_note(words)
        raise


class Boundary:
    """`with Boundary() as end:` turns whatever leaves the block into one sentence and `end.code`.

    An error that nobody expected is a fault of ours (70), shown with its trace: it must never look like a FAIL (1).
    A module of somebody else that is not installed is the wrong Python (2).
    """

    code = ExitCode.FAULT

    def __enter__(self) -> "Boundary":
        return self

    def __exit__(self, _: object, error: BaseException | None, trace: TracebackType | None) -> bool:
        if isinstance(error, CampaignError):
            self.code = error.exit_code
            complain(str(error), self.code)
        elif isinstance(error, KeyboardInterrupt):
            self.code = ExitCode.INTERRUPTED
            by = f" by {error}" if str(error) else ""  # SIGTERM, SIGHUP
            notes = getattr(error, "__notes__", None) or ["nothing was started that could be continued"]
            complain(f"interrupted{by}; {'; '.join(notes)}", self.code)
        elif isinstance(error, ModuleNotFoundError) and not _is_known(error.name):
            self.code = ExitCode.CONFIG
            complain(_wrong_python(error), self.code)
        elif isinstance(error, Exception):
            traceback.print_exception(error)
            complain(f"a fault of ours, please report it: {type(error).__name__}: {error}", self.code)
        return isinstance(error, CampaignError | KeyboardInterrupt | Exception)


def _is_known(module: str | None) -> bool:
    """A module of ours or of Python itself: when it is missing, the fault is ours."""
    package = (module or "").partition(".")[0]
    return package in OURS or package in sys.stdlib_module_names


def _wrong_python(error: ModuleNotFoundError) -> str:
    return (
        f"this Python ({sys.executable}) has no module {error.name}; run `make setup` once, then use "
        "`.venv/bin/python -m campaign ...` (or `. .venv/bin/activate` first)"
    )


def complain(sentence: str, code: ExitCode) -> None:
    """One sentence on stderr, with the code that the process ends with."""
    with suppress(OSError):  # whoever read us is gone; the code must still be the right one
        line = " ".join(sentence.splitlines())  # what was typed may hold a line break
        sys.stderr.write(f"{code.name.lower()} ({int(code)}): {line}\n")
        sys.stderr.flush()
