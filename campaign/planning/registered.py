"""The claims of an experiment as the statistics know them: what is registered before the first boot. Pure."""

from campaign.config import Campaign, ClaimConfig, ClaimKindName
from campaign.errors import ConfigError
from campaign.names import ACCEPTANCE_ALL_PP, acceptance_pp
from verdict.claims import Claim, ClaimKind, Direction
from verdict.errors import VerdictError
from verdict.fit import Scale

LOWER_IS_BETTER = ("ttft_median_s", "ttft_cold_s", "ttft_warm_s", "tpot_s")
METRICS = (
    "step_per_s",
    "tok_per_s",
    "tpot_s",
    "ttft_median_s",
    "ttft_cold_s",
    "ttft_warm_s",
    "acceptance_length",
    ACCEPTANCE_ALL_PP,
)


def registered(campaign: Campaign) -> dict[str, Claim]:
    """The claims as the statistics know them. Raises ConfigError on a bound that its kind does not take."""
    _check_judged(campaign)
    try:
        return {name: _claim(name, config) for name, config in campaign.claims.items()}
    except VerdictError as error:
        raise ConfigError(str(error)) from error


def _check_judged(campaign: Campaign) -> None:
    """Every gate that judges a claim has one, and every claim has a gate that judges it. Raises ConfigError."""
    gates = campaign.gates.switched_on()
    sameness = {name for name, c in campaign.claims.items() if c.kind is ClaimKindName.no_difference}
    judged = {str(vars(gate)["claim"]): name for name, gate in gates.items() if "claim" in vars(gate)}
    for claim, gate in judged.items():
        if claim not in campaign.claims:
            raise ConfigError(f"gate {gate} is on, but there is no claim {claim!r}; add it, or gates.{gate}=null")
    if "no_difference" in gates and not sameness:
        raise ConfigError(
            "gate no_difference is on, but no claim is of that kind; add one, or gates.no_difference=null"
        )
    unjudged = set(campaign.claims) - set(judged) - (sameness if "no_difference" in gates else set())
    for name in sorted(unjudged):
        raise ConfigError(
            f"claims.{name}: no gate judges it (on are {', '.join(gates)}); "
            f"switch its gate on, or leave the claim out with ~claims.{name}"
        )


def _claim(name: str, config: ClaimConfig) -> Claim:
    linear = config.metric.endswith("_pp")
    _check_metric(name, config)
    return Claim(
        name=name,
        metric=config.metric,
        kind=ClaimKind(config.kind.value),
        bound=_bound(name, config, linear),
        scale=Scale.LINEAR if linear else Scale.LOG,
        direction=_direction(config.metric, linear),
        ceiling_pct=config.ceiling_pct,
        expect_pct=_band(name, config.expect_pct),
    )


def _band(name: str, found: object) -> tuple[float, float] | None:
    if found is None:
        return None
    if (
        not isinstance(found, list)
        or len(found) != len(("low", "high"))
        or not all(isinstance(x, int | float) for x in found)
    ):
        raise ConfigError(f"claims.{name}.expect_pct: found {found!r}, wanted [low, high] in per cent, or null")
    return float(found[0]), float(found[1])


def _direction(metric: str, linear: bool) -> Direction:
    if linear:
        return Direction.TWO_SIDED
    return Direction.LOWER if metric in LOWER_IS_BETTER else Direction.HIGHER


def _bound(name: str, config: ClaimConfig, linear: bool) -> float:
    """The one bound that the kind takes. A bound of another kind beside it is an error: it would be ignored."""
    wanted = {
        ClaimKindName.superiority: "gate_pct",
        ClaimKindName.no_difference: None,
    }.get(config.kind, "margin_pp" if linear else "margin_pct")
    given = {b: getattr(config, b) for b in ("gate_pct", "margin_pct", "margin_pp") if getattr(config, b) is not None}
    if set(given) != ({wanted} if wanted else set()):
        raise ConfigError(
            f"claims.{name}: a {config.kind.value} claim on {config.metric} takes {wanted or 'no bound'}, "
            f"found {', '.join(given) or 'none'}"
        )
    return float(given[wanted]) if wanted else 0.0


def _check_metric(name: str, config: ClaimConfig) -> None:
    positions = tuple(acceptance_pp(p) for p in range(1, 17))
    if config.metric not in METRICS + positions:
        raise ConfigError(
            f"claims.{name}: no metric {config.metric!r}; there are {', '.join(METRICS)}, {positions[0]}, ..."
        )
