"""Twin of analysis.ledger, and the door `python -m analysis ledger`."""

import re
from pathlib import Path

import pytest

from analysis.__main__ import main
from analysis.ledger import BEGIN, END, placed, table
from analysis.row import AnalysisError, Row

CLAIM = "step/s · +8.8 % [+8.2, +9.3] · gate >= +5 · 8 boots ABBABAAB"
OLD = Row(
    campaign_id="exp8-1",
    experiment="exp8",
    began_ms=1_700_000_000_000,
    engine="cpu: vLLM 0.29.0, cpu build",
    verdict="PASS",
    boots="ABBABAAB",
    voided=1,
    claims={"step_rate": CLAIM},
    gates={"step_rate": "PASS", "kv": "PASS"},
    corrected_by="exp8-2",
)
NEW = Row(
    campaign_id="exp8-2",
    experiment="exp8",
    began_ms=1_700_000_100_000,
    engine="cpu",
    verdict="INCONCLUSIVE",
    boots="ABA",
    claims={"step_rate": "no error bar yet: no number"},
    gates={"step_rate": "INCONCLUSIVE"},
    corrects="exp8-1",
    because="the fan | was *off*",
)


def cells(text: str, run: str) -> list[str]:
    (line,) = [line for line in text.splitlines() if f'id="{run}"' in line]
    return [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]


def test_a_row_tells_the_claim_with_its_interval_and_what_was_void() -> None:
    when, _, engine, verdict, claims, others, boots, remarks = cells(table([OLD]), "exp8-1")
    assert (when, engine, verdict) == ("~~2023-11-14 22:13~~", "~~cpu: vLLM 0.29.0, cpu build~~", "~~PASS~~")
    assert "+8.8 % \\[+8.2, +9.3\\]" in claims
    assert (others, boots, remarks) == ("~~kv PASS~~", "~~ABBABAAB, 1 void~~", "corrected by exp8-2")


def test_a_corrected_row_is_struck_and_linked_and_the_correction_says_what_was_wrong() -> None:
    text = table([NEW, OLD])
    why = "the fan \\| was \\*off\\*"
    assert cells(text, "exp8-1")[-1] == f"corrected by [exp8-2](#exp8-2): {why}"
    assert cells(text, "exp8-2")[-1] == f"**correction** of [exp8-1](#exp8-1): {why}"
    assert "~~" not in "".join(cells(text, "exp8-2"))
    assert all(cell.count("~~") == 2 for cell in cells(text, "exp8-1")[:-1])


def test_no_number_stands_without_an_interval() -> None:
    assert "%" not in table([NEW])


def test_placing_it_twice_changes_nothing() -> None:
    document = f"# Measurements\n\n{BEGIN}\nold\n{END}\n\nprose\n"
    once = placed(document, table([OLD]))
    assert placed(once, table([OLD])) == once
    assert once.startswith("# Measurements\n")
    assert once.endswith(f"{END}\n\nprose\n")


@pytest.mark.parametrize("document", ["", BEGIN, f"{END}{BEGIN}", f"{BEGIN}{BEGIN}{END}"])
def test_a_file_without_its_markers_is_refused(document: str) -> None:
    with pytest.raises(AnalysisError, match="wants one line"):
        placed(document, "")


def test_what_cannot_be_read_is_two_in_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    wrong = tmp_path / "no markers.md"
    wrong.write_text("# Measurements\n")
    for out in (wrong, tmp_path / "missing.md"):
        assert main(["ledger", "--uri", f"sqlite:///{tmp_path}/none.db", "--out", str(out)]) == 2
        assert capsys.readouterr().err.startswith("config (2): ")
    assert main(["ledger", "--uri", f"sqlite:///{tmp_path}/none.db"]) == 2
    assert "import RUN` makes one" in capsys.readouterr().err
    assert not (tmp_path / "none.db").exists()


@pytest.mark.parametrize(
    "uri",
    [
        "http://u:hunter2@127.0.0.1:9/",
        "http://127.0.0.1:9/?api_key=hunter2",
        "nosuch://u:hunter2@h/db?password=hunter2",
    ],
    ids=["a password", "a query", "no store"],
)
def test_an_address_that_fails_is_told_without_its_secret(uri: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ledger", "--uri", uri]) == 2
    told = capsys.readouterr()
    assert "hunter2" not in told.out + told.err
