"""From a configuration to the ordered boots and the registered claims. Pure, and quick enough for a dry run."""

import secrets
import time
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any, Literal

from campaign.asked import contrast, feasible
from campaign.asked.arms import ResolvedArm, digest, resolve
from campaign.config import Campaign, to_plain
from campaign.errors import ConfigError
from campaign.evidence import Evidence
from campaign.gates import sittings, synthetic
from campaign.host import registry
from campaign.host.registry import Known
from campaign.names import BASE, CANDIDATE, DECODE_SET, STEP_PER_S
from campaign.planning.prompt_sets import prompts_of
from campaign.planning.registered import registered
from campaign.planning.scheduled import looks_and_schedule
from campaign.planning.several import arm_names, registered_arms, require_unlike
from campaign.prompting.checks import Prompt
from verdict.claims import Claim, ClaimKind
from verdict.history import History
from verdict.latin import LETTERS, other_side
from verdict.looks import Looks, planned
from verdict.power import design_df, mde_pct
from verdict.schedule import BLOCK_BOOTS, Schedule, coin
from verdict.several import detectable_pct, strictest

SD_PCT_WITHOUT_HISTORY = (1.0, 2.0, 5.0)
LARGEST_SUFFIX = 16**4


@dataclass(frozen=True)
class PlannedBoot:
    """One start of the engine, not yet made."""

    index: int  # from 1
    letter: Literal["A", "B"]
    pair: int = 0  # of a duet, from 1
    prefix: str = ""  # of its folder, where it is no boot of the bracket
    named: str = ""  # of several arms: which one B stands for here

    @property
    def place(self) -> int:
        """Of a pair, 0 is the boot that starts first, on the first port; 1 the other. Alone always 0."""
        return (self.index - 1) % 2 if self.pair else 0

    @property
    def arm(self) -> str:
        """The arm behind the letter: A is base."""
        return self.named or (BASE if self.letter == "A" else CANDIDATE)

    @property
    def name(self) -> str:
        """The folder's name, `01-A`."""
        return f"{self.prefix}{self.index:02d}-{self.letter}"


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
    known: Known  # of this host, before the first boot
    looks: Looks

    @property
    def history(self) -> History | None:
        """The sd of a boot of this host, by its registry."""
        return self.known.history

    @property
    def boots(self) -> tuple[PlannedBoot, ...]:
        """The boots in the order they run; the pairs of a duet are up at once."""
        pairs = self.schedule.pairs or (0,) * self.schedule.n_boots
        rows = enumerate(zip(self.schedule.letters, pairs, strict=True), 1)
        return tuple(self._boot(i, c, pair) for i, (c, pair) in rows)

    def _boot(self, index: int, letter: str, pair: int = 0) -> PlannedBoot:
        named = tuple(self.arms)[LETTERS.index(letter)] if self.candidates else ""
        return PlannedBoot(index, "A" if letter == "A" else "B", pair, named=named)

    @property
    def one_of_each(self) -> tuple[PlannedBoot, ...]:
        """A boot of each arm, of no bracket."""
        return tuple(self._boot(i, letter) for i, (letter, _) in enumerate(zip(LETTERS, self.arms, strict=False), 1))

    @property
    def candidates(self) -> dict[str, str]:
        """Of several arms, those beside base with their letters in the schedule; nothing where there is one."""
        lettered = zip(self.arms, LETTERS, strict=False)
        return {arm: x for arm, x in lettered if arm != BASE} if self.schedule.is_of_several else {}

    @property
    def views(self) -> tuple["Plan", ...]:
        """The plan by each candidate alone, as two arms; of two arms it is itself that."""
        return tuple(map(self.view, self.candidates)) or (self,)

    def view(self, candidate: str) -> "Plan":
        """Of several arms base and one candidate, with the boots of these two as A and B, in their order."""
        kept = {"A": "A", self.candidates[candidate]: "B"}
        schedule = Schedule(tuple("".join(kept.get(c, "") for c in row) for row in self.schedule.blocks))
        return replace(self, arms=self.seen_from(candidate), schedule=schedule, looks=planned([schedule.n_boots]))

    def seen_from(self, arm: str) -> dict[str, ResolvedArm]:
        """The arms that one is compared with, and itself: a candidate with base, base with all."""
        return {name: found for name, found in self.arms.items() if arm == BASE or name in (BASE, arm)}

    @property
    def data(self) -> tuple[tuple[PlannedBoot, ...], ...]:
        """The boots by what is one datum: each alone, or of a duet the two of a pair."""
        size = 2 if self.schedule.paired else 1
        return tuple(self.boots[i : i + size] for i in range(0, len(self.boots), size))

    @property
    def beside(self) -> tuple[tuple[PlannedBoot, ...], ...]:
        """Of a duet, the pairs of base beside base that go before it: they are no boots of the bracket."""
        # of equal arms it is itself base beside base, and where no speed counts there is nothing to compare
        needless = contrast.sameness_claimed(self.claims) or self.campaign.engine.logic_only
        n = self.campaign.bracket.aa_pairs if self.schedule.paired and not needless else 0
        return tuple(tuple(PlannedBoot(2 * p - 1 + k, "A", p, "aa-") for k in (0, 1)) for p in range(1, n + 1))

    @property
    def block_ends(self) -> tuple[int, ...]:
        """Boots that have run at the end of each block."""
        return tuple(accumulate(len(block) for block in self.schedule.blocks))

    def goal(self, boots: int) -> int:
        """Boots of the first look that so many boots do not go beyond."""
        return next((look for look in self.looks.boots if look >= boots), self.looks.last)

    @property
    def rests(self) -> int:
        """How often a pair's window rests before the other engine's turn."""
        turns, prompts = self.campaign.workload.repeats, len(self.prompts[DECODE_SET])
        return rests_of(turns, prompts) if self.schedule.paired else 0

    def minutes(self, n_boots: int) -> float:
        """Rough wall minutes of so many boots, from the engine configuration's own figure of one; rests of a duet."""
        rests_s = self.rests * self.campaign.bracket.rest_s * n_boots / 2
        return n_boots * self.campaign.engine.minutes_per_boot + rests_s / 60

    def evidence(self, boots: tuple[Any, ...], look: int | None = None) -> Evidence:
        """The boots so far, beside what was registered; `look` (from 1) is the planned look that they are judged at.

        Without one the boots of the whole schedule are asked for.
        """
        logic_only = self.campaign.engine.logic_only or ""
        letters = self.schedule.letters[: self.looks.boots[look - 1]] if look else self.schedule.letters
        return Evidence(
            self.campaign.name,
            sittings.numbered(boots, self.block_ends),
            self.claims,
            letters,
            self.history,
            logic_only,
            self.looks,
            look or 1,
            synthetic=synthetic.label(self.campaign.model.synthetic_acceptance_length),
            turns=self.campaign.workload.repeats,
        )

    def plain(self) -> dict[str, Any]:
        """plan.json: enough to resume, and to see that what was judged is what was registered."""
        return {
            "schema": 1,
            "run_id": self.run_id,
            "experiment": self.campaign.name,
            "hypothesis": self.campaign.hypothesis,
            "schedule": " ".join(self.schedule.blocks),
            "flipped": self.flipped,
            "looks": vars(self.looks) | {"boots": list(self.looks.boots)},
            "claims_digest": self.claims_digest,
            "history": self.known.plain(),
            "arms": {name: arm.asked | {"digest": arm.digest} for name, arm in self.arms.items()},
            "config": to_plain(self.campaign),
        }


