import json
from itertools import pairwise
from math import log
from pathlib import Path

import pytest

from verdict.claims import Claim, ClaimKind, Direction, Judgement, judge
from verdict.fit import Scale
from verdict.plot import BracketPlot, bracket_plot

DATA = {d["id"]: d for d in json.loads(Path(__file__).with_name("vectors.json").read_text())["datasets"]}
VALUES = DATA["D1_clear_win"]["boot_metric"]
EIGHT = "ABBABAAB"


def judged(kind: ClaimKind = ClaimKind.superiority, bound: float = 5, scale: Scale = Scale.LOG) -> Judgement:
    claim = Claim("speed", "step_per_s", kind, bound, scale, Direction.HIGHER, ceiling_pct=13.6, expect_pct=(7, 12))
    return judge(claim, VALUES, EIGHT)


def plotted(found: Judgement | None = None) -> BracketPlot:
    return bracket_plot(found or judged(), VALUES, EIGHT, label="step/s", remarks=["host h200-3"])


def test_each_boot_stands_in_the_order_it_ran() -> None:
    boots = plotted().boots
    assert [boot.label for boot in boots] == ["A1", "B2", "B3", "A4", "B5", "A6", "A7", "B8"]
    assert [boot.position for boot in boots] == list(range(1, 9))
    assert [boot.value for boot in boots] == VALUES
    assert "".join(boot.arm for boot in boots) == EIGHT


def test_the_two_lines_are_the_effect_apart_at_every_boot() -> None:
    plot = plotted()
    for (x_base, base), (x_candidate, candidate) in zip(plot.base_line, plot.candidate_line, strict=True):
        assert x_base == x_candidate
        assert 100 * (candidate / base - 1) == pytest.approx(plot.estimate)


def test_the_lines_share_the_drift() -> None:
    plot, slope = plotted(), judged().fit.slope_per_boot
    for line in (plot.base_line, plot.candidate_line):
        heights = [log(height) for _, height in line]
        assert [b - a for a, b in pairwise(heights)] == pytest.approx([slope] * 7)


def test_the_lines_pass_through_the_middle_of_each_arm() -> None:
    plot = plotted()
    residuals = [
        log(boot.value) - log((plot.base_line if boot.arm == "A" else plot.candidate_line)[boot.position - 1][1])
        for boot in plot.boots
    ]
    assert residuals == pytest.approx(judged().fit.residuals, abs=1e-12)


def test_the_right_side_holds_the_interval_the_gate_the_ceiling_and_the_band() -> None:
    plot, found = plotted(), judged()
    assert (plot.interval, plot.estimate, plot.unit) == (found.interval, found.estimate, "%")
    assert (plot.gates, plot.ceiling, plot.expectation) == ((5,), 13.6, (7, 12))


@pytest.mark.parametrize(
    ("kind", "bound", "gates"),
    [
        (ClaimKind.equivalence, 2, (100 / 1.02 - 100, 2)),
        (ClaimKind.non_inferiority, 2, (100 / 1.02 - 100,)),
        (ClaimKind.no_difference, 0, (0,)),
    ],
)
def test_the_bounds_are_drawn_where_they_were_judged(kind: ClaimKind, bound: float, gates: tuple[float, ...]) -> None:
    assert plotted(judged(kind, bound)).gates == pytest.approx(gates)


def test_a_linear_metric_has_its_lines_in_points() -> None:
    plot = plotted(judged(ClaimKind.equivalence, 2, Scale.LINEAR))
    assert plot.unit == "pp"
    assert plot.gates == (-2, 2)
    apart = [candidate - base for (_, base), (_, candidate) in zip(plot.base_line, plot.candidate_line, strict=True)]
    assert apart == pytest.approx([plot.estimate] * 8)


def test_the_small_print_says_drift_spread_and_resolution() -> None:
    assert plotted().captions == (
        "boots in the order they ran; drift -1.9 % over the session",
        "boot sd 0.28 %",
        "could have seen +-0.7 % (80 % power)",
        "looks: fixed",
        "voided boots: 0",
        "host h200-3",
    )


def test_the_title_is_the_line_of_the_claim() -> None:
    assert plotted().title.startswith("PASS          step/s      +8.8 %  [+8.2, +9.3]   gate >= +5")


def test_a_screen_is_drawn_without_an_interval_or_a_spread() -> None:
    data = DATA["D5a_tiny_ABA"]
    claim = Claim("speed", "step_per_s", ClaimKind.superiority, 5, Scale.LOG, Direction.HIGHER)
    plot = bracket_plot(judge(claim, data["boot_metric"], "ABA"), data["boot_metric"], "ABA")
    assert plot.interval is None
    assert len(plot.captions) == 3
    assert plot.title.startswith("INCONCLUSIVE  step_per_s")


def test_each_session_has_its_own_drift() -> None:
    data = DATA["D9_two_sessions"]
    claim = Claim("speed", "step_per_s", ClaimKind.superiority, 0, Scale.LOG, Direction.HIGHER)
    found = judge(claim, data["boot_metric"], data["schedule"], sessions=data["sessions"])
    plot = bracket_plot(found, data["boot_metric"], data["schedule"])
    assert plot.captions[0] == "boots in the order they ran; drift a boot, by session: -0.44, +0.18 %"
