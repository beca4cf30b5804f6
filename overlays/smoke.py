"""Whether the overlaid modules, and the engine's entries, import in its interpreter: once a stage, before any boot.

A preimage can fit while what the overlay itself imports is missing in this engine, or while a file of the engine
imports what the overlay took away; without this the boot would find it.
"""

import json
import os
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from overlays import descendants
from overlays.base import BaseTree
from overlays.errors import ImportsError, OverlayError
from overlays.stage import Stage, StagedFile, module_name, stage

TIMEOUT_S = 600
SHOWN_CHARS = 600
ENGINE = "vllm"
# What a boot imports whatever is overlaid; of these, those that the engine has.
ENTRIES = ("vllm/entrypoints/openai/api_server.py", "vllm/v1/engine/core.py")
WORKERS = {"cpu": "vllm/v1/worker/cpu_worker.py", "xpu": "vllm/v1/worker/xpu_worker.py"}
GPU_WORKER = "vllm/v1/worker/gpu_worker.py"
INSTALLED = (".dist-info", ".egg-info", ".pth")  # by name: a dist-info's says which version
# Asked for "module" or "module:name". The answer goes to a file: an engine prints of its own.
SCRIPT = """
import importlib, json, os, re, sys, traceback
asked, tree, answer, now = json.loads(sys.argv[1]), sys.argv[2] + "/", sys.argv[3], sys.argv[4]
failed = {}
for each in asked:
    with open(now, "w") as file:
        file.write(each)
    module, _, name = each.partition(":")
    try:
        found = importlib.import_module(module)
        if name:
            getattr(found, name)
    except BaseException as error:
        told = f"{type(error).__name__}: {error}".replace(tree, "").splitlines()[0]
        lacks = re.match(r"ImportError: cannot import name '(\\w+)' from", told)
        frames = [frame.filename for frame in traceback.extract_tb(error.__traceback__)]
        failed[each] = {
            "error": told,
            "missing": error.name if isinstance(error, ModuleNotFoundError) else None,
            "lacks": f"{error.name}:{lacks[1]}" if lacks and error.name else None,
            "at": [name.removeprefix(tree) for name in frames if name.startswith(tree)],
        }
with open(answer + ".aside", "w") as file:
    json.dump(failed, file)
os.rename(answer + ".aside", answer)
os._exit(0)  # whatever threads an import left behind
"""


@dataclass(frozen=True)
class Failure:
    """Why one module does not import. `missing` is the module that is not there, where that is the reason.

    `lacks` is "module:name" where a module is there and the name in it is not. `at` are the files of the stage that the
    failing line was reached through, its own last: a module that fails only because it imports that one is no culprit.
    """

    error: str
    missing: str | None
    lacks: str | None
    at: tuple[str, ...]


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
    """Import every overlaid module and the engine's entries in one process, and keep a good result beside the stage.

    Raises ImportsError that names overlay, file and what is missing; OverlayError where the engine itself does not
    import. A module that the stock engine cannot import either is not the overlay's fault.
    """
    if is_known(base, made):
        return
    failures = _imported(base, made.path, _asked(base, made))
    if failures:
        told = _by_overlays(base, made, failures)
        if told:
            raise ImportsError("\n  ".join(dict.fromkeys(told)))
    _keep(made, _answer(base, made))


def _by_overlays(base: BaseTree, made: Stage, failures: Mapping[str, Failure]) -> list[str]:
    """A sentence for each failure that the stock engine has not in the same words, and who is to blame.

    Raises OverlayError where `import vllm` fails there.
    """
    plain = stage(base, (), made.path.parent)
    lacking = [why.lacks for why in failures.values() if why.lacks]
    stock = _imported(base, plain.path, list(dict.fromkeys([ENGINE, *failures, *lacking])))
    if ENGINE in stock:
        raise OverlayError(
            f"{base.python} cannot import vLLM {base.version} ({base.build}) even without overlays: "
            f"{stock[ENGINE].error}; install the engine again"
        )
    overlaid = set(_modules(made))
    told = []
    for name, why in failures.items():
        # An entry that nobody overlays and that fails in the stock engine too tells nothing, whatever its words.
        if name in stock and (name not in overlaid or stock[name].error == why.error):
            continue
        told.append(_words(base, _to_blame(made, name, why, why.lacks not in stock), why))
    return told


