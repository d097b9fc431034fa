"""From OpenAPI nodes, as in Kubernetes' definitions and in CRDs, to Schema.

The caller makes the Schema of a definition first and fills it afterwards, so that definitions may
refer to one another in circles.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from kubeclient.objects import Obj
from localkube.apiserver.schema.node import Schema, Type

Resolve = Callable[[str], Schema]

_SCALARS = {
    "string": Type.STRING,
    "integer": Type.INTEGER,
    "number": Type.NUMBER,
    "boolean": Type.BOOLEAN,
}
_STRING_FORMATS = {
    "byte": Type.BYTES,
    "date-time": Type.TIME,
    "int-or-string": Type.INT_OR_STRING,
}


def built(node: Obj, resolve: Resolve) -> Schema:
    """The Schema of one field or element."""
    if "$ref" in node:
        return _with_own_hints(resolve(node["$ref"]), node)
    schema = Schema()
    fill(schema, node, resolve)
    return schema


def fill(schema: Schema, node: Obj, resolve: Resolve) -> None:
    schema.type = _type(node)
    schema.integer_format = node.get("format", "") if schema.type is Type.INTEGER else ""
    schema.atomic_map = node.get("x-kubernetes-map-type") == "atomic"
    schema.preserve_unknown = node.get("x-kubernetes-preserve-unknown-fields") is True
    schema.nullable = node.get("nullable") is True
    schema.required = tuple(node.get("required", ()))
    if "default" in node:
        schema.default, schema.has_default = node["default"], True
    if "properties" in node:
        for name, field in node["properties"].items():
            schema.fields[name] = built(field, resolve)
    elif isinstance(node.get("additionalProperties"), dict):
        schema.items = built(node["additionalProperties"], resolve)
    if schema.type is Type.MAP and schema.items is None:
        schema.items = Schema(preserve_unknown=True)
    if schema.type is Type.LIST:
        _fill_list(schema, node, resolve)
    _hint(schema, node)


def _fill_list(schema: Schema, node: Obj, resolve: Resolve) -> None:
    schema.items = built(node.get("items", {}), resolve)
    schema.list_type = node.get("x-kubernetes-list-type", "atomic")
    schema.list_keys = tuple(node.get("x-kubernetes-list-map-keys", ()))
    keys = {key: schema.items.fields.get(key) for key in schema.list_keys}
    schema.key_defaults = {
        key: field.default if field.has_default else _ZERO[field.type]
        for key, field in keys.items()
        if field is not None and (field.has_default or _is_zero_key(schema.items, field))
    }


# What a key of Kubernetes' own types counts as when it is left out.
_ZERO = {Type.STRING: "", Type.INTEGER: 0}


def _is_zero_key(item: Schema, field: Schema) -> bool:
    return bool(item.definition) and field.type in _ZERO


def _type(node: Obj) -> Type:
    if node.get("x-kubernetes-int-or-string") is True:
        return Type.INT_OR_STRING
    kind = node.get("type")
    if kind == "object":
        return Type.MAP if _is_map(node) else Type.OBJECT
    if kind == "array":
        return Type.LIST
    scalar = _SCALARS.get(kind or "", Type.ANY)
    if scalar is Type.STRING:
        return _STRING_FORMATS.get(node.get("format", ""), Type.STRING)
    return scalar


def _is_map(node: Obj) -> bool:
    extra: Any = node.get("additionalProperties", False)
    return "properties" not in node and extra is not False


def _hint(schema: Schema, node: Obj) -> None:
    """Strategic merge."""
    strategy = node.get("x-kubernetes-patch-strategy")
    schema.patch_strategy = tuple(strategy.split(",")) if strategy else ()
    schema.patch_merge_key = node.get("x-kubernetes-patch-merge-key", "")


def _with_own_hints(schema: Schema, node: Obj) -> Schema:
    """A reference may say how this one field of the definition's type is merged."""
    if node.keys() <= {"$ref", "description"}:
        return schema
    own = replace(schema)
    if "x-kubernetes-map-type" in node:
        own.atomic_map = node["x-kubernetes-map-type"] == "atomic"
    _hint(own, node)
    return own
