"""The one voice: `format_*` are pure, `show` prints. Plain lines, Korean and English text alike."""

import json
import os
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence

from campaign.asked import contrast
from campaign.asked.arms import ResolvedArm, spelled, strays
from campaign.asked.knobs import KnobValue
from campaign.asked.origins import Setting
from campaign.config import Written
from campaign.errors import ExitCode
from campaign.evidence import BETWEEN_REASONS, BootRecord, WitnessRow
from campaign.gates.base import GateResult
from campaign.names import (
    ACCEPTANCE_LENGTH,
    BESIDE,
    DISCARDED_BECAUSE,
    STEP_PER_S,
    SYNTHETIC,
    TOK_PER_S,
    WINDOWS_DISCARDED,
    acceptance_pp,
    logic_only_label,
)
from campaign.planning.could_see import format_resolution
from campaign.planning.order import format_order
from campaign.planning.plan import Plan
from campaign.planning.prompt_sets import prompt_paths
from verdict.claims import ClaimKind
from verdict.fit import Scale
from verdict.sentence import applied_margin
from verdict.words import Verdict, number_of

STAGE_PATH = re.compile(r"/\S*/stages/([0-9a-f]{12})[0-9a-f]{52}")
INDENT = "              "  # under the verdict word's column


def show(lines: str | Iterable[str]) -> None:
    """Print, at once: a pipe shows progress too. Characters that the terminal cannot show are replaced, never fatal."""
    for line in [lines] if isinstance(lines, str) else lines:
        encoding = sys.stdout.encoding or "utf-8"
        try:
            print(line.encode(encoding, "replace").decode(encoding), flush=True)
        except OSError:  # whoever read us is gone (a pager, head, a lost terminal); the run goes on, to disk
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def format_plan(plan: Plan) -> list[str]:
    """What would be run: arms, schedule, claims, what can be seen, minutes."""
    campaign = plan.campaign
    lines = [
        f"{plan.run_id}",
        f"  hypothesis  {campaign.hypothesis}",
        f"  engine      {campaign.engine.name}: vLLM {campaign.engine.version} ({campaign.engine.build} build), "
        f"model {campaign.model.name}, method {campaign.model.method}, K={campaign.model.num_speculative_tokens}",
    ]
    lines += [line for arm in plan.arms.values() for line in _arm(arm)]
    lines += [f"  differ by   {by}" for by in _apart(plan)]
    lines += _notes(plan.arms.values())
    notes = (note for view in plan.views for note in contrast.notes(view.arms, plan.claims))
    lines += [f"  note        {note}" for note in dict.fromkeys(notes)]
    lines += [f"  prompts     {name}: {path}" for name, path in prompt_paths(campaign).items()]
    template = ", ".join(f"{key}={json.dumps(value)}" for key, value in campaign.model.chat_template.items())
    lines += [f"  chats       template arguments {template}; a template that does not know one ignores it"] * bool(
        template
    )
    lines += [f"  claim       {_claim(plan, name)}" for name in plan.claims]
    lines += [f"  gates       {', '.join(campaign.gates.switched_on())}"]
    return [*lines, *format_order(plan), *format_resolution(plan)]


def format_probe(plan: Plan) -> list[str]:
    """What `boot` starts: the arm with all that is asked for it, and its notes."""
    arm = plan.arms[plan.campaign.arm]
    return [f"probe-{plan.run_id}", *_arm(arm), *_notes([arm])]


def _arm(arm: ResolvedArm) -> list[str]:
    return [
        f"  arm         {arm.name}: {_overlays(arm.overlays)}",
        *(f"                {line}" for line in format_settings(arm)),
    ]


def _notes(arms: Iterable[ResolvedArm]) -> list[str]:
    return [f"  note        {note}" for note in dict.fromkeys(note for arm in arms for note in arm.notes)]


def _apart(plan: Plan) -> list[str]:
    """By what the candidate differs from base; of several, each by its name."""
    return [f"{arm}: {differences(plan.view(arm))}" for arm in plan.candidates] or [differences(plan)]


