"""In which order strict decoding names unknown and repeated fields."""

from __future__ import annotations

from tests.conformance.record.case import (
    JSON_PATCH,
    MERGE,
    STRATEGIC,
    Case,
    Request,
    get,
    post,
)
from tests.conformance.record.objects import CONFIGMAPS, CRDS, PODS, configmap, crd

_JSON, _YAML = "application/json", "application/yaml"
_POD = (
    '{"apiVersion":"v1","kind":"Pod","zzz":1,"metadata":{"name":"p","nam":"q","name":"p"},'
    '"spec":{"uuu":1,"containers":[{"name":"c","image":"x","immage":"y","image":"z",'
    '"ports":[{"containerPort":1,"containerPort":2,"port":3}]}],"aaa":{"b":1,"b":2},'
    '"restartPolicy":"Never","restartPolicy":"Always","bbb":2},"aaa":2,"spec":{"ccc":1}}'
)
_POD_YAML = """\
apiVersion: v1
kind: Pod
zzz: 1
metadata: {name: p, nam: q}
spec:
  containers:
  - name: c
    image: x
    immage: y
    image: z
  restartPolicy: Never
  restartPolicy: Always
  aaa: 1
"""
_MAP = (
    '{"apiVersion":"v1","kind":"ConfigMap","a":1,"metadata":{"name":"c1"},"a":2,'
    '"data":{"k":"1","k":"2"},"b":1}'
)
_FEW = '{"b":1,"data":{"x":"1","x":"2"},"a":1,"data":{"y":"1"}}'
_CRD = crd(
    "stricts",
    "Strict",
    {
        "spec": {
            "type": "object",
            "properties": {
                "size": {"type": "integer"},
                "list": {
                    "type": "array",
                    "items": {"type": "object", "properties": {"a": {"type": "integer"}}},
                },
            },
        }
    },
    group="{ns}.example.com",
)
_STRICTS = "/apis/{ns}.example.com/v1/namespaces/{ns}/stricts"
_SERVED = (post(CRDS, _CRD), get(_STRICTS, until_status=200))
_CUSTOM = (
    '{"apiVersion":"{ns}.example.com/v1","kind":"Strict","zzz":1,"metadata":{"name":"s","nam":1,'
    '"name":"s"},"spec":{"uuu":1,"size":1,"size":2,"list":[{"b":1,"a":1,"a":2}],"aaa":1},"aaa":1}'
)
_CUSTOM_YAML = """\
apiVersion: {ns}.example.com/v1
kind: Strict
zzz: 1
metadata: {name: s, nam: 1}
spec:
  uuu: 1
  size: 1
  size: 2
"""
_C1 = post(CONFIGMAPS, configmap("c1"))


def _send(method: str, path: str, body: str, content_type: str, query: str) -> Request:
    return Request(method, f"{path}?{query}", body, {"Content-Type": content_type})


_STRICT, _WARN = "fieldValidation=Strict", "fieldValidation=Warn"
_AT = f"{CONFIGMAPS}/c1"
_PATCH = '[{"op":"add","path":"/b","value":1},{"op":"add","path":"/a","value":1,"value":2}]'

# Refusals of patches print the whole object, each server in its own way.
_PATCHES = (
    Case("strict: merge patch warned of", _send("PATCH", _AT, _FEW, MERGE, _WARN), (_C1,)),
    Case("strict: strategic warned of", _send("PATCH", _AT, _FEW, STRATEGIC, _WARN), (_C1,)),
    Case("strict: JSON patch warned of", _send("PATCH", _AT, _PATCH, JSON_PATCH, _WARN), (_C1,)),
)
_BODIES = tuple(
    case
    for query, how in ((_STRICT, "refused"), (_WARN, "warned of"))
    for case in (
        Case(f"strict: pod as JSON {how}", _send("POST", PODS, _POD, _JSON, query)),
        Case(f"strict: pod as YAML {how}", _send("POST", PODS, _POD_YAML, _YAML, query)),
        Case(f"strict: config map {how}", _send("POST", CONFIGMAPS, _MAP, _JSON, query)),
        Case(f"strict: update {how}", _send("PUT", _AT, _MAP, _JSON, query), (_C1,)),
        Case(
            f"strict: custom as JSON {how}", _send("POST", _STRICTS, _CUSTOM, _JSON, query), _SERVED
        ),
        Case(
            f"strict: custom as YAML {how}",
            _send("POST", _STRICTS, _CUSTOM_YAML, _YAML, query),
            _SERVED,
        ),
    )
)
CASES = (*_BODIES, *_PATCHES)
