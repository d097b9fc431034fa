"""Explains violations of a JSON Schema to the person who wrote the document.

All problems are reported at once, each with its position: what was wanted, what was found, and for
a misspelt name the one that was probably meant.
"""

from collections.abc import Callable, Iterable, Iterator
from difflib import get_close_matches
from typing import Any, TypeAlias

import jsonschema_rs

from gpupool.contract.yaml_document import Document, Problem

_TYPES = {
    "object": "a map",
    "array": "a list",
    "string": "text",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
}


def schema_problems(document: Document, schema: dict[str, Any]) -> Iterator[Problem]:
    validator = jsonschema_rs.validator_for(schema)
    for error in validator.iter_errors(document.data):
        explain = _EXPLAIN.get(error.kind.name, _as_it_says)
        yield from explain(document, error, _at(schema, error.schema_path[:-1]))


def did_you_mean(name: str, known: Iterable[str]) -> str:
    close = get_close_matches(name, list(known), n=1, cutoff=0.6)
    return f'; did you mean "{close[0]}"?' if close else ""


def found(value: Any) -> str:
    """A value as it is named in "wanted ..., found ..."."""
    match value:
        case None:
            return "nothing"
        case bool():
            return "true" if value else "false"
        case str():
            return f'"{value}"' if len(value) <= 60 else f'"{value[:57]}..."'
        case list():
            return "a list"
        case dict():
            return "a map"
        case _:
            return str(value)


def _at(schema: dict[str, Any], path: Iterable[str | int]) -> dict[str, Any]:
    here: Any = schema
    for step in path:
        here = here[step]
    return here if isinstance(here, dict) else {}


_Error: TypeAlias = jsonschema_rs.ValidationError
_Explain: TypeAlias = Callable[[Document, _Error, dict[str, Any]], Iterator[Problem]]


def _type(document: Document, error: _Error, schema: dict[str, Any]) -> Iterator[Problem]:
    wanted = " or ".join(_TYPES.get(name, name) for name in error.kind.value)
    text = f"wanted {wanted}, found {found(error.instance)}"
    if error.instance is None:
        text += "; leave the field out, or give it a value"
    elif error.kind.value == ["string"] and isinstance(error.instance, bool | int | float):
        text += f'; put it in quotes: "{found(error.instance)}"'
    yield document.problem(text, *error.instance_path)


def _unknown_fields(document: Document, error: _Error, schema: dict[str, Any]) -> Iterator[Problem]:
    known = list(schema.get("properties", {}))
    for name in error.kind.value:
        hint = did_you_mean(name, known) or f"; known fields: {', '.join(known)}"
        yield document.key_problem(f"unknown field{hint}", *error.instance_path, name)


def _required(document: Document, error: _Error, schema: dict[str, Any]) -> Iterator[Problem]:
    name = error.kind.value
    options = schema["properties"][name].get("enum", ())
    hint = f": {name}: {options[0]}" if len(options) == 1 else ""
    yield document.problem(f'the field "{name}" is missing{hint}', *error.instance_path)


def _enum(document: Document, error: _Error, schema: dict[str, Any]) -> Iterator[Problem]:
    options = [str(option) for option in error.kind.value]
    wanted = " or ".join(f'"{option}"' for option in options)
    hint = did_you_mean(error.instance, options) if isinstance(error.instance, str) else ""
    yield document.problem(
        f"wanted {wanted}, found {found(error.instance)}{hint}", *error.instance_path
    )


def _key(document: Document, error: _Error, schema: dict[str, Any]) -> Iterator[Problem]:
    key = error.kind.value.instance
    yield document.key_problem(f"wanted {schema['x-wanted']}", *error.instance_path, key)


def _pattern(document: Document, error: _Error, schema: dict[str, Any]) -> Iterator[Problem]:
    yield _wanted(document, error, schema["x-wanted"])


def _limit(words: str) -> _Explain:
    def explain(document: Document, error: _Error, schema: dict[str, Any]) -> Iterator[Problem]:
        yield _wanted(document, error, words.format(error.kind.value))

    return explain


def _as_it_says(document: Document, error: _Error, schema: dict[str, Any]) -> Iterator[Problem]:
    yield document.problem(error.message, *error.instance_path)


def _wanted(document: Document, error: _Error, words: str) -> Problem:
    return document.problem(f"wanted {words}, found {found(error.instance)}", *error.instance_path)


_EXPLAIN: dict[str, _Explain] = {
    "type": _type,
    "additionalProperties": _unknown_fields,
    "required": _required,
    "enum": _enum,
    "pattern": _pattern,
    "propertyNames": _key,
    "minimum": _limit("at least {}"),
    "exclusiveMinimum": _limit("more than {}"),
    "maximum": _limit("at most {}"),
    "minLength": _limit("at least {} characters"),
    "maxLength": _limit("at most {} characters"),
}
