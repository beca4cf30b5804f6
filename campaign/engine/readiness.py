"""Is it ready? A ladder: it lives, it loads, its port is open, our nonce is listed, and a real generation comes back.

An open port is not readiness, `/health` 200 is not, and "Application startup complete." is not: each has been seen on
engines that could not generate, or that were somebody else's.
"""

import http.client
import json
import math
import re
import subprocess
import time
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from campaign.engine import fatal, logs, memory
from campaign.engine import port as ports
from campaign.engine.family import Family
from campaign.engine.last_words import last_words
from campaign.engine.spec import EngineSpec
from campaign.errors import CampaignError, EngineFailedError, InvalidError

POLL_S = 0.1
ASK_TIMEOUT_S = 5.0
DYING_S = 3.0  # between a broken connection or a fatal line, and the exit that explains it
WEIGH_S = 2.0  # between two looks at what the engine holds: each walks its page tables
FIRST_TOKENS = 8
LOADING = re.compile(r"Starting to load model|Initializing an? \S+ LLM engine|Loading \S+ checkpoint shards")


class Rung(Enum):
    """How far a boot came; the value says what is still missing."""

    process = "its process lives, but the port does not answer and its log tells of no loading"
    loading = "it is loading, but the port does not answer"
    port = "its port is open, but /v1/models does not answer as it should"
    models = "/v1/models lists our model, but a generation does not come"
    ready = "nothing"


@dataclass
class Ladder:
    """The rungs that a boot has reached, and when, in seconds from its start. Filled while it climbs."""

    started_s: float = field(default_factory=time.monotonic)
    reached: dict[Rung, float] = field(default_factory=dict)
    last_answer: str = ""  # what the open port said last, when it was not what is wanted

    @property
    def rung(self) -> Rung:
        """The highest rung."""
        return max(self.reached, key=list(Rung).index, default=Rung.process)

    def climb(self, rung: Rung) -> None:
        """A rung is reached; only the first time counts."""
        self.reached.setdefault(rung, time.monotonic() - self.started_s)

    def __str__(self) -> str:
        """How long each rung took: `process 5.1 s, loading 12.0 s, port 0.1 s, models 2.2 s`."""
        order = [rung for rung in Rung if rung in self.reached]
        ends = [self.reached[rung] for rung in order[1:]]
        if order and order[-1] is not Rung.ready:
            ends.append(time.monotonic() - self.started_s)
        return ", ".join(f"{r.name} {end - self.reached[r]:.1f} s" for r, end in zip(order, ends, strict=False))


@dataclass(frozen=True)
class Boot:
    """One boot that is not ready yet. `deadline_s` is on the monotonic clock."""

    spec: EngineSpec
    process: subprocess.Popen[bytes]
    family: Family
    deadline_s: float
    ladder: Ladder = field(default_factory=Ladder)
    oom_kills: int | None = None  # of our cgroup before it was started

    @property
    def left_s(self) -> float:
        """Seconds to the deadline, never below a moment."""
        return max(0.1, self.deadline_s - time.monotonic())


def wait(boot: Boot) -> float:
    """Climb the ladder; returns the seconds that the first, cold generation took.

    Raises EngineFailedError when the engine dies, says that it never will be ready, answers with errors, or passes the
    deadline; InvalidError when somebody else answers on the port; HostUnfitError when the machine is the cause.
    """
    boot.ladder.climb(Rung.process)
    weighed_s = -math.inf
    while time.monotonic() < boot.deadline_s:
        _check_alive(boot)
        answers = _models_answer(boot)
        if answers or time.monotonic() - weighed_s > WEIGH_S:
            boot.family.weigh()
            weighed_s = time.monotonic()
        if answers:
            _check_listeners(boot)
            boot.ladder.climb(Rung.models)
            seconds = _first_generation(boot)
            boot.ladder.climb(Rung.ready)
            return seconds
        time.sleep(POLL_S)
    raise _failed(boot, _too_late(boot))


