"""The noise registry: rows, keys that never mix, and what they say before a run."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from campaign.brackets import BracketKind
from campaign.config import Campaign
from campaign.errors import ConfigError
from campaign.host.machine import Machine
from campaign.host.registry import DIFFERS, SAME, Known, Row, add, from_plain, key_of, known, read
from campaign.planning.plan import make
from campaign.prompting.prompts import load_prompts
from verdict.history import History

NOW_S = 2_000_000_000.0
DAY_S = 86_400.0


@pytest.fixture
def decode(exp8: Campaign):
    return load_prompts(Path(exp8.workload.prompts), "decode")


@pytest.fixture
def row(exp8: Campaign, decode, tmp_path: Path) -> Row:
    """A bracket of this host with 8 boots at a sd of 2 %."""
    exp8.host.registry = str(tmp_path / "registry.jsonl")
    key = key_of(exp8, decode, "step_per_s")
    return Row(key, "run-1", NOW_S, "ABBABAAB", rss=5 * 0.02**2, df=5, s2=0.02**2, slope=0.0)


def with_rows(exp8: Campaign, decode, *rows: Row) -> Known:
    """What the host is known for with these rows."""
    assert exp8.host.registry is not None
    add(Path(exp8.host.registry), rows)
    return known(exp8, decode, NOW_S)


def test_two_brackets_make_a_history_that_says_where_it_comes_from(exp8: Campaign, decode, row: Row) -> None:
    found = with_rows(exp8, decode, row, replace(row, run_id="run-2", rss=5 * 0.04**2))
    assert found.history is not None
    assert (found.history.nu0, found.history.s0) == (10, pytest.approx(0.001**0.5))
    assert found.origin == "registry: boot sd 3.2 % on 10 df, 2 brackets of this host in 30 days"


def test_one_bracket_is_too_little_and_says_so(exp8: Campaign, decode, row: Row) -> None:
    found = with_rows(exp8, decode, row)
    assert found.history is None
    assert found.origin == "this host has no history yet: 5 df, 1 bracket of this host in 30 days, 8 df are needed"


OTHERS = {
    "another host": lambda row: replace(row, key=replace(row.key, host="h2")),
    "another driver": lambda row: replace(row, key=replace(row.key, driver="570.1")),
    "another workload": lambda row: replace(row, key=replace(row.key, workload="decode_c1 0")),
    "another model": lambda row: replace(row, key=replace(row.key, model="other 0")),
    "another engine": lambda row: replace(row, key=replace(row.key, engine="0.31.0 cpu x")),
    "a duet": lambda row: replace(row, key=replace(row.key, kind="duet")),
    "another metric": lambda row: replace(row, key=replace(row.key, metric="tok_per_s")),
    "31 days ago": lambda row: replace(row, time_unix_s=NOW_S - 31 * DAY_S),
}


@pytest.mark.parametrize("made", OTHERS.values(), ids=OTHERS.keys())
def test_rows_of_something_else_are_never_mixed_in(exp8: Campaign, decode, row: Row, made) -> None:
    found = with_rows(exp8, decode, row, replace(made(row), run_id="run-2"))
    assert found.history is None
    assert "5 df, 1 bracket " in found.origin


def test_a_key_is_another_where_the_noise_may_be(exp8: Campaign, decode) -> None:
    here = key_of(exp8, decode, "step_per_s")
    assert here == key_of(exp8, list(decode), "step_per_s")
    assert here != key_of(exp8, decode, "step_per_s", Machine("h", "c", "g", "d"))
    assert here != key_of(exp8, decode[1:], "step_per_s")
    exp8.arms["base"].serve["max_num_batched_tokens"] = 64
    served = key_of(exp8, decode, "step_per_s")
    assert served.engine != here.engine
    exp8.model.synthetic_acceptance_length = 2.5
    assert key_of(exp8, decode, "step_per_s").model != served.model
    exp8.workload.max_tokens += 1
    assert here.workload != key_of(exp8, decode, "step_per_s").workload
    exp8.bracket.kind = BracketKind.duet
    assert key_of(exp8, decode, "step_per_s").kind == "duet"


def test_a_run_is_in_the_registry_once(row: Row, tmp_path: Path) -> None:
    file = tmp_path / "deep" / "registry.jsonl"
    other = replace(row, key=replace(row.key, metric="tok_per_s"))
    assert [add(file, [row, other]), add(file, [row]), add(file, [replace(row, run_id="run-2")])] == [2, 0, 1]
    assert [(r.run_id, r.key.metric) for r in read(file)[0]] == [
        ("run-1", "step_per_s"), ("run-1", "tok_per_s"), ("run-2", "step_per_s"),
    ]  # fmt: skip
    assert read(file)[0][0] == row


def test_a_torn_line_is_cut_off_and_a_broken_one_is_told(exp8: Campaign, decode, row: Row) -> None:
    file = Path(exp8.host.registry or "")
    add(file, [row])
    file.write_text('{"schema": 1}\n' + file.read_text() + '{"torn": ')
    found = with_rows(exp8, decode, replace(row, run_id="run-2"))
    assert found.history is not None
    assert len(found.remarks) == 1
    assert "registry.jsonl:1 is no row of the registry" in found.remarks[0]
    assert [json.loads(line)["schema"] for line in file.read_text().splitlines()] == [1, 1, 1]


BAD = {
    "degrees of freedom in words": {"df": "5"},
    "a fraction of one": {"df": 5.5},
    "a truth value": {"df": True},
    "more than any bracket has": {"df": 10**400},
    "residuals in words": {"rss": "0.001"},
    "residuals without end": {"rss": float("inf")},
    "residuals that are none": {"rss": float("nan")},
    "residuals whose sum is none": {"rss": 1.7e308},
    "a length in words": {"best_requests": "x"},
    "a length that is none": {"best_requests": float("nan")},
    "a time without end": {"time_unix_s": float("inf")},
    "a time in words": {"time_unix_s": "now"},
    "another outcome": {"aa": "alike"},
    "a list": {"aa": [1]},
    "no map": None,
}


@pytest.mark.parametrize("bad", BAD.values(), ids=BAD)
def test_a_row_with_a_value_of_no_use_is_left_out_and_told(exp8: Campaign, decode, row: Row, bad: object) -> None:
    file = Path(exp8.host.registry or "")
    rows = [[1] if bad is None else row.plain() | bad, row.plain() | {"run_id": "run-2", "rss": 0}]  # type: ignore[operator]
    file.write_text("".join(json.dumps(each) + "\n" for each in [*rows, row.plain()]))
    found = known(exp8, decode, NOW_S)
    assert "10 df, 2 brackets of this host" in found.origin
    assert len(found.remarks) == 1
    assert "registry.jsonl:1 is no row of the registry" in found.remarks[0]


@pytest.mark.parametrize(
    ("differing", "words"),
    [(2, "2 of 10 A/A claims of this host differ (5 % would; 95 % bounds 3..56 %)"),
     (4, "4 of 10 A/A claims of this host differ (5 % would; 95 % bounds 12..74 %): find out why before")],
)  # fmt: skip
def test_aa_brackets_that_differ_too_often_are_told_before_a_run(
    exp8: Campaign, decode, row: Row, differing: int, words: str
) -> None:
    rows = [replace(row, run_id=f"aa-{n}", aa=DIFFERS if n < differing else SAME) for n in range(10)]
    assert [remark.startswith(words) for remark in with_rows(exp8, decode, *rows).remarks] == [True]


@pytest.mark.parametrize(
    ("best", "words"),
    [(1.0, "1 make the most of the time here: past that buy a boot"), (900.0, "more would sharpen a boot"), (None, "")],
)
def test_a_window_far_from_the_best_length_is_told(
    exp8: Campaign, decode, row: Row, best: float | None, words: str
) -> None:
    remarks = with_rows(exp8, decode, replace(row, best_requests=best)).remarks
    assert words in "".join(remarks)
    assert bool(remarks) is bool(words)


def test_what_is_written_in_the_configuration_goes_over_the_registry(exp8: Campaign, decode, row: Row) -> None:
    exp8.host.history_sd_pct, exp8.host.history_df = 5.4, 10
    assert with_rows(exp8, decode, row).origin == "host.history_sd_pct: boot sd 5.4 % on 10 df"


def test_a_run_that_is_resumed_is_judged_by_the_history_it_began_with(exp8: Campaign, decode, row: Row) -> None:
    began = make(exp8, "run-1")
    with_rows(exp8, decode, row, replace(row, run_id="run-2"))
    resumed = make(exp8, "run-1", from_plain(json.loads(json.dumps(began.plain()["history"]))))
    assert began.history is None
    assert resumed.known == began.known
    known_now = Known(History(0.02, 9), "registry", ("a remark",))
    assert from_plain(json.loads(json.dumps(known_now.plain()))) == known_now


@pytest.mark.parametrize("bad", [{}, {"history": {"s0": -1, "nu0": 9}, "origin": "", "remarks": []}, [1]])
def test_a_history_that_is_none_of_ours_is_refused(bad: object) -> None:
    with pytest.raises(ConfigError, match=r"plan\.json: history"):
        from_plain(bad)
