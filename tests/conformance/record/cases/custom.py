"""Custom resource definitions and their objects."""

from __future__ import annotations

from tests.conformance.record.case import (
    JSON_PATCH,
    STRATEGIC,
    TABLE,
    Case,
    Json,
    Request,
    apply,
    delete,
    get,
    patch,
    post,
    put,
    watch,
)
from tests.conformance.record.objects import CRDS, crd

_GROUP = "{ns}.example.com"
_API = f"{_GROUP}/v1"
_PLURAL = "gpupools"
_BASE = f"/apis/{_API}/namespaces/{{ns}}/{_PLURAL}"
_AT = f"{_BASE}/g"
_SPEC = {
    "type": "object",
    "required": ["model"],
    "properties": {
        "model": {"type": "string", "minLength": 2, "maxLength": 5, "pattern": "^[A-Z]"},
        "count": {"type": "integer", "format": "int32", "minimum": 0, "maximum": 8, "default": 1},
        "mode": {"type": "string", "enum": ["Shared", "Whole"], "default": "Shared"},
        "ratio": {"type": "number"},
        "replicas": {"type": "integer"},
        "selector": {"type": "string"},
        "size": {"x-kubernetes-int-or-string": True},
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        "maybe": {"type": "string", "nullable": True},
        "tags": {
            "type": "array",
            "items": {"type": "string"},
            "maxItems": 2,
            "x-kubernetes-list-type": "set",
        },
        "cards": {
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["id"],
            "items": {
                "type": "object",
                "required": ["id"],
                "properties": {
                    "id": {"type": "string"},
                    "memory": {"type": "string", "default": "16Gi"},
                },
            },
        },
        "labels": {"type": "object", "additionalProperties": {"type": "string"}},
        "since": {"type": "string", "format": "date-time"},
        "limit": {
            "type": "integer",
            "x-kubernetes-validations": [
                {"rule": "self > 1", "message": "must be more than one"},
                {"rule": "self == oldSelf", "message": "is fixed"},
            ],
        },
    },
}
_STATUS = {
    "type": "object",
    "properties": {"replicas": {"type": "integer"}, "phase": {"type": "string"}},
}
_COLUMNS = [
    {"name": "Model", "type": "string", "jsonPath": ".spec.model"},
    {"name": "Count", "type": "integer", "jsonPath": ".spec.count", "description": "Cards"},
    {"name": "Phase", "type": "string", "jsonPath": ".status.phase", "priority": 1},
    {"name": "Ids", "type": "string", "jsonPath": ".spec.cards[*].id"},
    {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
]
_CRD = crd(
    _PLURAL,
    "GpuPool",
    {"spec": _SPEC, "status": _STATUS},
    group=_GROUP,
    subresources={
        "status": {},
        "scale": {
            "specReplicasPath": ".spec.replicas",
            "statusReplicasPath": ".status.replicas",
            "labelSelectorPath": ".spec.selector",
        },
    },
    additionalPrinterColumns=_COLUMNS,
    selectableFields=[{"jsonPath": ".spec.model"}],
)
# Its resources are served, and its openapi used for apply, a moment after it was created.
_SERVED = (post(CRDS, _CRD, save="crd"), get(_BASE, until_status=200))


def _pool(metadata: Json = None, **spec: Json) -> Json:
    return {
        "apiVersion": _API,
        "kind": "GpuPool",
        "metadata": {"name": "g"} | (metadata or {}),
        "spec": {"model": "T4"} | spec,
    }


_MADE = (*_SERVED, post(_BASE, _pool(replicas=2, selector="a=b"), save="g"))


def _create(name: str, body: Json, query: str = "") -> Case:
    return Case(f"custom: {name}", post(f"{_BASE}{query}", body), _SERVED)


def _on(name: str, request: Request) -> Case:
    return Case(f"custom: {name}", request, _MADE)


_OBJECTS = (
    _create("created with defaults", _pool(cards=[{"id": "0"}])),
    _create("unknown field pruned", _pool(unknown=1)),
    _create("unknown field strict", _pool(unknown=1), "?fieldValidation=Strict"),
    _create("unknown fields preserved", _pool(free={"any": {"thing": 1}})),
    _create(
        "required missing",
        {"apiVersion": _API, "kind": "GpuPool", "metadata": {"name": "g"}, "spec": {}},
    ),
    _create("wrong types", _pool(count="x", ratio="y", tags="z", labels={"a": 1})),
    _create("out of bounds", _pool(count=9, mode="Odd", tags=["a", "b", "c"])),
    _create("bad string", _pool(model="longer-than-five")),
    _create("bad pattern", _pool(model="t4")),
    _create("duplicate set item", _pool(tags=["a", "a"])),
    _create("duplicate map key", _pool(cards=[{"id": "0"}, {"id": "0"}])),
    _create("map item without key", _pool(cards=[{"memory": "1"}])),
    _create("int or string", _pool(size=True)),
    _create("bad date", _pool(since="yesterday")),
    _create("rule", _pool(limit=1)),
    _create("null for default", _pool(count=None, maybe=None)),
    _create("null not allowed", _pool(ratio=None)),
    _create("wrong kind", _pool() | {"kind": "Other"}),
    _create("wrong apiVersion", _pool() | {"apiVersion": "v1"}),
    _create(
        "no name", {"apiVersion": _API, "kind": "GpuPool", "metadata": {}, "spec": {"model": "T4"}}
    ),
    _create("unknown metadata", _pool({"foo": "bar"})),
    _create("status dropped", _pool() | {"status": {"phase": "x"}}),
    _on("get", get(_AT)),
    _on("list", get(_BASE)),
    _on("table", get(_BASE, TABLE)),
    _on("table of one", get(_AT, TABLE)),
    _on("field selector", get(f"{_BASE}?fieldSelector=spec.model%3DT4")),
    _on("field selector unknown", get(f"{_BASE}?fieldSelector=spec.count%3D1")),
    _on("watch", watch(f"{_BASE}?resourceVersion=0", 1)),
    _on("put without resourceVersion", put(_AT, _pool(count=2))),
    _on("put", put(_AT, _pool({"resourceVersion": "${g.metadata.resourceVersion}"}, count=2))),
    _on("merge patch", patch(_AT, {"spec": {"count": 3}})),
    _on("merge patch invalid", patch(_AT, {"spec": {"count": 30}})),
    _on(
        "json patch", patch(_AT, [{"op": "replace", "path": "/spec/count", "value": 4}], JSON_PATCH)
    ),
    _on("strategic patch", patch(_AT, {"spec": {"count": 3}}, STRATEGIC)),
    _on("apply", apply(_AT, "m1", _pool(count=2, cards=[{"id": "0"}], tags=["a"]))),
    _on("status on main resource", patch(_AT, {"status": {"phase": "x"}, "spec": {"count": 2}})),
    _on("status", patch(f"{_AT}/status", {"status": {"phase": "x"}, "spec": {"count": 7}})),
    _on("status invalid", patch(f"{_AT}/status", {"status": {"replicas": "x"}})),
    _on("scale", get(f"{_AT}/scale")),
    _on("scale changed", patch(f"{_AT}/scale", {"spec": {"replicas": 5}})),
    _on("scale negative", patch(f"{_AT}/scale", {"spec": {"replicas": -5}})),
    _on("delete", delete(_AT)),
    _on("delete collection", delete(_BASE)),
    _on("discovery", get(f"/apis/{_API}")),
    _on("group discovery", get(f"/apis/{_GROUP}")),
    Case(
        "custom: rule on change",
        patch(_AT, {"spec": {"limit": 3}}),
        (*_SERVED, post(_BASE, _pool(limit=2))),
    ),
    Case(
        "custom: apply conflict",
        apply(_AT, "m2", _pool(cards=[{"id": "0", "memory": "8Gi"}])),
        (*_SERVED, apply(_AT, "m1", _pool(cards=[{"id": "0", "memory": "1Gi"}]))),
    ),
    Case(
        "custom: generation on status",
        patch(f"{_AT}/status", {"status": {"phase": "y"}}),
        (*_MADE, patch(_AT, {"spec": {"count": 2}})),
    ),
    Case(
        "custom: gone with its definition",
        get(_BASE, until_status=404),
        (*_MADE, delete(f"{CRDS}/{_PLURAL}.{_GROUP}")),
    ),
)


def _definition(name: str, **spec: Json) -> Case:
    body = crd(_PLURAL, "GpuPool", {"spec": {"type": "object"}}, group=_GROUP)
    return Case(f"crd: {name}", post(CRDS, body | {"spec": body["spec"] | spec}))


def _version(**more: Json) -> Json:
    return {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object"}},
    } | more


def _schema(name: str, **properties: Json) -> Case:
    schema = {"openAPIV3Schema": {"type": "object", "properties": properties}}
    return _definition(name, versions=[_version(schema=schema)])


_DEFINITIONS = (
    Case("crd: created", post(CRDS, _CRD)),
    Case("crd: established", get(f"{CRDS}/{_PLURAL}.{_GROUP}"), _SERVED),
    Case("crd: name does not fit", post(CRDS, _CRD | {"metadata": {"name": "other"}})),
    _definition("no versions", versions=[]),
    _definition("no storage version", versions=[_version(storage=False)]),
    _definition("no schema", versions=[_version(schema=None)]),
    _definition("bad names", names={"plural": "Bad", "kind": "bad kind"}),
    _definition("bad scope", scope="Some"),
    _definition("bad version name", versions=[_version(name="V_1")]),
    _definition("bad conversion", conversion={"strategy": "Webhook"}),
    _definition("preserve unknown fields", preserveUnknownFields=True),
    _definition(
        "bad printer column",
        versions=[
            _version(additionalPrinterColumns=[{"name": "A", "type": "odd", "jsonPath": "spec"}])
        ],
    ),
    _definition(
        "bad scale",
        versions=[
            _version(
                subresources={"scale": {"specReplicasPath": "x", "statusReplicasPath": ".spec.y"}}
            )
        ],
    ),
    _schema("not structural", spec={"properties": {"a": {"type": "string"}}}),
    _schema(
        "bad default",
        spec={"type": "object", "properties": {"a": {"type": "integer", "default": "x"}}},
    ),
    _schema("bad type", spec={"type": "odd"}),
    _schema("bad pattern", spec={"type": "string", "pattern": "("}),
    _schema(
        "list map without keys",
        spec={"type": "array", "x-kubernetes-list-type": "map", "items": {"type": "object"}},
    ),
    _schema("bad rule", spec={"type": "integer", "x-kubernetes-validations": [{"rule": "self >"}]}),
    Case(
        "crd: scope is immutable",
        patch(f"{CRDS}/{_PLURAL}.{_GROUP}", {"spec": {"scope": "Cluster"}}),
        _SERVED,
    ),
    Case("crd: deleted", delete(f"{CRDS}/{_PLURAL}.{_GROUP}"), _SERVED),
)

CASES = (*_OBJECTS, *_DEFINITIONS)
