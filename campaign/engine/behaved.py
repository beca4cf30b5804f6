"""The behaved layer: what really happened between two reports, as differences of each process's own counters."""

from collections.abc import Mapping, Sequence
from typing import Any

from campaign.engine.reports import Place, Report
from campaign.evidence import Shown, WitnessRow

MAX_SUFFIX = "_max"
Bounds = Mapping[str, float]


def rows(
    knob: str,
    wanted: Mapping[str, Bounds],
    before: Sequence[Report],
    after: Sequence[Report],
    *,
    usual: bool = True,
) -> list[WitnessRow]:
    """One row a counter, over every process that has it; the worst one decides."""
    earlier = {report.place: report for report in before}
    return [_row(knob, counter, bounds, earlier, after, usual) for counter, bounds in wanted.items()]


def _row(
    knob: str, counter: str, bounds: Bounds, earlier: Mapping[Place, Report], after: Sequence[Report], usual: bool
) -> WitnessRow:
    by_half = usual and "min" in bounds
    seen = {report: over_window(counter, earlier.get(report.place), report, usual=by_half) for report in after}
    shown = {report: value for report, value in seen.items() if value is not None}
    wrong = {report: value for report, value in shown.items() if isinstance(value, str) or not _within(value, bounds)}
    told = wrong or shown
    words = ", ".join(dict.fromkeys(v if isinstance(v, str) else f"{v:g}" for v in told.values())) or "(absent)"
    ok = bool(shown) and not wrong
    return WitnessRow(knob, "behaved", counter, _bounds_in_words(bounds), words, ok, ", ".join(map(str, told)))


def grown(counter: str, before: Sequence[Report], after: Sequence[Report]) -> str:
    """The largest growth of a counter in any process, as text; empty where none shows it."""
    earlier = {report.place: report for report in before}
    found = [over_window(counter, earlier.get(report.place), report) for report in after]
    return max((f"{value:g}" for value in found if isinstance(value, float)), key=float, default="")


def shown(before: Sequence[Report], after: Sequence[Report]) -> tuple[Shown, ...]:
    """What each overlay says of itself, a process each: how far its counters grew, and its state as text."""
    earlier = {report.place: report for report in before}
    return tuple(_shown(name, earlier.get(report.place), report) for report in after for name in _overlays(report))


def _overlays(report: Report) -> list[str]:
    counting = {counter.partition(".")[0] for counter in report.section("behaved") if "." in counter}
    return sorted(counting | report.section("overlays").keys())


def _shown(overlay: str, before: Report | None, after: Report) -> Shown:
    own = {key.partition(".")[2]: key for key in after.section("behaved") if key.startswith(f"{overlay}.")}
    found = {name: _grown_or_told(key, before, after) for name, key in own.items()}
    state = after.section("overlays").get(overlay)
    told = {str(name): str(value) for name, value in state.items()} if isinstance(state, dict) else {}
    broken = {name: value for name, value in found.items() if isinstance(value, str)}
    counted = {name: value for name, value in found.items() if isinstance(value, float)}
    return Shown(overlay, " ".join(map(str, after.place)), counted, told | broken)


def _grown_or_told(counter: str, before: Report | None, after: Report) -> float | str | None:
    """Its growth; where it is no number (a counter that could not be read shows its error), what it says."""
    values = [report.section("behaved").get(counter, 0) for report in (before, after) if report is not None]
    plain = all(isinstance(value, int | float) and not isinstance(value, bool) for value in values)
    return over_window(counter, before, after) if plain else str(values[-1])


def over_window(counter: str, before: Report | None, after: Report, *, usual: bool = False) -> float | str | None:
    """A counter's growth over the window: a number, a sentence when it cannot be told, None when it is not shown.

    `NAME_max` of a histogram NAME (batches_in_flight_max) is the largest key that grew; where it must be at least
    something (`usual`), it is what at least half of the steps reached, for one lucky step is no behaviour. A plain
    NAME_max is the largest since the start, and is taken as it stands.
    """
    now = after.section("behaved")
    if counter not in now and counter.removesuffix(MAX_SUFFIX) not in now:
        return None
    if before is None:
        return "no report before the window"
    then = before.section("behaved")
    histogram = now.get(counter.removesuffix(MAX_SUFFIX))
    if counter.endswith(MAX_SUFFIX) and isinstance(histogram, dict):
        told = reached_by_half if usual else largest_that_grew
        return told(then.get(counter.removesuffix(MAX_SUFFIX), {}), histogram)
    if counter.endswith(MAX_SUFFIX):
        return float(now[counter])
    return _growth(then.get(counter, 0), now[counter])


def largest_that_grew(before: Mapping[str, Any], after: Mapping[str, Any]) -> float | str:
    """The largest key of a histogram with a positive difference; a sentence when a count fell or none grew."""
    growth = _histogram_growth(before, after)
    return growth if isinstance(growth, str) else float(max(growth))


def reached_by_half(before: Mapping[str, Any], after: Mapping[str, Any]) -> float | str:
    """The largest key that at least half of the window's steps reached; a sentence when a count fell or none grew."""
    growth = _histogram_growth(before, after)
    if isinstance(growth, str):
        return growth
    steps = sum(growth.values())
    return float(max(key for key in growth if 2 * sum(n for k, n in growth.items() if k >= key) >= steps))


def _histogram_growth(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[int, float] | str:
    growth = {int(key): after[key] - before.get(key, 0) for key in after}
    if any(step < 0 for step in growth.values()) or before.keys() - after.keys():
        return "a count fell: the process started anew within the window"
    grown = {key: step for key, step in growth.items() if step > 0}
    return grown or "no step ran in the window"


def _growth(before: float, after: float) -> float | str:
    return (
        float(after - before) if after >= before else f"it fell from {before:g} to {after:g}: the process started anew"
    )


def _within(value: float, bounds: Bounds) -> bool:
    return bounds.get("min", value) <= value <= bounds.get("max", value)


def _bounds_in_words(bounds: Bounds) -> str:
    words = {"min": "at least", "max": "at most"}
    return " and ".join(f"{words[kind]} {value:g}" for kind, value in bounds.items())