def _imported(base: BaseTree, tree: Path, asked: Sequence[str]) -> dict[str, Failure]:
    """What fails of `asked`; whatever the imports started is ended, and not waited for."""
    with tempfile.TemporaryDirectory(prefix="campaign-imports-", ignore_cleanup_errors=True) as folder:
        home = Path(folder)
        answer, now, told = (home / name for name in ("answer.json", "now", "output"))
        command = [str(base.python), "-c", SCRIPT, json.dumps(asked), str(tree), str(answer), str(now)]
        try:
            with descendants.running(command, home, _environment(tree, home), told) as process:
                code = process.wait(TIMEOUT_S)
        except OSError as error:
            raise OverlayError(f"the imports of {tree} cannot be tried with {base.python}: {error}") from error
        except subprocess.TimeoutExpired as error:
            raise ImportsError(f"{_text(now)} of {tree} is not imported after {TIMEOUT_S} s: {_end(told)}") from error
        if not answer.is_file():
            raise ImportsError(
                f"{base.python} ended with {code} while importing {_text(now)} from {tree}: {_end(told)}; "
                "try the overlays one by one"
            )
        return {name: Failure(**{**why, "at": tuple(why["at"])}) for name, why in json.loads(_text(answer)).items()}


def _text(file: Path) -> str:
    return file.read_text(encoding="utf-8", errors="replace") if file.is_file() else "nothing"


def _end(output: Path) -> str:
    return _text(output).strip()[-SHOWN_CHARS:] or "it printed nothing"


def _environment(tree: Path, home: Path) -> dict[str, str]:
    """What a boot gives its stage; of the caller's own only PATH."""
    return {
        "PATH": os.environ.get("PATH", os.defpath),
        "LANG": "C.UTF-8",
        "LC_ALL": "C.UTF-8",
        "TMPDIR": str(home),
        "PYTHONPATH": str(tree),
        "PYTHONSAFEPATH": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
        "VLLM_NO_USAGE_STATS": "1",
        "HF_HUB_OFFLINE": "1",
    }


def _words(base: BaseTree, file: StagedFile, why: Failure) -> str:
    last = why.at[-1] if why.at else ""
    elsewhere = f" at {last}" if last not in ("", file.path) else ""
    lacks = (
        f"which imports {why.missing}, a module that is not" if why.missing else f"which fails{elsewhere} ({why.error})"
    )
    return (
        f"{file.overlay}: its hashes fit, but its imports do not: {file.path}, {lacks} in vLLM {base.version} "
        f"({base.build}) of {base.python}; write the overlay for this engine, or leave {file.overlay} out of the arm"
    )


def _to_blame(made: Stage, module: str, why: Failure, stock_has_it: bool) -> StagedFile:
    """The overlaid file that lost a name which the stock one has; else the last one that the failure went through.

    Where none of them is overlaid, all overlays of the stage are named with the module that was tried.
    """
    by_module = {file.module: file for file in made.files if file.module}
    by_path = {file.path: file for file in made.files}
    lost = why.lacks.partition(":")[0] if why.lacks and stock_has_it else ""
    suspects = [by_module.get(lost), *(by_path.get(path) for path in reversed(why.at)), by_module.get(module)]
    return next(filter(None, suspects), StagedFile(module, module, "", " and ".join(made.overlays)))


def _modules(made: Stage) -> list[str]:
    """The engine's own files before the plugins' packages, which wrap them."""
    ordered = sorted(made.files, key=lambda file: (not file.path.startswith(f"{ENGINE}/"), file.path))
    return [file.module for file in ordered if file.module]


def _asked(base: BaseTree, made: Stage) -> list[str]:
    """The overlaid modules, and then what a boot of this build imports."""
    entries = (*ENTRIES, WORKERS.get(base.build, GPU_WORKER))
    there = [module_name(path) for path in entries if (made.path / path).is_file()]
    return list(dict.fromkeys([*_modules(made), *there]))


def _answer(base: BaseTree, made: Stage) -> dict[str, object]:
    """What a good result holds for: another library beside the engine may take away what an overlay imports."""
    beside = sorted(entry.name for entry in base.root.iterdir() if entry.name.endswith(INSTALLED))
    installed = sha256("\n".join(beside).encode()).hexdigest()
    return {"python": str(base.python), "stage": made.digest, "modules": _asked(base, made), "installed": installed}


def _kept(made: Stage) -> Path:
    return made.path.with_name(f"{made.digest}.imports.json")


def _keep(made: Stage, answer: Mapping[str, object]) -> None:
    handle, aside = tempfile.mkstemp(dir=made.path.parent, prefix=".imports-")
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        json.dump(answer, file)
    Path(aside).chmod(0o644)  # as readable as the stage beside it
    Path(aside).replace(_kept(made))