def _too_late(boot: Boot) -> str:
    """Our own limit fired: how far the boot came, and what took how long."""
    ladder = boot.ladder
    said = f" ({ladder.last_answer})" if ladder.last_answer and ladder.rung in (Rung.port, Rung.models) else ""
    return (
        f"not ready after {boot.spec.boot_timeout_s:g} s, our own limit (engine.boot_timeout_s): {ladder.rung.value}"
        f"{said}; it took {ladder}"
    )


def died(boot: Boot, when: str) -> EngineFailedError:
    """The error for a process that has exited: its exit code or signal in words, and where its log is."""
    text = logs.read(boot.spec.log_file)
    words = fatal.exit_words(boot.process.returncode, text, proof=_oom_proof(boot))
    return EngineFailedError(f"the engine {words} {when}{where(boot.spec)}")


def _oom_proof(boot: Boot) -> str:
    """The count of OOM kills of our cgroup, when it rose since the start."""
    now = memory.oom_kills()
    if now is None or boot.oom_kills is None or now <= boot.oom_kills:
        return ""
    return f"oom_kill of our cgroup rose from {boot.oom_kills} to {now}"


def where(spec: EngineSpec) -> str:
    """The end of a sentence: the log, and the last line in it that tells of an error."""
    words = last_words(logs.tail(spec.log_file))
    last = f"; last words: {words[:300]}" if words else "; it wrote nothing"
    return f"; see {spec.log_file}{last}"


def _check_alive(boot: Boot) -> None:
    boot.family.look()
    gone = boot.process.poll() is not None  # asked before the log is read: a dead engine adds no line to it
    if LOADING.search(logs.read(boot.spec.log_file)):
        boot.ladder.climb(Rung.loading)
    found = _fatal(boot)
    if found is not None:
        _exited(boot)
        raise _classed(boot, found)
    if gone:
        raise died(boot, "while booting")


def _fatal(boot: Boot) -> fatal.Fatal | None:
    """The line of its log after which it never will be ready.

    A port that could not be bound is one only with its consequence: the engine exited, or somebody else listens on
    ours. An engine that took the next port, or has lost only another one, goes on.
    """
    text = logs.read(boot.spec.log_file)
    found = fatal.find(text, boot.spec.env)
    if found is None or not found.survivable or boot.process.poll() is not None or _other_listeners(boot):
        return found
    return fatal.find(text, boot.spec.env, survived=True)


def _other_listeners(boot: Boot) -> set[int]:
    """Who else listens on its port."""
    ours = {proc.pid for proc in boot.family.look()}
    return {pid for pid in ports.listening_pids(boot.spec.port) if pid is not None} - ours


def _classed(boot: Boot, found: fatal.Fatal, how: str = "") -> CampaignError:
    """The error that a line of the log stands for; `how` it showed, where that is not the line alone."""
    holder = ports.listener(boot.spec.port) if found.error is InvalidError else None
    by = f"; port {boot.spec.port} is held by {holder}" if holder else ""
    also = f"; {how}" if how else ""
    error = found.error(f"{found.sentence}{by}{also} (line: {found.line[:300]}); see {boot.spec.log_file}")
    error.transient = found.transient
    return error


def _exited(boot: Boot) -> bool:
    """Give a dying process the time to write its last lines. Whether it did exit."""
    try:
        boot.process.wait(min(DYING_S, boot.left_s))
    except subprocess.TimeoutExpired:
        return False
    return True


