"""The planted bench: rows outlive the machine that measured them, and the page is written from them alone."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from bench import jobs, planted, planted_rows, planted_table
from bench.jobs import Job
from bench.planted_rows import Row

ROW = Row("slower-4", "a step 4 % longer", "run-1", 1, "step_rate FAIL", "pct", -3.5, -4.1, -6.0, -2.0, 16, 1)


def test_the_page_beside_the_rows_is_what_the_rows_say() -> None:
    page = planted_table.render(planted.SHEET.jobs, planted.SHEET.kept())
    assert planted.SHEET.page.read_text(encoding="utf-8") == page


def test_a_row_is_kept_once_however_often_its_run_is_read(tmp_path: Path) -> None:
    file = tmp_path / "rows.jsonl"
    for rows in ([ROW], [ROW, replace(ROW, run="run-2")], [ROW]):
        jobs.keep(file, rows, Row)
    assert jobs.kept(file, Row) == [ROW, replace(ROW, run="run-2")]


def test_a_broken_row_names_its_line(tmp_path: Path) -> None:
    file = tmp_path / "rows.jsonl"
    jobs.keep(file, [ROW], Row)
    with file.open("a", encoding="utf-8") as to:
        to.write('{"job": "slower-2"}\n')
    with pytest.raises(ValueError, match="line 2"):
        jobs.kept(file, Row)


@pytest.mark.parametrize(
    ("code", "measured"), [(0, True), (1, True), (3, True), (4, False)], ids=["PASS", "FAIL", "INCONCLUSIVE", "VOID"]
)
def test_a_job_measured_elsewhere_is_not_run_again_unless_it_was_void(
    code: int, measured: bool, tmp_path: Path
) -> None:
    sheet = replace(planted.SHEET, root=tmp_path)
    sheet.rows.parent.mkdir()
    jobs.keep(sheet.rows, [replace(ROW, exit_code=code)], Row)
    assert [job.name for job in sheet.jobs if sheet.measured(job)] == (["slower-4"] if measured else [])


def test_a_run_that_was_interrupted_is_gone_on_with_and_one_that_ended_is_not(tmp_path: Path) -> None:
    sheet = replace(planted.SHEET, root=tmp_path)
    job = sheet.jobs[0]
    assert sheet.command(job)[3:5] == ["--config-dir", "bench/conf"]
    run = sheet.runs / job.name / "aa-1"
    run.mkdir(parents=True)
    (run / "plan.json").write_text("{}", encoding="utf-8")
    assert sheet.command(job)[3:] == ["resume", str(run)]
    (run / "result.json").write_text("{}", encoding="utf-8")
    assert sheet.command(job)[-1] == f"host.runs_dir={sheet.runs / job.name}"


@pytest.mark.parametrize(
    ("recorded", "word"), [(-3.5, "yes"), (-1.0, "**no**"), (None, "")], ids=["inside", "outside", "not recorded"]
)
def test_the_page_says_whether_the_interval_holds_what_was_recorded(recorded: float | None, word: str) -> None:
    page = planted_table.render([Job("slower-4", "a step 4 % longer", ())], [replace(ROW, recorded=recorded)])
    line = next(line for line in page.splitlines() if line.startswith("| slower-4"))
    assert [cell.strip() for cell in line.split("|")][7] == word
    assert "[-6.00, -2.00] pct" in line


def test_a_run_without_a_result_is_no_row_and_one_with_its_result_is(tmp_path: Path) -> None:
    run = tmp_path / "aa-1"
    run.mkdir()
    job = Job("equal-03", "nothing", ())
    assert planted_rows.row_of(job, run) is None
    gate = {"gate": "no_difference", "verdict": "PASS", "numbers": {"x.effect_pct": 1.0, "x.lo_pct": -2, "x.hi_pct": 3}}
    result = {"exit_code": 0, "verdict": "PASS", "gates": [gate]}
    (run / "result.json").write_text(json.dumps(result), encoding="utf-8")
    boots = [{"index": 1, "letter": "A", "status": "ok"}, {"index": 2, "letter": "B", "status": "void"}]
    lines = [json.dumps({"event": "boot", "boot": boot}) for boot in boots]
    (run / "journal.jsonl").write_text("\n".join(lines), encoding="utf-8")
    row = planted_rows.row_of(job, run)
    assert row == Row("equal-03", "nothing", "aa-1", 0, "no_difference PASS", "pct", 0.0, 1.0, -2, 3, 1, 1)
