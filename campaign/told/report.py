"""The page of a run, report.md and report.html: verdict, gates, bracket plots, and what they were made of."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from campaign.asked.arms import ResolvedArm
from campaign.config import Campaign
from campaign.disclosure import may_show_effect, may_show_readings, shown
from campaign.evidence import Evidence
from campaign.gates.base import GateResult
from campaign.gates.claimed import label_of, letters, logic_only
from campaign.gates.footing import sound, voided
from campaign.journal import write_text
from campaign.names import logic_only_label
from campaign.told import profiled, several
from campaign.told import report_tables as tables
from campaign.told.bracket_figure import panels
from campaign.told.machine_table import machine
from campaign.told.prefix_table import prefix_cache
from campaign.told.view import Page, Panels, Section, to_html, to_markdown
from verdict.claims import Judgement
from verdict.plot import bracket_plot
from verdict.words import Verdict


def write(
    run_dir: Path,
    campaign: Campaign,
    evidence: Evidence,
    results: tuple[GateResult, ...],
    verdict: Verdict,
    arms: Mapping[str, ResolvedArm],
    by_arm: Mapping[str, Evidence] | None = None,
) -> None:
    """Write report.md and report.html into the run folder, each aside and renamed."""
    page = make_page(run_dir.name, campaign, evidence, results, verdict, arms, by_arm)
    if found := profiled.read(run_dir):
        page = replace(page, sections=(*page.sections, profiled.table(found)))
    write_text(run_dir / "report.md", to_markdown(page))
    write_text(run_dir / "report.html", to_html(page))


def make_page(
    run_id: str,
    campaign: Campaign,
    evidence: Evidence,
    results: tuple[GateResult, ...],
    verdict: Verdict,
    arms: Mapping[str, ResolvedArm],
    by_arm: Mapping[str, Evidence] | None = None,
) -> Page:
    """All that is on the page; no effect where none may be told (house.md).

    `by_arm` is of several candidates what each one's gates saw.
    """
    told = shown(results, verdict, evidence)
    has_effect, has_readings = may_show_effect(verdict, evidence), may_show_readings(verdict, evidence)
    sections: list[Section | None] = [
        tables.failures(evidence),
        tables.gates(told),
        *(_effects(evidence, told, campaign.host.name, by_arm or {}) if has_effect else []),
        tables.boots(evidence, has_readings),
        prefix_cache(evidence) if has_readings else None,
        machine(evidence),
        *tables.arms(arms),
        *tables.witnesses(evidence),
        tables.facts(campaign, evidence),
    ]
    return Page(
        title=f"{campaign.name} ({run_id})",
        verdict=verdict.value,
        sentences=(campaign.hypothesis, _why(evidence, has_effect)),
        sections=tuple(section for section in sections if section is not None),
        footer=(*_engine(campaign), f"run {run_id}"),
    )


def _effects(
    evidence: Evidence, results: tuple[GateResult, ...], host: str, by_arm: Mapping[str, Evidence]
) -> list[Section | None]:
    """What the claims' effects are made of; of several candidates, of each one by itself."""
    if not by_arm:
        return [*_plots(evidence, results, host), tables.acceptance(evidence), tables.pairs(evidence)]
    found: list[Section | None] = [several.contrasts(by_arm, results, evidence)]
    for arm, seen in by_arm.items():
        own = tuple(r for r in results if several.arm_of(r, by_arm) == arm and not several.in_one_fit(arm, r, by_arm))
        sections = [*_plots(seen, own, host), tables.acceptance(seen)]
        found += [replace(one, title=f"{arm}: {one.title}") for one in sections if one is not None]
    return found


def _plots(evidence: Evidence, results: tuple[GateResult, ...], host: str) -> list[Section]:
    return [_plot(evidence, result, host) for result in results if result.judgement is not None]


def _plot(evidence: Evidence, result: GateResult, host: str) -> Panels:
    """The two panels of a judged claim, with the readings that were judged."""
    assert result.judgement is not None
    metric, evidence = result.judgement.claim.metric, _judged(evidence, result.judgement)
    label = label_of(metric)
    plot = bracket_plot(
        result.judgement,
        [boot.metrics[metric] for boot in sound(evidence)],
        letters(evidence, metric),
        label=label,
        voided_boots=voided(evidence),
        look=(result.look or 1, evidence.which_look[1]),
        remarks=(f"host {host}", _registry(evidence)),
    )
    mark = logic_only(evidence, metric)
    reading = ", ".join(text for text in (label, "%" if plot.unit == "pp" else "", mark) if text)
    captions = (f"{mark}: these numbers are no speed of a device", *plot.captions) if mark else plot.captions
    captions = (f"with {evidence.synthetic}", *captions) if evidence.synthetic else captions
    return Panels(f"Bracket of {result.gate}", tables.as_words(result.line), panels(plot, reading), captions)


def _judged(evidence: Evidence, found: Judgement) -> Evidence:
    """The boots of the look that decided; later ones need not have the reading."""
    last = sound(evidence)[found.fit.n_boots - 1]
    boots = evidence.boots[: evidence.boots.index(last) + 1]
    return replace(evidence, boots=boots, letters=found.letters)


def _registry(evidence: Evidence) -> str:
    if evidence.history is None:
        return "this host has no history yet"
    return f"history of this host: boot sd {100 * evidence.history.s0:.2g} % on {evidence.history.nu0} df"


def _why(evidence: Evidence, has_effect: bool) -> str:
    ran = sum(boot.status == "ok" for boot in evidence.boots)
    how = f"{ran} of {len(evidence.letters)} boots gave data, order {evidence.letters} (A is base)."
    return how if has_effect else f"{how} No effect is told: see the failures."


def _engine(campaign: Campaign) -> list[str]:
    build, mark = campaign.engine.build, logic_only_label(campaign.engine.logic_only or "")
    what = f"{build.upper()} reference engine: not a GPU figure." if build == "cpu" else f"Engine build: {build}."
    return [what, *([f"Every speed on this page is {mark}."] if mark else [])]
