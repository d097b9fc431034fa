"""The parts that heavy requests are made of."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, TypeAlias

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

CORE = "/api/v1/namespaces/default"
CONFIGMAPS = f"{CORE}/configmaps"
DRY = "?dryRun=All"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


@dataclass(frozen=True)
class Heavy:
    method: str
    path: str
    body: bytes = b""
    media: str = JSON
    accept: str = JSON
    before: "tuple[Heavy, ...]" = field(default=())  # what has to be there, or to be gone


Named: TypeAlias = Iterator[tuple[str, Callable[[], Heavy]]]  # requests, built when asked for


def json_bytes(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def pod_body(name: str = "heavy", **spec: Any) -> bytes:
    containers = [{"name": "c", "image": "i"}]
    spec = {"containers": containers, **spec}
    return json_bytes({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec})


def map_body(name: str = "heavy", **parts: Any) -> bytes:
    return json_bytes(
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, **parts}
    )


def up_to(size: int, each: Callable[[int], bytes], between: bytes = b",") -> bytes:
    """As many pieces as fit."""
    pieces, used, number = [], 0, 0
    while used < size:
        piece = each(number)
        used += len(piece) + len(between)
        pieces.append(piece)
        number += 1
    return between.join(pieces[:-1])


def around(head: bytes, middle: bytes, tail: bytes) -> bytes:
    return head + middle + tail


POD_HEAD = b'{"apiVersion":"v1","kind":"Pod","metadata":{"name":"heavy"},"spec":{"containers":['
ROOM = LARGEST - 4096


def pod_of(container: Callable[[int], bytes]) -> bytes:
    return around(POD_HEAD, up_to(ROOM, container), b"]}}")


def varint(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def proto_field(number: int, value: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(value)) + value


def protobuf(kind: str, message: bytes) -> bytes:
    names = proto_field(1, b"v1") + proto_field(2, kind.encode())
    return b"k8s\0" + proto_field(1, names) + proto_field(2, message)


def protobuf_pod(container: bytes) -> bytes:
    metadata = proto_field(1, b"heavy")
    count = ROOM // (len(container) + 3)
    return protobuf(
        "Pod", proto_field(1, metadata) + proto_field(2, proto_field(2, container) * count)
    )


def protobuf_map() -> bytes:
    entries = b"".join(
        proto_field(2, proto_field(1, b"k%d" % number) + proto_field(2, b""))
        for number in range(200_000)
    )
    return protobuf("ConfigMap", proto_field(1, proto_field(1, b"heavy")) + entries)


def crd_body(name: str, schema: dict[str, Any]) -> bytes:
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": schema}}},
    }
    names = {"plural": f"{name}s", "singular": name, "kind": name.capitalize()}
    spec = {"group": "heavy.test", "scope": "Namespaced", "names": names, "versions": [version]}
    return json_bytes(
        {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": f"{name}s.heavy.test"},
            "spec": spec,
        }
    )


def deep_schema(levels: int) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(levels):
        schema = {"type": "object", "properties": {"a": schema}}
    return schema


def wide_schema(properties: int) -> dict[str, Any]:
    inner = {f"p{number}": {"type": "string"} for number in range(properties)}
    return {"type": "object", "properties": inner}


def choices(count: int) -> dict[str, Any]:
    return {"type": "string", "enum": [f"e{n}" for n in range(count)]}


def custom_body(spec: dict[str, Any]) -> bytes:
    head = {"apiVersion": "heavy.test/v1", "kind": "Wide", "metadata": {"name": "heavy"}}
    return json_bytes({**head, "spec": spec})


def review_body(groups: int) -> bytes:
    spec = {
        "user": "u",
        "groups": [f"g{n}" for n in range(groups)],
        "resourceAttributes": {"verb": "get", "resource": "pods"},
    }
    head = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview"}
    return json_bytes({**head, "spec": spec})


def ports(count: int) -> list[dict[str, Any]]:
    return [{"containerPort": n % 65535 + 1, "name": f"p{n}"} for n in range(count)]


def containers(count: int) -> list[dict[str, Any]]:
    return [{"name": f"c{n}", "image": "i"} for n in range(count)]


def environment(count: int) -> list[dict[str, Any]]:
    return [{"name": f"E{n}", "value": ""} for n in range(count)]


def service_body(name: str, ports: int) -> bytes:
    rows = [{"name": f"p{n}", "port": n + 1} for n in range(ports)]
    return json_bytes(
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": name},
            "spec": {"ports": rows, "selector": {"a": "b"}},
        }
    )


def applied_pod(count: int) -> bytes:
    container = {"name": "c", "image": "i", "env": environment(count)}
    return pod_body(containers=[container])


def role_body(rules: int) -> bytes:
    rows = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}] * rules
    head = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role"}
    return json_bytes({**head, "metadata": {"name": "heavy"}, "rules": rows})


def deletion(path: str) -> Heavy:
    return Heavy("DELETE", path)


BIG_MAP = {f"k{n}": "" for n in range(60_000)}


def made_map() -> tuple[Heavy, ...]:
    return (
        deletion(f"{CONFIGMAPS}/heavy"),
        Heavy("POST", CONFIGMAPS, map_body(data=BIG_MAP)),
    )


def made_pod() -> tuple[Heavy, ...]:
    pod = applied_pod(10_000)
    return (
        deletion(f"{CORE}/pods/heavy?gracePeriodSeconds=0"),
        Heavy("PATCH", f"{CORE}/pods/heavy?fieldManager=first", pod, APPLY),
    )
