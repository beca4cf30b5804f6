"""`bracket.mechanism=true`: one more boot an arm under the engine's profiler, after the verdict. Never a datum.

After, because then the measured boots are the same with it and without it: it neither warms a machine nor fills a cache
before them, and no time of theirs is spent on it. What fails here is told, and changes nothing.
"""

import http.client
import json
import time
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from campaign import trace
from campaign.bracket import live
from campaign.bracket.bench import Bench
from campaign.bracket.draft import Draft
from campaign.bracket.live import Live
from campaign.bracket.looks import Outcome
from campaign.disclosure import is_dead, may_show_readings
from campaign.engine.spec import EngineSpec
from campaign.errors import CampaignError, EngineFailedError, interrupted
from campaign.journal import RunFolder
from campaign.names import DECODE_SET, logic_only_label
from campaign.planning.plan import PlannedBoot
from campaign.told import profiled
from campaign.trace import TraceError
from campaign.traffic.window import asking

FOLDER = "mechanism"
TRACES = "traces"
STEPS_BEFORE, STEPS = 8, 32  # decode steps that are let by (the prefill among them), and that are recorded
MOST_REQUESTS = 8
UNPROFILED_REQUESTS = 2


@dataclass(frozen=True)
class Profiler:
    """How one engine version is profiled: its serve argument, its variables, and its two routes."""

    argument: str
    config: dict[str, Any]
    folder_key: str
    variables: dict[str, str]
    start: str = "/start_profile"
    stop: str = "/stop_profile"


PROFILERS = {
    "0.29.0": Profiler(
        argument="--profiler-config",
        config={
            "profiler": "torch",
            "torch_profiler_with_stack": False,  # Python stacks would slow the host several times
            "torch_profiler_use_gzip": True,
            "torch_profiler_dump_cuda_time_total": False,
            "ignore_frontend": True,  # the API server's own profiler counts no steps
            "delay_iterations": STEPS_BEFORE,
            "max_iterations": STEPS,
        },
        folder_key="torch_profiler_dir",
        variables={"VLLM_CUSTOM_SCOPES_FOR_PROFILING": "1"},
    )
}


def look(bench: Bench, outcome: Outcome) -> dict[str, Any] | None:
    """What each arm does with a step's time, on disk and told; None where it was not asked for or may not be shown."""
    evidence = outcome.evidence
    if not bench.plan.campaign.bracket.mechanism:
        return None
    if is_dead(evidence) or not may_show_readings(outcome.verdict, evidence):
        bench.say("mechanism  not looked into: an engine failed, or was not what was asked")
        return None
    bench.say("mechanism  one more boot an arm under the engine's profiler; it measures nothing")
    aside = replace(bench, folder=RunFolder(bench.folder.path / FOLDER))
    with interrupted(
        "the verdict is on disk (`import` brings it into MLflow), the look into the mechanism is not finished"
    ):
        arms = {boot.arm: _arm(aside, boot) for boot in bench.plan.one_of_each}
    engine = bench.plan.campaign.engine
    profiled.keep(bench.folder.path, arms, f"{engine.name}: vLLM {engine.version}, {engine.build} build")
    found = profiled.read(bench.folder.path)
    for line in profiled.lines(found) if found else ():
        bench.say(line)
    return found


def _arm(bench: Bench, boot: PlannedBoot) -> dict[str, Any]:
    """One arm; what fails is its answer. An interruption stops the engine and goes on up."""
    try:
        return _looked_into(bench, boot)
    except (CampaignError, OSError) as error:
        return profiled.failed(str(error))


def _looked_into(bench: Bench, boot: PlannedBoot) -> dict[str, Any]:
    engine = bench.plan.campaign.engine
    version = engine.serve_arguments or engine.version
    if version not in PROFILERS:
        raise TraceError(
            f"no profiler is known for vLLM {version}; wanted {', '.join(PROFILERS)} (campaign/mechanism.py)"
        )
    traces = bench.folder.boot(boot.name) / TRACES
    asked = _under(PROFILERS[version], live.specify(bench, boot), traces)
    live.write_asked(bench, boot, asked)
    one = Live(bench, Draft(boot), asked)
    with ExitStack() as engines:
        live.start(one, engines)
        wall_s = _profiled(one, PROFILERS[version], traces)
        one.engine.check()
    path, found = trace.of_folder(traces, version)
    if label := logic_only_label(engine.logic_only or ""):
        found = replace(found, notes=(f"{label}: no time of a device", *found.notes))
    return profiled.shown(found, str(path.relative_to(bench.folder.path.parent)), wall_s)


def _under(profiler: Profiler, asked: EngineSpec, traces: Path) -> EngineSpec:
    """The same start, with the profiler ready."""
    traces.mkdir(parents=True, exist_ok=True)
    config = json.dumps(profiler.config | {profiler.folder_key: str(traces.absolute())})
    return replace(asked, argv=(*asked.argv, profiler.argument, config), env=asked.env | profiler.variables)


def _profiled(one: Live, profiler: Profiler, traces: Path) -> float:
    """A few requests unprofiled, then profiled ones until the trace is there; seconds that those took."""
    bench = one.bench
    ask = asking(bench.plan.campaign.workload, bench.plan.campaign.engine.request_timeout_s)
    prompts = bench.prompts[DECODE_SET]
    client = live.client(one)
    with one.engine.explained():
        for number in range(UNPROFILED_REQUESTS):
            client.stream(prompts[number % len(prompts)], ask)
        _post(one, profiler.start)
        started = time.monotonic()
        for number in range(MOST_REQUESTS):
            client.stream(prompts[number % len(prompts)], ask)
            if any(traces.iterdir()):
                break
        wall_s = time.monotonic() - started
        _post(one, profiler.stop)
    return wall_s


def _post(one: Live, path: str) -> None:
    """Raises EngineFailedError unless the engine says 200."""
    parts = urlsplit(one.spec.url)
    timeout_s = one.bench.plan.campaign.engine.request_timeout_s
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=timeout_s)
    try:
        connection.request("POST", path, b"", one.spec.headers)
        response = connection.getresponse()
        said = response.read()[:200].decode("utf-8", "replace")
    except (OSError, http.client.HTTPException) as error:
        raise EngineFailedError(f"POST {path} failed: {type(error).__name__}: {error}") from error
    finally:
        connection.close()
    if response.status != http.client.OK:
        raise EngineFailedError(f"POST {path} answered {response.status}: {said}")
