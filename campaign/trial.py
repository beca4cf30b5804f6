"""One boot, from the staged engine to its stop: the straight line of house.md, and the datum that it leaves."""

import os
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from campaign import stamps
from campaign.checks import Prompt
from campaign.client import Client
from campaign.draft import ENDINGS, Draft, ended_by, failure_behind
from campaign.engine import kv, local, signals, spec, witness
from campaign.engine.reports import Report, ask, places
from campaign.errors import EngineFailedError
from campaign.evidence import BootRecord, KvFacts, WitnessRow
from campaign.journal import RunFolder, dumps, write_json, write_text
from campaign.names import KV_TOKENS
from campaign.plan import Plan, PlannedBoot
from campaign.preflight import overlays_told
from campaign.proof import as_the_other_arm_must, asked, facts, remarks, require, who_must_answer, wraps
from campaign.window import Measured, StallWatch, acceptance_metrics, measure, natural, pooled, warm_up
from overlays.stage import Stage, verify
from verdict.words import Verdict

REPORT_DEADLINE_S = 15.0


@dataclass(frozen=True)
class Bench:
    """What every boot of a run shares."""

    plan: Plan
    folder: RunFolder
    stages: dict[str, Stage]  # by arm
    prompts: dict[str, tuple[Prompt, ...]]  # by prompt set
    say: Callable[[str], None]
    site: Path | None = None  # where the engine's libraries lie


def run_boot(bench: Bench, boot: PlannedBoot, keep: Callable[[BootRecord], BootRecord]) -> BootRecord:
    """Boot, prove, measure, stop. A dead engine gives a failed record, a knob that is off an invalid one.

    `keep` takes the record as soon as it is known, once, also when an interruption then ends the run; what it makes of
    it is returned.
    """
    why = bench.plan.campaign.engine.logic_only  # stands beside this boot's speed wherever it is told
    draft = Draft(boot, facts={"logic_only": why} if why else {})
    engine_spec = specify(bench, boot)
    write_asked(bench, boot, engine_spec)
    try:
        with draft.timed("total"):
            record = _outcome(bench, draft, engine_spec)
    except KeyboardInterrupt as interrupt:
        with signals.held():
            if (known := _known(bench, draft, engine_spec, interrupt)) is not None:
                _settle(bench, draft, known, keep)
        raise
    with signals.held():
        return _settle(bench, draft, record, keep)


def _settle(bench: Bench, draft: Draft, record: BootRecord, keep: Callable[[BootRecord], BootRecord]) -> BootRecord:
    """What is known is written down before anything that could be interrupted."""
    record = replace(record, seconds=dict(draft.seconds))
    write_json(bench.folder.boot(draft.boot.name) / "verdicts.json", _verdicts(record, draft))
    return keep(record)


def _outcome(bench: Bench, draft: Draft, engine_spec: spec.EngineSpec) -> BootRecord:
    try:
        return _unchanged(bench, draft, engine_spec)
    except ENDINGS as error:
        return ended_by(error, draft, engine_spec)


def _known(bench: Bench, draft: Draft, engine_spec: spec.EngineSpec, interrupt: KeyboardInterrupt) -> BootRecord | None:
    """How the boot had ended before the interruption; None while it had not. Raises DriftError as the boot would."""
    if (failure := failure_behind(interrupt)) is not None:
        return ended_by(failure, draft, engine_spec)
    if draft.finished is None:
        return None
    with overlays_told():
        verify(bench.stages[draft.boot.arm])
    return draft.measured()


def _unchanged(bench: Bench, draft: Draft, engine_spec: spec.EngineSpec) -> BootRecord:
    """The boot between two readings of its stage's hashes. Raises DriftError when a file is not as it was staged."""
    stage = bench.stages[draft.boot.arm]
    with overlays_told():
        verify(stage)
        record = _booted(bench, draft, engine_spec)
        verify(stage)
    return record


