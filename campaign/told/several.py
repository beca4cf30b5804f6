"""Of several candidates of one base: their contrasts as a table of the report. Pure."""

from collections.abc import Mapping, Sequence

from campaign.evidence import Evidence
from campaign.gates.base import GateResult
from campaign.gates.claimed import label_of, logic_only
from campaign.names import INTERACTION
from campaign.told.view import Table
from verdict.claims import Judgement
from verdict.fit import Scale
from verdict.latin import LETTERS
from verdict.sentence import effect_text

HEAD = ("claim", "arm", "letter", "effect and interval", "p, by Holm", "verdict")


def contrasts(by_arm: Mapping[str, Evidence], results: Sequence[GateResult], evidence: Evidence) -> Table | None:
    """One row a candidate and claim of the fit that all share, and what two changes together add."""
    rows = [row for arm, letter in zip(by_arm, LETTERS[1:], strict=False) for row in _rows(arm, letter, results)]
    if not rows:
        return None
    rows += [_added(result) for result in results if result.gate.startswith(INTERACTION) and result.numbers]
    arms = ", ".join(["A base", *(f"{letter} {arm}" for arm, letter in zip(by_arm, LETTERS[1:], strict=False))])
    mark = next(
        (label for arm in by_arm.values() for c in arm.claims.values() if (label := logic_only(arm, c.metric))), ""
    )
    note = (
        f"Order {evidence.letters} ({arms}). One least-squares fit with a dummy each, the session's drift and one "
        f"error bar; Holm over the candidates.{f' {mark}: these numbers are no speed of a device.' if mark else ''}"
    )
    return Table("Contrasts with base", HEAD, tuple(rows), note)


def in_one_fit(arm: str, result: GateResult, by_arm: Mapping[str, Evidence]) -> bool:
    """Whether a candidate's claim was judged with those of all others."""
    return result.judgement is not None and result.judgement.claim.name in by_arm[arm].contrasts


def arm_of(result: GateResult, by_arm: Mapping[str, Evidence]) -> str:
    """Which candidate a gate is about, by its name; empty where it is about none."""
    name = result.gate.partition(" ")[0]
    return name if name in by_arm else ""


def _rows(arm: str, letter: str, results: Sequence[GateResult]) -> list[tuple[str, ...]]:
    found = [(r, r.judgement, _p(r)) for r in results if r.gate.partition(" ")[0] == arm and r.judgement]
    return [(_label(j), arm, letter, _effect(j), p, r.verdict.value) for r, j, p in found if j and p]


def _p(result: GateResult) -> str:
    p = next((value for name, value in result.numbers.items() if name.endswith("p_holm")), None)
    return "" if p is None else f"{p:.2g}"


def _label(found: Judgement) -> str:
    return label_of(found.claim.metric)


def _effect(found: Judgement) -> str:
    return effect_text(found, "%" if found.claim.scale is Scale.LOG else "pp")


def _added(result: GateResult) -> tuple[str, ...]:
    """The interaction, in the words of its line; its p is of one planned question, not adjusted."""
    word, _, told = result.line.partition(" ")
    p = next((f"{value:.2g}" for name, value in result.numbers.items() if name in ("p", "logic_only.p")), "")
    return (word.lower(), "", "", " ".join(told.split()), f"{p} (not adjusted)", "none")
