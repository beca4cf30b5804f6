"""Did the fused step do the steps of the window, and were its checks clean? Shadow and armed, rank by rank."""

from collections.abc import Iterator
from dataclasses import dataclass

from campaign.evidence import BootRecord, Evidence, Shown
from campaign.gates.base import GateResult
from campaign.gates.claimed import unjudged
from campaign.gates.footing import boot_name, sound
from campaign.names import logic_only_label
from verdict.sentence import head
from verdict.words import Verdict

GATE = "fused"
LABEL = "fused"
SHADOW, ARMED, DISARMED = "SHADOW", "ARMED", "DISARMED"
Word = tuple[Verdict, str]


@dataclass
class Fused:
    """Reads the overlay's own counters over the window, in every worker of every boot of the candidate.

    Whatever the state: not mounted or disarmed is INVALID, a difference is a FAIL with the first one described, and no
    fused step at all is a FAIL (a check that never ran proves nothing). Armed: `least_pct` of the decode steps must be
    fused, else it is not the fused path that was measured, and a self-check must lie in the window. Shadow:
    `least_checks` steps must have been compared.
    """

    overlay: str = "prep_fused"
    least_pct: float = 95.0
    least_checks: int = 100

    def check(self, evidence: Evidence) -> GateResult:
        """The first reason that settles it, the worst first."""
        boots = sound(evidence, "B")
        if not boots:
            return unjudged(GATE, LABEL, "no boot of the candidate gave data")
        reasons = sorted(self._reasons(boots), key=lambda word: ORDER.index(word[0]))
        verdict, text = next(iter(reasons), (Verdict.PASS, self._told(boots)))
        details = tuple(self._line(boot, rank, evidence) for boot in boots for rank in self._ranks(boot))
        return GateResult(GATE, verdict, head(verdict, LABEL) + text, details, self._numbers(boots))

    def _reasons(self, boots: tuple[BootRecord, ...]) -> Iterator[Word]:
        for boot in boots:
            ranks = self._ranks(boot)
            if not ranks:
                yield Verdict.INVALID, f"not mounted in boot {boot_name(boot)}: no worker shows overlay {self.overlay}"
            for rank in ranks:
                yield from self._of_a_rank(f"{rank.place} of boot {boot_name(boot)}", rank)

    def _of_a_rank(self, where: str, rank: Shown) -> Iterator[Word]:
        state, reason = rank.state.get("state", "(none told)"), rank.state.get("reason", "")
        if state not in (SHADOW, ARMED):
            yield Verdict.INVALID, f"{where} is {state}: {reason or 'no reason told'}"
        differing = counted(rank, "drift") + counted(rank, "metadata_drift")
        if differing:
            first = rank.state.get("first_mismatch", "not described")
            yield Verdict.FAIL, f"{where}: {differing:g} steps differ from the engine's own; the first: {first}"
        steps, fused, checks = (counted(rank, name) for name in ("decode_steps", "fused_steps", "checks"))
        if not fused:
            yield Verdict.FAIL, f"{where}: 0 of {steps:g} decode steps were fused{_declined(rank)}"
        elif state == ARMED and fused < self.least_pct / 100 * steps:
            share = f"{fused:g} of {steps:g} decode steps were fused ({100 * fused / steps:.1f} %)"
            yield Verdict.INVALID, f"{where}: {share}, wanted {self.least_pct:g} %{_declined(rank)}"
        elif state == SHADOW and checks < self.least_checks:
            yield Verdict.INCONCLUSIVE, f"{where}: {checks:g} steps compared, wanted {self.least_checks}; ask more"
        elif state == ARMED and not checks:
            yield Verdict.INCONCLUSIVE, f"{where}: no self-check fell into the window; ask more, or check more often"

    def _ranks(self, boot: BootRecord) -> tuple[Shown, ...]:
        return tuple(s for s in boot.shown if s.overlay == self.overlay and s.place.startswith("Worker"))

    def _told(self, boots: tuple[BootRecord, ...]) -> str:
        ranks = [rank for boot in boots for rank in self._ranks(boot)]
        steps, fused, checks = (
            sum(counted(rank, name) for rank in ranks) for name in ("decode_steps", "fused_steps", "checks")
        )
        states = " and ".join(sorted({rank.state.get("state", "") for rank in ranks}))
        return f"{states}: {fused:g} of {steps:g} decode steps fused, {checks:g} compared, 0 differ"

    def _line(self, boot: BootRecord, rank: Shown, evidence: Evidence) -> str:
        mark = logic_only_label(evidence.logic_only)
        added = "".join(
            f", {what} {rank.grown[name] / counted(rank, per):.0f} us a step{f' ({mark})' if mark else ''}"
            for name, per, what in (("check_us", "checks", "comparing"), ("live_us", "live_launches", "fused launch"))
            if rank.grown.get(name) and counted(rank, per)
        )
        share = f"{counted(rank, 'fused_steps'):g} of {counted(rank, 'decode_steps'):g} steps fused"
        clean = f"{counted(rank, 'clean'):g} of {counted(rank, 'checks'):g} checks clean"
        return f"{boot_name(boot)} {rank.place} {rank.state.get('state', '')}: {share}, {clean}{added}"

    def _numbers(self, boots: tuple[BootRecord, ...]) -> dict[str, float]:
        names = ("decode_steps", "fused_steps", "checks", "clean", "drift", "metadata_drift", "fallbacks")
        ranks = [rank for boot in boots for rank in self._ranks(boot)]
        return {name: sum(counted(rank, name) for rank in ranks) for name in names} if ranks else {}


ORDER = (Verdict.INVALID, Verdict.FAIL, Verdict.INCONCLUSIVE)


def counted(rank: Shown, name: str) -> float:
    """A counter's growth over the window; 0 where it is not shown."""
    return rank.grown.get(name, 0.0)


def _declined(rank: Shown) -> str:
    """Why steps were left to the engine: the guard's reasons with their counts."""
    found = {k.removeprefix("declined_"): v for k, v in rank.grown.items() if k.startswith("declined_") and v}
    told = ", ".join(f"{name} {number:g}" for name, number in sorted(found.items(), key=lambda one: -one[1]))
    return f" (left to the engine: {told})" if told else ""
