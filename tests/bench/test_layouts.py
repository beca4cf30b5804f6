"""The prefix cache per layout: every job is a plan, and the page says what its runs said."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from bench import layouts
from bench.jobs import Job, keep
from bench.layouts import SHEET, Row
from campaign.door import compose
from campaign.planning.plan import make

ROW = Row("v1", "nothing", "run-1", 1, "FAIL", {"acceptance": "FAIL accept pos1 -6.5 pp [-9.1, -3.9] 90 %"}, ("cold",))


@pytest.mark.parametrize("job", SHEET.jobs, ids=lambda job: job.name)
def test_every_job_is_a_plan_of_the_prefix_cache_on_its_layout(job: Job) -> None:
    campaign = compose(["--config-dir", "bench/conf", *job.words])
    assert campaign is not None
    plan = make(campaign, "layouts-1")
    assert {"acceptance", "draft_rate"} <= set(plan.claims)
    assert plan.schedule.is_screen is False
    assert (campaign.engine.logic_only is None) != job.name.startswith("v2")


def test_the_page_beside_the_rows_is_what_the_rows_say() -> None:
    assert SHEET.page.read_text(encoding="utf-8") == layouts.render(SHEET.jobs, SHEET.kept())


def test_a_row_that_was_kept_is_told_with_its_lines(tmp_path: Path) -> None:
    sheet = replace(SHEET, root=tmp_path)
    sheet.rows.parent.mkdir()
    keep(sheet.rows, [ROW], Row)
    sheet.write()
    page = sheet.page.read_text(encoding="utf-8")
    assert "verdict FAIL (1), run run-1\nFAIL accept pos1 -6.5 pp [-9.1, -3.9] 90 %\ncold\n" in page
    assert page.count("not run yet") == len(SHEET.jobs) - 1


def test_a_run_is_read_from_what_it_left(tmp_path: Path) -> None:
    gates = [
        {"gate": "kv", "line": "PASS  KV", "details": []},
        {"gate": "acceptance", "line": "FAIL   accept", "details": ["x", "base, prefix cache cold -> warm, hits"]},
    ]
    (tmp_path / "result.json").write_text(json.dumps({"exit_code": 1, "verdict": "FAIL", "gates": gates}), "utf-8")
    row = layouts.row_of(SHEET.jobs[0], tmp_path)
    assert row is not None
    assert (row.lines, row.details) == ({"acceptance": "FAIL accept"}, ("base, prefix cache cold -> warm, hits",))
