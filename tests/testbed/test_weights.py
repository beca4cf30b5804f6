"""The committed weights are the ones that were measured."""

import hashlib
import json
from pathlib import Path

import pytest

WEIGHTS = Path(__file__).parents[2] / "testbed" / "weights"
LISTED = dict(reversed(line.split("  ")) for line in (WEIGHTS / "SHA256SUMS").read_text().splitlines())
DRAFTERS = ["draft", "draft_swa", "draft_mixed", "draft_repeat"]


@pytest.mark.parametrize("name", sorted(LISTED))
def test_a_file_has_its_listed_sum(name):
    assert hashlib.sha256((WEIGHTS / name).read_bytes()).hexdigest() == LISTED[name]


def test_every_weight_file_is_listed():
    present = {file.relative_to(WEIGHTS).as_posix() for file in WEIGHTS.rglob("*") if file.is_file()}
    assert present - {"SHA256SUMS"} == set(LISTED)


@pytest.mark.parametrize("drafter", DRAFTERS)
def test_a_drafter_names_a_mask_token_inside_the_vocabulary(drafter):
    config = json.loads((WEIGHTS / drafter / "config.json").read_text())
    assert 0 < config["dflash_config"]["mask_token_id"] < config["vocab_size"]


def test_all_weights_together_stay_below_eight_megabytes():
    assert sum(file.stat().st_size for file in WEIGHTS.rglob("*") if file.is_file()) < 8_000_000
