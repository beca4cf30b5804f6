"""One live engine, step by step: what it is started with, proven by, asked for and what its record is made of."""

import os
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from campaign.bracket import stamps
from campaign.bracket.bench import Bench
from campaign.bracket.draft import ENDINGS, Draft, Ending, discarded
from campaign.bracket.proof import as_the_other_arm_must, asked, facts, remarks, require, who_must_answer, wraps
from campaign.bracket.questions import ask_all, prefix_metrics
from campaign.engine import behaved, kv, local, spec, speculation, witness
from campaign.engine.reports import Report, ask, places
from campaign.errors import EngineFailedError
from campaign.evidence import DraftCounts, KvFacts, WitnessRow
from campaign.journal import dumps, write_json, write_text
from campaign.names import DRAFT_COUNTERS, FILLED_BESIDE, KV_TOKENS
from campaign.planning.plan import PlannedBoot
from campaign.traffic.alternate import Side
from campaign.traffic.answers import acceptance_metrics
from campaign.traffic.client import Client
from campaign.traffic.polling import StallWatch
from campaign.traffic.second_look import Questioner
from campaign.traffic.timing import counted_apart
from campaign.traffic.window import STREAM, Measured
from verdict.words import Verdict, agreeing, number_of

REPORT_DEADLINE_S = 15.0
FITTING_BESIDE = "draft_kv_guard.tokens_fitting"  # of requests that fit, in batches with one at the drafter's limit


