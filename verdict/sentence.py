"""The one line a gate is told in: verdict first, then effect, interval, bound, resolution (statistics.md section 4)."""

from enum import StrEnum
from math import floor, log10

from verdict.claims import Claim, ClaimKind, Judgement
from verdict.fit import ErrorBar, Scale
from verdict.history import History
from verdict.notes import NO_ERROR_BAR_YET, SUSPECT
from verdict.power import MOST_BOOTS
from verdict.proportions import lower_bound, upper_bound, zero_failures_needed
from verdict.words import Verdict, number_of

WORD_WIDTH = 14
LABEL_END = 26
GATE_WIDTH = 10
GAP = "   "
LONGEST_LETTERS = 16
ONE_LOOK = (1, 1)  # which one, of how many


class Counted(StrEnum):
    """What the k of k-of-n counts."""

    SUCCESSES = "successes"
    FAILURES = "failures"


def claim_line(
    judgement: Judgement, label: str, unit: str, *, voided_boots: int = 0, look: tuple[int, int] = ONE_LOOK
) -> str:
    """The line of a claim; `unit` is % or pp (section 4). Voided boots are told, and which of several looks it was."""
    word = judgement.screen or judgement.verdict
    pieces = [
        _bound_piece(judgement, unit),
        _expectation_piece(judgement),
        *_remarks(judgement),
        _boots_piece(judgement),
        _resolution_piece(judgement, unit),
        f"{voided_boots} voided" if voided_boots else "",
        look_text(look),
    ]
    tail = GAP.join(piece for piece in pieces if piece)
    gap = " " if judgement.screen else GAP
    return f"{head(word, label)}{effect_text(judgement, unit)}{gap}{tail}"


def look_text(look: tuple[int, int]) -> str:
    """`look 2 of 3`; empty where only one was planned."""
    number, of = look
    return f"look {number} of {of}" if of > 1 else ""


def count_line(
    verdict: Verdict,
    label: str,
    k: int,
    n: int,
    *,
    noun: str,
    counted: Counted,
    proven_rate: float = 0.05,
    shown_by: tuple[int, int] | None = None,
) -> str:
    """The line of a k-of-n gate, with the one-sided 95 % bound that k of n shows (section 1.7 and 4).

    `noun` says what is counted (corrupt, correct); `proven_rate` (0..1) is the failure rate that a flawless run
    would have to exclude; `shown_by` the k and n that repeats are worth. Raises VerdictError for an impossible count
    or rate.
    """
    fails = counted is Counted.FAILURES
    bound = (upper_bound if fails else lower_bound)(*(shown_by or (k, n)))
    shown = f"{'<=' if fails else '>='} {100 * bound:.1f} %"
    needed = zero_failures_needed(proven_rate)
    flawless = k == (0 if fails else n)
    wanted = f"0/{needed} needed for {100 * proven_rate:g} %"
    if not fails:
        wanted = f"{needed}/{needed} needed for {100 * (1 - proven_rate):g} %"
    tail = f"; {wanted}" if flawless and n < needed else ""
    return f"{head(verdict, label)}{k}/{n} {noun}{GAP}shows {shown} (95 %){tail}"


def void_line(label: str, apart_ln: float, limit_ln: float, history: History, reruns_left: int, reruns: int) -> str:
    """The line of a block whose outer pair disagrees; ln in, log per cent out (sections 1.6 and 4)."""
    return (
        f"{head(Verdict.VOID, label)}bases {100 * apart_ln:.1f} % apart (limit {100 * limit_ln:.1f} %, "
        f"host sd {100 * history.s0:.2g} %): measure again ({reruns_left} of {reruns} re-runs left)"
    )


def head(word: str, label: str) -> str:
    """The verdict's word padded to 14, and the label up to the column of the effects (section 4)."""
    start = word.ljust(WORD_WIDTH) if len(word) < WORD_WIDTH else f"{word} "
    return f"{start}{label} ".ljust(LABEL_END)


def effect_text(judgement: Judgement, unit: str) -> str:
    """Effect and interval in one breath, never one without the other; other levels than 95 % are named (section 4)."""
    found, places = judgement.interval, decimals(judgement, unit)
    effect = f"{signed(judgement.estimate, places)} {unit}".ljust(7)
    if found is None:
        return f"{effect} [{NO_ERROR_BAR_YET}]"
    level = "" if found.level == 0.95 else f" {100 * found.level:.4g} %"
    return f"{effect} [{signed(found.lo, places)}, {signed(found.hi, places)}]{level}"


def decimals(judgement: Judgement, unit: str) -> int:
    """Digits after the point: those of the half width's first digit, at least one for %, two for pp (section 4)."""
    least = 1 if unit == "%" else 2
    width = judgement.interval.half_width if judgement.interval else 0.0
    return max(least, -floor(log10(width))) if 1e-9 < width < 1e9 else least


def signed(value: float, places: int) -> str:
    """A number with its sign, and never a negative zero."""
    return f"{round(value, places) + 0.0:+.{places}f}"


def size(width: float) -> str:
    """A width with one decimal, or with two digits where it is small."""
    return f"{width:.1f}" if width >= 0.1 else f"{width:.2g}"


