"""Access reviews that are refused, or just not."""

from __future__ import annotations

from typing import Any

from tests.conformance.record.case import Case, Json, post

_AT = "/apis/authorization.k8s.io/v1"
_SELF = f"{_AT}/selfsubjectaccessreviews"
_OTHER = f"{_AT}/subjectaccessreviews"
_LOCAL = f"{_AT}/namespaces/{{ns}}/localsubjectaccessreviews"
_GET = {"verb": "get", "resource": "pods"}
_PATH = {"path": "/", "verb": "get"}
_FIELD = {"key": "metadata.name", "operator": "In", "values": ["a"]}


def _of(**selectors: Any) -> Json:
    return {"spec": {"resourceAttributes": _GET | selectors}}


def _fields(*requirements: Json, **more: Json) -> Json:
    return _of(fieldSelector={"requirements": list(requirements)} | more)


def _labels(*requirements: Json, **more: Json) -> Json:
    return _of(labelSelector={"requirements": list(requirements)} | more)


_BODIES: dict[str, Json] = {
    "both": {"spec": {"resourceAttributes": _GET, "nonResourceAttributes": _PATH}},
    "both, empty": {"spec": {"resourceAttributes": {}, "nonResourceAttributes": {}}},
    "neither": {"spec": {}},
    "no spec": {},
    "no verb": {"spec": {"resourceAttributes": {}}},
    "no path": {"spec": {"nonResourceAttributes": {}}},
    "name": {"metadata": {"name": "n"}} | _of(),
    "labels": {"metadata": {"labels": {"a": "b"}}} | _of(),
    "managed fields": {"metadata": {"managedFields": []}} | _of(),
    "name and neither": {"metadata": {"name": "n"}, "spec": {}},
    "namespace": {"metadata": {"namespace": "x"}} | _of(),
    "annotations": {"metadata": {"annotations": {"a": "b"}, "generateName": "g-"}} | _of(),
    "empty field selector": _of(fieldSelector={}),
    "empty label selector": _of(labelSelector={}),
    "both field selectors": _fields(_FIELD, rawSelector="metadata.name=a"),
    "both label selectors": _labels(_FIELD, rawSelector="a=b"),
    "field selector": _fields(_FIELD),
    "label selector": _labels(_FIELD | {"key": "a"}),
    "raw field selector": _of(fieldSelector={"rawSelector": "metadata.name=a"}),
    "bad raw field selector": _of(fieldSelector={"rawSelector": "!!"}),
    "bad raw label selector": _of(labelSelector={"rawSelector": "a in ("}),
    "field without values": _fields(_FIELD | {"values": []}, {"key": "a", "operator": "NotIn"}),
    "label without values": _labels(_FIELD | {"values": []}, {"key": "a", "operator": "NotIn"}),
    "field that exists with values": _fields(
        _FIELD | {"operator": "Exists"}, _FIELD | {"operator": "DoesNotExist"}
    ),
    "label that exists with values": _labels(
        _FIELD | {"operator": "Exists"}, _FIELD | {"operator": "DoesNotExist"}
    ),
    "unknown operators": _fields(_FIELD | {"operator": "Gt"}, _FIELD | {"operator": ""}),
    "unknown label operators": _labels(_FIELD | {"operator": "Gt"}, {"key": "a", "operator": ""}),
    "no key": _fields({"operator": "Exists"}, {"key": "", "operator": "In", "values": ["a", "b"]}),
    "no label key": _labels({"operator": "Exists"}, {"key": "a b", "operator": "Exists"}),
    "bad label value": _labels({"key": "a", "operator": "In", "values": ["a b", "-"]}),
    "field with two values": _fields({"key": "a", "operator": "In", "values": ["a", "b"]}),
    "several mistakes": {
        "metadata": {"name": "n"},
        "spec": {
            "resourceAttributes": _GET | {"fieldSelector": {}, "labelSelector": {}},
            "nonResourceAttributes": _PATH,
        },
    },
}


def _by_user(body: Json) -> Json:
    return body | {"spec": body.get("spec", {}) | {"user": "alice"}}


def _within(body: Json) -> Json:
    spec = dict(_by_user(body)["spec"])
    if "resourceAttributes" in spec:
        spec["resourceAttributes"] = spec["resourceAttributes"] | {"namespace": "{ns}"}
    return body | {"metadata": {"namespace": "{ns}"} | body.get("metadata", {}), "spec": spec}


_OTHERS = ("both", "neither", "no spec", "no path", "name", "several mistakes")
_LOCALLY = ("both", "neither", "no path", "name", "namespace", "empty field selector")

CASES = (
    *(Case(f"self review: {name}", post(_SELF, body)) for name, body in _BODIES.items()),
    *(Case(f"other review: {name}", post(_OTHER, _by_user(_BODIES[name]))) for name in _OTHERS),
    *(Case(f"local review: {name}", post(_LOCAL, _within(_BODIES[name]))) for name in _LOCALLY),
    Case(
        "other review: of a group",
        post(_OTHER, {"spec": {"resourceAttributes": _GET, "groups": ["g"]}}),
    ),
    Case("other review: of nobody, neither", post(_OTHER, {"metadata": {"name": "n"}, "spec": {}})),
    Case("rules review: no namespace", post(f"{_AT}/selfsubjectrulesreviews", {"spec": {}})),
    Case(
        "rules review: name",
        post(
            f"{_AT}/selfsubjectrulesreviews",
            {"metadata": {"name": "n"}, "spec": {"namespace": "x"}},
        ),
    ),
    Case(
        "user review: name",
        post("/apis/authentication.k8s.io/v1/selfsubjectreviews", {"metadata": {"name": "n"}}),
    ),
    Case(
        "token review: no token",
        post(
            "/apis/authentication.k8s.io/v1/tokenreviews", {"metadata": {"name": "n"}, "spec": {}}
        ),
    ),
)
