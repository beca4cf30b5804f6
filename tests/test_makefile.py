"""What is typed for make and read by nobody is told before anything is set up."""

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


def make(*words: str) -> "subprocess.CompletedProcess[str]":
    """`make -n`: what would be done, told alike where `make test` runs these tests and where a person does."""
    surroundings = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
    command = ["make", "-n", *words]
    return subprocess.run(command, cwd=ROOT, env=surroundings, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("run", "exp=aa"), "exp= is read by nobody here; wanted EXP=..."),
        (("run", "EXP=exp8", "bracket=screen"), 'ARGS: make run EXP=exp8 ARGS="key=value ..."'),
        (("test", "engine=gpu"), "engine= is read by nobody here"),
        (("run", "EXP=exp9"), "no experiment EXP=exp9; conf/exp has aa exp7 exp7x8 exp8"),
        (("run", "EXP="), "no experiment EXP=; conf/exp has aa exp7 exp7x8 exp8"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_a_word_that_would_be_lost_ends_make_before_anything_is_set_up(words: tuple[str, ...], told: str) -> None:
    done = make(*words)
    assert done.returncode != 0
    assert told in done.stderr
    assert done.stdout == ""


@pytest.mark.parametrize(
    "words",
    [
        ("run",),
        ("run", "EXP=aa", "ARGS=bracket=screen host.port=8300"),
        ("run", "EXP=mine", "ARGS=--config-dir elsewhere"),
        ("help", "EXP=exp9"),
        ("setup", "ENGINE=gpu", "TORCH_INDEX=https://host/whl/cpu", "PYTHON=python3.11"),
    ],
    ids=" ".join,
)
def test_what_make_reads_is_taken(words: tuple[str, ...]) -> None:
    done = make(*words)
    assert done.returncode == 0, done.stderr
