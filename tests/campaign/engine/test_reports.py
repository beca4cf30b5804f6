"""Question and answer with an engine's processes."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from campaign.engine import reports
from campaign.engine.local import serve
from campaign.engine.reports import CORE_AND_WORKER, EVERY_ROLE, ask
from campaign.engine.spec import EngineSpec
from campaign.errors import InvalidError

Make = Callable[..., EngineSpec]


def test_every_process_answers_each_question_anew(make: Make) -> None:
    spec = make()
    with serve(spec) as engine:
        before = ask(spec.report_dir, spec.nonce, EVERY_ROLE)
        after = ask(spec.report_dir, spec.nonce, reports.places(before))
    assert [report.place for report in before] == list(EVERY_ROLE)
    assert {report.pid for report in before} == {engine.pid}
    assert before[0].raw["nonce"] != after[0].raw["nonce"]
    assert before[0].section("environment")["VLLM_CAMPAIGN_REPORT_DIR"] == str(spec.report_dir)


def test_who_does_not_answer_is_missing_when_the_deadline_passes(make: Make) -> None:
    spec = make("no_report")
    with serve(spec):
        assert ask(spec.report_dir, spec.nonce, CORE_AND_WORKER, deadline_s=0.3) == ()


def test_an_answer_to_an_older_question_does_not_count(tmp_path: Path) -> None:
    old = {"schema": 1, "nonce": "old", "role": "Worker", "rank": 0, "pid": 1}
    (tmp_path / "report-Worker-0-1.json").write_text(json.dumps(old))
    assert ask(tmp_path, "new", CORE_AND_WORKER, deadline_s=0.1) == ()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "is no engine report: JSONDecodeError"),
        ('{"schema": 2, "nonce": "x"}', "has schema 2, wanted 1"),
        ('{"schema": 1, "nonce": "x", "role": "Worker"}', "is no engine report: KeyError"),
        ("[]", "is no engine report: TypeError"),
    ],
)
def test_a_file_that_is_no_report_is_named(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "report-Worker-0-1.json").write_text(text)
    with pytest.raises(InvalidError, match=rf"report-Worker-0-1\.json {words}"):
        ask(tmp_path, "n", CORE_AND_WORKER, deadline_s=0.1)
