"""Which overlaid files this process has, from where, and whether the code it runs is what they say."""

import inspect
import json
import os
import sys
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

from campaign_engine_report.replaced import Definition, defined, function_in, replaced

VARIABLE = "VLLM_CAMPAIGN_OVERLAID_MODULES"

# Comparing the code costs a compilation (50 ms for a big file), so it is done once for each content of the file.
_compared: dict[tuple[str, str], str] = {}
_defined: dict[tuple[str, str], list[Definition]] = {}


def asked() -> list[dict[str, str]]:
    """What the variable names: a JSON array, or the path of a file with one; a text is a module's name.

    {"module": NAME} is code, {"file": PATH} a data file below the engine's package root.
    """
    text = os.environ.get(VARIABLE, "[]")
    if not text.lstrip().startswith("["):
        text = Path(text).read_text(encoding="utf-8")
    return [{"module": item} if isinstance(item, str) else item for item in json.loads(text)]


def attest() -> list[dict[str, Any]]:
    """One entry for each asked module that is loaded here, and one for each asked data file."""
    found = asked()
    modules = [item["module"] for item in found if item.get("module") in sys.modules]
    files = [item["file"] for item in found if "file" in item]
    return [*(_entry(name, sys.modules[name]) for name in modules), *map(_data, files)]


def _data(path: str) -> dict[str, Any]:
    """A data file below the root of the package that this process imported; `origin` where a link leads away."""
    package = sys.modules.get(path.split("/", 1)[0])
    root = Path(str(getattr(package, "__file__", None) or "/nowhere/nobody")).parent.parent
    file = root / path
    if not file.is_file():
        return {"file_path": path, "file": str(file), "sha256": ""}
    entry = {"file_path": path, "file": str(file), "sha256": sha256(file.read_bytes()).hexdigest()}
    return entry if file.resolve() == root.resolve() / path else {**entry, "origin": str(file.resolve())}


def _entry(name: str, module: ModuleType) -> dict[str, Any]:
    file = str(module.__file__)
    origin = str(module.__spec__.origin) if module.__spec__ else file
    content = Path(file).read_bytes()
    digest = sha256(content).hexdigest()
    if (file, digest) not in _compared:
        _compared[file, digest] = compare(module, content, file)
        _defined[file, digest] = defined(content)
    entry = {"module": name, "file": file, "sha256": digest, "code": _compared[file, digest]}
    if foreign := replaced(module, _defined[file, digest], file):
        entry["replaced"] = foreign
    return entry if origin == file else {**entry, "origin": origin}


def compare(module: ModuleType, content: bytes, file: str) -> str:
    """'same', or the first function whose loaded code is not what the file compiles to now."""
    here = {_place(code): _meaning(code) for code in _nested(compile(content, file, "exec", dont_inherit=True))}
    for code in _loaded(module):
        if code.co_filename != file:
            continue
        if here.get(_place(code)) != _meaning(code):
            return f"differs: {code.co_qualname} (line {code.co_firstlineno}) was loaded from other code"
    return "same"


def _nested(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _nested(constant)


def _place(code: CodeType) -> tuple[str, int]:
    return code.co_qualname, code.co_firstlineno


def _meaning(code: CodeType) -> tuple[object, ...]:
    return code.co_code, code.co_names, tuple(None if isinstance(c, CodeType) else c for c in code.co_consts)


def _loaded(module: ModuleType) -> Iterator[CodeType]:
    for value in list(vars(module).values()):
        if inspect.isclass(value) and value.__module__ == module.__name__:
            for member in list(vars(value).values()):
                yield from _codes(member)
        else:
            yield from _codes(value)


def _codes(value: object) -> Iterator[CodeType]:
    function = function_in(value)
    if function is not None and isinstance(inner := inspect.unwrap(function), FunctionType):
        yield inner.__code__
