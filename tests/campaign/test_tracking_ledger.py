"""What a run publishes, as `python -m analysis ledger` reads it back."""

from pathlib import Path

import pytest

from analysis.__main__ import main
from analysis.ledger import BEGIN, END
from analysis.runs import verdicts
from campaign.gates.base import GateResult
from campaign.gates.step_rate import StepRate
from campaign.tracking import Relation, publish, register
from tests.fakes.campaign import campaign, run_folder
from tests.fakes.evidence import bracket, step_rate, whole
from verdict.words import Verdict

pytestmark = pytest.mark.filterwarnings("ignore::sqlalchemy.exc.SADeprecationWarning")

KV = GateResult("kv", Verdict.PASS, "PASS          KV          682 blocks", (), {})


def put(uri: str, folder: Path, letters: str, values: list[float], verdict: Verdict) -> None:
    evidence = whole(letters, values, claims=(step_rate(),))
    publish(folder, campaign(), evidence, (KV, StepRate().check(evidence)), verdict, uri)


def test_verdicts_come_back_with_interval_boots_and_relation(uri: str, tmp_path: Path) -> None:
    old, new = run_folder(tmp_path, "exp8-old"), run_folder(tmp_path, "exp8-new")
    put(uri, old, "ABA", [100.0, 104.0, 100.0], Verdict.INCONCLUSIVE)
    register(new, "exp8", Relation(supersedes="exp8-old", because="a whole bracket"), uri)
    for _ in range(2):  # imported again it is still one row
        put(uri, new, "ABBABAAB", [100.0, 104.0, 104.5, 100.2, 104.1, 100.1, 99.9, 104.2], Verdict.FAIL)
    found = {row.campaign_id: row for row in verdicts(uri)}
    assert len(found) == len(verdicts(uri)) == 2
    assert found["exp8-old"].claims == {"step_rate": "no error bar yet: no number"}
    assert found["exp8-old"].superseded_by == "exp8-new"
    told = found["exp8-new"].claims["step_rate"]
    assert told.startswith("step/s · +4.1 % [+")
    assert "8 boots ABBABAAB" in told
    assert found["exp8-new"].gates == {"kv": "PASS", "step_rate": "FAIL"}
    assert found["exp8-new"].engine.endswith("vLLM 0.29.0, cpu build")


def test_an_invalid_run_gives_a_row_without_any_number(uri: str, tmp_path: Path) -> None:
    evidence = bracket("ABBA", metrics={"step_per_s": [100.0, 104.0, 104.0, 100.0]}, claims=(step_rate(),))
    publish(run_folder(tmp_path), campaign(), evidence, (StepRate().check(evidence),), Verdict.INVALID, uri)
    (row,) = verdicts(uri)
    assert (row.verdict, row.claims) == ("INVALID", {})


def test_the_table_goes_between_the_markers_and_a_second_time_changes_nothing(uri: str, tmp_path: Path) -> None:
    put(uri, run_folder(tmp_path, "exp8-a_b"), "ABA", [100.0, 104.0, 100.0], Verdict.INCONCLUSIVE)
    out = tmp_path / "MEASUREMENTS.md"
    out.write_text(f"before\n{BEGIN}\n{END}\nafter\n")
    assert main(["ledger", "--uri", uri, "--out", str(out)]) == 0
    first = out.stat()
    assert "exp8-a\\_b" in out.read_text()
    assert main(["ledger", "--uri", uri, "--out", str(out)]) == 0
    assert (out.stat().st_ino, out.stat().st_mtime_ns) == (first.st_ino, first.st_mtime_ns)
