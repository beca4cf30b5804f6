"""Draws the bracket plot as two SVG panels: the boots in run order, and the interval (statistics.md section 4).

The only importer of matplotlib. Figures are made directly, so no global state of pyplot is touched. Shapes carry the
meaning, not colours: base is hollow and dashed, candidate filled and solid. Texts stay texts in the reader's font.
"""

import io
import re

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from verdict.plot import BracketPlot, Point

SIZE_INCHES = (5.2, 3.4)
WIDEST = 1000.0  # per cent or points: what a hopeless bracket's interval is cut to in the drawing
BASE, CANDIDATE, GREY = "#1f5fa8", "#c2410c", "#777777"
PROLOG = re.compile(r"\A.*?(?=<svg)", re.DOTALL)


def panels(plot: BracketPlot, reading: str) -> tuple[str, str]:
    """Both panels as SVG elements for an HTML page; `reading` names the readings with their unit, like step/s."""
    return boots_panel(plot, reading), interval_panel(plot)


def boots_panel(plot: BracketPlot, reading: str) -> str:
    """Each boot as a dot in the order it ran, and the two parallel lines of the fit."""
    figure = Figure(figsize=SIZE_INCHES, layout="constrained")
    axes = figure.subplots()
    for arm, colour, fill in (("A", BASE, "white"), ("B", CANDIDATE, CANDIDATE)):
        dots = [boot for boot in plot.boots if boot.arm == arm]
        places, values = [boot.position for boot in dots], [boot.value for boot in dots]
        label = "base (A)" if arm == "A" else "candidate (B)"
        axes.plot(places, values, "o", markersize=8, markerfacecolor=fill, markeredgecolor=colour, mew=2, label=label)
    for pair in plot.pairs:
        _line(axes, pair, GREY, "-")
    _line(axes, plot.base_line, BASE, "--")
    _line(axes, plot.candidate_line, CANDIDATE, "-")
    axes.set_xticks([boot.position for boot in plot.boots], [boot.label for boot in plot.boots])
    axes.set_xlabel(f"{'boots, linked where they were up at once,' if plot.pairs else 'boots'} in the order they ran")
    axes.set_ylabel(reading)
    axes.margins(y=0.2)
    return _svg(figure, axes, f"{reading} of each boot in run order")


def interval_panel(plot: BracketPlot) -> str:
    """The effect with its interval, against zero, the bounds of the claim, its ceiling and the predicted band."""
    figure = Figure(figsize=SIZE_INCHES, layout="constrained")
    axes = figure.subplots()
    axes.axvline(0, color=GREY, linewidth=1, label="no effect")
    if plot.expectation is not None:
        low, high = plot.expectation
        axes.axvspan(low, high, facecolor="#e6e6e6", edgecolor=GREY, hatch="//", label=f"expected {low:g}..{high:g}")
    for place, bound in enumerate(plot.gates):
        axes.axvline(bound, color="#111", linewidth=2, linestyle="--", label="gate or margin" if place == 0 else None)
    if plot.ceiling is not None:
        axes.axvline(plot.ceiling, color="#111", linewidth=1.5, linestyle=":", label=f"ceiling {plot.ceiling:g}")
    _interval(axes, plot)
    axes.set_ylim(-1, 1)
    axes.set_yticks([])
    axes.margins(x=0.15)
    axes.xaxis.set_major_locator(MaxNLocator(7))
    axes.set_xlabel(f"candidate against base, {plot.unit}")
    return _svg(figure, axes, "effect with its interval")


def _interval(axes: Axes, plot: BracketPlot) -> None:
    found = plot.interval
    if found is None:
        axes.plot(
            [plot.estimate], [0], "D", markersize=8, markerfacecolor="white", mec="#111", label="no error bar yet"
        )
        return
    label = f"effect with {100 * found.level:.4g} % interval"
    ends = [max(found.lo, -WIDEST), min(found.hi, WIDEST)]
    axes.plot(ends, [0, 0], "-", color="#111", linewidth=4, solid_capstyle="butt")
    axes.plot(ends, [0, 0], "|", color="#111", markersize=18, mew=3)
    axes.plot([plot.estimate], [0], "D", markersize=9, color="#111", label=label)


def _line(axes: Axes, points: tuple[Point, ...], colour: str, style: str) -> None:
    axes.plot([x for x, _ in points], [y for _, y in points], style, color=colour, linewidth=1.5)


def _svg(figure: Figure, axes: Axes, description: str) -> str:
    """One SVG element, the same for the same numbers."""
    axes.spines[["top", "right"]].set_visible(False)
    figure.legend(loc="outside lower center", ncols=2, frameon=False, fontsize=9)
    text = io.StringIO()
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": "campaign"}):
        figure.savefig(text, format="svg", metadata={"Date": None, "Creator": None})
    element = PROLOG.sub("", text.getvalue())
    return element.replace("<svg ", f'<svg role="img" aria-label="{description}" ', 1)
