"""What each verb does, as a straight line: run, boot, resume, import, inspect."""

import shlex
import signal
import time
from dataclasses import replace
from pathlib import Path

from campaign import console, mechanism, tracked
from campaign.bracket import attempts, noise, several
from campaign.bracket.bench import Bench
from campaign.bracket.draft import TAIL_LINES, Draft
from campaign.bracket.live import kv_first, prove, specify, write_asked
from campaign.bracket.looks import Outcome, judge, look_lines
from campaign.bracket.preflight import overlays_told, preflight
from campaign.bracket.session import has_ended, run_bracket
from campaign.config import ROOT, from_plain
from campaign.disclosure import may_show_effect, readable
from campaign.door import RUN_ID, RunReference
from campaign.engine import local, stop
from campaign.engine.logs import tail
from campaign.errors import CampaignError, ConfigError, DriftError, ExitCode, interrupted
from campaign.gates import synthetic
from campaign.host import registry
from campaign.import_request import ImportRequest
from campaign.journal import RunFolder, read_json, write_json
from campaign.names import SYNTHETIC
from campaign.planning.plan import Plan, PlannedBoot, make
from campaign.told import recorded, report
from campaign.told.result import result_of
from overlays import smoke
from overlays.base import BaseTree
from overlays.stage import Stage, stage

PROBE = "probe"


def run(plan: Plan) -> ExitCode:
    """The main job: preflight, every boot, verdict, record."""
    console.show(console.format_plan(plan))
    base = preflight(plan)
    tracked.check(plan)
    folder = RunFolder.create(Path(plan.campaign.host.runs_dir), plan.run_id)
    with folder.held(), interrupted(_how_to_go_on(folder)):
        write_json(folder.plan, plan.plain() | {"kind": "run"})
        return _carry_on(plan, folder, base)


def on_a_run(verb: str, reference: RunReference) -> ExitCode:
    """The verbs that take a run id."""
    folder = RunFolder(reference.folder)
    if _is_probe(folder):
        return _on_a_probe(verb, folder)
    plan = _planned(folder)
    if verb == "resume":
        with folder.held(), interrupted(_how_to_go_on(folder)):
            return _resume(plan, folder)
    outcome = _outcome(plan, folder)
    return _inspect(plan, folder, outcome)


def bring_in(request: ImportRequest) -> ExitCode:
    """`import`: runs into the tracker."""
    return tracked.bring_in(request, _judged)


def _judged(folder: RunFolder) -> tuple[Plan, Outcome]:
    if _is_probe(folder):
        _on_a_probe("import", folder)
    plan = _planned(folder)
    return plan, _outcome(plan, folder)


def _resume(plan: Plan, folder: RunFolder) -> ExitCode:
    """What is left of a run. One that has its verdict is told, and measured no further."""
    if folder.result.is_file() and has_ended(plan, folder):
        return _told_again(folder, _outcome(plan, folder))
    _sweep_orphans(plan, folder)
    there = len(folder.records())
    console.show(f"resuming {plan.run_id}: {there} of {_up_to(plan, there)} boots are there")
    return _carry_on(plan, folder, preflight(plan))


def _outcome(plan: Plan, folder: RunFolder) -> Outcome:
    """The verdict of what is on disk."""
    return judge(plan, folder.records(), folder.voided(), attempts.besides_s(folder))


def _up_to(plan: Plan, there: int) -> str:
    return f"{plan.goal(there)}" + (f" (or more, up to {plan.looks.last})" if len(plan.looks.boots) > 1 else "")


def _told_again(folder: RunFolder, outcome: Outcome) -> ExitCode:
    """The verdict of a run that has one, as such."""
    broken = [f" at {r.index:02d}-{r.letter}" for r in folder.records() if r.status != "ok"]
    console.show(
        f"{folder.path.name} ended with {outcome.verdict.value}{''.join(broken[:1])}; it is not run again: "
        f"start a new run (`python -m campaign inspect {_typed(folder)}` shows this one)"
    )
    console.show(console.format_verdict(outcome.verdict, outcome.code))
    return outcome.code


def _typed(folder: RunFolder) -> str:
    """A run as a verb takes it: its id below runs/, else its path."""
    return folder.path.name if folder.path.parent == ROOT / "runs" else shlex.quote(str(folder.path))


