"""An engine on this machine, from its start to its proven death, in one `with`."""

import contextlib
import shutil
import subprocess
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from campaign.engine import fatal, logs, memory, readiness, remembered, shared_memory, signals
from campaign.engine import port as ports
from campaign.engine import stop as stopping
from campaign.engine.family import LEADERS, Family, become_subreaper
from campaign.engine.logs import KvLog
from campaign.engine.processes import Proc, cmdline
from campaign.engine.readiness import Boot, Ladder
from campaign.engine.spec import EngineSpec
from campaign.engine.stop import Remains, StopFacts
from campaign.errors import CampaignError, EngineFailedError, HostUnfitError, InvalidError

ROOT_PROBE = "import importlib.util, sys; found = importlib.util.find_spec(sys.argv[1]); print(found and found.origin)"
ROOT_PROBE_TIMEOUT_S = 60
ENGINE_AUTOGROUP_NICE = "5"
CACHES = ("VLLM_CACHE_ROOT", "TRITON_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR")
CORE_DIED = ("EngineDeadError", "died unexpectedly")


@dataclass
class RunningEngine:
    """A live engine. Not frozen: what is known only later (ready, stopped) is filled in. Times in seconds."""

    spec: EngineSpec
    boot: Boot
    started_monotonic_s: float
    shm_before: frozenset[str]
    boot_s: float = 0.0  # start to the end of the first generation
    first_request_s: float = 0.0
    kv: KvLog | None = None
    shm_ours: frozenset[str] = field(default_factory=frozenset)
    stopped: StopFacts | None = None

    @property
    def pid(self) -> int:
        """The first process, which is also its group and its session."""
        return self.boot.process.pid

    def pids(self) -> frozenset[int]:
        """Every living process of this engine."""
        return frozenset(proc.pid for proc in self.boot.family.look())

    def log(self) -> str:
        """Its log so far."""
        return logs.read(self.spec.log_file)

    def ended(self) -> dict[str, str]:
        """How it ended, for the record: how its first process went, and the most that all of them held of the host."""
        if self.stopped is None:
            return {}
        held = {"memory_held_mib": str(self.stopped.held_mib)}
        if self.stopped.exit_code is None:
            return held
        return held | {"stop": fatal.exit_words(self.stopped.exit_code, by_us=self.stopped.by_us)}

    @contextmanager
    def explained(self) -> Iterator[None]:
        """Within it a request that failed because the engine is dead is told as the engine's death."""
        try:
            yield
        except EngineFailedError as error:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.boot.process.wait(readiness.DYING_S)
            if self.boot.process.poll() is None:
                raise
            raise readiness.died(self.boot, f"while it was measured ({str(error).partition('; see ')[0]})") from error

    def tail(self) -> tuple[str, ...]:
        """The last lines of its log."""
        return logs.tail(self.spec.log_file)

    def check(self) -> None:
        """Raises EngineFailedError when it is dead, or when its API server lives on without the engine core."""
        self.boot.family.look()
        if self.boot.process.poll() is not None:
            raise readiness.died(self.boot, "while it was measured")
        dead = [line for line in self.tail() if any(word in line for word in CORE_DIED)]
        if dead:
            raise EngineFailedError(
                f"the API server lives, but the engine core died: {dead[-1]}; see {self.spec.log_file}"
            )

    def check_listeners(self) -> None:
        """Raises InvalidError when anybody but this engine listens on its port."""
        others = {pid for pid in ports.listening_pids(self.spec.port) if pid is not None} - self.pids()
        if others:
            raise InvalidError(f"foreign server: port {self.spec.port} is also served by pid {sorted(others)}")


@contextmanager
def serve(
    spec: EngineSpec, ladder: Ladder | None = None, ended: dict[str, str] | None = None
) -> Iterator[RunningEngine]:
    """Boot, yield the ready engine, stop it whatever happened, and prove that nothing is left.

    The caller's `ladder` is filled while the engine boots, and `ended` once it is stopped, so that they tell of a boot
    that fails too.

    Raises InvalidError for a port that somebody holds or a package root outside the stage, EngineFailedError for a boot
    that fails, HostUnfitError when something survives the stop. An exception from inside keeps its class; leftovers are
    then a note on it.
    """
    become_subreaper()
    refuse_listener(spec.port)
    told = {} if ended is None else ended
    with signals.interruptible(), _folders(spec), _started(spec, ladder or Ladder(), told) as engine:
        engine.first_request_s = readiness.wait(engine.boot)
        engine.boot_s = time.monotonic() - engine.started_monotonic_s
        engine.kv = logs.kv(engine.log())
        engine.shm_ours = shared_memory.held_by(engine.pids())
        _remember(spec, engine.boot.family.look(), engine.shm_ours)
        yield engine


def compile_cache(spec: EngineSpec) -> str:
    """`warm` when an earlier boot left something in the compile caches that this boot gets, else `cold`."""
    files = (file for root in _caches(spec) for file in root.rglob("*") if file.is_file())
    return "cold" if next(files, None) is None else "warm"


def refuse_listener(port: int) -> None:
    """Raises InvalidError naming the process and the model that hold the port."""
    if holder := ports.listener(port):
        raise InvalidError(
            f"foreign server: port {port} is held by {holder}, wanted nobody; stop it, or choose another host.port"
        )


