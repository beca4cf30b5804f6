"""What each verb does, as a straight line: run, boot, resume, import, inspect."""

import signal
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from campaign import console, report, tracking
from campaign.config import from_plain
from campaign.door import RunReference
from campaign.engine import local, memory, stop
from campaign.errors import ConfigError, DriftError, ExitCode, TrackingError
from campaign.journal import RunFolder, read_json, write_json
from campaign.plan import Plan, PlannedBoot, make
from campaign.preflight import overlays_told, preflight
from campaign.session import Outcome, judge, run_bracket
from campaign.trial import Bench, Draft, kv_first, prove, specify, write_asked
from overlays import smoke
from overlays.base import BaseTree
from overlays.stage import Stage, stage


def run(plan: Plan) -> ExitCode:
    """The main job: preflight, every boot, verdict, record."""
    console.show(console.format_plan(plan))
    base = preflight(plan)
    _check_tracker(plan)
    folder = RunFolder.create(Path(plan.campaign.host.runs_dir), plan.run_id)
    with folder.held():
        write_json(folder.plan, plan.plain())
        return _carry_on(plan, folder, base)


def on_a_run(verb: str, reference: RunReference) -> ExitCode:
    """The verbs that take a run id."""
    folder = RunFolder(reference.folder)
    plan = _planned(folder)
    if verb == "resume":
        with folder.held():
            _sweep_orphans(plan, folder)
            console.show(f"resuming {plan.run_id}: {len(folder.records())} of {len(plan.boots)} boots are there")
            return _carry_on(plan, folder, preflight(plan))
    outcome = judge(plan, folder.records())
    if verb == "import":
        uri = plan.campaign.tracking.uri or f"sqlite:///{folder.path.parent / 'mlflow.db'}"
        console.show(f"mlflow  {_published(plan, folder, outcome, uri).page}")
        return ExitCode.PASS
    return _inspect(plan, folder, outcome)


def probe(plan: Plan) -> ExitCode:
    """One arm, staged, checked and witnessed exactly as in a run, held until Ctrl-C."""
    base = preflight(plan)
    folder = RunFolder.create(Path(plan.campaign.host.runs_dir), f"probe-{plan.run_id}")
    write_json(folder.plan, plan.plain())
    with folder.held():
        return _held_probe(_bench(plan, folder, base), PlannedBoot(1, "A" if plan.campaign.arm == "base" else "B"))


def _held_probe(bench: Bench, boot: PlannedBoot) -> ExitCode:
    engine_spec = specify(bench, boot)
    write_asked(bench, boot, engine_spec)
    draft = Draft(boot)
    with local.serve(engine_spec) as engine:
        try:
            prove(bench, draft, engine)
            kv_first(bench, draft)
        finally:
            console.show(console.format_witness(draft.witness))
        console.show(f"arm {boot.arm} is up at {engine_spec.url}, model {engine_spec.nonce}; Ctrl-C stops it")
        _hold(engine)
    console.show("stopped; nothing of it is left")
    return ExitCode.PASS


def _hold(engine: local.RunningEngine) -> None:
    """Until Ctrl-C or SIGTERM; an engine that dies meanwhile ends it too."""
    try:
        while True:
            engine.check()
            time.sleep(1.0)
    except KeyboardInterrupt:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # a second Ctrl-C must not break the stop


def _sweep_orphans(plan: Plan, folder: RunFolder) -> None:
    """A runner that was killed with SIGKILL leaves its engine behind. Only what is known as this run's is ended.

    Its memory comes back a while later; the run's first boot must not be measured against what is still held.
    """
    ended = stop.sweep(plan.run_id, plan.campaign.engine.stop_timeout_s, folder.path / "boots")
    for name in ended:
        console.show(f"ended what the killed run had left: {name}")
    if ended:
        memory.watch(None, plan.campaign.host.memory_timeout_s).wait_quiet()


def _planned(folder: RunFolder) -> Plan:
    """The plan of a run on disk. Raises ConfigError when claims, schedule or prompts are not the registered ones."""
    data: dict[str, Any] = read_json(folder.plan)
    plan = make(from_plain(data["config"]), data["run_id"])
    if plan.claims_digest != data["claims_digest"]:
        raise ConfigError(
            f"{folder.plan} registered {data['claims_digest'][:12]}; claims, schedule and prompt files now make "
            f"{plan.claims_digest[:12]}. Put the prompt files back, or start a new run"
        )
    for name, arm in plan.arms.items():
        if data["arms"][name]["digest"] != arm.digest:
            raise DriftError(f"arm {name} is no longer what {folder.plan} registered: an overlay or a default changed")
    return plan