def differences(plan: Plan) -> str:
    """All by which the candidate is another arm than base, each as `what base -> candidate`; or `nothing`."""
    base, candidate = map(_told, plan.arms.values())
    names = [name for name in dict.fromkeys([*base, *candidate]) if base.get(name) != candidate.get(name)]
    return ", ".join(f"{name} {base.get(name, 'none')} -> {candidate.get(name, 'none')}" for name in names) or "nothing"


def _told(arm: ResolvedArm) -> dict[str, str]:
    """What is asked of an arm, by its name in words; what a knob stands for is told by the knob alone."""
    served = {name for knob in arm.knobs for values in knob.knob.served.values() for name in values.arguments}
    variables = {name: value for name, value in arm.environment.items() if name not in arm.knob_variables}
    return {
        **{f"overlay {overlay.name}": "staged" for overlay in arm.overlays},
        **{f"knob {value.knob.name}": value.value for value in arm.knobs},
        **{f"serve {name}": spelled(value) for name, value in arm.serve if name not in served},
        **{f"env {name}": value for name, value in variables.items()},
    }


def _overlays(overlays: tuple[object, ...]) -> str:
    names = [str(getattr(o, "name", o)) for o in overlays]
    return f"overlays {', '.join(names)}" if names else "no overlay"


def format_settings(arm: ResolvedArm) -> list[str]:
    """Every knob, serve argument and variable of an arm: its value, who wrote it, and what it goes over."""
    return [
        *(_knob(value) for value in arm.knobs),
        *(f"{s.kind} {_setting(s)} ({s.origin}{_over(s.over)})" for s in arm.settings),
    ]


def format_strays(plan: Plan, shell: Mapping[str, str]) -> list[str]:
    """Variables of the caller's shell that this experiment sets otherwise: the engine never sees the shell's."""
    return [f"note: {words}" for words in strays(plan.arms, plan.campaign.origins.profile, shell)]


def _knob(value: KnobValue) -> str:
    """A knob: how it reaches the engine, who set it, and why its value means what it does."""
    flags = [_argument(*pair) for pair in value.served.arguments.items()] if value.served else []
    variable = value.knob.variable and f"{value.knob.variable}{'' if value.given is not None else ' not given'}"
    how = ", ".join([*([variable] if variable else []), *flags]) or "no flag"
    reason = f"  {value.reason}" if value.reason else ""
    return f"knob {value.knob.name}={value.value} ({how}; {value.origin}{_over(value.over)}){reason}"


def _setting(setting: Setting) -> str:
    if setting.kind == "passed":
        return f"{setting.name}, whatever the shell has"
    if setting.value is None:
        return f"{setting.name} not given"
    return _argument(setting.name, setting.value) if setting.kind == "serve" else f"{setting.name}={setting.value}"


def _over(over: Iterable[Written]) -> str:
    return "".join(f"; over {entry.origin} {entry.value}" for entry in over)


def _argument(key: str, value: object) -> str:
    dashed = key.replace("_", "-")
    if isinstance(value, bool):
        return f"--{dashed}" if value else f"--no-{dashed}"
    return f"--{dashed} {' '.join(map(str, value)) if isinstance(value, tuple) else value}"


def _claim(plan: Plan, name: str) -> str:
    claim = plan.claims[name]
    unit = "pp" if claim.scale is Scale.LINEAR else "%"
    bound = {
        ClaimKind.superiority: f"gate >= {claim.bound:+g} {unit}",
        ClaimKind.no_difference: "0 inside the interval",
        ClaimKind.equivalence: f"must stay within +-{claim.bound:g} {unit}",
        ClaimKind.non_inferiority: f"at most {claim.bound:g} {unit} worse",
    }[claim.kind]
    margin = applied_margin(claim)
    bound += f" ({margin})" if margin else ""
    return f"{name}: {claim.kind.value} on {claim.metric}, {bound} (registered {plan.claims_digest[:12]})"


def format_boot(record: BootRecord, total: int, left_s: float | None) -> list[str]:
    """One line a boot: what it gave, and how long the rest will take."""
    eta = "" if left_s is None else f", about {_duration(left_s)} left"
    took = _duration(record.seconds.get("total", 0.0))
    head = f"boot {record.index}/{total}  {record.index:02d}-{record.letter} {record.arm:<10}"
    if record.status != "ok":
        lines = [f"{head} {record.status.upper()}: {record.reason} ({took})"]
        return lines + [f"{INDENT}| {line}" for line in record.log_tail]
    return [f"{head} {_figures(record)}  ({took}{eta})"]


