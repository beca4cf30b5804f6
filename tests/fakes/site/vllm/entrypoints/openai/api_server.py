"""`python -m vllm.entrypoints.openai.api_server`: the door."""

import argparse
import errno
import os
import signal
import sys
import time
from types import FrameType
from typing import NoReturn

from vllm import compilation, engine_report, envs, faults
from vllm.config import vllm as configuration
from vllm.entrypoints.openai.serving import Handler, Server
from vllm.logger import API_SERVER, WORKER, log, uvicorn, write
from vllm.profiler import Profiler
from vllm.v1.engine.core import EngineCore

SWITCH = argparse.BooleanOptionalAction


def parser() -> argparse.ArgumentParser:
    """The arguments that matter; all others of the engine's are taken and left alone."""
    made = argparse.ArgumentParser(prog="api_server", allow_abbrev=False)
    made.add_argument("--model", required=True)
    made.add_argument("--served-model-name")
    made.add_argument("--host", default="127.0.0.1")
    made.add_argument("--port", type=int, default=8000)
    made.add_argument("--speculative-config")
    made.add_argument("--async-scheduling", action=SWITCH, default=None)
    made.add_argument("--enable-prefix-caching", action=SWITCH, default=True)
    made.add_argument("--max-model-len", type=int, default=2048)
    made.add_argument("--max-num-seqs", type=int, default=8)
    made.add_argument("--block-size", type=int, default=128)
    made.add_argument("--kv-cache-memory-bytes", type=int, default=268435456)
    made.add_argument("--dtype", default="float32")
    made.add_argument("--profiler-config")
    return made


def main() -> int:
    """Boot, serve, and end on SIGTERM."""
    args, _ = parser().parse_known_args()
    signal.signal(signal.SIGTERM, _end)
    faults.title("VLLM::APIServer")
    log(API_SERVER, "api_utils.py:286", f"non-default args: {vars(args)}")
    envs.validate_environ()
    server = Server((args.host, args.port), Handler, bind_and_activate=False)
    server.allow_reuse_port = faults.on("reuse_port")
    late = faults.on("bind_late")
    if not late:
        server.server_bind()
    core = _boot(args)
    uvicorn(f"Started server process [{os.getpid()}]")
    uvicorn("Waiting for application startup.")
    uvicorn("Application startup complete.")
    if late and not _bound(server, args):
        return 0
    server.profiler = Profiler(args.profiler_config, args.served_model_name or args.model)
    server.serve(core)
    return 0


def _boot(args: argparse.Namespace) -> EngineCore:
    time.sleep(envs.number("FAKE_BOOT_S", 0.0))
    faults.at_boot()
    config = configuration.resolve(args)
    log(WORKER, "default_loader.py:131", f"Starting to load model {args.model}...")
    faults.while_loading(compilation.nth_boot())
    compilation.load(config)
    core = EngineCore(config)
    engine_report.start(core)
    return core


def _bound(server: Server, args: argparse.Namespace) -> bool:
    """Bind after "startup complete"; a port that is taken ends the server as a clean shutdown does."""
    try:
        server.server_bind()
    except OSError as error:
        if error.errno != errno.EADDRINUSE:
            raise
        address = (args.host, args.port)
        uvicorn(f"[Errno 98] error while attempting to bind on address {address}: address already in use", "ERROR")
        uvicorn("Waiting for application shutdown.")
        uvicorn("Application shutdown complete.")
        return False
    return True


def _end(_number: int, _frame: FrameType | None) -> NoReturn:
    write(f"(APIServer pid={os.getpid()}) INFO:     Application shutdown complete.")
    os._exit(0)


if __name__ == "__main__":
    sys.exit(main())
