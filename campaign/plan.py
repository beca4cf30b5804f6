"""From a configuration to the ordered boots and the registered claims. Pure, and quick enough for a dry run."""

import secrets
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from campaign import contrast, feasible
from campaign.arms import ResolvedArm, digest, resolve
from campaign.checks import Prompt, load_prompts
from campaign.config import Campaign, ClaimConfig, ClaimKindName, to_plain
from campaign.errors import ConfigError
from campaign.evidence import Evidence
from campaign.names import BASE, CANDIDATE, acceptance_pp
from verdict.claims import Claim, ClaimKind, Direction
from verdict.errors import VerdictError
from verdict.fit import Scale
from verdict.history import History
from verdict.power import mde_pct
from verdict.schedule import Schedule, coin, mirrored, parse_schedule

SD_PCT_WITHOUT_HISTORY = (1.0, 2.0, 5.0)
LOWER_IS_BETTER = ("ttft_median_s", "tpot_s")
LARGEST_SUFFIX = 16**4
METRICS = ("step_per_s", "tok_per_s", "tpot_s", "ttft_median_s", "acceptance_length")


@dataclass(frozen=True)
class PlannedBoot:
    """One start of the engine, not yet made."""

    index: int  # from 1
    letter: Literal["A", "B"]

    @property
    def arm(self) -> str:
        """The arm behind the letter: A is base."""
        return BASE if self.letter == "A" else CANDIDATE

    @property
    def name(self) -> str:
        """The folder's name, `01-A`."""
        return f"{self.index:02d}-{self.letter}"


@dataclass(frozen=True)
class Plan:
    """What will be run, fixed before the first boot."""

    run_id: str
    campaign: Campaign
    schedule: Schedule
    flipped: bool
    claims: dict[str, Claim]
    claims_digest: str
    arms: dict[str, ResolvedArm]
    prompts: dict[str, tuple[Prompt, ...]]  # by prompt set
    history: History | None

    @property
    def boots(self) -> tuple[PlannedBoot, ...]:
        """The boots in the order they run."""
        return tuple(PlannedBoot(i, "A" if c == "A" else "B") for i, c in enumerate(self.schedule.letters, 1))

    def evidence(self, boots: tuple[Any, ...]) -> Evidence:
        """The boots so far, beside what was registered."""
        logic_only = self.campaign.engine.logic_only or ""
        return Evidence(self.campaign.name, boots, self.claims, self.schedule.letters, self.history, logic_only)

    def plain(self) -> dict[str, Any]:
        """plan.json: enough to resume, and to see that what was judged is what was registered."""
        return {
            "schema": 1,
            "run_id": self.run_id,
            "experiment": self.campaign.name,
            "hypothesis": self.campaign.hypothesis,
            "schedule": " ".join(self.schedule.blocks),
            "flipped": self.flipped,
            "claims_digest": self.claims_digest,
            "arms": {name: arm.asked | {"digest": arm.digest} for name, arm in self.arms.items()},
            "config": to_plain(self.campaign),
        }


def new_run_id(experiment: str) -> str:
    """Experiment, start in UTC, four random hex digits: two may start in one second, the folder is made exclusively."""
    stamp = time.strftime("%Y%m%d-%H%M%S", time.gmtime())
    return f"{experiment}-{stamp}-{secrets.randbelow(LARGEST_SUFFIX):04x}"


def make(campaign: Campaign, run_id: str) -> Plan:
    """The plan of one run. Raises ConfigError on anything that cannot be run, InvalidError on arms that are alike."""
    arms = {name: resolve(campaign, name) for name in _two_arms(campaign)}
    claims = registered(campaign)
    schedule = _schedule(campaign)
    prompts = _prompts(campaign)
    claims_digest = digest(
        {
            "claims": {name: str(claim) for name, claim in claims.items()},
            "schedule": schedule.letters,
            "prompts": {name: [str(p) for p in found] for name, found in prompts.items()},
        }
    )
    flipped = campaign.bracket.mirror and coin(claims_digest, run_id)
    contrast.require_planned(arms, claims)
    feasible.check(campaign, arms, prompts)
    shown = mirrored(schedule) if flipped else schedule
    plan = Plan(run_id, campaign, shown, flipped, claims, claims_digest, arms, prompts, _history(campaign))
    _check_power(plan)
    return plan


