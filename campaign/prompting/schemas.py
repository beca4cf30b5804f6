"""JSON schemas of prompt files, judged by the library `jsonschema`; nothing is fetched from anywhere."""

from collections.abc import Iterator
from functools import cache
from importlib import import_module
from typing import Any

REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")


@cache
def _library(name: str) -> Any:
    """Imported when a prompt file first holds a schema: the light door does not pay its 0.1 s."""
    return import_module(name)


def problem(schema: Any) -> str:
    """What is wrong with a schema, in the words of a prompt file's error; empty when it can be used."""
    if not isinstance(schema, dict) or not isinstance(schema.get("$schema", ""), str):
        return "wants a JSON schema, an object; $schema in it is a text"
    jsonschema, referencing = _library("jsonschema"), _library("referencing")
    try:
        jsonschema.validators.validator_for(schema, _default()).check_schema(schema)
        resolver = _registry(schema).resolver("")
        for reference in _references(schema):
            resolver.lookup(reference)
    except jsonschema.SchemaError as error:
        return f"wants a JSON schema ({error.message})"
    except referencing.exceptions.Unresolvable as error:
        return f"wants a JSON schema whose references lie in it ({error.ref!r} does not; nothing is fetched)"
    except RecursionError:
        return "wants a JSON schema of less depth"
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:  # at odd keywords
        return f"wants a JSON schema ({type(error).__name__}: {error})"
    return ""


def misfit(schema: dict[str, Any], value: Any) -> str:
    """Why a value does not fit the schema, with its place; empty when it does."""
    jsonschema = _library("jsonschema")
    validator = jsonschema.validators.validator_for(schema, _default())(schema, registry=_registry(schema))
    try:
        error = jsonschema.exceptions.best_match(validator.iter_errors(value))
    except RecursionError:
        return "nested too deeply"
    return "" if error is None else f"{error.json_path}: {error.message[:120]}"


def _default() -> Any:
    """The draft that holds where a schema names none."""
    return _library("jsonschema").Draft202012Validator


def _registry(schema: dict[str, Any]) -> Any:
    """Where references are looked up: in the schema alone."""
    referencing = _library("referencing")
    draft = _library("referencing.jsonschema").DRAFT202012
    resource = referencing.Resource.from_contents(schema, default_specification=draft)
    return referencing.Registry().with_resource("", resource).crawl()


def _references(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        yield from (node[key] for key in REFERENCES if isinstance(node.get(key), str))
        for item in node.values():
            yield from _references(item)
    elif isinstance(node, list):
        for item in node:
            yield from _references(item)


def patterns(node: Any) -> Iterator[str]:
    """The regular expressions of a schema."""
    if isinstance(node, dict):
        if isinstance(node.get("pattern"), str):
            yield node["pattern"]
        if isinstance(node.get("patternProperties"), dict):
            yield from node["patternProperties"]
    children = node.values() if isinstance(node, dict) else node if isinstance(node, list) else ()
    for child in children:
        yield from patterns(child)
