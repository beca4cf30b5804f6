"""Answers, one JSON object a line, judged as the gates judge them: one file alone, or base's files and a candidate's.

One file is scored by itself: there is no base to control with, so every failing item counts. Of two files the first is
base and the second the candidate; of more, all but the last are base (the control of a comparison, cases H9, H10).
"""

from collections.abc import Iterator, Sequence
from math import ceil
from typing import Any

from campaign import typed
from campaign.errors import ConfigError, worst
from campaign.evidence import Answer, BootRecord, Evidence
from campaign.gates.base import GateResult
from campaign.gates.counted import Asked, judge_items
from campaign.gates.items import Tally, tally
from campaign.gates.korean import Korean
from campaign.gates.outputs import Outputs
from campaign.gates.quality import Quality
from campaign.inspection.finding import Finding, Row, code_of
from campaign.inspection.recognised import Source
from campaign.names import BASE, CANDIDATE, SAMPLED_SET
from campaign.prompting.checks import Check, Prompt, check_answer, scripts
from campaign.prompting.prompts import read_check
from verdict.sentence import Counted, count_line, head
from verdict.words import Verdict, number_of

NOUNS = {  # of the sets with a gate of their own; any other set with answers that were judged is counted as quality is
    "quality": ("quality", "correct", Counted.SUCCESSES),
    "korean": ("Korean", "corrupt", Counted.FAILURES),
    SAMPLED_SET: ("Korean", "corrupt when drawn", Counted.FAILURES),
}
KNOWN_KEYS = (
    "prompt_id or id, prompt_set, prompt, text, token_ids, finish_reason, prompt_tokens, ok, why, check, "
    "prompt_hash, max_tokens, sampled, reasoning"
)
MOST_TOLD = 8


def look(sources: Sequence[Source]) -> Finding:
    """What the gates say of these answers. Raises ConfigError, with its line, for one that is no answer."""
    names = tuple(source.name for source in sources)
    arms = [(BASE, "A")] * (len(sources) - 1) + [(CANDIDATE, "B")]
    boots = tuple(
        BootRecord(index, "A" if letter == "A" else "B", arm, "ok", answers=tuple(_answers(source)))
        for index, (source, (arm, letter)) in enumerate(zip(sources, arms, strict=True), 1)
    )
    evidence = Evidence("inspect", boots, {}, "".join(boot.letter for boot in boots))
    results = list(_alone(evidence) if len(sources) == 1 else _compared(evidence))
    rows = tuple(row for result in results for row in _rows(result))
    codes = [code_of(result.verdict) for result in results]
    *some, last = (len(boot.answers) for boot in boots)
    counts = "".join(f"{count}, " for count in some) + number_of(last, "answer")
    title = f"texts        {' against '.join(names)}: {counts}"
    return Finding("texts", names, title, rows, worst(codes), judged=True, width=0, numbers=_numbers(results))


def _sets(evidence: Evidence) -> tuple[str, ...]:
    """The prompt sets that a verdict rests on: of those with a gate all answers, of others where any was judged."""
    answers = [answer for boot in evidence.boots for answer in boot.answers]
    judged = dict.fromkeys(answer.prompt_set for answer in answers if answer.ok is not None)
    there = dict.fromkeys(answer.prompt_set for answer in answers if answer.prompt_set in NOUNS)
    return (*(name for name in NOUNS if name in there), *(name for name in judged if name not in NOUNS))


def _alone(evidence: Evidence) -> Iterator[GateResult]:
    """Each prompt set counted by its own gate's noun; without a base every item that fails is a failure."""
    names = _sets(evidence)
    for name in names:
        yield _counted(name, tally(evidence, name))
    if not names:
        why = "no answer: nothing that a checker could judge"
        yield GateResult("texts", Verdict.INCONCLUSIVE, f"{head(Verdict.INCONCLUSIVE, 'texts')}{why}")


def _counted(name: str, items: Tally) -> GateResult:
    label, noun, counted = NOUNS.get(name, (name, "correct", Counted.SUCCESSES))
    bad = sum(item.candidate == "bad" for item in items.items)
    n = sum(item.candidate != "unjudged" for item in items.items)
    remarks = tuple(_of_a_file(remark) for remark in items.remarks() if ": no answer in base" not in remark)
    reason = _undecided(items, bad, n, counted)
    if reason:
        return GateResult(name, Verdict.INCONCLUSIVE, f"{head(Verdict.INCONCLUSIVE, label)}{reason}", remarks)
    verdict = Verdict.FAIL if bad else Verdict.PASS
    k = bad if counted is Counted.FAILURES else n - bad
    line = count_line(verdict, label, k, n, noun=noun, counted=counted, shown_by=_worth(k, n, items, counted))
    rest = len(items.items) - n
    return GateResult(name, verdict, line + (f"; {rest} could not be judged" if rest else ""), remarks)


