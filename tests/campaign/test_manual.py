"""The words of --help: every line that it shows can be typed."""

import re
import shlex

import pytest

from campaign.errors import ExitCode
from campaign.import_request import OPTIONS, URI
from campaign.manual import HELP, OF_A_VERB, ON_A_RUN, WITH_CONFIG, is_verb
from campaign.planning.plan import make

PLACEHOLDER = re.compile(r"=[A-Z]+\b|key=value")
EXAMPLES = [word for word in re.findall(r"(?<![\w.])[a-z][\w./]*=\S+", HELP) if not PLACEHOLDER.search(word)]


def test_help_is_shown_for_each_spelling(command) -> None:
    for word in ("--help", "-h", "help"):
        done = command(word)
        assert (done.returncode, done.stdout, done.stderr) == (0, HELP, "")


def test_nothing_asked_shows_the_help_and_is_no_success(command) -> None:
    done = command()
    assert (done.returncode, done.stdout) == (2, HELP)


@pytest.mark.parametrize("line", [["exp=exp8", "--help"], ["run", "-h"], ["help", "me"]], ids=" ".join)
def test_help_is_shown_wherever_it_is_asked_for(asked, line: list[str]) -> None:
    done = asked(*line)
    assert (done.returncode, done.stdout) == (0, HELP)


@pytest.mark.parametrize("verb", [verb for verb in (*WITH_CONFIG, *ON_A_RUN) if verb != "run"])
def test_every_verb_has_a_help_of_its_own_however_it_is_asked_for(asked, verb: str) -> None:
    told = OF_A_VERB[verb]
    for line in ([verb, "--help"], [verb, "-h"], ["help", verb], [verb, "x", "--help"]):
        done = asked(*line)
        assert (done.returncode, done.stdout) == (0, told), line
    assert told.startswith(f"python -m campaign {verb} ")
    assert f"\n  {verb} " in told, "an example"
    assert "\nexit codes  " in told


@pytest.mark.parametrize("word", ["--supersedes", "--corrects", "--because", "tracking.uri="])
def test_the_help_of_import_has_every_word_that_it_takes(word: str) -> None:
    assert word in OF_A_VERB["import"]
    assert word in (*OPTIONS, URI)


def test_the_help_fits_a_terminal() -> None:
    texts = [HELP, *OF_A_VERB.values()]
    assert [line for text in texts for line in text.splitlines() if len(line) > 120] == []


@pytest.mark.parametrize("verb", [*WITH_CONFIG, *ON_A_RUN])
def test_every_verb_is_a_verb(verb: str) -> None:
    assert is_verb(verb)


@pytest.mark.parametrize("word", ["exp=exp8", "--help", "rseume", "", "Boot"])
def test_anything_else_is_none(word: str) -> None:
    assert not is_verb(word)


@pytest.mark.parametrize("verb", [verb for verb in (*WITH_CONFIG, *ON_A_RUN) if verb != "run"])
def test_every_verb_is_explained(verb: str) -> None:
    assert re.search(rf"^  {verb} ", HELP, re.MULTILINE)


@pytest.mark.parametrize("code", list(ExitCode), ids=lambda code: code.name)
def test_every_exit_code_is_explained(code: ExitCode) -> None:
    assert re.search(rf"(?<!\d){int(code)} [\w ]", HELP.partition("exit codes")[2])


@pytest.mark.parametrize("example", [e for e in EXAMPLES if not e.startswith(("exp=", "arm="))])
def test_every_override_in_the_help_makes_a_plan(compose, example: str) -> None:
    make(compose("exp=exp8", *shlex.split(example)), "run-1")


def test_the_examples_were_found() -> None:
    assert len(EXAMPLES) > 10
