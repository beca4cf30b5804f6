"""Log lines in vLLM's form. The fake is one process, but its lines name the roles that the engine's processes have."""

import os
import sys
import time

API_SERVER, ENGINE_CORE, WORKER = "APIServer", "EngineCore", "Worker"


def log(role: str, place: str, message: str, level: str = "INFO") -> None:
    """One line: `(EngineCore pid=7) INFO 11-30 12:41:37 [place] message`."""
    stamp = time.strftime("%m-%d %H:%M:%S")
    write(f"({role} pid={os.getpid()}) {level} {stamp} [{place}] {message}")


def uvicorn(message: str, level: str = "INFO") -> None:
    """One line of the web server."""
    write(f"({API_SERVER} pid={os.getpid()}) {level}:     {message}")


def write(line: str) -> None:
    """One line, whole, at once (threads share the log)."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()
