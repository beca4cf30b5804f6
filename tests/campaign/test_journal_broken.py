"""A plan or a journal that somebody edited: one sentence with the file and what is wrong in it, never a traceback."""

import copy
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from campaign import verbs
from campaign.boot_records import plain
from campaign.config import Campaign
from campaign.door import RunReference
from campaign.errors import CampaignError, ConfigError
from campaign.evidence import WitnessRow
from campaign.journal import RunFolder, write_json
from campaign.planning.plan import make
from tests.fakes.evidence import answer, boot, drafts, speculating

PLAN: dict[str, Any] = {
    "run_id": "exp8-1",
    "claims_digest": "5f3c",
    "config": {},
    "arms": {"base": {"digest": "1"}, "candidate": {}},
}
RIGHT = plain(boot(1, answers=(answer(),), **speculating(drafts(3))))


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    """A run folder that is there."""
    return RunFolder.create(tmp_path, "exp8-20261130-120000-5f3c")


def without(key: str) -> dict[str, Any]:
    """The plan without one of its keys."""
    return {name: value for name, value in PLAN.items() if name != key}


PLANS: dict[str, tuple[Any, str]] = {
    "a list": ([], "holds a list, wanted the plan of a run"),
    "nothing": (None, "holds nothing, wanted the plan of a run"),
    "a text": ("plan", "holds text, wanted the plan of a run"),
    "an empty map": ({}, "run_id is missing, wanted text"),
    "no run_id": (without("run_id"), "run_id is missing, wanted text"),
    "a run_id that is a number": (PLAN | {"run_id": 5}, "run_id is int, wanted text"),
    "no digest of the claims": (without("claims_digest"), "claims_digest is missing, wanted text"),
    "no config": (without("config"), "config is missing, wanted a map"),
    "config null": (PLAN | {"config": None}, "config is nothing, wanted a map"),
    "config a list": (PLAN | {"config": []}, "config is a list, wanted a map"),
    "no arms": (without("arms"), "arms is missing, wanted a map"),
    "arms a list": (PLAN | {"arms": ["base"]}, "arms is a list, wanted a map"),
    "an arm that is a text": (PLAN | {"arms": {"base": "x"}}, "arms.base is text, wanted a map"),
}


@pytest.mark.parametrize(("content", "words"), PLANS.values(), ids=PLANS)
def test_a_plan_that_is_none_says_what_is_missing(folder: RunFolder, content: Any, words: str) -> None:
    write_json(folder.plan, content)
    with pytest.raises(ConfigError, match=re.escape(f"{folder.plan}") + f".*{words}"):
        folder.registered()


@pytest.mark.parametrize(("verb", "content"), [("inspect", "[]"), ("resume", "{}"), ("import", '{"config": null}')])
def test_no_verb_falls_over_a_plan_that_is_none(asked, folder: RunFolder, verb: str, content: str) -> None:
    folder.plan.write_text(content)
    done = asked(verb, str(folder.path))
    assert done.returncode == 2, done.stdout + done.stderr
    assert "plan.json" in done.stderr
    assert "Traceback" not in done.stderr


# a real plan, in which one value is another


@pytest.fixture
def real(exp8: Campaign, tmp_path: Path) -> tuple[RunFolder, dict[str, Any]]:
    """A run that was planned and not begun."""
    folder = RunFolder.create(tmp_path / "runs", "exp8-1")
    return folder, json.loads(json.dumps(make(exp8, "exp8-1").plain()))


