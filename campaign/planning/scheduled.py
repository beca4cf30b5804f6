"""The boots of a bracket in their order, and the planned looks: from the configuration. Pure."""

from collections.abc import Mapping

from campaign.asked import contrast
from campaign.brackets import SQUARE, Bracket, BracketKind
from campaign.config import Campaign
from campaign.errors import ConfigError
from verdict.claims import Claim
from verdict.errors import VerdictError
from verdict.latin import parse_latin, square
from verdict.looks import Looks, planned
from verdict.power import standard_letters
from verdict.schedule import Schedule, parse_pairs, parse_schedule

STANDARD = "ABBA BAAB ABBA BAAB ..."


def looks_and_schedule(campaign: Campaign, claims: Mapping[str, Claim]) -> tuple[Looks, Schedule]:
    """The planned looks, and the whole schedule up to the last one. Raises ConfigError for looks that do not fit it."""
    schedule = _schedule(campaign)
    boots = campaign.bracket.looks
    if schedule.paired and boots:
        raise ConfigError(
            f"bracket.looks={boots}: a duet is judged once, at its end: the levels of planned looks are reckoned for "
            "boots one after another; write bracket.looks=[]"
        )
    if campaign.bracket.kind is BracketKind.latin and boots:
        raise ConfigError(
            f"bracket.looks={boots}: a bracket of several arms is judged once, at its end; write bracket=latin, or "
            "bracket.looks=[]"
        )
    if not boots or contrast.sameness_claimed(claims):  # sameness is decided by the first look, whichever way
        return planned([schedule.n_boots]), schedule
    if schedule.letters != standard_letters(8)[: schedule.n_boots] or schedule.n_boots != boots[0]:
        raise ConfigError(
            f"bracket.looks={boots} goes on from the first {boots[0]} boots of {STANDARD}, bracket.schedule is "
            f"{' '.join(schedule.blocks)!r}; write bracket.looks=[] for a schedule of your own, judged at its end"
        )
    if boots[-1] > campaign.bracket.max_boots:
        raise ConfigError(
            f"bracket.looks={boots}: the last look is beyond bracket.max_boots={campaign.bracket.max_boots}; "
            "raise it, or leave the look out"
        )
    try:
        looks = planned(boots)
    except VerdictError as error:
        raise ConfigError(f"bracket.looks: {error}") from error
    return looks, parse_schedule(standard_letters(looks.last))


def _schedule(campaign: Campaign) -> Schedule:
    try:
        schedule = _parsed(campaign.bracket, len(campaign.arms))
    except VerdictError as error:
        raise ConfigError(f"bracket.schedule: {error}") from error
    if schedule.n_boots > campaign.bracket.max_boots:
        raise ConfigError(
            f"bracket.schedule has {schedule.n_boots} boots, bracket.max_boots allows {campaign.bracket.max_boots}"
        )
    return schedule


def _parsed(bracket: Bracket, arms: int) -> Schedule:
    """Raises VerdictError for what the bracket's kind does not take."""
    if bracket.kind is BracketKind.latin:
        return square(arms) if bracket.schedule == SQUARE else parse_latin(bracket.schedule, arms)
    return (parse_pairs if bracket.kind is BracketKind.duet else parse_schedule)(bracket.schedule)
