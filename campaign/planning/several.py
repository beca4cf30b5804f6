"""The arms of an experiment: base and its candidate, or base and several named ones (`bracket.kind=latin`). Pure."""

import re
from collections.abc import Iterable, Mapping

from campaign.asked import contrast
from campaign.asked.arms import ResolvedArm
from campaign.brackets import BracketKind, Together
from campaign.config import Campaign, ClaimKindName
from campaign.errors import ConfigError, InvalidError
from campaign.names import BASE, CANDIDATE
from verdict.claims import Claim
from verdict.latin import LEAST_ARMS, LETTERS

NAME = re.compile(r"[a-z][a-z0-9_]{0,19}")  # it becomes part of a gate's, a folder's and a metric's name


def arm_names(campaign: Campaign) -> tuple[str, ...]:
    """Base, then its candidate; of several, in the order of `arms`: their letters are A, B, C, ...

    Raises ConfigError for arms that the bracket does not take.
    """
    if campaign.bracket.kind is BracketKind.latin:
        return _several(campaign)
    if campaign.bracket.together is not None:
        raise ConfigError("bracket.together is of several arms; leave it out, or write bracket=latin")
    if set(campaign.arms) != {BASE, CANDIDATE}:
        more = "; bracket=latin measures several candidates of one base" if len(campaign.arms) > LEAST_ARMS - 1 else ""
        raise ConfigError(
            f"an experiment has the arms base and candidate; {campaign.name} has {', '.join(campaign.arms)}{more}"
        )
    return (BASE, CANDIDATE)


def _several(campaign: Campaign) -> tuple[str, ...]:
    found = ", ".join(campaign.arms)
    names = tuple(campaign.arms)
    if BASE not in names or not LEAST_ARMS <= len(names) <= len(LETTERS):
        raise ConfigError(
            f"bracket=latin: experiment {campaign.name} has the arms {found}; wanted base and two to "
            f"{len(LETTERS) - 1} others. One candidate is measured with bracket=verdict"
        )
    for name in names:
        if not NAME.fullmatch(name):
            raise ConfigError(f"arms.{name}: wanted lower-case letters, digits and '_', at most 20, a letter first")
    for name, claim in campaign.claims.items():
        if claim.kind is ClaimKindName.no_difference:
            raise ConfigError(
                f"claims.{name}: bracket=latin compares arms that differ; claim no_difference of two arms"
            )
    if campaign.bracket.together is not None:
        _check_together(campaign.bracket.together, [name for name in names if name != BASE])
    return (BASE, *(name for name in names if name != BASE))


def _check_together(found: Together, candidates: list[str]) -> None:
    wanted = len(("one", "the other"))
    if len(found.parts) != wanted or len({found.arm, *found.parts}) != 1 + wanted:
        raise ConfigError(
            f"bracket.together: found arm {found.arm} of the parts {', '.join(found.parts) or 'none'}; wanted an arm "
            "and two others whose changes it has both"
        )
    if strange := [name for name in (found.arm, *found.parts) if name not in candidates]:
        raise ConfigError(f"bracket.together: no candidate {strange[0]!r}; there are {', '.join(candidates)}")


def require_unlike(arms: Mapping[str, ResolvedArm], claims: Mapping[str, Claim]) -> None:
    """Raises InvalidError for a candidate that is base (asked/contrast.py), and for two that ask for the same."""
    by_digest: dict[str, str] = {}
    for name, arm in arms.items():
        if name == BASE:
            continue
        contrast.require_planned({BASE: arms[BASE], name: arm}, claims)
        first = by_digest.setdefault(arm.digest, name)
        if first != name:
            raise InvalidError(f"arms identical: {first} and {name} ask for the same; leave one of them out")


def registered_arms(campaign: Campaign, names: Iterable[str]) -> dict[str, object]:
    """What is registered of several arms beside claims and schedule; nothing where there are two."""
    if campaign.bracket.kind is not BracketKind.latin:
        return {}
    together = campaign.bracket.together
    parts = {} if together is None else {"together": [together.arm, *together.parts]}
    return {"letters": dict(zip(LETTERS, names, strict=False)), **parts}
