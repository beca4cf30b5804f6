"""The boots of a plan in their order, its looks, what may end it early and what it costs in minutes, in words."""

from campaign.asked import contrast
from campaign.brackets import LOOKS, STANDARD_SCHEDULE, planned_looks
from campaign.names import SPEED
from campaign.planning.plan import Plan
from verdict.claims import ClaimKind
from verdict.words import number_of


def format_order(plan: Plan) -> list[str]:
    """The boots and the looks, what goes before and after them, and a limit of boots that makes fewer than it seems."""
    return [*_order(plan), *_several(plan), *_beside(plan), *_profiled(plan), *_boots_left_out(plan)]


def _order(plan: Plan) -> list[str]:
    looks = plan.looks
    side = "rows read from right to left" if plan.candidates else "mirrored"
    flipped = f", {side} by its coin" if plan.flipped else ""
    first, last = plan.minutes(looks.boots[0]), plan.minutes(looks.last)
    order = f"  bracket     {' '.join(plan.schedule.blocks)}{flipped}"
    if plan.schedule.paired:
        pairs = number_of(len(plan.data), "pair")
        took = f"about {minutes(first)}{_rests(plan)}{_most(plan, 'pair')}"
        return [f"{order}: {pairs} of boots, both live at once (A is base), {took}"]
    if len(looks.boots) == 1:
        arms = ", ".join(["A is base", *(f"{letter} {arm}" for arm, letter in plan.candidates.items())])
        return [f"{order}: {number_of(looks.last, 'boot')} ({arms}), about {minutes(first)}{_most(plan, 'block')}"]
    boots = f"{', '.join(map(str, looks.boots[:-1]))} or {looks.last} boots"
    levels = [looks.level(kind) for kind in (ClaimKind.superiority, ClaimKind.equivalence)]
    futility = "ends early where it is futile" if plan.campaign.bracket.futility else "futility is off"
    return [
        f"{order}: {boots} (A is base), about {max(1, round(first))} to {minutes(last)}",
        f"  looks       after {boots}, at {100 * levels[0]:.4g} % each ({100 * levels[1]:.4g} % for a margin), so that "
        f"all of them err in 5 %; a claim stays as the first look decides it{_most(plan, 'block')}; {futility}",
    ]


def _several(plan: Plan) -> list[str]:
    """How several candidates are judged, and what is told of two that are together."""
    if not plan.candidates:
        return []
    speeds = [name for name, claim in plan.claims.items() if claim.metric in SPEED]
    each = ", ".join(f"{arm} - base" for arm in plan.candidates)
    lines = [
        f"  contrasts   {', '.join(speeds)}: {each}; one fit with a dummy each, Holm over {len(plan.candidates)}. "
        "All else by each arm beside base"
    ] * bool(speeds)
    together = plan.campaign.bracket.together
    if together is not None and speeds:
        sum_of = " - ".join([together.arm, *together.parts])
        lines.append(f"  interaction {sum_of} (+ base): told with its interval, and no part of the verdict")
    return lines


def _most(plan: Plan, unit: str) -> str:
    """What bracket.max_minutes does; it is looked at between two blocks only."""
    most = plan.campaign.bracket.max_minutes
    if most is None:
        return ""
    cut = len(plan.schedule.blocks) > 1
    what = f"no {unit} is begun that would pass it" if cut else f"it has one {unit}, which is not cut for it"
    return f"; bracket.max_minutes={most:g}: {what}"


def _rests(plan: Plan) -> str:
    """How much of a duet's minutes are rests before the other engine's turn."""
    rest_s = plan.campaign.bracket.rest_s
    each_s = plan.rests * rest_s
    return f" ({each_s:.0f} s of each pair are rests of {rest_s:g} s between the engines)" if each_s else ""


def _beside(plan: Plan) -> list[str]:
    """What goes before a duet: base beside base."""
    if not plan.schedule.paired:
        return []
    pairs, port = len(plan.beside), plan.campaign.host.port
    ports = f"ports {port} and {port + 1}"
    if contrast.sameness_claimed(plan.claims):
        return [f"  beside      base beside base is what it measures; {ports}"]
    if not pairs:
        return [
            f"  beside      no pair of base beside base goes first: whether the places are alike is not shown; {ports}"
        ]
    more = minutes(plan.minutes(2 * pairs))
    return [f"  beside      {number_of(pairs, 'pair')} of base beside base first, {more} more; {ports}"]


def _profiled(plan: Plan) -> list[str]:
    """What bracket.mechanism adds. Its minutes are outside of bracket.max_minutes: the verdict is there before."""
    if not plan.campaign.bracket.mechanism:
        return []
    profiled = len(plan.arms)
    more = minutes(profiled * plan.campaign.engine.minutes_per_boot)
    outside = "" if plan.campaign.bracket.max_minutes is None else ", outside of bracket.max_minutes"
    return [
        f"  mechanism   after the verdict {number_of(profiled, 'boot')} more under the engine's profiler, one an arm, "
        f"about {more} more{outside}"
    ]


def _boots_left_out(plan: Plan) -> list[str]:
    """That a limit of boots lies between two looks: the boots behind the last look it allows are never made."""
    bracket, last = plan.campaign.bracket, plan.looks.last
    by_the_limit = bracket.looks == planned_looks(bracket.schedule, bracket.max_boots)
    standard = bracket.schedule == STANDARD_SCHEDULE and not contrast.sameness_claimed(plan.claims)
    if not (standard and by_the_limit) or last >= bracket.max_boots:
        return []
    *some, end = map(str, LOOKS)
    more = next((look for look in LOOKS if look > last), None)
    instead = f"{more} allows the next look" if more else "bracket.looks=[...] plans later ones"
    judged = "it is judged once" if len(plan.looks.boots) == 1 else "it is judged last"
    return [
        f"  note        bracket.max_boots={bracket.max_boots}: looks are after {', '.join(some)} and {end} boots, so "
        f"{judged}, after {last} boots, and no more are made; {instead}"
    ]


def minutes(found: float) -> str:
    """Minutes as a person says them, one at least."""
    return number_of(max(1, round(found)), "minute")
