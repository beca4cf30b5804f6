"""Answers the engine_report protocol for three roles, which are one process here: API server, core and one worker."""

import hashlib
import json
import os
import sys
import threading
import time
from pathlib import Path
from typing import Any

from vllm import faults
from vllm.v1.engine.core import EngineCore

POLL_S = 0.05
SCHEMA = 1
ROLES = ("APIServer", "EngineCore", "Worker")
OVERLAYS: dict[str, dict[str, Any]] = {}  # what an overlay's own code publishes about itself


def start(core: EngineCore) -> None:
    """Answer from now on, in a daemon thread; nothing when nobody asks for reports."""
    folder = os.environ.get("VLLM_CAMPAIGN_REPORT_DIR")
    if folder and not faults.on("no_report"):
        threading.Thread(target=_answer_for_ever, args=(core, Path(folder)), daemon=True).start()


def _answer_for_ever(core: EngineCore, folder: Path) -> None:
    answered = ""
    while True:
        ask = folder / "ask"
        question = ask.read_text(encoding="utf-8") if ask.exists() else answered
        if question != answered:
            answered = question
            for role in ROLES[:2] if faults.due("lose_worker") else ROLES:
                _write(folder, report(core, role, question))
        time.sleep(POLL_S)


def _write(folder: Path, found: dict[str, Any]) -> None:
    path = folder / f"report-{found['role']}-{found['rank']}-{found['pid']}.json"
    aside = path.with_suffix(".aside")
    aside.write_text(json.dumps(found, ensure_ascii=False), encoding="utf-8")
    aside.replace(path)


def report(core: EngineCore, role: str, nonce: str) -> dict[str, Any]:
    """One role's answer."""
    restarted = role == "EngineCore" and faults.due("restart_counters")
    return {
        "schema": SCHEMA,
        "nonce": nonce,
        "role": role,
        "rank": 0,
        "pid": os.getpid() + restarted,
        "time_unix_s": time.time(),
        "environment": {name: value for name, value in os.environ.items() if name.startswith("VLLM_")},
        "resolved": resolved(core, role),
        "serve": serve(core),
        "behaved": behaved(core) if role == "EngineCore" else {},
        "modules": modules(),
        "overlays": OVERLAYS,
    }


def resolved(core: EngineCore, role: str) -> dict[str, Any]:
    """What a role knows: all roles the configuration, the core its scheduler, a worker its runner."""
    of_role = {
        "EngineCore": {"scheduler_class": type(core.scheduler).__name__},
        "Worker": {"runner": core.config.runner},
    }
    return configured(core) | of_role.get(role, {})


def configured(core: EngineCore) -> dict[str, Any]:
    """The configuration as it was resolved."""
    config = core.config
    return {
        "async_scheduling": bool(config.async_scheduling) and not faults.due("disarm"),
        "max_concurrent_batches": core.max_batches,
        "prefix_caching": config.enable_prefix_caching,
        "spec_method": config.speculative_config.method if config.speculative_config else "none",
        "spec_tokens": config.num_speculative_tokens,
        "kv_blocks": core.cache.blocks,
        "kv_block_size": core.cache.block_size,
        "max_model_len": config.max_model_len,
        "max_num_seqs": config.max_num_seqs,
        "dtype": config.dtype,
    }


def serve(core: EngineCore) -> dict[str, Any]:
    """What the configuration holds under the names of the serve arguments that it knows."""
    config = core.config
    names = ("max_model_len", "max_num_seqs", "block_size", "kv_cache_memory_bytes", "enable_prefix_caching", "dtype")
    known = {name: getattr(config, name) for name in names}
    return known | {"async_scheduling": bool(config.async_scheduling) and not faults.due("disarm")}


def behaved(core: EngineCore) -> dict[str, Any]:
    """Counters since the start."""
    scheduler = core.scheduler
    with scheduler.lock:
        return {
            "steps": scheduler.steps,
            "batches_in_flight": {str(key): count for key, count in sorted(scheduler.batches_in_flight.items())},
            "tokens_in_flight_max": scheduler.tokens_in_flight_max,
        }


def modules() -> list[dict[str, str]]:
    """Every overlaid module that is loaded here, as its file is now, and every overlaid data file."""
    asked = json.loads(os.environ.get("VLLM_CAMPAIGN_OVERLAID_MODULES", "[]"))
    names = [name for name in asked if isinstance(name, str) and name]
    loaded = {name: getattr(sys.modules.get(name), "__file__", None) for name in names}
    found = [{"module": name, "file": file, "sha256": _digest(Path(file))} for name, file in loaded.items() if file]
    return found + [_data(item["file"]) for item in asked if isinstance(item, dict)]


def _data(path: str) -> dict[str, str]:
    file = Path(faults.__file__).parent.parent / path
    return {"file_path": path, "file": str(file), "sha256": _digest(file) if file.is_file() else ""}


def _digest(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()
