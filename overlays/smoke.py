"""Whether the overlaid modules import in the engine's interpreter: asked once for each stage, before any boot.

A preimage can fit while what the overlay itself imports is missing in this engine; without this the boot would find it.
"""

import json
import os
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from overlays.base import BaseTree
from overlays.errors import ImportsError, OverlayError
from overlays.stage import Stage, StagedFile, stage

TIMEOUT_S = 600
MARK = "\x1eimports "  # before our answer: an engine prints of its own
SHOWN_CHARS = 2000
ENGINE = "vllm"
SCRIPT = """
import importlib, json, sys, traceback
failed, tree = {}, sys.argv[3] + "/"
for name in json.loads(sys.argv[1]):
    try:
        importlib.import_module(name)
    except BaseException as error:
        missing = error.name if isinstance(error, ModuleNotFoundError) else None
        frames = [frame.filename for frame in traceback.extract_tb(error.__traceback__)]
        ours = [name.removeprefix(tree) for name in frames if name.startswith(tree)]
        told = f"{type(error).__name__}: {error}".splitlines()[0]
        failed[name] = {"error": told, "missing": missing, "at": ours[-1] if ours else ""}
print("\\n" + sys.argv[2] + json.dumps(failed), flush=True)
"""


@dataclass(frozen=True)
class Failure:
    """Why one module does not import. `missing` is the module that is not there, where that is the reason.

    `at` is the file of the stage whose line failed: a module that fails only because it imports that one is no culprit.
    """

    error: str
    missing: str | None
    at: str


def is_known(base: BaseTree, made: Stage) -> bool:
    """Whether there is nothing to try, or this interpreter did it before: then `expect_imports` costs nothing."""
    if not _modules(made):
        return True
    try:
        kept: object = json.loads(_kept(made).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return kept == _answer(base, made)


def expect_imports(base: BaseTree, made: Stage) -> None:
    """Import every overlaid module in one process, and keep a good result beside the stage.

    Raises ImportsError that names overlay, file and what is missing; OverlayError where the engine itself does not
    import. A module that the stock engine cannot import either is not the overlay's fault.
    """
    if is_known(base, made):
        return
    failures = _imported(base, made.path, _modules(made))
    if failures:
        failures = _by_overlays(base, made, failures)
    if failures:
        told = [_words(base, _to_blame(made, name, why), why) for name, why in failures.items()]
        raise ImportsError("\n  ".join(dict.fromkeys(told)))
    _keep(made, _answer(base, made))


def _by_overlays(base: BaseTree, made: Stage, failures: Mapping[str, Failure]) -> dict[str, Failure]:
    """Without what fails in the stock engine in the same words. Raises OverlayError where `import vllm` fails there."""
    plain = stage(base, (), made.path.parent)
    stock = _imported(base, plain.path, [ENGINE, *failures])
    if ENGINE in stock:
        raise OverlayError(
            f"{base.python} cannot import vLLM {base.version} ({base.build}) even without overlays: "
            f"{stock[ENGINE].error}; install the engine again"
        )
    return {name: why for name, why in failures.items() if name not in stock or stock[name].error != why.error}


def _imported(base: BaseTree, tree: Path, modules: Sequence[str]) -> dict[str, Failure]:
    with tempfile.TemporaryDirectory(prefix="campaign-imports-") as home:
        command = [str(base.python), "-c", SCRIPT, json.dumps(modules), MARK, str(tree)]
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, errors="replace", timeout=TIMEOUT_S, check=False,
                cwd=home, env=_environment(tree, home), stdin=subprocess.DEVNULL,
            )  # fmt: skip
        except (OSError, subprocess.TimeoutExpired) as error:
            raise OverlayError(f"the imports of {tree} cannot be tried with {base.python}: {error}") from error
    _, mark, answer = done.stdout.rpartition(MARK)
    if not mark:
        raise ImportsError(
            f"{base.python} ended with {done.returncode} while importing {', '.join(modules)} from {tree}: "
            f"{(done.stdout + done.stderr).strip()[-SHOWN_CHARS:]}; try the overlays one by one"
        )
    return {name: Failure(**why) for name, why in json.loads(answer.splitlines()[0]).items()}


def _environment(tree: Path, home: str) -> dict[str, str]:
    """What a boot gives its stage; of the caller's own only PATH."""
    return {
        "PATH": os.environ.get("PATH", os.defpath),
        "LANG": "C.UTF-8",
        "LC_ALL": "C.UTF-8",
        "HOME": home,
        "TMPDIR": home,
        "PYTHONPATH": str(tree),
        "PYTHONSAFEPATH": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
        "VLLM_NO_USAGE_STATS": "1",
        "HF_HUB_OFFLINE": "1",
    }


def _words(base: BaseTree, file: StagedFile, why: Failure) -> str:
    elsewhere = f" at {why.at}" if why.at not in ("", file.path) else ""
    lacks = (
        f"which imports {why.missing}, a module that is not" if why.missing else f"which fails{elsewhere} ({why.error})"
    )
    return (
        f"{file.overlay}: its hashes fit, but its imports do not: {file.path}, {lacks} in vLLM {base.version} "
        f"({base.build}) of {base.python}; write the overlay for this engine, or leave {file.overlay} out of the arm"
    )


def _to_blame(made: Stage, module: str, why: Failure) -> StagedFile:
    """The overlaid file whose line failed; the module's own where a file of the stock engine failed on it."""
    by_path = {file.path: file for file in made.files}
    return by_path.get(why.at) or next(file for file in made.files if file.module == module)


def _modules(made: Stage) -> list[str]:
    """The engine's own files before the plugins' packages, which wrap them."""
    ordered = sorted(made.files, key=lambda file: (not file.path.startswith(f"{ENGINE}/"), file.path))
    return [file.module for file in ordered if file.module]


def _answer(base: BaseTree, made: Stage) -> dict[str, object]:
    return {"python": str(base.python), "modules": _modules(made)}


def _kept(made: Stage) -> Path:
    return made.path.with_name(f"{made.digest}.imports.json")


def _keep(made: Stage, answer: Mapping[str, object]) -> None:
    handle, aside = tempfile.mkstemp(dir=made.path.parent, prefix=".imports-")
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        json.dump(answer, file)
    Path(aside).chmod(0o644)  # as readable as the stage beside it
    Path(aside).replace(_kept(made))
