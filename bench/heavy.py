"""Requests that are small to send and large to answer: what one client could hold all others with.

Each stays within the limits of the wire (3 MiB for a body, 8 KiB for a URL). Builders are called
one at a time, because some bodies have three megabytes.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

MIB = 1 << 20
LARGEST = 3 * MIB
JSON = "application/json"
YAML = "application/yaml"
PROTOBUF = "application/vnd.kubernetes.protobuf"
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
JSON_PATCH = "application/json-patch+json"
APPLY = "application/apply-patch+yaml"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
PARTIAL = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"

_CORE = "/api/v1/namespaces/default"
_CONFIGMAPS = f"{_CORE}/configmaps"
_DRY = "?dryRun=All"
_CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


@dataclass(frozen=True)
class Heavy:
    method: str
    path: str
    body: bytes = b""
    media: str = JSON
    accept: str = JSON
    before: "tuple[Heavy, ...]" = field(default=())  # what has to be there, or to be gone


def _text(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def _pod(name: str = "heavy", **spec: Any) -> bytes:
    containers = [{"name": "c", "image": "i"}]
    spec = {"containers": containers, **spec}
    return _text({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec})


def _map(name: str = "heavy", **parts: Any) -> bytes:
    return _text({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, **parts})


def _up_to(size: int, each: Callable[[int], bytes], between: bytes = b",") -> bytes:
    """As many pieces as fit."""
    pieces, used, number = [], 0, 0
    while used < size:
        piece = each(number)
        used += len(piece) + len(between)
        pieces.append(piece)
        number += 1
    return between.join(pieces[:-1])


def _around(head: bytes, middle: bytes, tail: bytes) -> bytes:
    return head + middle + tail


_POD_HEAD = b'{"apiVersion":"v1","kind":"Pod","metadata":{"name":"heavy"},"spec":{"containers":['
_ROOM = LARGEST - 4096


def _pod_of(container: Callable[[int], bytes]) -> bytes:
    return _around(_POD_HEAD, _up_to(_ROOM, container), b"]}}")


def _varint(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def _field(number: int, value: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(value)) + value


def _protobuf(kind: str, message: bytes) -> bytes:
    names = _field(1, b"v1") + _field(2, kind.encode())
    return b"k8s\0" + _field(1, names) + _field(2, message)


def _protobuf_pod(container: bytes) -> bytes:
    metadata = _field(1, b"heavy")
    count = _ROOM // (len(container) + 3)
    return _protobuf("Pod", _field(1, metadata) + _field(2, _field(2, container) * count))


def _protobuf_map() -> bytes:
    entries = b"".join(
        _field(2, _field(1, b"k%d" % number) + _field(2, b"")) for number in range(200_000)
    )
    return _protobuf("ConfigMap", _field(1, _field(1, b"heavy")) + entries)


def _crd(name: str, schema: dict[str, Any]) -> bytes:
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": schema}}},
    }
    names = {"plural": f"{name}s", "singular": name, "kind": name.capitalize()}
    spec = {"group": "heavy.test", "scope": "Namespaced", "names": names, "versions": [version]}
    return _text(
        {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": f"{name}s.heavy.test"},
            "spec": spec,
        }
    )


def _deep_schema(levels: int) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(levels):
        schema = {"type": "object", "properties": {"a": schema}}
    return schema


def _wide_schema(properties: int) -> dict[str, Any]:
    inner = {f"p{number}": {"type": "string"} for number in range(properties)}
    return {"type": "object", "properties": inner}


def _choices(count: int) -> dict[str, Any]:
    return {"type": "string", "enum": [f"e{n}" for n in range(count)]}


def _custom(spec: dict[str, Any]) -> bytes:
    head = {"apiVersion": "heavy.test/v1", "kind": "Wide", "metadata": {"name": "heavy"}}
    return _text({**head, "spec": spec})


def _review(groups: int) -> bytes:
    spec = {
        "user": "u",
        "groups": [f"g{n}" for n in range(groups)],
        "resourceAttributes": {"verb": "get", "resource": "pods"},
    }
    head = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview"}
    return _text({**head, "spec": spec})


def _ports(count: int) -> list[dict[str, Any]]:
    return [{"containerPort": n % 65535 + 1, "name": f"p{n}"} for n in range(count)]


def _containers(count: int) -> list[dict[str, Any]]:
    return [{"name": f"c{n}", "image": "i"} for n in range(count)]


def _environment(count: int) -> list[dict[str, Any]]:
    return [{"name": f"E{n}", "value": ""} for n in range(count)]


def _service(name: str, ports: int) -> bytes:
    rows = [{"name": f"p{n}", "port": n + 1} for n in range(ports)]
    return _text(
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": name},
            "spec": {"ports": rows, "selector": {"a": "b"}},
        }
    )


def _applied_pod(count: int) -> bytes:
    container = {"name": "c", "image": "i", "env": _environment(count)}
    return _pod(containers=[container])


def _role(rules: int) -> bytes:
    rows = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}] * rules
    head = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role"}
    return _text({**head, "metadata": {"name": "heavy"}, "rules": rows})


def _gone(path: str) -> Heavy:
    return Heavy("DELETE", path)


_BIG_MAP = {f"k{n}": "" for n in range(60_000)}


def _made_map() -> tuple[Heavy, ...]:
    return (
        _gone(f"{_CONFIGMAPS}/heavy"),
        Heavy("POST", _CONFIGMAPS, _map(data=_BIG_MAP)),
    )


def _made_pod() -> tuple[Heavy, ...]:
    pod = _applied_pod(10_000)
    return (
        _gone(f"{_CORE}/pods/heavy?gracePeriodSeconds=0"),
        Heavy("PATCH", f"{_CORE}/pods/heavy?fieldManager=first", pod, APPLY),
    )


def requests() -> Mapping[str, Callable[[], Heavy]]:
    """By name, each built when it is asked for."""
    return dict(_pods()) | dict(_texts()) | dict(_patches()) | dict(_kinds())


def _pods() -> Iterator[tuple[str, Callable[[], Heavy]]]:
    pods = f"{_CORE}/pods{_DRY}"

    def pod(body: Callable[[], bytes], media: str = JSON) -> Callable[[], Heavy]:
        return lambda: Heavy("POST", pods, body(), media)

    yield (
        "pod of 100,000 containers",
        pod(lambda: _pod_of(lambda n: b'{"name":"c%d","image":"i"}' % n)),
    )
    yield "pod of empty containers", pod(lambda: _pod_of(lambda n: b"{}"))
    yield "pod of equal containers", pod(lambda: _pod_of(lambda n: b'{"name":"a","image":"b"}'))
    yield "pod of numbers for containers", pod(lambda: _pod_of(lambda n: b"1"))
    yield "pod of 30,000 containers", pod(lambda: _pod(containers=_containers(30_000)))
    yield "pod of 48,000 empty containers", pod(lambda: _pod(containers=[{}] * 48_000))
    yield "pod of 90,000 numbers for containers", pod(lambda: _pod(containers=[1] * 90_000))
    yield (
        "pod with 30,000 variables",
        pod(lambda: _pod(containers=[{"name": "c", "image": "i", "env": _environment(30_000)}])),
    )
    yield (
        "pod with 30,000 ports",
        pod(lambda: _pod(containers=[{"name": "c", "image": "i", "ports": _ports(30_000)}])),
    )
    yield (
        "pod with 25,000 volumes",
        pod(lambda: _pod(volumes=[{"name": f"v{n}", "emptyDir": {}} for n in range(25_000)])),
    )
    yield (
        "pod with 30,000 tolerations",
        pod(
            lambda: _pod(
                tolerations=[{"key": f"k{n}", "operator": "Exists"} for n in range(30_000)]
            )
        ),
    )
    yield (
        "pod with 60,000 labels",
        pod(
            lambda: _text(
                {
                    "apiVersion": "v1",
                    "kind": "Pod",
                    "metadata": {"name": "heavy", "labels": {f"l{n}": "v" for n in range(60_000)}},
                    "spec": {"containers": [{"name": "c", "image": "i"}]},
                }
            )
        ),
    )
    yield "pod in protobuf, empty containers", pod(lambda: _protobuf_pod(b""), PROTOBUF)
    yield (
        "pod in protobuf, named containers",
        pod(lambda: _protobuf_pod(_field(1, b"c") + _field(2, b"i")), PROTOBUF),
    )


def _texts() -> Iterator[tuple[str, Callable[[], Heavy]]]:
    path = f"{_CONFIGMAPS}{_DRY}"

    def one(body: Callable[[], bytes], media: str = JSON) -> Callable[[], Heavy]:
        return lambda: Heavy("POST", path, body(), media)

    head = b'{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"heavy"},'
    yield "2.9 MB of [", one(lambda: b"[" * 2_900_000)
    yield "1.4 MB of [ and of ]", one(lambda: b"[" * 1_400_000 + b"]" * 1_400_000)
    yield '3 MB of {"a":', one(lambda: b'{"a":' * 600_000)
    yield "3 MB of [],", one(lambda: head + b'"data":[' + b"[]," * 1_000_000 + b"[]]}")
    yield (
        "3 MB of one repeated key",
        one(lambda: head + b'"data":{' + _up_to(_ROOM, lambda n: b'"a":""') + b"}}"),
    )
    yield (
        "3 MB of repeated objects",
        one(lambda: head + b'"data":{' + _up_to(_ROOM, lambda n: b'"a":{"b%d":{}}' % n) + b"}}"),
    )
    yield (
        "repeated key, 98,000 times",
        one(lambda: head + b'"data":{' + b",".join([b'"a":""'] * 98_000) + b"}}"),
    )
    yield (
        "repeated objects, 33,000 times",
        one(
            lambda: (
                head + b'"data":{' + b",".join(b'"a":{"b%d":1}' % n for n in range(33_000)) + b"}}"
            )
        ),
    )
    yield (
        "repeated keys below a long one",
        one(
            lambda: (
                head + b'"data":{"' + b"x" * MIB + b'":{' + b",".join([b'"a":1'] * 90_000) + b"}}}"
            )
        ),
    )
    yield (
        "3 MB of repeated keys in pairs",
        one(
            lambda: (
                head + b'"data":{' + _up_to(_ROOM, lambda n: b'"%d":"","%d":""' % (n, n)) + b"}}"
            )
        ),
    )
    yield "3 MB of escapes", one(lambda: head + b'"data":{"a":"' + b"\\u0041" * 500_000 + b'"}}')
    yield "3 MB of quotes", one(lambda: head + b'"data":{"a":"' + b'\\"' * 1_500_000 + b'"}}')
    yield "99,000 unknown fields", one(lambda: head + _unknown() + b"}")
    yield (
        "99,000 unknown fields, strict",
        lambda: Heavy("POST", f"{path}&fieldValidation=Strict", head + _unknown() + b"}"),
    )
    yield "map of 99,000 keys", one(lambda: _map(data={f"k{n}": "" for n in range(99_000)}))
    yield "map of 99,000 bad keys", one(lambda: _map(data={f"/{n}": "" for n in range(99_000)}))
    yield "map of 99,000 numbers", one(lambda: _map(data={f"k{n}": n for n in range(99_000)}))
    yield "map of 200,000 keys in protobuf", one(_protobuf_map, PROTOBUF)
    yield (
        "99,000 finalizers",
        one(
            lambda: _map(
                metadata={"name": "heavy", "finalizers": [f"a/{n}" for n in range(99_000)]}
            )
        ),
    )
    yield (
        "19,000 owners",
        one(lambda: _map(metadata={"name": "heavy", "ownerReferences": _owners()})),
    )
    yield "managedFields of 49,000", one(lambda: _map(metadata=_managed()))
    yaml_head = b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: heavy}\ndata:\n"
    yield "3 MB of '- '", one(lambda: b"- " * 1_500_000, YAML)
    yield "3 MB of '- a' lines", one(lambda: yaml_head + b"- a\n" * 750_000, YAML)
    yield "flow sequence", one(lambda: b"[" + b"a," * 1_500_000 + b"]", YAML)
    yield "3 MB of YAML [", one(lambda: b"[" * 2_900_000, YAML)
    yield "3 MB of {a: ", one(lambda: b"{a: " * 700_000, YAML)
    yield "3 MB of ? ", one(lambda: b"? " * 1_400_000, YAML)
    yield "3 MB of spaces in YAML", one(lambda: b" " * 3_000_000 + b"a", YAML)
    yield "3 MB of line ends in YAML", one(lambda: b"\n" * 3_000_000 + b"a", YAML)
    yield "3 MB of one YAML word", one(lambda: yaml_head + b"  a: " + b"x" * 3_000_000, YAML)
    yield "3 MB of YAML words", one(lambda: yaml_head + b"  a: " + b"x " * 1_500_000, YAML)
    yield (
        "3 MB of quoted YAML escapes",
        one(lambda: yaml_head + b'  a: "' + b"\\n" * 1_500_000 + b'"', YAML),
    )
    yield "3 MB of YAML comments", one(lambda: b"#\n" * 1_500_000, YAML)
    yield "3 MB of YAML documents", one(lambda: b"---\n" * 750_000, YAML)
    yield (
        "YAML aliases",
        one(lambda: b"a: &a {" + b"x: 1, " * 10 + b"y: 1}\nb: [" + b"*a, " * 700_000 + b"]", YAML),
    )
    yield "YAML anchors", one(lambda: _up_to(_ROOM, lambda n: b"a%d: &a%d 1" % (n, n), b"\n"), YAML)
    yield (
        "YAML merges",
        one(
            lambda: (
                b"a: &a {"
                + b", ".join(b"x%d: 1" % n for n in range(300))
                + b"}\n"
                + _up_to(_ROOM, lambda n: b"b%d: {<<: *a}" % n, b"\n")
            ),
            YAML,
        ),
    )
    yield (
        "YAML map of 90,000 keys",
        one(lambda: yaml_head + b"".join(b"  k%d: ''\n" % n for n in range(45_000)), YAML),
    )
    yield "YAML repeated keys", one(lambda: yaml_head + b"  a: b\n" * 45_000, YAML)


def _unknown() -> bytes:
    return b",".join(b'"u%d":1' % n for n in range(99_000))


def _owners() -> list[dict[str, Any]]:
    return [
        {"apiVersion": "v1", "kind": "Pod", "name": f"p{n}", "uid": f"u{n}"} for n in range(19_000)
    ]


def _managed() -> dict[str, Any]:
    fields: dict[str, Any] = {"f:data": {f"f:k{n}": {} for n in range(49_000)}}
    row = {
        "manager": "m",
        "operation": "Update",
        "apiVersion": "v1",
        "time": "2026-01-01T00:00:00Z",
        "fieldsType": "FieldsV1",
        "fieldsV1": fields,
    }
    return {"name": "heavy", "managedFields": [row]}


def _patches() -> Iterator[tuple[str, Callable[[], Heavy]]]:
    one, pod = f"{_CONFIGMAPS}/heavy", f"{_CORE}/pods/heavy"
    applied = "&fieldManager=second&force=true"

    def on_map(media: str, body: Callable[[], bytes], path: str = f"{one}{_DRY}") -> Any:
        return lambda: Heavy("PATCH", path, body(), media, before=_made_map())

    def on_pod(media: str, body: Callable[[], bytes], path: str = f"{pod}{_DRY}") -> Any:
        return lambda: Heavy("PATCH", path, body(), media, before=_made_pod())

    other = {f"j{n}": "" for n in range(60_000)}
    yield "merge patch of 60,000 keys", on_map(MERGE, lambda: _text({"data": other}))
    yield "strategic patch of 60,000 keys", on_map(STRATEGIC, lambda: _text({"data": other}))
    yield (
        "strategic patch of 20,000 variables",
        on_pod(
            STRATEGIC,
            lambda: _text({"spec": {"containers": [{"name": "c", "env": _environment(20_000)}]}}),
        ),
    )
    yield (
        "strategic patch that deletes 20,000",
        on_pod(
            STRATEGIC,
            lambda: _text(
                {
                    "spec": {
                        "containers": [
                            {
                                "name": "c",
                                "env": [
                                    {"name": f"E{n}", "$patch": "delete"} for n in range(20_000)
                                ],
                            }
                        ]
                    }
                }
            ),
        ),
    )
    yield (
        "strategic patch with an order of 20,000",
        on_pod(
            STRATEGIC,
            lambda: _text(
                {
                    "spec": {
                        "containers": [
                            {
                                "name": "c",
                                "$setElementOrder/env": [{"name": f"E{n}"} for n in range(20_000)],
                            }
                        ]
                    }
                }
            ),
        ),
    )
    yield (
        "strategic patch of 90,000 finalizers",
        on_map(
            STRATEGIC,
            lambda: _text({"metadata": {"finalizers": [f"a/{n}" for n in range(90_000)]}}),
        ),
    )
    yield (
        "JSON patch of 10,000 copies",
        on_map(
            JSON_PATCH,
            lambda: _text(
                [{"op": "copy", "from": "/data", "path": f"/x{n}"} for n in range(10_000)]
            ),
        ),
    )
    yield (
        "JSON patch of 10,000 additions",
        on_pod(
            JSON_PATCH,
            lambda: _text(
                [
                    {"op": "add", "path": "/spec/containers/0/env/0", "value": {"name": f"N{n}"}}
                    for n in range(10_000)
                ]
            ),
        ),
    )
    yield (
        "JSON patch of 10,000 tests",
        on_map(
            JSON_PATCH,
            lambda: _text([{"op": "test", "path": "/data", "value": {}}] * 10_000),
        ),
    )
    yield (
        "JSON patch of doubling copies",
        on_map(
            JSON_PATCH,
            lambda: _text(
                [{"op": "add", "path": "/x", "value": {"a": 1}}]
                + [{"op": "copy", "from": "/x", "path": f"/x/y{n}"} for n in range(40)]
            ),
        ),
    )
    yield "apply of 60,000 keys", on_map(APPLY, lambda: _map(data=other), f"{one}{_DRY}{applied}")
    yield (
        "apply of 20,000 variables",
        on_pod(APPLY, lambda: _applied_pod(20_000), f"{pod}{_DRY}{applied}"),
    )
    yield (
        "apply of equal variables",
        on_pod(
            APPLY,
            lambda: _pod(containers=[{"name": "c", "image": "i", "env": [{"name": "E"}] * 45_000}]),
            f"{pod}{_DRY}{applied}",
        ),
    )
    yield (
        "apply in conflict over 10,000",
        on_pod(
            APPLY,
            lambda: _pod(
                containers=[
                    {
                        "name": "c",
                        "image": "i",
                        "env": [{"name": f"E{n}", "value": "x"} for n in range(10_000)],
                    }
                ]
            ),
            f"{pod}{_DRY}&fieldManager=second",
        ),
    )
    yield (
        "update of a map",
        lambda: Heavy("PUT", f"{one}{_DRY}", _map(data=other), before=_made_map()),
    )


def _kinds() -> Iterator[tuple[str, Callable[[], Heavy]]]:
    crds = f"{_CRDS}{_DRY}"
    yield (
        "CRD of 40,000 properties",
        lambda: Heavy("POST", crds, _crd("wide", _wide_schema(40_000))),
    )
    yield "CRD of 90 levels", lambda: Heavy("POST", crds, _crd("deep", _deep_schema(40)))
    yield (
        "CRD of 99,000 choices",
        lambda: Heavy(
            "POST",
            crds,
            _crd("many", {"type": "string", "enum": [f"e{n}" for n in range(99_000)]}),
        ),
    )
    yield (
        "CRD of 20,000 rules",
        lambda: Heavy(
            "POST",
            crds,
            _crd(
                "ruled",
                {
                    "type": "object",
                    "x-kubernetes-validations": [{"rule": f"self == {n}"} for n in range(20_000)],
                },
            ),
        ),
    )
    yield (
        "CRD of bad properties",
        lambda: Heavy(
            "POST",
            crds,
            _crd("bad", {"type": "object", "properties": {f"p{n}": {} for n in range(49_000)}}),
        ),
    )
    for name, crd in (
        ("CRD of 30,000 properties, kept", _crd("wide", _wide_schema(30_000))),
        ("CRD of 90,000 choices, kept", _crd("many", _choices(90_000))),
    ):
        yield name, lambda crd=crd: Heavy("POST", _CRDS, crd)  # type: ignore[misc]
    yield "openapi v3 of large kinds", lambda: Heavy("GET", "/openapi/v3/apis/heavy.test/v1")
    yield "openapi v2 with large kinds", lambda: Heavy("GET", "/openapi/v2")
    wides = "/apis/heavy.test/v1/namespaces/default/wides"
    for name, value in (("object of a large kind", ""), ("object of a large kind, wrong", 1)):
        spec = {f"p{n}": value for n in range(30_000)}
        yield name, lambda spec=spec: Heavy("POST", wides, _custom(spec))  # type: ignore[misc]
    kept = f"{_CONFIGMAPS}/kept"
    yield "kept map", lambda: Heavy("POST", _CONFIGMAPS, _map("kept", data=_BIG_MAP))
    yield "kept map in YAML", lambda: Heavy("GET", kept, accept=YAML)
    yield "kept map as a table", lambda: Heavy("GET", kept, accept=TABLE)
    yield "kept map, deleted", lambda: Heavy("DELETE", kept)
    roles = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles"
    yield "role of 14,000 rules, kept", lambda: Heavy("POST", roles, _role(14_000))
    services = f"{_CORE}/services"
    yield "service of 9,000 ports, kept", lambda: Heavy("POST", services, _service("kept", 9_000))
    yield (
        "review of 90,000 groups",
        lambda: Heavy(
            "POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", _review(90_000)
        ),
    )
    yield (
        "service of 30,000 ports",
        lambda: Heavy("POST", f"{_CORE}/services{_DRY}", _service("heavy", 30_000)),
    )
    yield (
        "role of 14,000 rules",
        lambda: Heavy(
            "POST",
            f"/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles{_DRY}",
            _role(14_000),
        ),
    )
    yield (
        "selector of 4 KB",
        lambda: Heavy(
            "GET", "/api/v1/pods?labelSelector=" + ",".join(f"k{n}!%3Dv" for n in range(400))
        ),
    )
    yield (
        "8 KB of commas in a selector",
        lambda: Heavy("GET", "/api/v1/pods?labelSelector=" + "a," * 2000),
    )
    yield "openapi v2", lambda: Heavy("GET", "/openapi/v2")
    yield "openapi v3", lambda: Heavy("GET", "/openapi/v3/api/v1")
    yield "openapi v3 of apps", lambda: Heavy("GET", "/openapi/v3/apis/apps/v1")
    yield "discovery", lambda: Heavy("GET", "/apis")
    yield "metrics", lambda: Heavy("GET", "/metrics")


def with_many_objects() -> Mapping[str, Heavy]:
    """For a server with tens of thousands of ConfigMaps in the namespace `many`."""
    path = "/api/v1/namespaces/many/configmaps"
    half = ",".join(f"k{n}!%3Dv" for n in range(300))
    return {
        "list": Heavy("GET", path),
        "list as a table": Heavy("GET", path, accept=TABLE),
        "list of metadata": Heavy("GET", path, accept=PARTIAL),
        "list in YAML": Heavy("GET", path, accept=YAML),
        "list by a long selector": Heavy("GET", f"{path}?labelSelector={half}"),
        "list by a field": Heavy("GET", f"{path}?fieldSelector=metadata.name!%3Dx"),
        "pages of 500": Heavy("GET", f"{path}?limit=500"),
        "watch": Heavy("GET", f"{path}?watch=1&timeoutSeconds=2"),
        "watch as a table": Heavy("GET", f"{path}?watch=1&timeoutSeconds=2", accept=TABLE),
        "delete collection": Heavy("DELETE", f"{path}?dryRun=All"),
        "delete collection, really": Heavy("DELETE", path),
    }
