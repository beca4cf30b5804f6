"""What a run leaves when it is ended while its verdict is being written down, and what its resume makes of it."""

from dataclasses import replace
from pathlib import Path

import pytest

from campaign import verbs
from campaign.bracket import noise
from campaign.bracket.bench import Bench
from campaign.bracket.looks import judge
from campaign.config import Campaign
from campaign.journal import RunFolder
from campaign.planning.plan import make
from campaign.told import recorded, report
from overlays.base import BaseTree
from tests.fakes.evidence import whole

CLEAR = (100.2, 108.7, 109.1, 100.0, 109.2, 99.7, 100.1, 109.0)
NO_BASE = BaseTree(Path(), "0", "cpu")
STEPS = ((recorded, "write"), (report, "write"), (noise, "feed"))


@pytest.mark.case("A10")
def test_a_run_has_its_result_only_once_all_that_goes_with_it_is_written(
    exp8: Campaign, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    exp8.bracket.mirror, exp8.host.registry = False, str(tmp_path / "registry.jsonl")
    plan, folder = make(exp8, "exp8-20261130-120000-5f3c"), RunFolder.create(tmp_path / "runs", "exp8-1")
    records = whole("ABBABAAB", list(CLEAR)).boots
    folder.keep(*(replace(r, seconds={"total": 60.0}, facts=r.facts | {"resolved": "{}"}) for r in records))
    monkeypatch.setattr(verbs, "_bench", lambda *_: Bench(plan, folder, {}, {}, print))
    monkeypatch.setattr(verbs, "run_bracket", lambda _: judge(plan, folder.records()))

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    for room, step in STEPS:
        with monkeypatch.context() as once:
            once.setattr(room, step, interrupted)
            with pytest.raises(KeyboardInterrupt):
                verbs._carry_on(plan, folder, NO_BASE)
        assert not folder.result.exists()  # so a resume goes on
    verbs._carry_on(plan, folder, NO_BASE)
    assert {path.name for path in folder.path.iterdir()} >= {"result.json", "records", "report.md", "report.html"}
    rows = (tmp_path / "registry.jsonl").read_text().splitlines()
    assert len(rows) == len(list(folder.path.glob("records/*.json")))
