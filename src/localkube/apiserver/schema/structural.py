"""CRD versions: their schema in the server's terms, and what follows from it.

    compile_crd_version(crd, "v1")   ->  schema, validate, apply_defaults

The CRD has been accepted (schema/crd_rules.py).
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from kubeclient.objects import Obj
from localkube.apiserver.cel.expressions import BUDGET
from localkube.apiserver.schema.build import built
from localkube.apiserver.schema.crd_cel import (
    ABSENT,
    UNCHECKED,
    SchemaNode,
    broken_rules,
    rules_of,
)
from localkube.apiserver.schema.crd_defaults import Defaults
from localkube.apiserver.schema.crd_values import Values
from localkube.apiserver.schema.load import OBJECT_META, definition
from localkube.apiserver.schema.node import Schema
from localkube.apiserver.status import FieldError

_OPEN: Obj = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
_OBJECT_FIELDS: Obj = {
    "apiVersion": {"type": "string"},
    "kind": {"type": "string"},
    "metadata": {"$ref": OBJECT_META},
}
_KEPT = (
    "type",
    "required",
    "nullable",
    "additionalProperties",
    "x-kubernetes-preserve-unknown-fields",
    "x-kubernetes-int-or-string",
    "x-kubernetes-list-type",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-map-type",
)
_BLOCKING = frozenset(
    {
        "FieldValueNotSupported",
        "FieldValueRequired",
        "FieldValueTooLong",
        "FieldValueTooMany",
        "FieldValueTypeInvalid",
    }
)


@dataclass(frozen=True, slots=True)
class CrdVersion:
    schema: Schema
    _values: Values
    _defaults: Defaults
    _rules: SchemaNode | None

    def validate(
        self,
        obj: Obj,
        old: Obj | None = None,
        known: Sequence[FieldError] = (),
        budget: int = BUDGET,
    ) -> list[FieldError]:
        """`known`, which the rules that all kinds share found in metadata, and what the schema
        minds. CEL rules are judged where nothing is so wrong that they could not be. Raises
        Exhausted if the budget does not do."""
        errors = [*known, *self._values.errors(obj)]
        if self._rules is None:
            return errors
        if any(error.reason in _BLOCKING for error in errors):
            return [*errors, UNCHECKED]
        past = ABSENT if old is None else old
        return [*errors, *broken_rules(self._rules, obj, past, budget)]

    def apply_defaults(self, obj: Obj) -> None:
        self._defaults.fill(obj)

    def parts(self) -> list[object]:
        return [self._rules, self._defaults, *self._values.parts(), self.schema]


def let_go(gone: list[CrdVersion]) -> None:
    """Frees them, unless a request still holds them, part by part: each part is one call, which no
    other thread can interrupt."""
    parts = [part for version in gone for part in version.parts()]
    gone.clear()
    while parts:
        parts.pop()
        time.sleep(0)


def compile_crd_version(crd: Obj, version: str) -> CrdVersion:
    openapi, schema = _openapi_of(crd, version), crd_schema(crd, version)
    return CrdVersion(schema, Values(openapi, schema), Defaults(schema), rules_of(openapi))


def crd_schema(crd: Obj, version: str) -> Schema:
    """Its fields alone, without the rules for their values."""
    schema = built(_node(_openapi_of(crd, version), embedded=True), definition)
    schema.name = crd["spec"]["names"]["kind"]
    return schema


def _openapi_of(crd: Obj, version: str) -> Obj:
    document = next(v for v in crd["spec"]["versions"] if v["name"] == version)
    openapi: Obj = (document.get("schema") or {}).get("openAPIV3Schema") or _OPEN
    return openapi


def field_schema(node: Obj) -> Schema:
    """Of one field in a CRD."""
    return built(_inner(node), definition)


def _node(node: Obj, *, embedded: bool) -> Obj:
    """Only what makes a Schema. Formats are left out: they limit a text, they do not type it."""
    result: Obj = {key: node[key] for key in _KEPT if key in node}
    if node.get("default") is not None:
        result["default"] = node["default"]
    if "properties" in node:
        result["properties"] = _fields(node["properties"])
    if embedded:
        result["properties"] = result.get("properties", {}) | _OBJECT_FIELDS
    for key in ("items", "additionalProperties"):
        if isinstance(node.get(key), dict):
            result[key] = _inner(node[key])
    return result


def _fields(properties: dict[str, Any]) -> dict[str, Obj]:
    return {name: _inner(field) for name, field in properties.items()}


def _inner(node: Obj) -> Obj:
    return _node(node, embedded=node.get("x-kubernetes-embedded-resource") is True)
