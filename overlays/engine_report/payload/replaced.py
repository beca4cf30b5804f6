"""Functions that a module's file defines and for which other code stands now: what a monkeypatch leaves behind.

A decorator in the file itself is no monkeypatch. Where a function or its class has one, code from elsewhere is told
only if neither the decorator's own file nor a wrapper around the file's function explains it; so a second wrapper
around a decorated function is not seen.
"""

import ast
import inspect
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from types import FunctionType, MethodType, ModuleType
from typing import Any

DEEPEST = 4  # wrappers of wrappers that are followed to a function's own code
Scope = ast.Module | ast.ClassDef


@dataclass(frozen=True)
class Definition:
    """A class, function or method that the file defines once, by its names, with the decorators over it."""

    path: tuple[str, ...]
    decorators: tuple[str, ...]
    is_class: bool = False


def defined(content: bytes) -> list[Definition]:
    """What the file says must stand in the module; names that it binds again later are left out."""
    tree = ast.parse(content)
    again = {ast.unparse(t) for n in ast.walk(tree) if isinstance(n, ast.Assign) for t in n.targets if _dotted(t)}
    return [d for d in _definitions(tree, (), ()) if ".".join(d.path) not in again]


def _dotted(target: ast.expr) -> bool:
    return isinstance(target, ast.Attribute)


def _definitions(scope: Scope, above: tuple[str, ...], decorators: tuple[str, ...]) -> Iterator[Definition]:
    bound = Counter(_bound(scope.body))
    for node in scope.body:
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) or bound[node.name] > 1:
            continue
        path = (*above, node.name)
        under = (*decorators, *map(_name, node.decorator_list))
        yield Definition(path, under, isinstance(node, ast.ClassDef))
        if isinstance(node, ast.ClassDef) and not above:
            yield from _definitions(node, path, under)


def _name(decorator: ast.expr) -> str:
    return ast.unparse(decorator.func if isinstance(decorator, ast.Call) else decorator)


def _bound(body: list[ast.stmt]) -> Iterator[str]:
    """Every name that these statements bind, also under `if`, `try` and `with`, but not inside functions."""
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
            continue
        yield from _bound([n for n in ast.iter_child_nodes(node) if isinstance(n, ast.stmt)])
        for handler in getattr(node, "handlers", ()):
            yield from _bound(handler.body)
        targets = [n for n in ast.iter_child_nodes(node) if not isinstance(n, ast.stmt)]
        for found in (n for target in targets for n in ast.walk(target)):
            if isinstance(found, ast.Name) and isinstance(found.ctx, ast.Store | ast.Del):
                yield found.id
            elif isinstance(found, ast.alias):
                yield found.asname or found.name.split(".", 1)[0]


def replaced(module: ModuleType, definitions: list[Definition], file: str) -> list[dict[str, str]]:
    """Each definition that is not the file's own any more, with the file of the code that stands there."""
    found = []
    for definition in definitions:
        by = _replacement(module, definition, file)
        if by:
            found.append({"function": ".".join(definition.path), "file": by})
    return found


def _replacement(module: ModuleType, definition: Definition, file: str) -> str:
    """Where the code comes from that took a definition's place; empty where it is the file's own, or gone."""
    stands = _standing(module, definition.path)
    if stands is None:
        return ""
    if definition.is_class:
        own = definition.decorators or getattr(stands, "__module__", None) == module.__name__
        return "" if own else _home(stands)
    function = function_in(stands)
    if function is None:
        return "" if definition.decorators else f"an object of type {type(stands).__name__} ({_home(type(stands))})"
    by = function.__code__.co_filename
    if by == file:
        return ""
    if definition.decorators and by in _files(module, definition.decorators):
        return ""
    may_be_wrapped = definition.decorators or _made_by_a_base(module, definition.path)
    return "" if may_be_wrapped and _holds(function, file) else by


def _made_by_a_base(module: ModuleType, path: tuple[str, ...]) -> bool:
    """Whether a base of the class changes its subclasses as they are made, as torch's dispatch modes do."""
    kind = vars(module)[path[0]]
    return inspect.isclass(kind) and any("__init_subclass__" in vars(base) for base in kind.__mro__[1:-1])


def _standing(module: ModuleType, path: tuple[str, ...]) -> Any:
    """The object at a name now, as it is stored there; a class that took a class's place is told by itself."""
    holder = vars(module).get(path[0])
    if len(path) == 1 or not inspect.isclass(holder) or holder.__module__ != module.__name__:
        return holder if len(path) == 1 else None
    return vars(holder).get(path[1])


def function_in(stands: Any) -> FunctionType | None:
    """The function in it, not unwrapped: of a class method, a static method, a property.

    Nothing is asked of an object of another type: the engine's placeholders raise whatever they like when asked.
    """
    inner = stands
    if isinstance(stands, classmethod | staticmethod | MethodType):
        inner = stands.__func__
    elif isinstance(stands, property):
        inner = stands.fget
    return inner if isinstance(inner, FunctionType) else None


def _home(kind: Any) -> str:
    module = sys.modules.get(str(getattr(kind, "__module__", "")))
    return str(getattr(module, "__file__", None) or getattr(kind, "__module__", "unknown"))


def _files(module: ModuleType, decorators: tuple[str, ...]) -> set[str]:
    """Where the decorators themselves are defined, as far as their names tell."""
    files = set()
    for decorator in decorators:
        found = _named(module, decorator)
        function = inspect.unwrap(found) if isinstance(found, FunctionType) else None
        files |= {function.__code__.co_filename if function else "", _home(found) if found is not None else ""}
    return files


def _named(module: ModuleType, dotted: str) -> Any:
    found: Any = module
    for name in dotted.split("."):
        try:
            found = getattr(found, name)
        except Exception:  # noqa: BLE001 - a lazy module or a placeholder may raise anything: then nothing is known
            return None
    return found


def _holds(function: FunctionType, file: str, depth: int = DEEPEST) -> bool:
    """Whether a wrapper's chain leads to code of the file: by __wrapped__, or by what its closure holds."""
    if function.__code__.co_filename == file:
        return True
    inner = [getattr(function, "__wrapped__", None), *_closure(function)]
    return depth > 0 and any(isinstance(f, FunctionType) and _holds(f, file, depth - 1) for f in inner)


def _closure(function: FunctionType) -> Iterator[Any]:
    for cell in function.__closure__ or ():
        try:
            yield cell.cell_contents
        except ValueError:  # not bound yet
            continue
