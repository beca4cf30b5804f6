"""Twin of campaign.import_request."""

from pathlib import Path

import pytest

from campaign.errors import ConfigError
from campaign.import_request import parse


@pytest.fixture
def run(tmp_path: Path) -> str:
    (tmp_path / "plan.json").write_text("{}")
    return str(tmp_path)


def test_options_stand_anywhere_and_many_runs_are_taken(run: str) -> None:
    asked = parse([run, "tracking.uri=sqlite:////x.db", run])
    assert (asked.folders, asked.uri, asked.relates) == ((Path(run), Path(run)), "sqlite:////x.db", False)
    asked = parse(["--corrects", "/some/runs/exp8-1", "--because=the  fan\nwas off", run])
    assert (asked.corrects, asked.because, asked.folders) == ("exp8-1", "the fan was off", (Path(run),))


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ([], "found none"),
        (["--supersedes"], "--supersedes takes a run id, found nothing"),
        (["--corrects", "--because", "x"], "--corrects takes a run id, found --because"),
        (["RUN", "--corrects", "x"], "takes --because"),
        (["RUN", "--because", "x"], "give --supersedes or --corrects too"),
        (["RUN", "RUN", "--supersedes", "x"], "found 2 runs"),
        (["RUN", "--supersedes", "a' or '"], "is no run id"),
        (["RUN", "--supersedes", "a..b"], "is no run id"),
        (["RUN", "--replaces", "x"], "no option --replaces"),
        (["RUN", "tracking.uri="], "found an empty text"),
        (["RUN", "tracking.uri=http://me:secret@host"], "found a URL with a password"),
        (["RUN", "--corrects", "x", "--because", "see http://me:secret@host"], "found a URL with a password"),
        (["RUN", "--corrects", "x", "--because", "y" * 1001], "at most 1000"),
        (["no such run"], "is no run id"),
    ],
)
def test_a_wrong_word_is_told_before_a_tracker_is_opened(run: str, words: list[str], why: str) -> None:
    with pytest.raises(ConfigError, match=why) as told:
        parse([run if word == "RUN" else word for word in words])
    assert "secret" not in str(told.value)
