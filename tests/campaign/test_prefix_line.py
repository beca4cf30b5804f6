"""The prefix-cache experiment through whole runs on the fake engine."""

import pytest

from tests.fakes.line import Line

QUICK = ("bracket.looks=[]", "bracket.schedule=ABBA BAAB", "bracket.reruns_per_block=16", "bracket.reruns=100")


def row(text: str, label: str) -> str:
    """The console's line of a gate."""
    (found,) = [line for line in text.splitlines() if f"  {label} " in line and line.split()[0].isupper()]
    return found


def test_a_cache_that_brings_its_drafts_along_passes_with_its_gain_and_hits_are_told_cold_and_warm(line: Line):
    done = line.run("fake_prefix", *QUICK)
    assert done.returncode == 0, done.stdout + done.stderr
    assert row(done.stdout, "prefix hits").startswith("PASS")
    assert "candidate 0.0 % -> 9" in row(done.stdout, "prefix hits")
    assert "identical" in row(done.stdout, "accept pos1")
    assert "price: candidate" in done.stdout
    assert "8/8 prompts" not in done.stdout
    boots = line.boots()
    assert {len([a for a in boot["answers"] if a["prompt_set"] == "prefix_warm"]) for boot in boots} == {4}
    assert all(boot["prefix"]["cold"]["hits"] == 0 for boot in boots)
    assert all("full prefix cache" in boot["facts"]["acceptance_estimator"] for boot in boots)


@pytest.mark.case("C6")
def test_hits_that_starve_the_drafter_fail_acceptance_by_name_while_the_texts_are_equal(line: Line):
    done = line.run("fake_prefix", *QUICK, "+engine.env.FAKE_FAULT=starved_hits")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "acceptance collapses with the hit share" in row(done.stdout, "acceptance")
    assert row(done.stdout, "outputs").startswith("PASS")


@pytest.mark.case("C12")
def test_a_cache_that_the_engine_switches_off_is_no_rollback(line: Line):
    done = line.run("fake_prefix", *QUICK, "+engine.env.FAKE_FAULT=no_prefix_cache")
    assert done.returncode == 5, done.stdout + done.stderr
    assert "prefix_caching" in done.stdout


@pytest.mark.case("B4")
def test_a_prefix_shorter_than_three_blocks_is_inconclusive(line: Line):
    blocks = ("arms.base.serve.block_size=128", "arms.candidate.serve.block_size=128")
    done = line.run("fake_prefix", *QUICK, *blocks)
    assert done.returncode == 3, done.stdout + done.stderr
    assert "is shorter than 3 resolved blocks of 128" in row(done.stdout, "prefix hits")
