"""Records of several runs, given to `inspect` together: each verdict among many, and the best of several."""

import json
from pathlib import Path
from typing import Any

import pytest

from campaign.errors import ExitCode
from campaign.inspection import document, look_into_all
from campaign.inspection.finding import Finding

GATE = {"name": "step_rate", "metric": "step_per_s", "kind": "superiority", "gate_pct": 0}
CLEAR = [100.0, 108.0, 107.6, 100.4, 108.3, 99.8, 100.2, 107.9]
BARELY = [100.0, 102.6, 101.9, 101.0, 102.9, 99.0, 101.2, 101.5]  # p 0.032 alone
SLOWER = [100.0, 97.6, 97.8, 100.4, 97.3, 99.8, 100.2, 97.7]


def record(
    folder: Path,
    run: str,
    readings: list[float],
    claim: dict[str, Any] = GATE,
    file: str = "step_rate.json",
    **more: Any,
) -> Path:
    path = folder / run / file
    path.parent.mkdir(parents=True, exist_ok=True)
    told = {"claim": claim, "letters": "ABBABAAB"[: len(readings)], "readings": readings, "registered": {"run_id": run}}
    path.write_text(json.dumps(told | more), encoding="utf-8")
    return path


def many(*files: Path) -> Finding:
    (found,) = [one for one in look_into_all(files) if one.kind == "many"]
    return found


def test_a_pass_that_stands_only_by_itself_is_taken_back_among_many(tmp_path: Path) -> None:
    files = [record(tmp_path, "a", CLEAR), record(tmp_path, "b", BARELY), record(tmp_path, "c", SLOWER)]
    alone = [one.word for one in look_into_all(files) if one.kind == "record"]
    found = many(*files)
    assert alone == ["PASS", "PASS", "FAIL"]
    assert [word for word, _ in found.rows] == ["PASS", "INCONCLUSIVE", "FAIL", "best"]
    assert "b step/s   adjusted p 0.06" in found.rows[1][1]
    assert found.rows[1][1].endswith("alone PASS, which does not hold among so many   watch list PASS")
    assert found.code is ExitCode.FAIL


def test_of_rivals_the_best_is_named_and_its_effect_is_not_told(tmp_path: Path) -> None:
    found = many(record(tmp_path, "a", CLEAR), record(tmp_path, "b", BARELY))
    told = dict(found.rows)["best"]
    assert told.startswith("of 2 by step/s, if they are rivals: a. Its place is in part luck")
    assert "run it again and quote that run alone" in told
    assert "%" not in told


def test_the_claims_of_one_run_are_gates_of_one_patch_and_no_family(tmp_path: Path) -> None:
    within = {"name": "acceptance", "metric": "acceptance_pos1_pp", "kind": "equivalence", "margin_pp": 2}
    points = [88.0, 88.1, 87.9, 88.0, 88.2, 88.0, 87.9, 88.1]
    files = [record(tmp_path, "a", CLEAR), record(tmp_path, "a", points, within, "acceptance.json")]
    assert [one.kind for one in look_into_all(files)] == ["record", "record"]
    found = many(*files, record(tmp_path, "b", BARELY))
    assert found.head.startswith("many         3 claims of 2 runs as one family")


def test_a_planned_look_enters_with_its_stricter_level(tmp_path: Path) -> None:
    single = many(record(tmp_path, "a", CLEAR), record(tmp_path, "b", BARELY)).numbers["holm_p.b.step/s"]
    planned = many(record(tmp_path, "a", CLEAR), record(tmp_path, "b", BARELY, looks=[8, 12, 16])).numbers[
        "holm_p.b.step/s"
    ]
    assert planned == pytest.approx(single * 0.05 / 0.022)


@pytest.mark.parametrize(
    ("readings", "why"),
    [([100.0, 108.0, 107.6, 100.4], "no error bar, or readings that never vary"), ([100.0] * 8, "never vary")],
    ids=["a screen without a history", "readings that never vary"],
)
def test_a_claim_without_an_error_bar_is_left_out_by_name(tmp_path: Path, readings: list[float], why: str) -> None:
    found = many(record(tmp_path, "a", CLEAR), record(tmp_path, "odd", readings))
    assert [word for word, _ in found.rows] == ["PASS", "left out"]
    assert found.rows[1][1].startswith("odd step/s: ")
    assert why in found.rows[1][1]


def test_records_without_a_run_are_called_by_their_file(tmp_path: Path) -> None:
    files = [record(tmp_path, name, CLEAR, registered={}) for name in ("one", "two")]
    told = json.loads(document(look_into_all(files)))
    assert set(told["findings"][-1]["numbers"]) == {f"holm_p.{file}.step/s" for file in files}


def test_without_any_error_bar_there_is_no_verdict(tmp_path: Path) -> None:
    found = many(record(tmp_path, "a", [100.0] * 8), record(tmp_path, "b", [100.0] * 8))
    assert (found.word, found.code) == ("INCONCLUSIVE", ExitCode.INCONCLUSIVE)
