"""What is wrong with the schemas in a CRD: they must be structural, and defaults must fit.

Texts and paths are kube-apiserver's. (Paths say spec.validation when all versions have one schema:
that is how it looks at them.)
"""

import copy
from collections.abc import Iterator
from typing import Any

from kubeclient.objects import Obj
from localkube.apiserver import status
from localkube.apiserver.schema.check import check
from localkube.apiserver.schema.crd_cel import complaint
from localkube.apiserver.schema.crd_costs import cost_errors
from localkube.apiserver.schema.crd_node_rules import (
    children,
    inner_schemas,
    structural_errors,
)
from localkube.apiserver.schema.crd_values import Values, searchable
from localkube.apiserver.schema.formats import (
    FORMATS,
    NUMBER_FORMATS,
    UNCHECKED_FORMATS,
)
from localkube.apiserver.schema.load import definition
from localkube.apiserver.schema.structural import field_schema
from localkube.apiserver.status import FieldError

_SCHEMA = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps"


def crd_schema_errors(crd: Obj, before: Obj | None = None) -> list[FieldError]:
    """Of all versions' schemas."""
    found, stored = _schemas(crd), _schemas(before or {})
    if found and found[0] and all(schema == found[0] for schema in found):
        return _schema_errors(found[0], "spec.validation.openAPIV3Schema", stored)
    errors = []
    for index, schema in enumerate(found):
        place = f"spec.versions[{index}].schema.openAPIV3Schema"
        errors += _schema_errors(schema, place, stored) if schema else [status.required(place)]
    return errors


def _schemas(crd: Obj) -> list[Obj | None]:
    versions = (crd.get("spec") or {}).get("versions") or []
    return [(version.get("schema") or {}).get("openAPIV3Schema") for version in versions]


def _schema_errors(schema: Obj, place: str, stored: list[Obj | None]) -> list[FieldError]:
    """In steps: a later check relies on what earlier checks have established."""
    for step in (_untyped_errors, _root_errors, _all_default_errors, _compile_errors):
        if errors := list(step(schema, place)):
            return errors
    # What was stored before there was a limit stays, until its schema changes.
    return [] if schema in stored else list(cost_errors(schema, place))


def _untyped_errors(node: Obj, place: str) -> Iterator[FieldError]:
    """The definition of a CRD leaves open what items and additionalProperties hold."""
    for key, others in (("items", list), ("additionalProperties", bool)):
        inner = node.get(key)
        if isinstance(inner, dict):
            why = check(inner, definition(_SCHEMA)).error
        else:
            why = "" if inner is None or isinstance(inner, others) else "must be a schema"
        if why:
            yield status.invalid_value(f"{place}.{key}", inner, why)
            return
    for inner, where in inner_schemas(node, place):
        yield from _untyped_errors(inner, where)


def _all_default_errors(node: Obj, place: str) -> Iterator[FieldError]:
    yield from _default_errors(node, place)
    for inner, where, _ in children(node, place):
        yield from _all_default_errors(inner, where)


def _compile_errors(schema: Obj, place: str) -> Iterator[FieldError]:
    """Limits that contradict themselves, such as a negative length."""
    try:
        Values(schema, field_schema(schema))
    except ValueError as error:
        yield status.invalid_value(place, "", str(error).partition("\n")[0])


def crd_warnings(crd: Obj) -> list[str]:
    """What the schemas ask for and this server does not do."""
    found: dict[str, None] = {}
    for version in (crd.get("spec") or {}).get("versions") or []:
        schema = (version.get("schema") or {}).get("openAPIV3Schema") or {}
        for node in _nodes(schema):
            found |= dict.fromkeys(_node_warnings(node))
    return list(found)


def _node_warnings(node: Obj) -> Iterator[str]:
    for rule in node.get("x-kubernetes-validations") or ():
        why = complaint(str(rule.get("rule", "")))
        if why:
            yield f"a rule of x-kubernetes-validations is stored but not judged here: it {why}"
    pattern = node.get("pattern")
    if pattern and not searchable(pattern):
        yield f'pattern "{pattern}" is stored but not evaluated by this server'
    form = node.get("format")
    if form in UNCHECKED_FORMATS:
        yield f'format "{form}" is stored but not evaluated by this server'
    elif form and form not in FORMATS and form not in NUMBER_FORMATS:
        yield f'unrecognized format "{form}"'


def _nodes(node: Obj) -> Iterator[Obj]:
    yield node
    for inner, _ in inner_schemas(node, ""):
        yield from _nodes(inner)


def _root_errors(schema: Obj, place: str) -> Iterator[FieldError]:
    if not schema.get("type"):
        yield status.required(f"{place}.type", "must not be empty at the root")
    elif schema["type"] != "object":
        yield status.invalid_value(f"{place}.type", schema["type"], "must be object at the root")
    yield from _object_meta_errors(schema, place)
    yield from structural_errors(schema, place)


def _object_meta_errors(schema: Obj, place: str) -> Iterator[FieldError]:
    """apiVersion, kind and metadata are the server's."""
    properties = schema.get("properties") or {}
    for name in ("apiVersion", "kind"):
        found = properties.get(name, {}).get("type", "string")
        if found != "string":
            where = f"{place}.properties[{name}].type"
            yield status.invalid_value(where, found, "must be string")
    metadata = properties.get("metadata") or {}
    if metadata.get("type", "object") != "object":
        where = f"{place}.properties[metadata].type"
        yield status.invalid_value(where, metadata["type"], "must be object")
    if set(metadata.get("properties") or ()) - {"name", "generateName"}:
        yield status.forbidden_field(
            f"{place}.properties[metadata]",
            "must not specify anything other than name and generateName, "
            "but metadata is implicitly specified",
        )


def _default_errors(node: Obj, place: str) -> Iterator[FieldError]:
    default: Any = node.get("default")
    if default is None or not node.get("type"):
        return
    place = f"{place}.default"
    try:
        values = Values(node, field_schema(node))
    except ValueError:
        return  # told of the whole schema
    for error in values.errors(default):
        # Kubernetes' text names no field here.
        text = error.message.replace(f"{error.field} in body", " in body")
        yield FieldError(place, error.reason, text)
    holder = field_schema({"type": "object", "properties": {"default": node}})
    if check({"default": copy.deepcopy(default)}, holder).unknown:
        yield status.invalid_value(place, default, "must not have unknown fields")
