"""`inspect RUN`: no number of a run that was not what was asked, and no effect beside an engine that died."""

from dataclasses import replace
from pathlib import Path

import pytest

from campaign.config import Campaign
from campaign.door import RunReference
from campaign.evidence import Status
from campaign.journal import RunFolder, write_json
from campaign.planning.plan import make
from campaign.verbs import on_a_run
from tests.fakes.evidence import whole

# eight boots that say +3 % on a sd that lets nobody be sure, and one of the next block
OPEN = (100.0, 106, 101.5, 100, 103, 103, 100, 105, 99.5)
READING, EFFECT, LOOK = "103.0 step/s", "acceptance PASS +0.00 pp", "look 1 of 3"
BROKEN: dict[str, tuple[Status, str, tuple[str, ...], tuple[str, ...]]] = {
    "a boot that was not what was asked": ("invalid", "verdict INVALID (5)", (), (READING, EFFECT, "% [", LOOK)),
    "an engine that died": ("failed", "verdict FAIL (1)", (READING,), (EFFECT, LOOK)),
    "nothing": ("ok", "not finished: 9 of 12", (READING, EFFECT, LOOK), ()),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_run_that_is_looked_into_tells_only_what_its_verdict_may_tell(
    exp8: Campaign, tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    status, last, there, gone = BROKEN[name]
    exp8.bracket.mirror = False
    plan = make(exp8, "exp8-20261130-120000-5f3c")
    folder = RunFolder.create(tmp_path / "runs", plan.run_id)
    write_json(folder.plan, plan.plain() | {"kind": "run"})
    *boots, ninth = (replace(r, facts={"resolved": "{}"}) for r in whole("ABBABAABA", OPEN).boots)
    broken = ninth if status == "ok" else replace(ninth, status=status, reason="knob async_dflash is off", metrics={})
    folder.keep(*boots, broken)
    on_a_run("inspect", RunReference(folder.path))
    told = capsys.readouterr().out
    assert last in told
    assert [words for words in there if words not in told] == []
    assert [words for words in gone if words in told] == []
