"""A bracket record: read strictly, written back as it was, judged as a run judges."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from campaign.__main__ import main
from campaign.errors import ConfigError
from campaign.gates.claimed import judge_claim
from campaign.told import record
from campaign.told.rejudge import rejudged
from tests.fakes.evidence import ALIKE, STEADY, VERDICT, bracket, step_rate
from verdict.words import Verdict

ROOT = Path(__file__).resolve().parents[3]
SCHEMA = Draft202012Validator(json.loads((ROOT / "docs/schemas/record.json").read_text()))
CLAIM = {"name": "step_rate", "metric": "step_per_s", "kind": "superiority", "gate_pct": 5}
RECORD: dict[str, Any] = {"schema": 1, "claim": CLAIM, "letters": VERDICT, "readings": list(STEADY)}
LOOKED = [100.9, 102.9, 101.0, 99.2, 102.7, 101.2, 98.7, 102.4, 99.9, 103.5, 102.2, 100.3, 102.4, 99.1, 100.4, 102.9]


def judged(**fields: Any) -> Any:
    """The record with these fields, judged."""
    return rejudged(record.read(json.loads(json.dumps(RECORD | fields)), "r"))


@pytest.mark.parametrize("rates", [STEADY, ALIKE], ids=["a gain", "nothing"])
def test_a_record_is_told_in_the_line_of_a_run(rates: tuple[float, ...]) -> None:
    claim = step_rate()
    run = judge_claim("step_rate", claim, bracket(VERDICT, metrics={"step_per_s": rates}, claims=(claim,)))
    written = record.plain(record.Record(claim, VERDICT, tuple(rates)))
    again = rejudged(record.read(written, "r"))
    assert (again.verdict, again.line) == (run.verdict, run.line)


def test_looks_are_taken_one_by_one_and_the_first_verdict_stands() -> None:
    looks = {"letters": "ABBABAABABBABAAB", "readings": LOOKED, "looks": [8, 12, 16], "claim": CLAIM | {"gate_pct": 0}}
    found = judged(**looks)
    assert found.verdict is Verdict.PASS
    assert "look 2 of 3" in found.line
    assert "97.8 %" in found.line
    assert judged(**looks, look=1).verdict is Verdict.INCONCLUSIVE
    cut = looks | {"letters": "ABBABAAB", "readings": LOOKED[:8]}
    assert judged(**cut).verdict is Verdict.INCONCLUSIVE


def test_two_hosts_are_two_sessions() -> None:
    readings = [100.2, 104.9, 104.1, 99.0, 88.9, 92.2, 92.6, 89.3]
    fields = {"letters": "ABBAABBA", "readings": readings, "claim": CLAIM | {"gate_pct": 0}}
    assert "[+3.1, +5.5]" in judged(**fields, sessions=[0, 0, 0, 0, 1, 1, 1, 1]).line
    assert "[+3.1, +5.5]" not in judged(**fields).line


def test_the_pairs_of_a_duet_are_its_units() -> None:
    pairs = [1, 1, 2, 2, 3, 3, 4, 4]
    found = judged(letters="ABBAABBA", readings=[100, 110, 99, 90.1, 80, 88, 121, 110], pairs=pairs)
    assert found.judgement is not None
    assert found.judgement.fit.n_pairs == 4
    assert "4 pairs" in found.line


@pytest.mark.case("D10")
@pytest.mark.parametrize("history", [None, {"sd_pct": 0.8, "df": 8}], ids=["no history", "a quiet host"])
def test_bases_far_apart_publish_no_percentage(history: dict[str, float] | None) -> None:
    found = judged(letters="ABA", readings=[100, 121, 120], history=history)
    assert found.verdict is (Verdict.VOID if history else Verdict.INCONCLUSIVE)
    assert "+10" not in found.line
    assert found.judgement is None


def test_void_boots_are_told_with_and_without(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "record.json"
    void = [{"pos": 3, "letter": "B", "reading": 91.0, "reason": "1.0 core of others"}]
    file.write_text(json.dumps(RECORD | {"void": void}))
    assert main(["inspect", str(file)]) == 0
    out = capsys.readouterr().out
    assert "1 voided" in out
    assert "with the voided boots:" in out
    assert "void boot 03-B: 1.0 core of others" in out


SAFEGUARDS: dict[str, tuple[dict[str, Any], str]] = {
    "planned looks": ({"looks": [8, 12, 16], "claim": CLAIM | {"gate_pct": 0}, "readings": LOOKED[:8]}, "97.8 %"),
    "an engine whose speed says nothing": ({"logic_only": "Triton"}, "logic only (Triton), no speed of a device"),
    "two engines that are not alike": (
        {"unlike": "not alike", "pairs": [1, 1, 2, 2, 3, 3, 4, 4]}, "step/s      not alike; seen "),
    "pairs": ({"pairs": [1, 1, 2, 2, 3, 3, 4, 4]}, "4 pairs live at once"),
    "a spoiled block": (
        {"history": {"sd_pct": 0.2, "df": 20}, "readings": [100, 104, 104, 108, 112, 108, 108, 112.0]},
        "its outer bases are 7.7 % apart"),
    "windows that fall": (
        {"metrics": {"window_first_step_per_s": [100 + i / 9 for i in range(8)],
                     "window_last_step_per_s": [80.0] * 8}, "limits": {"drift_pct": 5}},
        "drift within the window"),
    "other prefix hits": ({"metrics": {"prefix_hit_pct": [0, 80, 80, 0, 80, 0, 0, 80]}}, "prefix-cache hits differ"),
    "a screen that does not close": ({"letters": "ABA", "readings": [100, 121, 120]}, "the bracket does not close"),
}  # fmt: skip


@pytest.mark.parametrize("name", SAFEGUARDS)
@pytest.mark.parametrize("own", ["nothing", "level", "sessions"])
def test_a_level_or_a_session_in_a_record_switches_no_safeguard_off(name: str, own: str) -> None:
    fields, words = SAFEGUARDS[name]
    n = len(fields.get("letters", VERDICT))
    more: dict[str, Any] = {"nothing": {}, "level": {"level": 0.98}, "sessions": {"sessions": [0] * n}}[own]
    found = judged(**fields, **more)
    assert words.replace("97.8", "98" if own == "level" else "97.8") in found.line
    if name != "pairs":
        assert found.verdict is not Verdict.PASS


def test_a_level_of_ones_own_is_that_of_the_interval_also_with_the_void_boots() -> None:
    void = [{"pos": 3, "letter": "B", "reading": 108.0}]
    found = judged(level=0.99, void=void)
    assert "] 99 %" in found.line
    (beside,) = (text for text in found.details if text.startswith("with the voided boots: "))
    assert "] 99 %" in beside


@pytest.mark.parametrize("history", [None, {"sd_pct": 0.8, "df": 8}], ids=["no history", "a quiet host"])
def test_the_void_boots_and_the_outer_pairs_of_two_hosts_are_each_of_their_own(history: dict[str, float]) -> None:
    readings = [100.2, 104.9, 99.0, 88.9, 93.2, 88.1]
    void = [{"pos": 5, "after": 4, "letter": "B", "reading": 92.8}]
    sessions = [0, 0, 0, 1, 1, 1]
    found = judged(letters="ABAABA", readings=readings, sessions=sessions, history=history, void=void)
    assert found.judgement is not None
    assert len(found.judgement.fit.slopes) == 2
    (beside,) = (text for text in found.details if text.startswith("with the voided boots: "))
    assert "(7 boots ABAABBA)" in beside


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "a reading too few": ({"readings": [1.0]}, "readings: found 1, wanted one a letter, 8"),
    "no number": ({"readings": ["x"] * 8}, "wanted finite numbers"),
    "true is no number": ({"readings": [True] * 8}, "wanted finite numbers"),
    "other letters": ({"letters": "ABCA"}, "wanted A and B in run order"),
    "an unknown key": ({"reading": 1}, "unknown key 'reading'"),
    "another schema": ({"schema": 2}, "schema is 2, this version reads 1"),
    "a wrong bound": ({"claim": {"metric": "step_per_s", "kind": "superiority", "margin_pp": 2}}, "takes gate_pct"),
    "no bound": ({"claim": {"metric": "step_per_s", "kind": "equivalence"}}, "takes margin_pct, found none"),
    "no metric": ({"claim": {"kind": "superiority", "gate_pct": 1}}, "metric is missing"),
    "no such kind": ({"claim": {"metric": "step_per_s", "kind": "better"}}, "kind is 'better', wanted superiority"),
    "looks of nobody": ({"looks": [6, 7]}, "whose levels are not known"),
    "looks out of reach": ({"looks": [12, 16]}, "found 8 readings"),
    "a level": ({"level": 95}, "wanted the two-sided level"),
    "a level below that of looks": ({"looks": [8, 12], "level": 0.95}, "level is 0.95, but 2 looks want 0.9705"),
    "a history": ({"history": {"sd_pct": 1}}, "wanted sd_pct of one boot and df"),
    "a short metric": ({"metrics": {"acceptance_length": [2.0]}}, "acceptance_length: found 1, wanted one a boot, 8"),
    "a sitting": ({"sittings": [2]}, "wanted texts"),
    "a void boot": ({"void": [3]}, "wanted maps of pos"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_record_that_cannot_be_judged_says_what_is_wrong(name: str) -> None:
    fields, words = WRONG[name]
    with pytest.raises(ConfigError, match=words):
        judged(**fields)


KEYS = st.sampled_from([*record.KEYS, "x"])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 20) | st.floats() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from([*record.CLAIM_KEYS, "df"]), inner),
    max_leaves=6,
)


@given(st.dictionaries(KEYS, VALUES, max_size=5))
def test_whatever_stands_in_a_record_it_is_read_or_refused_in_one_sentence(fields: dict[str, Any]) -> None:
    sentence = ""
    try:
        found = record.read(RECORD | fields, "r")
        rejudged(found)
    except ConfigError as error:
        sentence = str(error)
    assert "\n" not in sentence
    assert sentence or record.read(json.loads(json.dumps(record.plain(found))), "r") == found


def test_what_is_written_is_what_the_schema_and_the_page_say() -> None:
    page = (ROOT / "docs/inspect.md").read_text(encoding="utf-8")
    shown = json.loads(page.split("```json\n")[1].split("```")[0])
    line = page.split("```text\n")[1].split("\n")[0]
    assert rejudged(record.read(shown, "page")).line == line
    assert set(record.KEYS) == set(SCHEMA.schema["properties"])
    assert set(record.CLAIM_KEYS) == set(SCHEMA.schema["properties"]["claim"]["properties"])
    for one in (shown, record.plain(record.read(shown, "page"))):
        SCHEMA.validate(one)


@pytest.mark.parametrize(("name", "limit"), [("drift_pct", 100), ("drift_pct", 500), ("prefix_hits_pp", -1)])
def test_a_limit_that_cannot_be_meant_is_refused_with_its_range(name: str, limit: float) -> None:
    with pytest.raises(ConfigError, match=f"r: limits: {name} is {limit}, wanted .* or null for no look"):
        judged(limits={name: limit})


def test_a_limit_of_null_is_no_look_and_a_rate_below_0_no_rate() -> None:
    fallen = {"window_first_step_per_s": [100.0] * 8, "window_last_step_per_s": [70.0] * 8}
    assert judged(metrics=fallen).verdict is Verdict.INCONCLUSIVE
    assert judged(metrics=fallen, limits={"drift_pct": None}).verdict is Verdict.PASS
    negative = {"window_first_step_per_s": [100.0] * 8, "window_last_step_per_s": [-70.0] * 8}
    assert judged(metrics=negative).verdict is Verdict.PASS