def refuse_other_root(spec: EngineSpec) -> None:
    """Raises InvalidError unless the engine's interpreter, in the engine's environment, imports from the stage."""
    package = spec.argv[2].split(".")[0]
    command = [spec.argv[0], "-c", ROOT_PROBE, package]
    try:
        done = subprocess.run(
            command,
            cwd=spec.cwd,
            env=spec.env,
            capture_output=True,
            text=True,
            check=True,
            timeout=ROOT_PROBE_TIMEOUT_S,
        )
    except OSError as error:
        raise _cannot_start(spec, error) from error
    except subprocess.SubprocessError as error:
        raise EngineFailedError(
            f"the engine's interpreter {spec.argv[0]} cannot be asked for {package}: {error}"
        ) from error
    origin = done.stdout.strip()
    if not origin.startswith(f"{spec.stage_path}/"):
        raise InvalidError(
            f"the engine would import {package} from {origin}, wanted the stage {spec.stage_path}; "
            "a .pth file, a working directory or PYTHONPATH stands before it"
        )


@contextmanager
def _started(spec: EngineSpec, ladder: Ladder, ended: dict[str, str]) -> Iterator[RunningEngine]:
    engine: RunningEngine | None = None
    refuse_other_root(spec)
    try:
        with signals.held():
            engine = _start(spec, ladder)
        _check_argv(engine)
        yield engine
    except BaseException as error:
        _halt(engine, spec, ended)
        _note_stop(error, engine)
        raise
    _halt(engine, spec, ended)
    if engine.stopped and engine.stopped.leftovers:
        raise HostUnfitError(
            f"after the stop there is still: {'; '.join(engine.stopped.leftovers)}; end it before the next boot"
        )


def _start(spec: EngineSpec, ladder: Ladder) -> RunningEngine:
    shm_before, oom_kills = shared_memory.names(), memory.oom_kills()
    started_s = ladder.started_s = time.monotonic()
    try:
        with spec.log_file.open("wb") as log:
            process = subprocess.Popen(
                spec.argv, cwd=spec.cwd, env=spec.env, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT,
                start_new_session=True,
            )  # fmt: skip
    except OSError as error:
        raise _cannot_start(spec, error) from error
    LEADERS.add(process.pid)
    let_the_client_run(process.pid)
    family = Family(process.pid, spec.nonce, lambda members: _remember(spec, members))
    boot = Boot(spec, process, family, started_s + spec.boot_timeout_s, ladder, oom_kills)
    return RunningEngine(spec, boot, started_s, shm_before)


def _remember(spec: EngineSpec, members: Iterable[Proc], shm: Iterable[str] = ()) -> None:
    remembered.keep(spec.log_file.with_name(remembered.FILE), members, shm)


def let_the_client_run(leader: int) -> None:
    """Give the engine's session a little less weight than ours where the kernel groups tasks by session (autogroup).

    An engine that spins on every core otherwise keeps the client, which sleeps most of the time, waiting for up to
    700 ms a request (docs/adr/0007). Both arms are treated alike; without autogroups nothing is changed.
    """
    with contextlib.suppress(OSError):
        Path(f"/proc/{leader}/autogroup").write_text(ENGINE_AUTOGROUP_NICE, encoding="ascii")


def _check_argv(engine: RunningEngine) -> None:
    """The arguments that the kernel holds are those asked for, byte for byte (a wrapper may precede them)."""
    found, wanted = cmdline(engine.pid), engine.spec.argv[1:]
    if found and found[-len(wanted) :] != wanted:
        raise InvalidError(f"the engine runs with {found}, wanted {engine.spec.argv}")


def _halt(engine: RunningEngine | None, spec: EngineSpec, ended: dict[str, str]) -> None:
    if engine is None or engine.stopped is not None:
        return
    try:
        with signals.held():
            remains = Remains(spec.port, engine.shm_before, engine.shm_ours)
            engine.stopped = stopping.stop(engine.boot.process, engine.boot.family, spec.stop_timeout_s, remains)
            LEADERS.discard(engine.pid)
            ended.update(engine.ended())
            if not engine.stopped.survivors:
                remembered.forget(spec.log_file.parent)
    except KeyboardInterrupt as interrupt:  # it came meanwhile, and the stop ran to its end
        _note_stop(interrupt, engine)
        raise


def _note_stop(error: BaseException, engine: RunningEngine | None) -> None:
    """What an error, or an interruption, left of the engine."""
    if engine is None or engine.stopped is None:
        return
    for leftover in engine.stopped.leftovers:
        error.add_note(f"left behind: {leftover}")
    if isinstance(error, KeyboardInterrupt) and not engine.stopped.leftovers:
        error.add_note("the engine is stopped")


@contextmanager
def _folders(spec: EngineSpec) -> Iterator[None]:
    """The folders of one boot and of its stage's caches; the engine's TMPDIR is gone afterwards."""
    for folder in (spec.cwd, spec.report_dir, Path(spec.env["HOME"]), spec.tmp_dir, *_caches(spec)):
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise HostUnfitError(
                f"cannot make {folder}: {error.strerror}; free the disk or change host.runs_dir"
            ) from error
    try:
        yield
    finally:
        shutil.rmtree(spec.tmp_dir, ignore_errors=True)


def _caches(spec: EngineSpec) -> list[Path]:
    return [Path(spec.env[name]) for name in CACHES]


def _cannot_start(spec: EngineSpec, error: OSError) -> CampaignError:
    return EngineFailedError(
        f"cannot start {spec.argv[0]}: {error.strerror or error}; is engine.python an interpreter?"
    )
