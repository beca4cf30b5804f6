"""Answers, one JSON object a line, judged as the gates judge them: one file alone, or base's files and a candidate's.

One file is scored by itself: there is no base to control with, so every failing item counts. Of two files the first is
base and the second the candidate; of more, all but the last are base (the control of a comparison, cases H9, H10).
"""

from collections.abc import Iterator, Sequence
from typing import Any

from campaign.errors import ConfigError, worst
from campaign.evidence import Answer, BootRecord, Evidence
from campaign.gates.base import Gate, GateResult
from campaign.gates.items import Tally, tally
from campaign.gates.korean import Korean
from campaign.gates.outputs import Outputs
from campaign.gates.quality import Quality
from campaign.inspection.finding import Finding, Row, code_of
from campaign.inspection.recognised import Source
from campaign.names import BASE, CANDIDATE
from campaign.prompting.checks import CHECKS, Check, Prompt, check_answer
from verdict.sentence import Counted, count_line, head
from verdict.words import Verdict

CHECKED = ("quality", "korean")
NOUNS = {"quality": ("quality", "correct", Counted.SUCCESSES), "korean": ("Korean", "corrupt", Counted.FAILURES)}
KNOWN_KEYS = "prompt_id or id, prompt_set, prompt, text, token_ids, finish_reason, prompt_tokens, ok, why, check"
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
    counts = ", ".join(str(len(boot.answers)) for boot in boots)
    title = f"texts        {' against '.join(names)}: {counts} answers"
    return Finding("texts", names, title, rows, worst(codes), judged=True, width=0, numbers=_numbers(results))


def _alone(evidence: Evidence) -> Iterator[GateResult]:
    """Each prompt set counted by its own gate's noun; without a base every item that fails is a failure."""
    found = {name: tally(evidence, name) for name in CHECKED}
    judged = {name: items for name, items in found.items() if any(i.candidate != "unjudged" for i in items.items)}
    unjudged = [name for name, items in found.items() if items.items and name not in judged]
    for name, items in judged.items():
        yield _counted(name, items)
    if unjudged or not judged:
        why = f"{', '.join(unjudged) or 'no answer'}: nothing that a checker could judge"
        yield GateResult("texts", Verdict.INCONCLUSIVE, f"{head(Verdict.INCONCLUSIVE, 'texts')}{why}")


def _counted(name: str, items: Tally) -> GateResult:
    label, noun, counted = NOUNS[name]
    bad = sum(item.candidate == "bad" for item in items.items)
    n = sum(item.candidate != "unjudged" for item in items.items)
    remarks = tuple(_of_a_file(remark) for remark in items.remarks() if ": no answer in base" not in remark)
    if name == "quality" and items.nobody_is_right and n > 1:
        line = f"{head(Verdict.INCONCLUSIVE, label)}harness suspect: 0/{n} right"
        return GateResult(name, Verdict.INCONCLUSIVE, line, remarks)
    verdict = Verdict.FAIL if bad else Verdict.PASS
    k = bad if counted is Counted.FAILURES else n - bad
    line = count_line(verdict, label, k, n, noun=noun, counted=counted)
    rest = len(items.items) - n
    return GateResult(name, verdict, line + (f"; {rest} could not be judged" if rest else ""), remarks)


def _of_a_file(remark: str) -> str:
    """A remark without the arm and the boot that a file alone does not have."""
    return remark.replace(f": {CANDIDATE} 01-B: ", ": ", 1)


def _compared(evidence: Evidence) -> Iterator[GateResult]:
    there = {answer.prompt_set for boot in evidence.boots for answer in boot.answers if answer.ok is not None}
    gates: dict[str, Gate] = {"quality": Quality(""), "korean": Korean("")}
    yield from (gate.check(evidence) for name, gate in gates.items() if name in there)
    yield Outputs().check(evidence)


def _rows(result: GateResult) -> Iterator[Row]:
    yield "", result.line
    yield from (("", f"  {detail}") for detail in result.details[:MOST_TOLD])
    if len(result.details) > MOST_TOLD:
        yield "", f"  ... {len(result.details) - MOST_TOLD} more"


def _numbers(results: Sequence[GateResult]) -> dict[str, float]:
    return {f"{result.gate}.{name}": value for result in results for name, value in result.numbers.items()}


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
    check = _check(data.get("check"), where)
    set_name = str(data.get("prompt_set") or ("korean" if check.kind == "korean" else "quality"))
    ok, why = data.get("ok"), data.get("why", "")
    if "ok" not in data:
        asked = Prompt(name, set_name, None, prompt or None, 1, check)
        ok, why = check_answer(asked, text, data["finish_reason"])
    elif not (ok is None or isinstance(ok, bool)) or not isinstance(why, str):
        raise ConfigError(f"{where}: ok is true, false or null and why a text, found {ok!r} and {why!r}")
    tokens = data.get("token_ids") or ()
    if not isinstance(tokens, list | tuple) or not all(isinstance(token, int) for token in tokens):
        raise ConfigError(f"{where}: token_ids is a list of whole numbers")
    return Answer(name, set_name, text, tuple(tokens), data["finish_reason"], _count(data, where), ok, why)


def _count(data: dict[str, Any], where: str) -> int:
    found = data.get("prompt_tokens", 0)
    if not isinstance(found, int) or isinstance(found, bool) or found < 0:
        raise ConfigError(f"{where}: prompt_tokens is {found!r}, wanted a whole number")
    return found


def _check(found: object, where: str) -> Check:
    if found is None:
        return Check("korean")
    if not isinstance(found, dict) or found.get("kind") not in CHECKS:
        raise ConfigError(f'{where}: check is {found!r}; wanted {{"kind": one of {", ".join(CHECKS)}, "value": ...}}')
    return Check(found["kind"], found.get("value"))