def specify(bench: Bench, boot: PlannedBoot) -> spec.EngineSpec:
    """How this boot's engine is started; its nonce is its served model name."""
    stage, arm = bench.stages[boot.arm], bench.plan.arms[boot.arm]
    return spec.build(
        bench.plan.campaign,
        serve=dict(arm.serve),
        variables=arm.environment,
        passed=arm.passed,
        stage_path=stage.path,
        stage_modules=[file.asked for file in stage.files],
        declared=stage.variables,
        boot_dir=bench.folder.boot(boot.name),
        nonce=f"{bench.plan.run_id}-{boot.name}-{time.time_ns() % 16**6:06x}",
        run_marker=bench.plan.run_id,
    )


def write_asked(bench: Bench, boot: PlannedBoot, engine_spec: spec.EngineSpec) -> None:
    """What is asked of the engine, on disk before it starts; passed-on secrets are masked."""
    folder = bench.folder.boot(boot.name)
    write_json(folder / "argv.json", list(engine_spec.argv))
    write_json(folder / "env.json", engine_spec.public_env())


def _booted(bench: Bench, draft: Draft, engine_spec: spec.EngineSpec) -> BootRecord:
    started = time.monotonic()
    draft.facts |= _surroundings(bench, draft.boot, engine_spec)
    with local.serve(engine_spec, draft.ladder, draft.ended) as engine:
        draft.seconds["boot"] = time.monotonic() - started
        before = prove(bench, draft, engine)
        kv_first(bench, draft)
        client = _client(bench, engine_spec)
        with engine.explained():
            more = _prompts(bench, draft, client)
        engine.check()
        first, before = before, ask(engine_spec.report_dir, "window", places(before), REPORT_DEADLINE_S)
        require(_rows(bench, draft.boot, engine, first, before, usual=False))
        with engine.explained():
            measured = _window(bench, draft, client)
        more = _kept(bench, draft, measured, more)
        engine.check()
        engine.check_listeners()
        after = ask(engine_spec.report_dir, "after", places(before), REPORT_DEADLINE_S)
        draft.witness = _rows(bench, draft.boot, engine, before, after)
        require(draft.witness)
        draft.facts |= as_the_other_arm_must(bench.plan.arms, draft.boot.arm, before, after)
        metrics = {
            **measured.metrics,
            **acceptance_metrics(more["natural"]),
            KV_TOKENS: float(_kv(draft).capacity_tokens),
        }
        draft.finished = draft.record(status="ok", metrics=metrics, window=measured.counts, **more)
        stopping = time.monotonic()
    draft.seconds["stop"] = time.monotonic() - stopping
    return draft.measured()


def _surroundings(bench: Bench, boot: PlannedBoot, engine_spec: spec.EngineSpec) -> dict[str, str]:
    """What the boot finds before it begins."""
    taken = stamps.take(bench.plan, boot.arm, bench.site, os.environ)
    return {**taken, "compile_cache": local.compile_cache(engine_spec)}


def _client(bench: Bench, engine_spec: spec.EngineSpec) -> Client:
    watch = StallWatch(bench.plan.campaign.engine.request_timeout_s)
    return Client(engine_spec.url, engine_spec.nonce, engine_spec.headers, on_silence=watch)


def prove(bench: Bench, draft: Draft, engine: local.RunningEngine) -> tuple[Report, ...]:
    """The witness before the window: asked, resolved, attested. Raises InvalidError when a layer does not hold."""
    everybody = who_must_answer(bench.plan.arms[draft.boot.arm])
    reports = ask(engine.spec.report_dir, "before", everybody, REPORT_DEADLINE_S)
    draft.facts |= facts(reports, engine, bench.stages[draft.boot.arm], bench.plan.arms.values())
    draft.witness = _rows(bench, draft.boot, engine, reports, None)
    require(draft.witness)
    draft.kv = kv.facts(reports, engine.kv, bench.plan.campaign.model.num_speculative_tokens)
    draft.facts |= remarks(draft.kv, engine)
    return reports