def rests_of(turns: int, prompts: int) -> int:
    """How often a window of two engines turns to the other one, in the order of traffic/alternate.py."""
    between_turns = turns - 1 if prompts % 2 == 0 else 0  # of an even number the next turn begins at the other engine
    return 1 + turns * prompts + between_turns


def new_run_id(experiment: str) -> str:
    """Experiment, start in UTC, four random hex digits: two may start in one second, the folder is made exclusively."""
    stamp = time.strftime("%Y%m%d-%H%M%S", time.gmtime())
    return f"{experiment}-{stamp}-{secrets.randbelow(LARGEST_SUFFIX):04x}"


def make(campaign: Campaign, run_id: str, known: Known | None = None) -> Plan:
    """The plan of one run; `known` is what it began with, where it is resumed.

    Raises ConfigError on anything that cannot be run, InvalidError on arms that are alike.
    """
    arms = {name: resolve(campaign, name) for name in arm_names(campaign)}
    claims = registered(campaign)
    looks, schedule = looks_and_schedule(campaign, claims)
    prompts = prompts_of(campaign)
    claims_digest = digest(
        {
            "claims": {name: str(claim) for name, claim in claims.items()},
            "schedule": schedule.letters,
            "prompts": {name: [str(p) for p in found] for name, found in prompts.items()},
            **({"looks": str(looks)} if len(looks.boots) > 1 else {}),
            **({"pairs": schedule.pairs, "aa_pairs": campaign.bracket.aa_pairs} if schedule.paired else {}),
            **({"chat_template": campaign.model.chat_template} if campaign.model.chat_template else {}),
            **registered_arms(campaign, arms),
        }
    )
    flipped = campaign.bracket.mirror and coin(claims_digest, run_id)
    require_unlike(arms, claims)
    feasible.check(campaign, arms, prompts)
    if schedule.paired:
        feasible.check_side_by_side(campaign, arms)
    shown = other_side(schedule) if flipped else schedule
    known = known or registry.known(campaign, prompts[DECODE_SET])
    plan = Plan(run_id, campaign, shown, flipped, claims, claims_digest, arms, prompts, known, looks)
    _check_power(plan)
    _check_minutes(plan)
    return plan