def _undecided(items: Tally, bad: int, n: int, counted: Counted) -> str:
    """Why the items give no verdict; empty when they do. One that fails does so whatever the unjudged ones are."""
    if not n:
        return "nothing that a checker could judge"
    if counted is Counted.SUCCESSES and items.nobody_is_right and n > 1:
        return f"harness suspect: 0/{n} right"
    rest = len(items.items) - n
    return f"{rest} of {len(items.items)} items could not be judged" if rest and not bad else ""


def _worth(k: int, n: int, items: Tally, counted: Counted) -> tuple[int, int]:
    """The k and n that the items are worth: draws of one prompt are no new items (statistics.md section 1.7)."""
    worth = min(n, items.worth_of_all)
    return (ceil(k * worth / n) if counted is Counted.FAILURES else k * worth // n), worth


def _of_a_file(remark: str) -> str:
    """A remark without the arm and the boot that a file alone does not have."""
    return remark.replace(f": {CANDIDATE} 01-B: ", ": ", 1)


def _compared(evidence: Evidence) -> Iterator[GateResult]:
    names = _sets(evidence)
    sampled = SAMPLED_SET if SAMPLED_SET in names else None
    if "quality" in names:
        yield Quality("").check(evidence)
    if "korean" in names:
        yield Korean("", sampled).check(evidence)
    for name in names:
        if name not in NOUNS or (name == SAMPLED_SET and "korean" not in names):
            yield judge_items(Asked(name, *NOUNS.get(name, (name, "correct", Counted.SUCCESSES))), evidence)
    yield Outputs().check(evidence)


def _rows(result: GateResult) -> Iterator[Row]:
    yield "", result.line
    yield from (("", f"  {detail}") for detail in result.details[:MOST_TOLD])
    if len(result.details) > MOST_TOLD:
        yield "", f"  ... {len(result.details) - MOST_TOLD} more"


def _numbers(results: Sequence[GateResult]) -> dict[str, float]:
    counts = [result for result in results if result.verdict is not Verdict.INVALID]
    return {f"{result.gate}.{name}": value for result in counts for name, value in result.numbers.items()}


def _answers(source: Source) -> Iterator[Answer]:
    seen: dict[tuple[str, str], int] = {}
    for number, data in enumerate(source.data, 1):
        answer = _answer(data, number, f"{source.name}:{number}")
        key = (answer.prompt_set, answer.prompt_id)
        if seen.setdefault(key, number) != number:
            raise ConfigError(
                f"{source.name}:{number}: prompt {key[1]!r} of {key[0]} is already on line {seen[key]}; give each an id"
            )
        yield answer


def _answer(data: dict[str, Any], number: int, where: str) -> Answer:
    """One answer; what its line does not judge (`ok`) is judged here, by its `check` or as Korean."""
    text, prompt = data.get("text"), data.get("prompt", "")
    if not isinstance(text, str) or not isinstance(prompt, str) or not isinstance(data.get("finish_reason"), str):
        raise ConfigError(f"{where}: text, prompt and finish_reason are texts; the keys of a line are {KNOWN_KEYS}")
    name = str(data.get("prompt_id") or data.get("id") or f"line{number}")
    check = read_check(data.get("check"), where) or Check("korean")
    set_name = str(data.get("prompt_set") or ("korean" if check.kind == "korean" else "quality"))
    asked = Prompt(name, set_name, None, prompt or None, 1, check)
    ok, why = data.get("ok"), data.get("why", "")
    if "ok" not in data:
        ok, why = check_answer(asked, text, data["finish_reason"])
    elif not (ok is None or isinstance(ok, bool)) or not isinstance(why, str):
        raise ConfigError(f"{where}: ok is true, false or null and why a text, found {ok!r} and {why!r}")
    tokens = data.get("token_ids") or ()
    if not isinstance(tokens, list | tuple) or not all(isinstance(token, int) for token in tokens):
        raise ConfigError(f"{where}: token_ids is a list of whole numbers")
    foreign, hangul = scripts(asked, text)
    return Answer(
        prompt_id=name,
        prompt_set=set_name,
        text=text,
        token_ids=tuple(tokens),
        finish_reason=data["finish_reason"],
        prompt_tokens=typed.count(data, "prompt_tokens", where) or 0,
        ok=ok,
        why=why,
        reasoning=typed.text(data, "reasoning", where),
        prompt_hash=typed.text(data, "prompt_hash", where),
        max_tokens=typed.count(data, "max_tokens", where) or 0,
        sampled=_sampled(data, set_name, where),
        foreign=typed.count(data, "foreign", where) or foreign,
        hangul=typed.count(data, "hangul", where) or hangul,
    )


def _sampled(data: dict[str, Any], set_name: str, where: str) -> bool:
    """Whether an answer was drawn; those of the set that is drawn are, where their line does not say."""
    found = data.get("sampled", set_name == SAMPLED_SET)
    if not isinstance(found, bool):
        raise ConfigError(f"{where}: sampled is {found!r}, wanted true or false")
    return found
