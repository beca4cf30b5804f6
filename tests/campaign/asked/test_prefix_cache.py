"""The table of docs/prefix_cache.md is what the resolver does: path, value, who wrote it, flag, the dry run's words."""

from pathlib import Path

import pytest

from campaign.asked.arms import resolve
from campaign.config import Campaign, Level, Written
from campaign.console import format_plan
from campaign.planning.plan import make

PAGE = Path(__file__).resolve().parents[3] / "docs" / "prefix_cache.md"
FLAGS = {"--enable-prefix-caching": True, "--no-enable-prefix-caching": False, "none": None}
DEFAULT = "default of knobs.toml"


def table() -> list[tuple[str, ...]]:
    """The rows below the head that begins with `method`."""
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    start = next(number for number, line in enumerate(lines) if line.startswith("| method |"))
    rows = []
    for line in lines[start + 2 :]:
        if not line.startswith("|"):
            break
        rows.append(tuple(cell.strip() for cell in line.strip("|").split("|")))
    return rows


def write(campaign: Campaign, who: str, value: str) -> str:
    """Let this one write the value; returns the words for it."""
    if who == "engine":
        campaign.engine.knobs["prefix_cache"] = value
        return "engine reference_cpu"
    if who == "arm":
        campaign.arms["candidate"].knobs["prefix_cache"] = value
        return "arm candidate"
    if who == "profile":
        campaign.origins.profile = [Written("PREFIX_CACHE", Level.profile, "profile team.env:1", value)]
        return "profile team.env:1"
    assert (who, value) == (DEFAULT, "auto")
    return DEFAULT


def test_the_table_holds_every_path_and_value_and_origin() -> None:
    rows = table()
    assert {row[0] for row in rows} >= {"dflash", "dflash2", "dspark", "eagle", "eagle3", "mtp", "ngram", "null"}
    assert {row[1] for row in rows} == {"auto", "0", "1"}
    assert {row[2] for row in rows} == {DEFAULT, "engine", "arm", "profile"}


@pytest.mark.parametrize("row", table(), ids=lambda row: "-".join(row[:3]).replace(" ", "_"))
def test_a_row_is_what_the_engine_is_given_and_what_the_dry_run_says(exp8: Campaign, row: tuple[str, ...]) -> None:
    method, value, who, flag, words = row
    exp8.model.method = None if method == "null" else method
    origin = write(exp8, who, value)
    found = resolve(exp8, "candidate")
    assert dict(found.serve).get("enable_prefix_caching") is FLAGS[flag]
    (knob,) = [k for k in found.knobs if k.knob.name == "prefix_cache"]
    assert (knob.origin, knob.reason) == (origin, words)


@pytest.mark.parametrize("value", ["auto", "0", "1"])
def test_the_dry_run_says_it_in_these_words(exp8: Campaign, value: str) -> None:
    exp8.arms["candidate"].knobs["prefix_cache"] = value
    who = DEFAULT if value == "auto" else "arm"
    (words,) = [row[4] for row in table() if row[:3] == ("dflash", value, who)]
    told = "\n".join(format_plan(make(exp8, "run-1")))
    assert words in told