def detectable(
    plan: Plan, boots: int | None = None, metric: str = STEP_PER_S
) -> tuple[tuple[float, float | None], ...]:
    """(boot sd, smallest effect seen with 80 % power) in %, by the host's sd or three guesses; None: no error bar.

    At the look after so many boots, else at the last one. The host's sd is known of step/s only.
    """
    history = plan.history if metric == STEP_PER_S else None
    sds = SD_PCT_WITHOUT_HISTORY if history is None else (100.0 * history.s0,)
    if plan.schedule.is_screen:
        return tuple((sd, None) for sd in sds)
    letters, level = plan.schedule.letters[:boots], plan.looks.level(ClaimKind.superiority)
    if of := len(plan.candidates):
        return tuple((sd, detectable_pct(sd / 100.0, letters, {"B": 1.0}, strictest(level, of))) for sd in sds)
    return tuple((sd, mde_pct(sd / 100.0, letters, level, pairs=plan.schedule.pairs)) for sd in sds)


def borrowed(plan: Plan) -> float | None:
    """The smallest effect in % that a screen sees with this host's error bar (80 % power); None where it has none."""
    history, letters, pairs = plan.history, plan.schedule.letters, plan.schedule.pairs
    if history is None or not history.is_usable:
        return None
    return mde_pct(history.s0, letters, df=history.nu0 + design_df(letters, pairs=pairs), pairs=pairs)


def _check_power(plan: Plan) -> None:
    """An underpowered plan runs and says so; bracket.refuse_underpowered=true refuses it (house.md)."""
    shortfall = underpowered(plan)
    if plan.campaign.bracket.refuse_underpowered and shortfall:
        raise ConfigError(shortfall)


def _check_minutes(plan: Plan) -> None:
    """Raises ConfigError where the boots up to the first look would take longer than all may."""
    most, first = plan.campaign.bracket.max_minutes, plan.looks.boots[0]
    beside = sum(map(len, plan.beside))
    wanted = plan.minutes(beside + first)
    if most is not None and wanted > most:
        before = f"{beside} of base beside base and " if beside else ""
        each = f"engine.minutes_per_boot={plan.campaign.engine.minutes_per_boot:g}"
        raise ConfigError(
            f"bracket.max_minutes={most:g} ends before anything could be judged: {before}the first {first} boots take "
            f"about {wanted:.0f} minutes ({each}); allow more"
        )


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
    step = plan.schedule.n_boots if plan.candidates else BLOCK_BOOTS
    wanted = round(plan.schedule.n_boots * (mde / max(distance, 0.01)) ** 2)
    boots = max(plan.schedule.n_boots, step * -(-wanted // step))
    size, unit = (2, "pairs") if plan.schedule.paired else (1, "boots")
    return (
        f"underpowered: at a boot sd of {sd:g} % {plan.schedule.n_boots // size} {unit} see {mde:.1f} %, but the "
        f"expected effect lies {distance:.1f} % from the gate; about {boots // size} {unit} would resolve it"
    )