@dataclass
class Live:
    """One engine of a datum: what was asked of it, and what it has given so far. Not frozen: it is filled in."""

    bench: Bench
    draft: Draft
    spec: spec.EngineSpec
    error: Ending | None = None  # what went wrong with this engine, and not with the other one
    up: local.RunningEngine | None = None
    reports: tuple[Report, ...] = ()  # its last ones
    more: dict[str, Any] = field(default_factory=dict)

    @property
    def engine(self) -> local.RunningEngine:
        """The engine that was started."""
        assert self.up is not None
        return self.up

    @property
    def folder(self) -> Path:
        """The folder of its boot."""
        return self.bench.folder.boot(self.draft.boot.name)

    @contextmanager
    def at_fault(self) -> Iterator[None]:
        """Within it an error that says something about its boot says it about this one."""
        try:
            yield
        except ENDINGS as error:
            self.error = error
            raise

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Within it a request is sent to this engine: if it is dead, its death is what went wrong."""
        with self.at_fault(), self.engine.explained():
            yield


def asked_of(bench: Bench, boot: PlannedBoot) -> Live:
    """An engine that is not started yet; what is asked of it is on disk."""
    why = bench.plan.campaign.engine.logic_only  # stands beside this boot's speed wherever it is told
    facts = dict(bench.told) | ({"logic_only": why} if why else {})
    live = Live(bench, Draft(boot, facts=facts), specify(bench, boot))
    write_asked(bench, boot, live.spec)
    return live


def specify(bench: Bench, boot: PlannedBoot) -> spec.EngineSpec:
    """How this boot's engine is started; its nonce is its served model name."""
    stage, arm, campaign = bench.stages[boot.arm], bench.plan.arms[boot.arm], bench.plan.campaign
    return spec.build(
        replace(campaign, host=replace(campaign.host, port=campaign.host.port + boot.place)),
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


def start(live: Live, engines: ExitStack) -> None:
    """Boot it, prove it, judge its KV; it is stopped when `engines` is left."""
    bench, draft, started = live.bench, live.draft, time.monotonic()
    draft.facts |= _surroundings(bench, draft.boot, live.spec)
    live.up = engines.enter_context(local.serve(live.spec, draft.ladder, draft.ended))
    draft.seconds["boot"] = time.monotonic() - started
    live.reports = prove(bench, draft, live.engine)
    kv_first(bench, draft)


def make_ready(live: Live) -> None:
    """Warm up, the prompts with their checkers, and the witness once more: what follows is the window."""
    bench, draft = live.bench, live.draft
    with live.engine.explained():
        live.more = ask_all(bench, draft, client(live))
    live.engine.check()
    first, live.reports = live.reports, _ask_again(live, "window")
    if bench.plan.campaign.workload.prefix_beside:
        draft.facts[FILLED_BESIDE] = behaved.grown(FITTING_BESIDE, first, live.reports)
    require(_rows(bench, draft.boot, live.engine, first, live.reports, usual=False))


def side(live: Live) -> Side:
    """It, as an engine of a window."""
    return Side(client(live), live.folder, live.watched)


def finish(live: Live, measured: Measured) -> None:
    """What it gave on disk, the witness after the window, and the record of its boot."""
    bench, draft = live.bench, live.draft
    compared = bench.plan.seen_from(draft.boot.arm)
    draft.facts |= discarded(measured.discarded) | measured.facts | _drafts_seen(live, measured)
    draft.window_ns = (measured.samples[0].sent_ns, measured.samples[-1].chunk_ns[-1])
    with live.engine.explained():
        asker = Questioner(client(live), bench.longest_silence_s, bench.answered)
        earlier = [record for record in bench.folder.records() if record.arm in compared]
        live.more |= asker.look_into(live.more["answers"], measured.answers, earlier, draft.boot.letter)
    more = _kept(bench, draft, measured, live.more)
    live.engine.check()
    live.engine.check_listeners()
    before, after = live.reports, _ask_again(live, "after")
    draft.witness = _rows(bench, draft.boot, live.engine, before, after)
    require(draft.witness)
    draft.facts |= as_the_other_arm_must(compared, draft.boot.arm, before, after)
    more["shown"] = behaved.shown(before, after)
    metrics = {
        **measured.metrics,
        **acceptance_metrics(more["natural"]),
        **prefix_metrics(more.get("prefix")),
        KV_TOKENS: float(_kv(draft).capacity_tokens),
    }
    more["counted"] = more["counted"] | _counted_apart(bench, measured)
    draft.finished = draft.record(status="ok", metrics=metrics, window=measured.counts, **more)


def _drafts_seen(live: Live, measured: Measured) -> dict[str, str]:
    """What shows that an engine drafts whose counters do not (cases B11): its own steps, and its log."""
    told = speculation.lines(live.engine.log())
    if not told or measured.counts is None or measured.counts.drafts:
        return {}
    by_steps = measured.facts.get(DRAFT_COUNTERS, "the counters show 0 drafts")
    logged = f"{number_of(len(told), 'SpecDecoding line')} of its log {agreeing(len(told), 'counts', 'count')}"
    drafted = number_of(sum(line.drafted for line in told), "drafted token")
    return {DRAFT_COUNTERS: f"{by_steps}; {logged} {drafted}"}


def _counted_apart(bench: Bench, measured: Measured) -> dict[str, DraftCounts]:
    """Acceptance by part of the window and by context, by its streams; nothing where a chunk is no step."""
    gate, counts = bench.plan.campaign.gates.acceptance, measured.counts
    if gate is None or counts is None or not counts.drafts or STREAM in measured.facts:
        return {}
    turns = bench.plan.campaign.workload.repeats
    return counted_apart(measured.samples, turns, len(counts.accepted), gate.context_edges)


def _ask_again(live: Live, when: str) -> tuple[Report, ...]:
    return ask(live.spec.report_dir, when, places(live.reports), REPORT_DEADLINE_S)


def _surroundings(bench: Bench, boot: PlannedBoot, engine_spec: spec.EngineSpec) -> dict[str, str]:
    """What the boot finds before it begins."""
    taken = stamps.take(bench.plan, boot.arm, bench.site, os.environ)
    return {**taken, "compile_cache": local.compile_cache(engine_spec)}


def client(live: Live) -> Client:
    """Who asks it."""
    watch = StallWatch(live.bench.plan.campaign.engine.request_timeout_s)
    arguments = live.bench.plan.campaign.model.chat_template
    return Client(live.spec.url, live.spec.nonce, live.spec.headers, on_silence=watch, chat_template=arguments)


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


def _kept(bench: Bench, draft: Draft, measured: Measured, more: dict[str, Any]) -> dict[str, Any]:
    """Samples and texts on disk, and all answers of the boot in its record."""
    folder = bench.folder.boot(draft.boot.name)
    answers = (*more["answers"], *measured.answers)
    write_text(folder / "samples.jsonl", "".join(dumps(vars(s)) + "\n" for s in measured.samples))
    write_text(folder / "texts.jsonl", "".join(dumps(vars(a)) + "\n" for a in answers))
    return more | {"answers": answers}
