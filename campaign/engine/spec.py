"""How one boot of an engine is started: its arguments, and an environment that holds nothing of the caller's."""

import hashlib
import json
import os
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from campaign.asked.pinned import SYNTHETIC
from campaign.asked.variables import may_show
from campaign.config import Campaign

HOST = "127.0.0.1"
RUN_MARKER = "CAMPAIGN_RUN_ID"  # every process of a run carries it, so that a crashed run can be swept
BOOT_MARKER = "CAMPAIGN_BOOT_ID"  # the nonce; tells two live boots of one run apart
REPORT_DIR = "VLLM_CAMPAIGN_REPORT_DIR"
OVERLAID_MODULES = "VLLM_CAMPAIGN_OVERLAID_MODULES"
READY_TIMEOUT = "VLLM_ENGINE_READY_TIMEOUT_S"
OURS_PREFIX = "VLLM_CAMPAIGN_"
TMP_PREFIX = "campaign-"
LONGEST_TMPDIR = 60  # characters: the engine makes unix sockets below it, whose whole path may hold 107
FIRST_PROMPT_CHARS = 600  # long on purpose: after a short first request an AMX engine died of SIGILL (house.md)
SENTENCE = "The first request is long so that every buffer is touched before anything is measured. "


@dataclass(frozen=True)
class EngineSpec:
    """All that starting, asking and stopping one boot needs. Times in seconds."""

    argv: tuple[str, ...]
    env: dict[str, str]
    cwd: Path
    url: str
    port: int
    nonce: str  # the served model name: only our boot answers to it
    log_file: Path
    report_dir: Path
    boot_timeout_s: float
    request_timeout_s: float
    stop_timeout_s: float
    stage_path: Path
    tmp_dir: Path  # TMPDIR of the engine, short; removed when it stops
    declared: frozenset[str] = frozenset()  # variables of the staged overlays
    secret_names: frozenset[str] = frozenset()
    first_prompt: str = SENTENCE

    @property
    def headers(self) -> dict[str, str]:
        """What every request to this engine must carry: a bearer key where the engine was given one."""
        key = self.env.get("VLLM_API_KEY")
        return {"Authorization": f"Bearer {key}"} if key else {}

    def public_env(self) -> dict[str, str]:
        """The environment for the record: of what the caller passed on, only what is known to be no secret is shown."""
        return {name: "***" if name in self.secret_names else value for name, value in sorted(self.env.items())}


def build(
    campaign: Campaign,
    *,
    serve: Mapping[str, Any],
    variables: Mapping[str, str],
    passed: Iterable[str],
    stage_path: Path,
    stage_modules: Iterable[str | Mapping[str, str]],  # a module, or the path of a data file
    declared: frozenset[str],
    boot_dir: Path,
    nonce: str,
    run_marker: str,
) -> EngineSpec:
    """The boot of one resolved arm: its serve arguments, its variables, and the names passed on from the caller.

    Makes no folder and starts nothing. Names and values were checked when the arm was resolved (campaign.asked).
    """
    engine = campaign.engine
    boot_dir = boot_dir.absolute()
    tmp_dir = _tmp_dir(nonce)
    report_dir = boot_dir / "reports"
    ours = {
        REPORT_DIR: str(report_dir),
        OVERLAID_MODULES: json.dumps(list(stage_modules)),
        RUN_MARKER: run_marker,
        BOOT_MARKER: nonce,
        "HOME": str(boot_dir / "home"),
        "TMPDIR": str(tmp_dir),
        "PYTHONPATH": str(stage_path),
        "PYTHONSAFEPATH": "1",
        "SPT_NOENV": "1",  # process titles must not overwrite /proc/PID/environ, where our markers are found
        **_caches(
            Path(campaign.host.cache_dir).absolute() / "compile" / stage_path.name,
            [campaign.model.target, speculative_config(campaign), dict(serve), dict(variables)],
        ),
    }
    return EngineSpec(
        argv=arguments(campaign, serve, nonce),
        env=environment(engine.boot_timeout_s, passed, variables, ours),
        cwd=boot_dir / "cwd",
        url=f"http://{HOST}:{campaign.host.port}",
        port=campaign.host.port,
        nonce=nonce,
        log_file=boot_dir / "engine.log",
        report_dir=report_dir,
        boot_timeout_s=engine.boot_timeout_s,
        request_timeout_s=engine.request_timeout_s,
        stop_timeout_s=engine.stop_timeout_s,
        stage_path=stage_path,
        tmp_dir=tmp_dir,
        declared=declared,
        secret_names=frozenset(n for n in passed if not may_show(n, os.environ.get(n, ""))),
        first_prompt=_first_prompt(serve.get("max_model_len")),
    )