def _how_to_go_on(folder: RunFolder) -> str:
    return f"`python -m campaign resume {_typed(folder)}` continues"


def _is_probe(folder: RunFolder) -> bool:
    """By what its plan says; one that is too old to say it, by its folder's name."""
    data = read_json(folder.plan)
    kind = data.get("kind") if isinstance(data, dict) else None
    return kind == PROBE or (kind is None and folder.path.name.startswith(f"{PROBE}-"))


def _on_a_probe(verb: str, folder: RunFolder) -> ExitCode:
    """A probe measures nothing, so there is nothing to go on with or to import, and never a verdict."""
    if verb != "inspect":
        raise ConfigError(f"{folder.path.name} is a probe, which measures nothing to {verb}; run `boot` again")
    console.show(f"{folder.path.name}: a probe; nothing to resume, and no verdict")
    for log in sorted(folder.path.glob("boots/*/engine.log")):
        console.show(f"  its engine's log: python -m campaign inspect {shlex.quote(str(log))}")
    return ExitCode.INCONCLUSIVE


def probe(plan: Plan) -> ExitCode:
    """One arm, staged, checked and witnessed exactly as in a run, held until Ctrl-C."""
    console.show(console.format_probe(plan))
    base = preflight(plan)
    folder = RunFolder.create(Path(plan.campaign.host.runs_dir), f"{PROBE}-{plan.run_id}")
    write_json(folder.plan, plan.plain() | {"kind": PROBE})
    with folder.held(), interrupted("the probe is stopped; run `boot` for a new one"):
        boot = next(boot for boot in plan.one_of_each if boot.arm == plan.campaign.arm)
        return _held_probe(_bench(plan, folder, base), replace(boot, index=1))


def _held_probe(bench: Bench, boot: PlannedBoot) -> ExitCode:
    engine_spec = specify(bench, boot)
    write_asked(bench, boot, engine_spec)
    draft = Draft(boot)
    try:
        with local.serve(engine_spec) as engine:
            try:
                prove(bench, draft, engine)
                kv_first(bench, draft)
            finally:
                console.show(console.format_witness(draft.witness))
            _hold(engine, f"arm {boot.arm} is up at {engine_spec.url}, model {engine_spec.nonce}; Ctrl-C stops it")
    except CampaignError:  # told by the caller; what the engine said last is shown here, as a run shows it
        console.show(f"{console.INDENT}| {line}" for line in tail(engine_spec.log_file, TAIL_LINES))
        raise
    console.show("stopped; nothing of it is left")
    return ExitCode.PASS


def _hold(engine: local.RunningEngine, words: str) -> None:
    """Until Ctrl-C or SIGTERM, which end it well as soon as the words are read; an engine that dies ends it too."""
    try:
        console.show(words)
        while True:
            engine.check()
            time.sleep(1.0)
    except KeyboardInterrupt:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # a second Ctrl-C must not break the stop


def _sweep_orphans(plan: Plan, folder: RunFolder) -> None:
    """A runner that was killed with SIGKILL leaves its engine behind. Only what is known as this run's is ended."""
    ended = stop.sweep(plan.run_id, plan.campaign.engine.stop_timeout_s, folder.path / "boots")
    for name in ended:
        console.show(f"ended what the killed run had left: {name}")


def _planned(folder: RunFolder) -> Plan:
    """The plan of a run on disk. Raises ConfigError when claims, schedule or prompts are not the registered ones."""
    data = folder.registered()
    if not RUN_ID.fullmatch(data["run_id"]):
        raise ConfigError(f"{folder.plan}: run_id {data['run_id']!r} is no run id")
    try:
        campaign = from_plain(data["config"])
    except ConfigError as error:
        raise ConfigError(f"{folder.plan}: config: {error}") from error
    plan = make(campaign, data["run_id"], registry.from_plain(data.get("history")))
    if plan.claims_digest != data["claims_digest"]:
        raise ConfigError(
            f"{folder.plan} registered {data['claims_digest'][:12]}; claims, schedule and prompt files now make "
            f"{plan.claims_digest[:12]}. Put the prompt files back, or start a new run"
        )
    if (
        data.get("flipped", plan.flipped) != plan.flipped
        or data.get("looks", plan.plain()["looks"]) != plan.plain()["looks"]
    ):
        raise ConfigError(f"{folder.plan}: coin or looks are not those that the claims' digest and the run id make")
    for name, arm in plan.arms.items():
        was = data["arms"].get(name, {})
        if was.get("digest") != arm.digest:
            parts = ", ".join(part for part, value in arm.asked.items() if was.get(part) != value)
            raise DriftError(
                f"arm {name} is no longer what {folder.plan} registered (other: {parts or 'its digest'}): an overlay, "
                "a knob or a default changed; put it back, or start a new run"
            )
    _check_order(plan, folder)
    return plan


