"""The exit codes of house.md, and which one decides."""

import itertools
import random
import re
from contextlib import nullcontext

import pytest

from campaign import errors
from campaign.errors import Boundary, CampaignError, ExitCode, complain, interrupted, worst

HOUSE_ORDER = [70, 2, 6, 5, 1, 4, 3, 7, 0]  # house.md: worst first for gates and sweeps


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (errors.ConfigError, 2),
        (errors.DriftError, 6),
        (errors.InvalidError, 5),
        (errors.HostUnfitError, 4),
        (errors.SkippedError, 7),
        (errors.EngineFailedError, 1),
        (errors.TrackingError, 4),
        (CampaignError, 70),
    ],
    ids=lambda value: getattr(value, "__name__", value),
)
def test_every_error_carries_the_exit_code_of_the_house(error: type[CampaignError], code: int) -> None:
    assert error("sentence").exit_code == code


def test_every_error_has_one_root_so_that_one_boundary_catches_all() -> None:
    found = [value for value in vars(errors).values() if isinstance(value, type) and issubclass(value, Exception)]
    assert all(issubclass(value, CampaignError) for value in found)


@pytest.mark.parametrize("pair", list(itertools.combinations(HOUSE_ORDER, 2)), ids=str)
def test_of_two_codes_the_worse_one_decides(pair: tuple[int, int]) -> None:
    codes = [ExitCode(code) for code in pair]
    assert worst(codes) == worst(codes[::-1]) == pair[0]


def test_the_worst_of_many_does_not_depend_on_their_order() -> None:
    codes = [ExitCode(code) for code in HOUSE_ORDER]
    random.Random(1).shuffle(codes)
    assert worst(codes) == ExitCode.FAULT


def test_no_code_at_all_is_no_pass() -> None:
    assert worst([]) == ExitCode.INCONCLUSIVE


def test_one_pass_alone_passes() -> None:
    assert worst([ExitCode.PASS, ExitCode.PASS]) == ExitCode.PASS


def test_a_python_without_our_packages_is_two_and_says_how_to_get_them(python) -> None:
    done = python("-S", "-m", "campaign", "exp=exp8", "dry_run=true")  # -S: no site-packages
    assert (done.returncode, done.stdout) == (2, "")
    assert re.fullmatch(
        r"config \(2\): this Python \(.+\) has no module \w+; run `make setup` once, .*\.venv/bin/python.*\n",
        done.stderr,
    )


@pytest.mark.parametrize("name", ["campaign.nosuch", "json.nosuch", None])
def test_a_module_of_ours_or_of_python_that_is_missing_is_a_fault_of_ours(name: str | None) -> None:
    with Boundary() as end:
        raise ModuleNotFoundError("No module", name=name)
    assert end.code == ExitCode.FAULT


@pytest.mark.parametrize(
    ("notes", "words"),
    [((), "nothing was started"), (("left behind: pid 7", "`resume x` continues"), "left behind: pid 7; `resume x`")],
    ids=["nothing yet", "a run"],
)
def test_an_interruption_says_what_it_left_and_no_run_that_there_is_not(capsys, notes, words) -> None:
    with Boundary() as end:
        interruption = KeyboardInterrupt("SIGTERM")
        for note in notes[:1]:
            interruption.add_note(note)
        with interrupted(notes[1]) if notes else nullcontext():
            raise interruption
    assert end.code == ExitCode.INTERRUPTED
    told = capsys.readouterr().err
    assert told.startswith("interrupted (130): interrupted by SIGTERM; ")
    assert words in told
    assert "RUN_ID" not in told


def test_a_complaint_is_one_line_with_the_word_and_the_code(capsys: pytest.CaptureFixture[str]) -> None:
    complain("arms.base.serve.port: leave it out", ExitCode.CONFIG)
    assert capsys.readouterr() == ("", "config (2): arms.base.serve.port: leave it out\n")