def arguments(campaign: Campaign, serve: Mapping[str, Any], nonce: str) -> tuple[str, ...]:
    """The argument list. It is never joined into a line, so nothing in it needs quoting."""
    fixed = {"model": campaign.model.target, "served_model_name": nonce, "host": HOST, "port": campaign.host.port}
    speculation = speculative_config(campaign)
    pairs = {**fixed, **serve} | ({"speculative_config": speculation} if speculation else {})
    words = [campaign.engine.python, "-m", campaign.engine.module]
    for name, value in pairs.items():
        words.extend(argument(name, value))
    return tuple(words)


def argument(name: str, value: object) -> tuple[str, ...]:
    """One serve argument as the engine reads it: truth values are switches, lists and maps JSON, the rest text."""
    flag = name.replace("_", "-")
    if isinstance(value, bool):
        return (f"--{flag}",) if value else (f"--no-{flag}",)
    if isinstance(value, tuple):  # an argument that takes several words
        return (f"--{flag}", *map(str, value))
    text = json.dumps(value, ensure_ascii=False) if isinstance(value, dict | list) else str(value)
    return (f"--{flag}={text}",) if text.startswith("-") else (f"--{flag}", text)


def speculative_config(campaign: Campaign) -> dict[str, Any]:
    """How tokens are drafted; empty is not at all. The method is always named: an inferred one has been wrong."""
    model = campaign.model
    if model.method is None:
        return {}
    drafter = {"model": model.drafter} if model.drafter else {}
    length = model.synthetic_acceptance_length
    made_up = {"rejection_sample_method": "synthetic", SYNTHETIC: length} if length is not None else {}
    return {"method": model.method, **drafter, "num_speculative_tokens": model.num_speculative_tokens, **made_up}


def environment(
    boot_timeout_s: float, passed: Iterable[str], variables: Mapping[str, str], ours: Mapping[str, str]
) -> dict[str, str]:
    """The whole environment of the engine. Of the caller's own only PATH and the names passed on are kept."""
    fixed = {
        "PATH": os.environ.get("PATH", os.defpath),
        "LANG": "C.UTF-8",
        "LC_ALL": "C.UTF-8",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONUNBUFFERED": "1",
        "VLLM_NO_USAGE_STATS": "1",
        "VLLM_SERVER_DEV_MODE": "1",
        "DO_NOT_TRACK": "1",
        "HF_HUB_OFFLINE": "1",
        READY_TIMEOUT: str(max(1, int(boot_timeout_s))),
    }
    given = {name: os.environ[name] for name in passed if name in os.environ}
    return {**fixed, **given, **variables, **ours}


def _caches(stage: Path, asked: list[Any]) -> dict[str, str]:
    """Compile caches shared by all boots, of any run, of one stage that is asked for the same; and by no other."""
    root = stage / hashlib.sha256(json.dumps(asked, sort_keys=True, default=str).encode()).hexdigest()[:16]
    return {
        "VLLM_CACHE_ROOT": str(root / "vllm"),
        "TRITON_CACHE_DIR": str(root / "triton"),
        "TORCHINDUCTOR_CACHE_DIR": str(root / "inductor"),
    }


def _tmp_dir(nonce: str) -> Path:
    usual = Path(tempfile.gettempdir()) / f"{TMP_PREFIX}{nonce}"
    short = Path("/tmp") / f"{TMP_PREFIX}{hashlib.sha256(nonce.encode()).hexdigest()[:16]}"
    return usual if len(str(usual)) <= LONGEST_TMPDIR else short


def _first_prompt(max_model_len: object) -> str:
    """At most half of the model's length, counted as if every character were a token."""
    room = max_model_len // 2 if isinstance(max_model_len, int) else FIRST_PROMPT_CHARS
    wanted = max(1, min(FIRST_PROMPT_CHARS, room))
    return (SENTENCE * (wanted // len(SENTENCE) + 1))[:wanted]
