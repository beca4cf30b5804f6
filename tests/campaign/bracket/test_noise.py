"""What a finished bracket tells the registry, and which brackets tell nothing."""

import json
from math import log
from pathlib import Path

import pytest

from campaign.bracket.noise import feed, ln_rates
from campaign.config import Campaign
from campaign.gates.no_difference import NoDifference
from campaign.gates.step_rate import StepRate
from campaign.host.registry import Row, read
from campaign.journal import RunFolder
from campaign.names import STEP_PER_S, TOK_PER_S
from campaign.planning.plan import make
from tests.fakes.evidence import ALIKE, died, no_difference, step_rate, whole
from verdict.fit import Scale, fit
from verdict.history import History
from verdict.words import Verdict

STEP_RATE = StepRate()
RATES = (100.0, 108.9, 108.7, 100.3, 108.4, 99.8, 100.1, 108.6)


def fed(exp8: Campaign, folder: Path, evidence=None, verdict: Verdict = Verdict.PASS, gate=STEP_RATE) -> list[Row]:
    """The registry after this bracket."""
    exp8.host.registry = str(folder / "registry.jsonl")
    found = evidence or whole(rates=RATES)
    results = [gate.check(found)]
    assert feed(make(exp8, "run-1"), RunFolder(folder), found, results, verdict) == ""
    return read(folder / "registry.jsonl")[0]


def test_a_bracket_leaves_its_residuals(exp8: Campaign, tmp_path: Path) -> None:
    (row,) = fed(exp8, tmp_path)
    own = fit(RATES, "ABBABAAB", scale=Scale.LOG)
    assert (row.df, row.schedule, row.aa) == (5, "ABBABAAB", None)
    assert row.rss == pytest.approx((own.s2 or 0) * 5)
    assert row.slope == own.slope_per_boot
    assert fed(exp8, tmp_path) == [row], "twice fed is once kept"


def test_a_borrowed_error_bar_is_not_lent_again(exp8: Campaign, tmp_path: Path) -> None:
    screen = whole("ABBA", RATES[:4], history=History(0.05, 20))
    (row,) = fed(exp8, tmp_path, screen, Verdict.INCONCLUSIVE)
    assert row.rss == pytest.approx(fit(RATES[:4], "ABBA", scale=Scale.LOG).s2)


AA = {
    "differs": (whole(rates=RATES, claims=(no_difference(),)), "differs"),
    "does not": (whole(rates=ALIKE, claims=(no_difference(),)), "same"),
    "a screen, which could not differ": (
        whole("ABBA", RATES[:4], claims=(no_difference(),), history=History(0.05, 20)),
        None,
    ),
}


@pytest.mark.parametrize(("evidence", "aa"), AA.values(), ids=AA.keys())
def test_an_aa_bracket_says_how_it_came_out(exp8: Campaign, tmp_path: Path, evidence, aa: str | None) -> None:
    (row,) = fed(exp8, tmp_path, evidence, gate=NoDifference())
    assert row.aa == aa


def test_every_claim_of_an_aa_bracket_is_kept_not_only_the_one_that_speaks(exp8: Campaign, tmp_path: Path) -> None:
    claims = (no_difference(), no_difference("tok_rate", TOK_PER_S), no_difference("the same readings"))
    rows = fed(exp8, tmp_path, whole(rates=ALIKE, claims=claims), gate=NoDifference())
    assert [(row.key.metric, row.aa) for row in rows] == [(STEP_PER_S, "same"), (TOK_PER_S, "same")]


NOTHING = {
    "an engine that died": (whole(rates=RATES, at={3: died()}), Verdict.FAIL),
    "an engine whose speed says nothing": (whole(rates=RATES, logic_only="Triton's interpreter"), Verdict.INCONCLUSIVE),
    "not what was asked": (whole(rates=RATES), Verdict.INVALID),
    "a spoiled host": (whole(rates=RATES), Verdict.VOID),
    "no degree of freedom": (whole("ABA", (100.0, 108.9, 100.3)), Verdict.INCONCLUSIVE),
}


@pytest.mark.parametrize(("evidence", "verdict"), NOTHING.values(), ids=NOTHING.keys())
def test_what_did_not_measure_the_host_leaves_nothing(
    exp8: Campaign, tmp_path: Path, evidence, verdict: Verdict
) -> None:
    assert fed(exp8, tmp_path, evidence, verdict) == []


def test_a_registry_that_cannot_be_written_is_told_and_costs_no_verdict(exp8: Campaign, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    exp8.host.registry = str(tmp_path / "file" / "registry.jsonl")
    found = whole(rates=RATES)
    told = feed(make(exp8, "run-1"), RunFolder(tmp_path), found, [StepRate().check(found)], Verdict.PASS)
    assert "cannot be written" in told


def test_requests_give_the_noise_within_a_boot(exp8: Campaign, tmp_path: Path) -> None:
    for number, letter in enumerate("ABBABAAB", 1):
        folder = tmp_path / "boots" / f"{number:02d}-{letter}"
        folder.mkdir(parents=True)
        times = [1e9 + 1e7 * ((number * 7 + request * 3) % 5) for request in range(6)]
        rows = [{"chunk_ns": [0, t / 2, t], "chunk_tokens": [1, 2, 2]} for t in times]
        (folder / "samples.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (row,) = fed(exp8, tmp_path)
    assert row.requests == 6
    assert 0.001 < (row.sigma_w or 0) < 0.05
    assert ln_rates(tmp_path / "boots/01-A/samples.jsonl")[0] == pytest.approx(log(2 / 1.02))
    assert ln_rates(tmp_path / "none.jsonl") == []


def test_the_rows_are_for_people_too(exp8: Campaign, tmp_path: Path) -> None:
    fed(exp8, tmp_path, whole(rates=RATES, claims=(step_rate(0.0),)))
    text = (tmp_path / "registry.jsonl").read_text()
    assert '"metric": "step_per_s", "kind": "boots", "run_id": "run-1"' in text