def _carry_on(plan: Plan, folder: RunFolder, base: BaseTree) -> ExitCode:
    bench = _bench(plan, folder, base)
    outcome = run_bracket(bench)
    _write_result(plan, folder, outcome)
    for result in outcome.results:
        console.show(console.format_gate(result))
    report.write(folder.path, plan.campaign, outcome.evidence, outcome.results, outcome.verdict)
    console.show(f"report  {folder.path / 'report.html'}")
    _publish(plan, folder, outcome)
    console.show(console.format_verdict(outcome.verdict, outcome.code))
    return outcome.code


def _bench(plan: Plan, folder: RunFolder, base: BaseTree) -> Bench:
    console.show("staging the engine (a minute the first time, then seconds)")
    stages = {name: _staged(plan, base, name) for name in plan.arms}
    rows = {name: [row.plain() for row in stage.rows] for name, stage in stages.items()}
    write_json(folder.path / "overlays.json", rows)  # the composed manifest of each arm, as it was verified
    return Bench(plan, folder, stages, plan.prompts, console.show)


def _staged(plan: Plan, base: BaseTree, arm: str) -> Stage:
    """The arm's stage, its hashes verified and its overlaid modules imported once by the engine's interpreter."""
    with overlays_told():
        made = stage(base, plan.arms[arm].overlays, Path(plan.campaign.host.cache_dir) / "stages")
        if not smoke.is_known(base, made):
            console.show(f"checking that the overlays of arm {arm} import in {base.python} (once for this stage)")
            smoke.expect_imports(base, made)
    return made


def _write_result(plan: Plan, folder: RunFolder, outcome: Outcome) -> None:
    write_json(
        folder.result,
        {
            "schema": 1,
            "run_id": plan.run_id,
            "experiment": plan.campaign.name,
            "verdict": outcome.verdict.value,
            "exit_code": int(outcome.code),
            "claims_digest": plan.claims_digest,
            "logic_only": outcome.evidence.logic_only,  # why the speeds below say nothing; empty where they count
            "gates": [vars(replace(r, judgement=None)) for r in outcome.results],
            "boots": [f"{r.index:02d}-{r.letter} {r.status}" for r in outcome.evidence.boots],
        },
    )


def _check_tracker(plan: Plan) -> None:
    """A tracker that cannot take results is told before the first boot; the measurement goes to disk in any case."""
    uri = plan.campaign.tracking.uri
    if uri is None:
        return
    try:
        tracking.ready(uri)
    except TrackingError as error:
        if not uri.startswith("http"):
            raise ConfigError(f"tracking.uri: {error}") from error
        console.show(f"note: the tracker does not answer ({error}); results go to disk, `import` brings them in later")


def _published(plan: Plan, folder: RunFolder, outcome: Outcome, uri: str) -> tracking.Links:
    """The run in MLflow, once more or for the first time. Raises TrackingError."""
    return tracking.publish(folder.path, plan.campaign, outcome.evidence, outcome.results, outcome.verdict, uri)


def _publish(plan: Plan, folder: RunFolder, outcome: Outcome) -> None:
    uri = plan.campaign.tracking.uri
    if uri is None:
        return
    try:
        links = _published(plan, folder, outcome, uri)
    except TrackingError as error:
        console.show(
            f"note: MLflow did not take the results ({error}); nothing is lost: "
            f"`python -m campaign import {folder.path}`"
        )
        return
    console.show(f"mlflow  {links.page}")


def _inspect(plan: Plan, folder: RunFolder, outcome: Outcome) -> ExitCode:
    console.show(console.format_plan(plan))
    records = outcome.evidence.boots
    for record in records:
        console.show(console.format_boot(record, len(plan.boots), None))
    if len(records) < len(plan.boots) and all(r.status == "ok" for r in records):
        console.show(f"not finished: {len(records)} of {len(plan.boots)} boots; `resume {folder.path.name}` goes on")
        return ExitCode.INCONCLUSIVE
    for result in outcome.results:
        console.show(console.format_gate(result))
    console.show(console.format_verdict(outcome.verdict, outcome.code))
    return outcome.code