def bound_text(judgement: Judgement, unit: str) -> str:
    """What the claim asks for, in its own words (section 1.5)."""
    bound = judgement.claim.bound
    gate = f"{bound:+g}" if bound else "0"
    return {
        ClaimKind.superiority: f"gate >= {gate}".ljust(GATE_WIDTH),
        ClaimKind.equivalence: f"must stay within +-{bound:g} {unit}",
        ClaimKind.non_inferiority: f"may lose at most {bound:g} {unit}",
        ClaimKind.no_difference: "must show no difference",
    }[judgement.claim.kind]


def applied_margin(claim: Claim) -> str:
    """Between which effects a margin that is given in per cent lets one lie; empty for any other bound (section 1.5).

    It is symmetric in ln: exchanging the arms of an equivalence claim exchanges nothing else.
    """
    if claim.scale is not Scale.LOG or claim.kind not in (ClaimKind.equivalence, ClaimKind.non_inferiority):
        return ""
    low, high = (claim.scale.effect(sign * claim.scale.difference(claim.bound)) for sign in (-1, 1))
    if claim.kind is ClaimKind.non_inferiority:
        return f"down to {signed(low, 2)} %, in ln"
    return f"{signed(low, 2)} to {signed(high, 2)} %, symmetric in ln"


def _bound_piece(judgement: Judgement, unit: str) -> str:
    text = bound_text(judgement, unit)
    if judgement.screen or judgement.interval is None:
        return _screen_text(judgement) + GAP + text
    if judgement.claim.kind is ClaimKind.superiority:
        return text + (f"{GAP}whole interval below the gate" if judgement.verdict is Verdict.FAIL else "")
    return text + _OUTCOMES[judgement.claim.kind].get(judgement.verdict, "")


_OUTCOMES = {
    ClaimKind.equivalence: {
        Verdict.FAIL: ": whole interval outside",
        Verdict.INCONCLUSIVE: ": not shown to move, not shown to stay",
    },
    ClaimKind.non_inferiority: {
        Verdict.FAIL: ": whole interval below",
        Verdict.INCONCLUSIVE: ": not shown to lose more, not shown to lose less",
    },
    ClaimKind.no_difference: {
        Verdict.PASS: ": no difference shown",
        Verdict.FAIL: ": zero lies outside the interval",
    },
}


def _screen_text(judgement: Judgement) -> str:
    if judgement.interval is None:
        return f"{ran_text(judgement)}: not a verdict"
    lender = "borrowed" if judgement.fit.error_bar is ErrorBar.BORROWED else "own"
    return f"{lender} error bar, {ran_text(judgement)}: not a verdict"


def _expectation_piece(judgement: Judgement) -> str:
    if judgement.claim.expect_pct is None:
        return ""
    low, high = judgement.claim.expect_pct
    return f"expected {low:g}..{high:g}: {judgement.expectation}"


def _remarks(judgement: Judgement) -> list[str]:
    said = {judgement.expectation, judgement.screen, NO_ERROR_BAR_YET}
    remarks = [note for note in judgement.notes if note not in said]
    return [*remarks, "lower is better: + is a gain"] if judgement.claim.sign < 0 else remarks


def _boots_piece(judgement: Judgement) -> str:
    if judgement.screen or judgement.interval is None:
        return ""
    short = len(judgement.letters) <= LONGEST_LETTERS
    if judgement.fit.n_pairs:
        words = " ".join(judgement.letters[i : i + 2] for i in range(0, len(judgement.letters), 2))
        return f"{ran_text(judgement)} live at once{f' {words}' if short else ''}"
    return f"{ran_text(judgement)}{f' {judgement.letters}' if short else ''}"


def ran_text(judgement: Judgement, boots: int | None = None) -> str:
    """What was run, or so many boots of it, in its unit: `8 boots`; of a duet `4 pairs`."""
    found = judgement.fit.n_boots if boots is None else boots
    return number_of(found // 2, "pair") if judgement.fit.n_pairs else number_of(found, "boot")


def _resolution_piece(judgement: Judgement, unit: str) -> str:
    seen = "" if judgement.mde is None else f"could see {size(judgement.mde)} {unit}"
    then = _then_text(judgement, unit) if judgement.verdict is Verdict.INCONCLUSIVE else ""
    return "; ".join(text for text in (seen, then) if text)


def _then_text(judgement: Judgement, unit: str) -> str:
    boots = judgement.boots_to_resolve
    if boots is None:
        return _hopeless_text(judgement)
    if judgement.mde_then is not None:
        return f"{ran_text(judgement, boots)} would resolve {size(judgement.mde_then)} {unit}"
    return f"{ran_text(judgement, boots)} would " + ("give a verdict" if judgement.interval is None else "resolve it")


def _hopeless_text(judgement: Judgement) -> str:
    if SUSPECT in judgement.notes:
        return "find out what was measured"
    if judgement.fit.zero_variance:
        return "readings that never vary cannot resolve it"
    if judgement.error is not None and judgement.error.se_prompt:
        return f"more prompts, not more {'pairs' if judgement.fit.n_pairs else 'boots'}, would resolve it"
    return f"the estimate sits on the bound: over {ran_text(judgement, MOST_BOOTS)} would be needed"