def places(node: dict[str, Any], depth: int, above: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The paths of a tree of maps, down to a depth."""
    for key, value in node.items():
        yield (*above, key)
        if isinstance(value, dict) and depth > 1:
            yield from places(value, depth - 1, (*above, key))


def looked_at(folder: RunFolder) -> str:
    """What `inspect` raises; empty where it reads the plan."""
    try:
        verbs.on_a_run("inspect", RunReference(folder.path))
    except CampaignError as error:
        return str(error) or "nothing was said"
    return ""


def test_a_plan_that_nobody_touched_is_read(real: tuple[RunFolder, dict[str, Any]]) -> None:
    folder, data = real
    write_json(folder.plan, data)
    assert looked_at(folder) == ""


@pytest.mark.parametrize("wrong", [None, [], "x"], ids=repr)
def test_whatever_stands_in_a_plan_ends_in_a_sentence(real: tuple[RunFolder, dict[str, Any]], wrong: object) -> None:
    folder, data = real
    for path in places(data, 3):
        changed = copy.deepcopy(data)
        node = changed
        for key in path[:-1]:
            node = node[key]
        node[path[-1]] = wrong
        write_json(folder.plan, changed)
        told = looked_at(folder)
        assert "\n" not in told, path


# the journal


def edited(**fields: Any) -> str:
    """The line of a boot in which some values are others."""
    return json.dumps({"event": "boot", "boot": RIGHT | fields})


LINES: dict[str, tuple[str, str]] = {
    "garbage": ("garbage", "it is no JSON"),
    "an empty map": ("{}", "it is no event"),
    "a list": ("[]", "it holds a list, wanted a map"),
    "a number": ("5", "it holds int, wanted a map"),
    "nothing": ("null", "it holds nothing, wanted a map"),
    "a boot without its record": ('{"event": "boot"}', "a boot record is a map, found nothing"),
    "a boot that is a list": ('{"event": "boot", "boot": []}', "a boot record is a map, found a list"),
    "a boot of another version": ('{"event": "boot", "boot": {}}', "another version"),
    "an attempt without its index": ('{"event": "attempt", "boot": {"status": "failed"}}', "another version"),
    "an index that is a text": (edited(index="1"), "index holds text"),
    "an index that is a truth value": (edited(index=True), "index holds bool"),
    "a status that there is not": (edited(status="fine"), "status holds text"),
    "a letter that there is not": (edited(letter="C"), "letter holds text"),
    "metrics that are a list": (edited(metrics=[]), "metrics holds a list"),
    "a metric that is a text": (edited(metrics={"step_per_s": "fast"}), "metrics holds a map"),
    "a metric that is no number": (edited(metrics={"step_per_s": float("nan")}), "metrics holds a map"),
    "a fact that is a number": (edited(facts={"pid": 5}), "facts holds a map"),
    "answers that are nothing": (edited(answers=None), "answers holds nothing"),
    "an answer without its text": (edited(answers=[{"token_ids": []}]), "a boot record cannot be read"),
    "drafts that are a text": (edited(natural="many"), "a boot record cannot be read"),
    "counts that are texts": (edited(window={"drafts": "1", "accepted": ["2"]}), "window holds a map"),
    "a witness row of another layer": (
        edited(witness=[vars(WitnessRow("k", "resolved", "", "", "", ok=True)) | {"layer": "guessed"}]),
        "witness holds a list",
    ),
}


@pytest.mark.parametrize(("line", "words"), LINES.values(), ids=LINES)
def test_a_whole_line_that_is_broken_is_told_by_its_number(folder: RunFolder, line: str, words: str) -> None:
    folder.keep(boot(1))
    folder.journal.write_text(folder.journal.read_text() + line + "\n")
    with pytest.raises(ConfigError, match=re.escape(f"{folder.journal}:2: ") + f".*{words}"):
        folder.records()


def test_the_line_that_those_are_made_of_is_read(folder: RunFolder) -> None:
    folder.journal.write_text(edited() + "\n")
    assert [record.index for record in folder.records()] == [1]


JOURNALS: dict[str, tuple[Callable[[list[str]], list[str]], str]] = {
    "a line is missing": (lambda lines: [lines[0], lines[2]], "holds the boots 01-A, 03-B, but"),
    "the first is missing": (lambda lines: lines[1:], "begins with 01-A, 02-B"),
    "another letter": (lambda lines: [lines[0].replace('"letter": "A"', '"letter": "B"')], "holds the boots 01-B"),
}


@pytest.mark.parametrize(("change", "words"), JOURNALS.values(), ids=JOURNALS)
def test_boots_that_are_not_those_of_the_plan_are_not_gone_on_with(
    exp8: Campaign, tmp_path: Path, change: Callable[[list[str]], list[str]], words: str
) -> None:
    exp8.bracket.mirror = False
    folder = RunFolder.create(tmp_path / "runs", "exp8-1")
    write_json(folder.plan, make(exp8, "exp8-1").plain())
    for index, letter in enumerate("ABB", 1):
        folder.keep(boot(index, letter))
    assert "holds the boots" not in looked_at(folder)
    lines = change(folder.journal.read_text().splitlines())
    folder.journal.write_text("".join(f"{line}\n" for line in lines))
    assert words in looked_at(folder)


def test_a_broken_line_is_two_by_the_door(command, real: tuple[RunFolder, dict[str, Any]]) -> None:
    folder, data = real
    write_json(folder.plan, data)
    folder.journal.write_text("garbage\n")
    done = command("inspect", str(folder.path))
    assert done.returncode == 2, done.stdout + done.stderr
    assert "journal.jsonl:1: it is no JSON" in done.stderr