def _two_arms(campaign: Campaign) -> tuple[str, ...]:
    if set(campaign.arms) != {BASE, CANDIDATE}:
        raise ConfigError(
            f"an experiment has the arms base and candidate; {campaign.name} has {', '.join(campaign.arms)}"
        )
    return (BASE, CANDIDATE)


def _schedule(campaign: Campaign) -> Schedule:
    try:
        schedule = parse_schedule(campaign.bracket.schedule)
    except VerdictError as error:
        raise ConfigError(f"bracket.schedule: {error}") from error
    if schedule.n_boots > campaign.bracket.max_boots:
        raise ConfigError(
            f"bracket.schedule has {schedule.n_boots} boots, bracket.max_boots allows {campaign.bracket.max_boots}"
        )
    return schedule


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


def _prompts(campaign: Campaign) -> dict[str, tuple[Prompt, ...]]:
    return {name: load_prompts(path, name) for name, path in prompt_paths(campaign).items()}


def prompt_paths(campaign: Campaign) -> dict[str, Path]:
    """Prompt set -> file, for the sets that this experiment sends."""
    paths = {"decode": Path(campaign.workload.prompts)}
    if campaign.gates.quality is not None:
        paths["quality"] = Path(campaign.gates.quality.prompts)
    if campaign.gates.korean is not None:
        paths["korean"] = Path(campaign.gates.korean.prompts)
    return paths


def _history(campaign: Campaign) -> History | None:
    host = campaign.host
    if host.history_sd_pct is None:
        return None
    try:
        return History(s0=host.history_sd_pct / 100.0, nu0=host.history_df)
    except VerdictError as error:
        raise ConfigError(f"host.history_sd_pct, host.history_df: {error}") from error


def detectable(plan: Plan) -> tuple[tuple[float, float | None], ...]:
    """(boot sd, smallest effect seen with 80 % power) in %, by the host's sd or three guesses; None: no error bar."""
    sds = SD_PCT_WITHOUT_HISTORY if plan.history is None else (100.0 * plan.history.s0,)
    if plan.schedule.is_screen:
        return tuple((sd, None) for sd in sds)
    return tuple((sd, mde_pct(sd / 100.0, plan.schedule.letters)) for sd in sds)


def _check_power(plan: Plan) -> None:
    """An underpowered plan runs and says so; bracket.refuse_underpowered=true refuses it (house.md)."""
    shortfall = underpowered(plan)
    if plan.campaign.bracket.refuse_underpowered and shortfall:
        raise ConfigError(shortfall)


def underpowered(plan: Plan) -> str | None:
    """Why the plan cannot resolve its speed claim, with the boots it would take; None when it can or none can tell."""
    claim = plan.claims.get("step_rate")
    if claim is None or claim.expect_pct is None or plan.schedule.is_screen:
        return None
    distance = abs(sum(claim.expect_pct) / 2 - claim.bound)
    rows = [(sd, mde) for sd, mde in detectable(plan) if mde is not None and mde > distance]
    if not rows or (plan.history is None and len(rows) < len(SD_PCT_WITHOUT_HISTORY)):
        return None
    sd, mde = rows[0]
    boots = max(plan.schedule.n_boots, 4 * -(-round(plan.schedule.n_boots * (mde / max(distance, 0.01)) ** 2) // 4))
    return (
        f"underpowered: at a boot sd of {sd:g} % {plan.schedule.n_boots} boots see {mde:.1f} %, but the expected "
        f"effect lies {distance:.1f} % from the gate; about {boots} boots would resolve it"
    )


def expected_minutes(campaign: Campaign, n_boots: int) -> float:
    """Rough wall minutes, from the engine configuration's own figure of one boot with its prompts and window."""
    return n_boots * campaign.engine.minutes_per_boot