def _rows(
    bench: Bench,
    boot: PlannedBoot,
    engine: local.RunningEngine,
    before: tuple[Report, ...],
    after: tuple[Report, ...] | None,
    *,
    usual: bool = True,
) -> tuple[WitnessRow, ...]:
    """The witness between two asks; `usual` asks of a behaviour that it held for half of the steps, not once."""
    arm = bench.plan.arms[boot.arm]
    knobs = asked(arm, bench.plan.campaign.model)
    staged = bench.stages[boot.arm].files
    return witness.rows(
        knobs,
        before,
        after,
        spec=engine.spec,
        log=engine.log(),
        staged=staged,
        expected=who_must_answer(arm),
        usual=usual,
        wraps=wraps(arm),
    )


def kv_first(bench: Bench, draft: Draft) -> None:
    """The kv gate on this boot, before anything else is asked of it. Raises EngineFailedError where it fails."""
    gate = bench.plan.campaign.gates.kv
    if gate is None:
        return
    result = gate.check_boot(draft.record(status="ok"))
    draft.gates = (result,)
    if result.verdict is Verdict.FAIL:
        raise EngineFailedError(f"gate kv: {result.line}")


def _kv(draft: Draft) -> KvFacts:
    assert draft.kv is not None
    return draft.kv


def _prompts(bench: Bench, draft: Draft, client: Client) -> dict[str, Any]:
    """Warm up, then the prompts with their checkers, to their natural end."""
    workload, timeout_s = bench.plan.campaign.workload, _longest_silence_s(bench)
    with draft.timed("warm_up"):
        warmed = warm_up(client, bench.prompts["decode"], workload, timeout_s)
    draft.facts |= {"warm_up_requests": str(warmed.requests), "steady_after_warm_up": str(warmed.steady).lower()}
    draft.facts["cold_request_s"] = f"{warmed.cold_s:.3f}"
    with draft.timed("prompts"):
        by_prompt, checked = natural(client, _checked_sets(bench), timeout_s)
    return {"natural": pooled(by_prompt), "by_prompt": by_prompt, "answers": checked}


def _window(bench: Bench, draft: Draft, client: Client) -> Measured:
    """The measured window, and how many disturbed ones came before it."""
    folder, workload = bench.folder.boot(draft.boot.name), bench.plan.campaign.workload
    with draft.timed("window"):
        measured = measure(
            client,
            bench.prompts["decode"],
            workload,
            _longest_silence_s(bench),
            folder,
            drafting=bench.plan.campaign.model.num_speculative_tokens > 0,
        )
    draft.facts["windows_discarded"] = str(measured.discarded)
    return measured


def _longest_silence_s(bench: Bench) -> float:
    """Without a token for so long, a request is looked into (StallWatch)."""
    engine = bench.plan.campaign.engine
    return min(engine.request_timeout_s, engine.stall_timeout_s)


def _kept(bench: Bench, draft: Draft, measured: Measured, more: dict[str, Any]) -> dict[str, Any]:
    """Samples and texts on disk, and all answers of the boot in its record."""
    folder = bench.folder.boot(draft.boot.name)
    answers = (*more["answers"], *measured.answers)
    write_text(folder / "samples.jsonl", "".join(dumps(vars(s)) + "\n" for s in measured.samples))
    write_text(folder / "texts.jsonl", "".join(dumps(vars(a)) + "\n" for a in answers))
    return more | {"answers": answers}


def _checked_sets(bench: Bench) -> dict[str, tuple[Prompt, ...]]:
    return {name: prompts for name, prompts in bench.prompts.items() if name != "decode"}


def _verdicts(record: BootRecord, draft: Draft) -> dict[str, Any]:
    """The boot's own verdicts for verdicts.json: status, witness rows, the kv gate."""
    return {
        "status": record.status,
        "reason": record.reason,
        "witness": [vars(row) for row in record.witness],
        "gates": [vars(replace(result, judgement=None)) for result in draft.gates],
    }
