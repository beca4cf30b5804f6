"""What a run leaves as records is judged again as the run was: the same verdict, the same line."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from campaign.bracket.looks import judge
from campaign.config import Campaign
from campaign.evidence import BootRecord, DraftCounts
from campaign.gates import synthetic
from campaign.gates.acceptance import Acceptance
from campaign.host.registry import Known
from campaign.journal import read_json
from campaign.names import (
    ACCEPTANCE_LENGTH,
    BEGAN,
    PREFIX_HIT_PCT,
    STEP_PER_S,
    TOK_PER_S,
    WINDOW_FIRST_STEP_PER_S,
    WINDOW_LAST_STEP_PER_S,
)
from campaign.planning.plan import make
from campaign.told import record, recorded
from campaign.told.rejudge import rejudged
from tests.fakes.evidence import STEADY, VERDICT, answer, whole
from verdict.history import History

Boots = Callable[[BootRecord], BootRecord]
HISTORY = Known(History(0.03, 20))


def written(exp8: Campaign, folder: Path, of: Boots = lambda boot: boot, known: Known | None = None) -> Any:
    """The run's outcome, and the records that it leaves, by claim."""
    exp8.bracket.mirror = False
    plan = make(exp8, "exp8-1", known)
    boots = tuple(of(replace(boot, facts={"resolved": "{}"})) for boot in whole(VERDICT, STEADY).boots)
    outcome = judge(plan, boots)
    recorded.write(folder, plan, outcome)
    return outcome, {file.stem: read_json(file) for file in (folder / "records").iterdir()}


def warm(boot: BootRecord) -> BootRecord:
    """The candidate reads its prefix cache, which is the point of it."""
    return replace(boot, metrics=boot.metrics | {PREFIX_HIT_PCT: 90.0 if boot.letter == "B" else 0.0})


def cut_short(boot: BootRecord) -> BootRecord:
    """Answers of 64 tokens, of which the length limit cuts off more where more tokens come a step."""
    length, kept = (2.0, 1.0) if boot.letter == "A" else (2.6, 0.993)
    answers = tuple(answer(f"d{i}", "x" * 64, prompt_set="decode", finish_reason="length") for i in range(4))
    rates = {ACCEPTANCE_LENGTH: length, TOK_PER_S: boot.metrics[STEP_PER_S] * length * kept}
    window = DraftCounts(1000, (round(1000 * (length - 1)),))
    return replace(boot, window=window, answers=boot.answers + answers, metrics=boot.metrics | rates)


def falling(boot: BootRecord) -> BootRecord:
    """Windows that fall by about 5.4 %: more than the gate's limit, less than twice the sd of a boot here."""
    last = 94.5 + boot.index / 20
    return replace(boot, metrics=boot.metrics | {WINDOW_FIRST_STEP_PER_S: 100.0, WINDOW_LAST_STEP_PER_S: last})


def paused(boot: BootRecord) -> BootRecord:
    """Two blocks of a minute a boot, the second one on the next day."""
    day, minute = divmod(boot.index - 1, 4)
    return replace(boot, seconds={"total": 60.0}, facts=boot.facts | {BEGAN: f"2026-11-0{day + 1}T10:0{minute}:00Z"})


RUNS: dict[str, tuple[Boots, dict[str, Any], str]] = {
    "prefix hits that are not looked at": (warm, {"prefix_hits_pp": None}, STEP_PER_S),
    "answers cut by their length": (cut_short, {}, STEP_PER_S),
    "a drift that the host's history allows": (falling, {}, STEP_PER_S),
    "two sittings": (paused, {}, STEP_PER_S),
    "such a drift beside tok/s": (falling, {}, TOK_PER_S),
}


@pytest.mark.parametrize("name", RUNS)
def test_a_record_is_judged_as_its_run_was(exp8: Campaign, tmp_path: Path, name: str) -> None:
    of, limits, metric = RUNS[name]
    vars(exp8.gates.step_rate).update(limits)
    exp8.claims["step_rate"].metric = metric
    outcome, found = written(exp8, tmp_path, of, HISTORY)
    (run,) = (result for result in outcome.results if result.gate == "step_rate")
    again = rejudged(record.read(found["step_rate"], "r"))
    assert run.line.startswith("PASS")
    assert ("2 sittings" in again.line) is (name == "two sittings")
    assert again.line == run.line == found["step_rate"]["judged"]["line"]


def test_the_history_of_a_speed_is_written_to_no_other_claim(exp8: Campaign, tmp_path: Path) -> None:
    """An sd in ln is no sd in points."""
    assert isinstance(exp8.gates.acceptance, Acceptance)
    _, found = written(exp8, tmp_path, known=HISTORY)
    assert found["step_rate"]["history"] == {"sd_pct": 3.0, "df": 20}
    assert "history" not in found["acceptance"]


def test_a_speed_with_a_made_up_acceptance_says_so_in_its_record_and_when_it_is_judged_again(
    exp8: Campaign, tmp_path: Path
) -> None:
    exp8.bracket.mirror = False
    plan = make(exp8, "exp8-1")
    exp8.model.synthetic_acceptance_length = 2.5  # the CPU build would refuse it
    outcome = judge(plan, tuple(replace(b, facts={"resolved": "{}"}) for b in whole(plan.schedule.letters[:8]).boots))
    recorded.write(tmp_path, plan, outcome)
    (kept,) = (tmp_path / "records").iterdir()
    found = read_json(kept)
    again = rejudged(record.read(found, "r"))
    assert kept.stem == "step_rate", "a made-up acceptance is no reading"
    assert found["synthetic"] == synthetic.label(2.5)
    assert found["synthetic"] in again.line
    assert again.line == found["judged"]["line"]


SCREENS: dict[str, tuple[list[float], Known | None, str]] = {
    "no history": ([100.0, 110.0, 120.0], None, "INCONCLUSIVE"),
    "a quiet host": ([100.0, 110.0, 120.0], Known(History(0.005, 20)), "VOID"),
    "a rate of nothing": ([100.0, 0.0, 100.0], None, "INCONCLUSIVE"),
}


@pytest.mark.case("D10")
@pytest.mark.parametrize("name", SCREENS)
def test_a_screen_of_which_no_effect_is_told_leaves_its_readings(exp8: Campaign, tmp_path: Path, name: str) -> None:
    rates, known, word = SCREENS[name]
    exp8.bracket.schedule, exp8.bracket.looks, exp8.bracket.mirror = "ABA", [], False
    plan = make(exp8, "exp8-1", known)
    outcome = judge(plan, tuple(replace(b, facts={"resolved": "{}"}) for b in whole("ABA", rates).boots))
    recorded.write(tmp_path, plan, outcome)
    found = read_json(tmp_path / "records" / "step_rate.json")
    again = rejudged(record.read(found, "r"))
    assert found["readings"] == rates
    assert again.judgement is None
    assert (found["judged"]["verdict"], again.line) == (word, found["judged"]["line"])


def test_what_a_gate_saw_and_no_record_holds_is_no_record(exp8: Campaign, tmp_path: Path) -> None:
    """Acceptance that was counted in two ways is not judged; its readings alone would PASS."""
    exp8.bracket.mirror = False
    ways = {1: {"acceptance_estimator": "by the stream"}}
    plan = make(exp8, "exp8-1")
    boots = (
        replace(b, facts={"resolved": "{}"} | ways.get(b.index, {})) for b in whole(plan.schedule.letters[:8]).boots
    )
    recorded.write(tmp_path, plan, judge(plan, tuple(boots)))
    assert [file.stem for file in (tmp_path / "records").iterdir()] == ["step_rate"]