def _check_order(plan: Plan, folder: RunFolder) -> None:
    """Raises ConfigError unless the journal holds the first boots of the plan, none left out."""
    found = [f"{record.index:02d}-{record.letter}" for record in folder.records()]
    wanted = [boot.name for boot in plan.boots[: len(found)]]
    if found != wanted:
        raise ConfigError(
            f"{folder.journal} holds the boots {', '.join(found)}, but {folder.plan} begins with {', '.join(wanted)}; "
            "lines are missing, or they belong to another run"
        )


def _carry_on(plan: Plan, folder: RunFolder, base: BaseTree) -> ExitCode:
    bench = _bench(plan, folder, base)
    outcome = run_bracket(bench)
    recorded.write(folder.path, plan, outcome)
    for result in outcome.results:
        console.show(console.format_gate(result))
    _write_page(plan, folder, outcome)
    console.show(f"report  {folder.path / 'report.html'}")
    if trouble := noise.feed(plan, folder, outcome.evidence, outcome.results, outcome.verdict):
        console.show(f"note: {trouble}")
    write_json(folder.result, result_of(plan, outcome))  # last: with it a run has its verdict, and is not gone on with
    if (found := mechanism.look(bench, outcome)) is not None:
        write_json(folder.result, result_of(plan, outcome) | {"mechanism": found})
        _write_page(plan, folder, outcome)
    tracked.publish(plan, folder, outcome, f"`python -m campaign import {_typed(folder)}`")
    console.show(console.format_verdict(outcome.verdict, outcome.code))
    return outcome.code


def _write_page(plan: Plan, folder: RunFolder, outcome: Outcome) -> None:
    evidence, by_arm = outcome.evidence, several.each(plan, outcome.evidence)
    report.write(folder.path, plan.campaign, evidence, outcome.results, outcome.verdict, plan.arms, by_arm)


def _bench(plan: Plan, folder: RunFolder, base: BaseTree) -> Bench:
    console.show("staging the engine (a minute the first time, then seconds)")
    stages = {name: _staged(plan, base, name) for name in plan.arms}
    rows = {name: [row.plain() for row in stage.rows] for name, stage in stages.items()}
    folder.keep_manifest(rows)
    label = synthetic.label(plan.campaign.model.synthetic_acceptance_length)
    told = {SYNTHETIC: label} if label else {}
    return Bench(plan, folder, stages, plan.prompts, console.show, base.root, told)


def _staged(plan: Plan, base: BaseTree, arm: str) -> Stage:
    """The arm's stage, its hashes verified and its overlaid modules imported once by the engine's interpreter."""
    with overlays_told():
        made = stage(base, plan.arms[arm].overlays, Path(plan.campaign.host.cache_dir) / "stages")
        if not smoke.is_known(base, made):
            console.show(f"checking that the overlays of arm {arm} import in {base.python} (once for this stage)")
            smoke.expect_imports(base, made)
    return made


def _inspect(plan: Plan, folder: RunFolder, outcome: Outcome) -> ExitCode:
    console.show(console.format_plan(plan))
    records = folder.records()
    console.show(console.format_data(readable(records, outcome.verdict, outcome.evidence), plan.goal))
    for look in outcome.looks if may_show_effect(outcome.verdict, outcome.evidence) else ():
        console.show(look_lines(look, plan))
    if not outcome.ends:
        left = f"{len(records)} of {_up_to(plan, len(records))} boots"
        console.show(f"not finished: {left}; `python -m campaign resume {_typed(folder)}` goes on")
        return ExitCode.INCONCLUSIVE
    for result in outcome.results:
        console.show(console.format_gate(result))
    console.show(console.format_verdict(outcome.verdict, outcome.code))
    return outcome.code
