"""The schemas in OpenAPI documents: data/definitions.json with its descriptions, and CRDs' own."""

from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any

from kubeclient.objects import Obj
from localkube.apiserver import data
from localkube.apiserver.kinds import Kind
from localkube.apiserver.schema.load import OBJECT_META, definition_names, definitions

V3_PREFIX = "#/components/schemas/"
V2_PREFIX = "#/definitions/"
_META = "io.k8s.apimachinery.pkg.apis.meta.v1"
DELETE_OPTIONS = f"{_META}.DeleteOptions"
STATUS = f"{_META}.Status"
PATCH = f"{_META}.Patch"
_LIST_META = f"{_META}.ListMeta"
_GVK = "x-kubernetes-group-version-kind"
# Version 3 says which JSON types these take; version 2 cannot.
_CHOICES: dict[str, Obj] = {
    "io.k8s.apimachinery.pkg.api.resource.Quantity": {
        "oneOf": [{"type": "string"}, {"type": "number"}]
    },
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": {
        "format": "int-or-string",
        "oneOf": [{"type": "integer"}, {"type": "string"}],
    },
}


def definition_name(kind: Kind) -> str:
    """CRDs' as a real server names them: io.example.v1.Foo"""
    known = definition_names().get((kind.group, kind.version, kind.kind))
    if known and not kind.custom:
        return known
    return ".".join([*reversed(kind.group.split(".")), kind.version, kind.kind])


def closure(names: Iterable[str]) -> list[str]:
    """The definitions and all that they refer to, sorted."""
    found: set[str] = set()
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += _references(definitions()[name])
    return sorted(found)


def _references(node: Any) -> Iterator[str]:
    if "$ref" in node:
        yield node["$ref"]
    for part in (node.get("items"), node.get("additionalProperties")):
        if part:
            yield from _references(part)
    for field in node.get("properties", {}).values():
        yield from _references(field)


def built_in(name: str, prefix: str) -> Obj:
    """One definition with its descriptions. `prefix`: of references; tells the version too."""
    texts = _descriptions().get(name, {})
    node = _node(definitions()[name], prefix)
    if prefix == V3_PREFIX and name in _CHOICES:
        node = dict(_CHOICES[name])
    if "" in texts:
        node = {"description": texts[""], **node}
    for field, inner in node.get("properties", {}).items():
        if field in texts:
            node["properties"][field] = {"description": texts[field], **inner}
    for field, values in _enums().get(name, {}).items():
        inner = node["properties"][field]
        inner.get("items", inner)["enum"] = values
    return node


def _node(node: Obj, prefix: str) -> Obj:
    result: Obj = {}
    for key, value in node.items():
        match key:
            case "properties":
                result[key] = {name: _node(field, prefix) for name, field in value.items()}
            case "items" | "additionalProperties":
                result[key] = _node(value, prefix)
            case "$ref" if prefix == V3_PREFIX:
                # A description stands beside it, which version 3 allows only so.
                result["allOf"] = [{"$ref": prefix + value}]
            case "$ref":
                result[key] = prefix + value
            case _:
                result[key] = value
    return result


def custom(kind: Kind, schema: Obj | None, prefix: str) -> Iterator[tuple[str, Obj]]:
    """A CRD's kind and its list."""
    name = definition_name(kind)
    open_schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    fields = _type_meta() | {"metadata": _reference(OBJECT_META, prefix)}
    node = _published(schema or open_schema, fields)
    gvk = {"group": kind.group, "version": kind.version}
    yield (
        name,
        {
            **node,
            "properties": {**node.get("properties", {}), **fields},
            _GVK: [{**gvk, "kind": kind.kind}],
        },
    )
    items = {"type": "array", "items": {"$ref": prefix + name}}
    yield (
        f"{name}List",
        {
            "description": f"{kind.kind}List is a list of {kind.kind}",
            "type": "object",
            "required": ["items"],
            "properties": {
                **_type_meta(),
                "items": items,
                "metadata": _reference(_LIST_META, prefix),
            },
            _GVK: [{**gvk, "kind": f"{kind.kind}List"}],
        },
    )


def _published(node: Obj, of_objects: Obj) -> Obj:
    """A CRD's schema as clients see it: with the types that int-or-string stands for, and the
    fields that objects inside of objects have."""
    result = dict(node)
    if node.get("x-kubernetes-int-or-string") is True and "anyOf" not in node:
        result["anyOf"] = [{"type": "integer"}, {"type": "string"}]
    if "properties" in node:
        fields = node["properties"].items()
        result["properties"] = {key: _published(field, of_objects) for key, field in fields}
    for key in ("items", "additionalProperties"):
        if isinstance(node.get(key), dict):
            result[key] = _published(node[key], of_objects)
    if node.get("x-kubernetes-embedded-resource") is True:
        result["properties"] = result.get("properties", {}) | of_objects
        required = node.get("required") or []
        more = [name for name in ("kind", "apiVersion") if name not in required]
        result["required"] = [*required, *more]
    return result


def _reference(name: str, prefix: str) -> Obj:
    of_objects = _descriptions()["io.k8s.api.core.v1.PersistentVolume"]["metadata"]
    text = of_objects if name == OBJECT_META else "Standard list metadata."
    if prefix == V3_PREFIX:
        return {"description": text, "allOf": [{"$ref": prefix + name}]}
    return {"description": text, "$ref": prefix + name}


def _type_meta() -> Obj:
    texts = _descriptions()[DELETE_OPTIONS]
    return {
        field: {"description": texts[field], "type": "string"} for field in ("apiVersion", "kind")
    }


@cache
def _enums() -> dict[str, dict[str, list[str]]]:
    """Told to clients; what is refused, and in which words, is validation's."""
    values: dict[str, dict[str, list[str]]] = data.read("enums.json")
    return values


@cache
def _descriptions() -> dict[str, dict[str, str]]:
    texts: dict[str, dict[str, str]] = data.read("descriptions.json.gz")
    return texts