def _models_answer(boot: Boot) -> bool:
    """Whether our own server lists our nonce. Raises for a server that is another's, and for one that refuses us."""
    status, body = ports.get(boot.spec.port, "/v1/models", min(ASK_TIMEOUT_S, boot.left_s), boot.spec.headers)
    if status == 0 and body.startswith(ConnectionRefusedError.__name__):
        return False
    boot.ladder.climb(Rung.port)
    boot.ladder.last_answer = f"/v1/models answers {status}" if status else f"/v1/models: {body}"
    if status not in (0, http.client.OK):
        _check_listeners(boot)
    if status in (http.client.UNAUTHORIZED, http.client.FORBIDDEN):
        raise _failed(
            boot, f"auth required: /v1/models answers {status}; give the engine's key in engine.pass_env: VLLM_API_KEY"
        )
    if status != http.client.OK:
        return False
    ids = ports.model_ids(body)
    if ids is None or boot.spec.nonce not in ids:
        shown = ", ".join(ids) if ids else repr(body[:80])
        raise _foreign(boot, f"serves {shown}, wanted {boot.spec.nonce}")
    return True


def _check_listeners(boot: Boot) -> None:
    """Every listener of the port must be ours: SO_REUSEPORT lets two servers share one, and answer in turn."""
    if others := _other_listeners(boot):
        raise _foreign(boot, f"is shared with pid {', '.join(map(str, sorted(others)))}, which this run did not start")


def _foreign(boot: Boot, what: str) -> InvalidError:
    holder = ports.listener(boot.spec.port)
    ours = holder is not None and holder.pid in {proc.pid for proc in boot.family.look()}
    kind = "wrong model: our own engine on port" if ours else "foreign server: port"
    advice = "stop it, or choose another host.port"
    return InvalidError(f"{kind} {boot.spec.port} {what}; it is {holder}; {advice}; see {boot.spec.log_file}")


def _first_generation(boot: Boot) -> float:
    started = time.monotonic()
    body = {
        "model": boot.spec.nonce,
        "prompt": boot.spec.first_prompt,
        "max_tokens": FIRST_TOKENS,
        "temperature": 0,
        "ignore_eos": True,
    }
    status, answer = _post(boot, body)
    if status == 0:
        raise _no_answer(boot, answer)
    if status != http.client.OK:
        _check_listeners(boot)
        raise _failed(boot, f"health only: the first generation answered {status}: {answer[:200]}")
    if problem := _problem(answer, boot.spec.nonce):
        raise _failed(boot, f"the first generation {problem}")
    return time.monotonic() - started


def _post(boot: Boot, body: dict[str, Any]) -> tuple[int, str]:
    """The first completion may take all that is left of the boot: it compiles what is cold."""
    connection = http.client.HTTPConnection("127.0.0.1", boot.spec.port, timeout=boot.left_s)
    try:
        headers = {"Content-Type": "application/json", **boot.spec.headers}
        connection.request("POST", "/v1/completions", json.dumps(body), headers)
        response = connection.getresponse()
        return response.status, response.read().decode("utf-8", "replace")
    except (OSError, http.client.HTTPException) as error:
        return 0, f"{type(error).__name__}: {error}"
    finally:
        connection.close()


def _no_answer(boot: Boot, reason: str) -> CampaignError:
    if _exited(boot):
        return _because(boot, died(boot, f"on its first request ({reason})"))
    boot.ladder.last_answer = reason
    return _failed(boot, _too_late(boot))


def _problem(answer: str, nonce: str) -> str:
    """What is wrong with a 200; empty when it holds tokens of our model."""
    try:
        found = json.loads(answer)
        model, tokens = found["model"], found["usage"]["completion_tokens"]
    except (ValueError, TypeError, KeyError):
        return f"is no completion: {answer[:200]}"
    if model != nonce:
        return f"came from {model}, wanted {nonce}"
    return "" if tokens else "held no token"


def _failed(boot: Boot, sentence: str) -> CampaignError:
    return _because(boot, EngineFailedError(f"{sentence}{where(boot.spec)}"))


def _because(boot: Boot, error: CampaignError) -> CampaignError:
    """The same failure by the line of the log that says why, where there is one."""
    found = _fatal(boot)
    return error if found is None else _classed(boot, found, str(error).partition("; see ")[0])
