"""What in a manifest does not fit the API server's own schema: unknown fields, values of another
type, and values that are none of those allowed. What is missing is not said: somebody still types.
"""

import difflib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

from gpupool.console.complaints import Complaint, line_of
from gpupool.console.schemas import resolved
from gpupool.console.words import Translate, word
from gpupool.contract.yaml_document import Document, Path, dotted
from kubeclient.objects import Obj

MOST = 50
_LONGEST_SHOWN = 60
_TYPES: Mapping[str, str] = {
    "string": word("a text"),
    "integer": word("a whole number"),
    "number": word("a number"),
    "boolean": word("true or false"),
    "array": word("a list"),
    "object": word("fields"),
}


@dataclass(frozen=True, slots=True)
class Misfit:
    path: Path
    unknown: tuple[str, ...] | None = None  # it is no field: those that are there
    types: tuple[str, ...] = ()  # of which one was wanted
    values: tuple[str, ...] = ()  # of which one was wanted
    found: Any = None


def wrong_fields(t: Translate, schemas: Obj, schema: Obj, document: Document) -> list[Complaint]:
    found = islice(misfits(schemas, schema, document.data), MOST)
    return [Complaint(_words(t, each), _line(document, each)) for each in found]


def misfits(schemas: Obj, schema: Obj, value: Any, path: Path = ()) -> Iterator[Misfit]:
    """In the order of the text. A value that is not there yet fits everywhere."""
    schema = resolved(schemas, schema)
    types = _types(schema)
    if value is None:
        return
    if types and not types & _types_of(value):
        yield Misfit(path, types=tuple(sorted(types)), found=value)
    elif isinstance(value, dict):
        yield from _in_fields(schemas, schema, value, path)
    elif isinstance(value, list):
        for number, each in enumerate(value):
            yield from misfits(schemas, schema.get("items") or {}, each, (*path, number))
    elif isinstance(value, str) and value and value not in (schema.get("enum") or (value,)):
        yield Misfit(path, values=tuple(map(str, schema["enum"])), found=value)


def _in_fields(schemas: Obj, schema: Obj, value: Obj, path: Path) -> Iterator[Misfit]:
    known, others = schema.get("properties") or {}, schema.get("additionalProperties")
    is_open = not known or bool(others) or bool(schema.get("x-kubernetes-preserve-unknown-fields"))
    for name, each in value.items():
        if name in known:
            yield from misfits(schemas, known[name], each, (*path, name))
        elif not is_open:
            yield Misfit((*path, name), unknown=tuple(known))
        elif isinstance(others, dict):
            yield from misfits(schemas, others, each, (*path, name))


def _types(schema: Obj) -> frozenset[str]:
    """None: any. Also where one of several is not understood: servers of others describe kinds in
    later versions of OpenAPI."""
    choices = schema.get("oneOf") or schema.get("anyOf")
    if isinstance(choices, list):  # a quantity, a number or the name of a port
        named = [each.get("type") if isinstance(each, dict) else None for each in choices]
        return frozenset(map(str, named)) if all(map(_is_known, named)) else frozenset()
    if schema.get("x-kubernetes-int-or-string"):
        return frozenset({"integer", "string"})
    return frozenset({schema["type"]} if _is_known(schema.get("type")) else ())


def _is_known(named: Any) -> bool:
    return isinstance(named, str) and named in _TYPES


def _types_of(value: Any) -> frozenset[str]:
    if isinstance(value, bool):
        return frozenset({"boolean"})
    if isinstance(value, int) or (isinstance(value, float) and value.is_integer()):
        return frozenset({"integer", "number"})
    kinds = ((str, "string"), (float, "number"), (list, "array"), (dict, "object"))
    return frozenset(name for kind, name in kinds if isinstance(value, kind))


def _words(t: Translate, misfit: Misfit) -> str:
    field = dotted(misfit.path)
    if misfit.unknown is not None:
        near = difflib.get_close_matches(str(misfit.path[-1]), misfit.unknown, 1)
        if near:
            return t('unknown field "{field}"; is it "{other}"?', field=field, other=near[0])
        return t('unknown field "{field}"', field=field)
    wanted = t(" or ").join(t(_TYPES[each]) for each in misfit.types)
    wanted = wanted or t("one of {values}", values=", ".join(misfit.values))
    return t(
        "{field}: wanted {wanted}, found {found}",
        field=field,
        wanted=wanted,
        found=_shown(t, misfit.found),
    )


def _shown(t: Translate, value: Any) -> str:
    if isinstance(value, dict | list):
        return t(_TYPES["object" if isinstance(value, dict) else "array"])
    shown = str(value).lower() if isinstance(value, bool) else str(value)
    return f'"{shown[:_LONGEST_SHOWN]}"' if isinstance(value, str) else shown[:_LONGEST_SHOWN]


def _line(document: Document, misfit: Misfit) -> int:
    at = document.key_problem if misfit.unknown is not None else document.problem
    return line_of(at("", *misfit.path).mark)