def format_datum(records: Sequence[BootRecord], total: int, left_s: float | None) -> list[str]:
    """A boot, or the two boots of a pair; `total` is counted in boots."""
    if len(records) > 1:
        return format_pair(records, total // 2, left_s)
    return format_boot(records[0], total, left_s)


def format_data(records: Sequence[BootRecord], goal: Callable[[int], int]) -> list[str]:
    """All boots that were made, as they were told; `goal` says how many were planned when a boot ran."""
    told = [f"base beside base: {record.facts[BESIDE]}" for record in records[:1] if BESIDE in record.facts]
    for record in records:
        if record.pair and record.index % 2 == 0:
            continue  # told with the first of its pair
        datum = records[record.index - 1 : record.index + 1] if record.pair else [record]
        told += format_datum(datum, goal(datum[-1].index), None)
    return told


def format_pair(records: Sequence[BootRecord], total: int, left_s: float | None) -> list[str]:
    """The two boots of a pair, that were up at once, in the order they started. One pair says nothing of the effect."""
    first, second = records
    eta = "" if left_s is None else f", about {_duration(left_s)} left"
    took = _duration(sum(record.seconds.get("total", 0.0) for record in records))
    lines = [f"pair {first.pair}/{total}  {first.index:02d}-{first.letter}{second.letter}  ({took}{eta})"]
    for record in records:
        said = _figures(record) if record.status == "ok" else f"{record.status.upper()}: {record.reason}"
        lines += [f"{INDENT}{record.arm:<10} {said}", *(f"{INDENT}| {line}" for line in record.log_tail)]
    return lines


def _figures(record: BootRecord) -> str:
    """What a boot gave: the rates of its window, and the acceptance of the prompts, which are other texts."""
    metrics, why = record.metrics, record.facts.get("logic_only", "")
    parts = [f"{logic_only_label(why)}:"] if why else []
    parts += [f"{metrics[STEP_PER_S]:.1f} step/s"] if STEP_PER_S in metrics else []
    if TOK_PER_S in metrics and ACCEPTANCE_LENGTH in metrics:
        parts.append(f"{metrics[TOK_PER_S]:.1f} tok/s at {metrics[ACCEPTANCE_LENGTH]:.2f} tok/step in the window")
    if acceptance_pp(1) in metrics:
        parts.append(f"pos1 {metrics[acceptance_pp(1)]:.1f} % in the prompts")
    parts += [record.facts[SYNTHETIC]] if SYNTHETIC in record.facts else []
    held = sum(row.ok for row in record.witness)
    others = [f"others took {record.facts['others']}"] if "others" in record.facts else []
    return "  ".join([*parts, f"witness {held}/{len(record.witness)}", *_discarded(record), *others])


def _discarded(record: BootRecord) -> list[str]:
    """How many windows were measured again, and why the last of them was."""
    number = int(record.facts.get(WINDOWS_DISCARDED, "0"))
    if not number:
        return []
    *_, last = record.facts.get(DISCARDED_BECAUSE, "").split(BETWEEN_REASONS)
    return [f"{number_of(number, 'disturbed window')} discarded{f' ({last})' if last else ''}"]


def _duration(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.0f} min"


def format_witness(rows: tuple[WitnessRow, ...]) -> list[str]:
    """The witness table: knob, layer, what, wanted, found; a stage's long path is cut to its address's first digits."""
    table = [("knob", "layer", "what", "wanted", "found", "", "from")]
    table += [
        (r.knob, r.layer, r.what, _short(r.wanted), _short(r.found), "ok" if r.ok else "NOT OK", r.source) for r in rows
    ]
    widths = [min(44, max(len(row[i]) for row in table)) for i in range(len(table[0]))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in table]


def _short(text: str) -> str:
    return STAGE_PATH.sub(r"stage \1", text)


def format_gate(result: GateResult) -> list[str]:
    """The gate's line, then its details."""
    return [result.line, *(f"{INDENT}{line}" for line in result.details)]


def format_verdict(word: Verdict, code: ExitCode) -> str:
    """The last line of a run."""
    return f"verdict {word.value} ({int(code)})"
