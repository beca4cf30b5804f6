"""What a plan can see before its first boot, and what this host is known for (statistics.md 1.10 and 1.12)."""

from campaign.gates.claimed import label_of
from campaign.names import STEP_PER_S, logic_only_label
from campaign.planning.plan import SD_PCT_WITHOUT_HISTORY, Plan, borrowed, detectable, underpowered
from verdict.claims import ClaimKind
from verdict.fit import Scale
from verdict.power import costly
from verdict.several import detectable_pct


def format_resolution(plan: Plan) -> list[str]:
    """The detectable effect, for the host's history or for three guesses; and whether that is enough."""
    return [*_resolution(plan), *_costly(plan)]


def _costly(plan: Plan) -> list[str]:
    if plan.candidates:
        return []
    found = costly(plan.schedule.letters, plan.schedule.pairs)
    return [f"  note        {found}"] if found else []


def _resolution(plan: Plan) -> list[str]:
    mark = logic_only_label(plan.campaign.engine.logic_only or "")
    if mark:
        return [f"  could see   no speed: {mark}; what claims a speed ends INCONCLUSIVE, all else is judged as ever"]
    remarks = [f"  note        {remark}" for remark in plan.known.remarks]
    if plan.schedule.is_screen:
        return [f"  could see   {_screen(plan)}: a screen is never a verdict", *remarks]
    lines = [line for metric in _ratios(plan) for line in _seen(plan, metric)]
    lines = lines or ["  could see   nothing is said before the first boot: no claim here is on a speed or a time"]
    shortfall = underpowered(plan)
    return [
        *lines,
        *_together(plan),
        *([f"  note        {shortfall}; it runs all the same"] if shortfall else []),
        *remarks,
    ]


def _together(plan: Plan) -> list[str]:
    """What can be seen of what two changes together add: it has the error of four arms."""
    together, history = plan.campaign.bracket.together, plan.history
    if together is None or STEP_PER_S not in _ratios(plan):
        return []
    weights = {plan.candidates[together.arm]: 1.0} | {plan.candidates[part]: -1.0 for part in together.parts}
    sds = SD_PCT_WITHOUT_HISTORY if history is None else (100.0 * history.s0,)
    level = ClaimKind.superiority.level
    seen = [(sd, detectable_pct(sd / 100, plan.schedule.letters, weights, level)) for sd in sds]
    return [f"  could see   interaction {', '.join(f'{mde:.1f} % at a boot sd of {sd:.3g} %' for sd, mde in seen)}"]


def _ratios(plan: Plan) -> list[str]:
    """The metrics that a claim compares in per cent, step/s first."""
    metrics = dict.fromkeys(claim.metric for claim in plan.claims.values() if claim.scale is Scale.LOG)
    return sorted(metrics, key=lambda metric: metric != STEP_PER_S)


def _seen(plan: Plan, metric: str) -> list[str]:
    """What the first look can see of a metric, and what the last one can."""
    source = f"guess: {plan.known.origin}" if plan.history is None else plan.known.origin
    if metric != STEP_PER_S:
        source = "guess: a host's history is of step/s only"
    return [
        f"  could see   {label_of(metric)} {', '.join(rows)} ({source}; 80 % power{after})"
        for rows, after in _detectable(plan, metric)
    ]


def _screen(plan: Plan) -> str:
    """What a screen can see with the error bar that it borrows, if there is one to borrow."""
    seen = borrowed(plan)
    if seen is None:
        return f"no error bar of its own, and none to borrow ({plan.known.origin})"
    return f"step/s {seen:.1f} % with a borrowed error bar ({plan.known.origin}; 80 % power)"


def _detectable(plan: Plan, metric: str) -> list[tuple[list[str], str]]:
    looks = plan.looks.boots
    some = [looks[0]] if len(looks) == 1 else [looks[0], looks[-1]]
    within = " within its pair" if plan.schedule.paired else ""
    strict = "; at Holm's first step" if plan.candidates else ""
    return [
        (
            [
                f"{mde:.1f} % at a boot sd of {sd:.3g} %{within}"
                for sd, mde in detectable(plan, boots, metric)
                if mde is not None
            ],
            f"; after {boots} boots" if len(looks) > 1 else strict,
        )
        for boots in some
    ]
