"""Which overlaid modules this process has loaded, from which file, and whether the loaded code is that file's code."""

import inspect
import json
import os
import sys
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

VARIABLE = "VLLM_CAMPAIGN_OVERLAID_MODULES"

# Comparing the code costs a compilation (50 ms for a big file), so it is done once for each content of the file.
_compared: dict[tuple[str, str], str] = {}


def asked_modules() -> list[str]:
    """The names in the variable: a JSON array (of names, or of objects with "module"), or the path of such a file."""
    text = os.environ.get(VARIABLE, "[]")
    if not text.lstrip().startswith("["):
        text = Path(text).read_text(encoding="utf-8")
    return [item if isinstance(item, str) else item["module"] for item in json.loads(text)]


def attest() -> list[dict[str, Any]]:
    """One entry for each asked module that is loaded here."""
    return [_entry(name, sys.modules[name]) for name in asked_modules() if name in sys.modules]


def _entry(name: str, module: ModuleType) -> dict[str, Any]:
    file = str(module.__file__)
    origin = str(module.__spec__.origin) if module.__spec__ else file
    content = Path(file).read_bytes()
    digest = sha256(content).hexdigest()
    if (file, digest) not in _compared:
        _compared[file, digest] = compare(module, content, file)
    entry = {"module": name, "file": file, "sha256": digest, "code": _compared[file, digest]}
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
    for candidate in (value, getattr(value, "__func__", None), getattr(value, "fget", None)):
        if isinstance(candidate, FunctionType):
            yield inspect.unwrap(candidate).__code__
