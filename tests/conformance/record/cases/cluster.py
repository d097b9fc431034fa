"""Services, nodes, namespaces and discovery."""

from __future__ import annotations

from tests.conformance.record.case import (
    AGGREGATED,
    STRATEGIC,
    Case,
    Json,
    delete,
    get,
    patch,
    post,
    put,
)
from tests.conformance.record.objects import (
    SERVICES,
    configmap,
    obj,
    service,
)


def _post(name: str, path: str, body: Json) -> Case:
    return Case(name, post(path, body))


_S = post(SERVICES, service("s"), save="s")
_AT_S = f"{SERVICES}/s"

_SERVICE = (
    _post("service: created", SERVICES, service("s")),
    _post("service: no ports", SERVICES, service("s", ports=[])),
    _post("service: two unnamed ports", SERVICES, service("s", ports=[{"port": 80}, {"port": 81}])),
    _post(
        "service: duplicate port",
        SERVICES,
        service("s", ports=[{"name": "a", "port": 80}, {"name": "b", "port": 80}]),
    ),
    _post("service: bad port", SERVICES, service("s", ports=[{"port": 0, "protocol": "X"}])),
    _post("service: bad type", SERVICES, service("s", type="Magic")),
    _post("service: bad clusterIP", SERVICES, service("s", clusterIP="x")),
    _post("service: clusterIP out of range", SERVICES, service("s", clusterIP="192.168.1.1")),
    Case(
        "service: clusterIP taken",
        post(SERVICES, service("t", clusterIP="${s.spec.clusterIP}")),
        (_S,),
    ),
    _post(
        "service: nodePort out of range",
        SERVICES,
        service("s", type="NodePort", ports=[{"port": 80, "nodePort": 80}]),
    ),
    _post(
        "service: nodePort on ClusterIP",
        SERVICES,
        service("s", ports=[{"port": 80, "nodePort": 30080}]),
    ),
    _post("service: external name missing", SERVICES, service("s", type="ExternalName")),
    _post(
        "service: external name with headless",
        SERVICES,
        service("s", type="ExternalName", externalName="e.example.com", clusterIP="None"),
    ),
    _post("service: bad affinity", SERVICES, service("s", sessionAffinity="Maybe")),
    _post("service: name starts with a digit", SERVICES, service("1s")),
    Case(
        "service: clusterIP is immutable",
        patch(_AT_S, {"spec": {"clusterIP": "10.0.9.9", "clusterIPs": ["10.0.9.9"]}}),
        (_S,),
    ),
    Case("service: clusterIP kept by put", put(_AT_S, service("s", ports=[{"port": 81}])), (_S,)),
    Case("service: to NodePort", patch(_AT_S, {"spec": {"type": "NodePort"}}), (_S,)),
    Case(
        "service: to ExternalName",
        patch(_AT_S, {"spec": {"type": "ExternalName", "externalName": "e.example.com"}}),
        (_S,),
    ),
    Case(
        "service: NodePort back to ClusterIP",
        patch(_AT_S, {"spec": {"type": "ClusterIP"}}),
        (post(SERVICES, service("s", type="NodePort")),),
    ),
    Case("service: deleted", delete(_AT_S), (_S,)),
)

_NODE = post("/api/v1/nodes", obj("v1", "Node", "{ns}-n"), save="n")
_AT_N = "/api/v1/nodes/{ns}-n"

_NODES = (
    _post("node: created", "/api/v1/nodes", obj("v1", "Node", "{ns}-n")),
    _post(
        "node: bad taint",
        "/api/v1/nodes",
        obj(
            "v1",
            "Node",
            "{ns}-n",
            spec={
                "taints": [
                    {"key": "a", "effect": "Sometimes"},
                    {"key": "b c", "effect": "NoSchedule"},
                ]
            },
        ),
    ),
    _post(
        "node: same taint twice",
        "/api/v1/nodes",
        obj(
            "v1",
            "Node",
            "{ns}-n",
            spec={
                "taints": [
                    {"key": "a", "effect": "NoSchedule"},
                    {"key": "a", "effect": "NoSchedule"},
                ]
            },
        ),
    ),
    _post(
        "node: bad capacity",
        "/api/v1/nodes",
        obj("v1", "Node", "{ns}-n", status={"capacity": {"nvidia.com/gpu": "0.5", "gpu": 1}}),
    ),
    _post("node: bad name", "/api/v1/nodes", obj("v1", "Node", "Bad_Node")),
    _post("node: bad cidr", "/api/v1/nodes", obj("v1", "Node", "{ns}-n", spec={"podCIDR": "x"})),
    Case(
        "node: capacity by status",
        patch(
            f"{_AT_N}/status",
            {
                "status": {
                    "capacity": {"nvidia.com/gpu": "4"},
                    "allocatable": {"nvidia.com/gpu": "4"},
                }
            },
        ),
        (_NODE,),
    ),
    Case("node: cordon", patch(_AT_N, {"spec": {"unschedulable": True}}, STRATEGIC), (_NODE,)),
    Case(
        "node: taint",
        patch(
            _AT_N,
            {"spec": {"taints": [{"key": "a", "value": "b", "effect": "NoSchedule"}]}},
            STRATEGIC,
        ),
        (_NODE,),
    ),
    Case(
        "node: providerID is immutable",
        patch(_AT_N, {"spec": {"providerID": "b"}}),
        (post("/api/v1/nodes", obj("v1", "Node", "{ns}-n", spec={"providerID": "a"})),),
    ),
    Case(
        "node: field selector",
        get("/api/v1/nodes?fieldSelector=spec.unschedulable%3Dtrue,metadata.name%3D{ns}-n"),
        (_NODE, patch(_AT_N, {"spec": {"unschedulable": True}})),
    ),
    Case("node: deleted", delete(_AT_N), (_NODE,)),
)

_ROOM = "{ns}-room"
_MAKE_ROOM = post("/api/v1/namespaces", obj("v1", "Namespace", _ROOM))

_NAMESPACES = (
    _post("namespace: created", "/api/v1/namespaces", obj("v1", "Namespace", _ROOM)),
    _post("namespace: bad name", "/api/v1/namespaces", obj("v1", "Namespace", "a.b")),
    Case("namespace: deleted", delete(f"/api/v1/namespaces/{_ROOM}"), (_MAKE_ROOM,)),
    Case(
        "namespace: deleted twice",
        delete(f"/api/v1/namespaces/{_ROOM}"),
        (_MAKE_ROOM, delete(f"/api/v1/namespaces/{_ROOM}")),
    ),
    Case(
        "namespace: create while terminating",
        post(f"/api/v1/namespaces/{_ROOM}/configmaps", configmap("c")),
        (_MAKE_ROOM, delete(f"/api/v1/namespaces/{_ROOM}")),
    ),
    Case(
        "namespace: patch while terminating",
        patch(f"/api/v1/namespaces/{_ROOM}/configmaps/c", {"data": {"a": "2"}}),
        (
            _MAKE_ROOM,
            post(f"/api/v1/namespaces/{_ROOM}/configmaps", configmap("c")),
            delete(f"/api/v1/namespaces/{_ROOM}"),
        ),
    ),
    Case(
        "namespace: finalized",
        put(
            f"/api/v1/namespaces/{_ROOM}/finalize",
            obj("v1", "Namespace", _ROOM, spec={"finalizers": []}),
        ),
        (_MAKE_ROOM, delete(f"/api/v1/namespaces/{_ROOM}")),
    ),
    Case(
        "namespace: gone after finalize",
        get(f"/api/v1/namespaces/{_ROOM}"),
        (
            _MAKE_ROOM,
            delete(f"/api/v1/namespaces/{_ROOM}"),
            put(
                f"/api/v1/namespaces/{_ROOM}/finalize",
                obj("v1", "Namespace", _ROOM, spec={"finalizers": []}),
            ),
        ),
    ),
    Case(
        "namespace: finalizers by patch",
        patch(f"/api/v1/namespaces/{_ROOM}", {"spec": {"finalizers": None}}),
        (_MAKE_ROOM,),
    ),
    Case("namespace: delete default", delete("/api/v1/namespaces/default")),
    Case("namespace: delete collection", delete("/api/v1/namespaces")),
)


_PATHS = ("/api", "/apis", "/api/v1", "/apis/apps", "/apis/apps/v1", "/version", "/")
_DISCOVERY = (
    *(Case(f"discovery: {path}", get(path)) for path in _PATHS),
    Case("discovery: aggregated /api", get("/api", AGGREGATED)),
    Case("discovery: aggregated beta", get("/api", AGGREGATED.replace("v=v2", "v=v2beta1"))),
    Case("discovery: with trailing slash", get("/apis/apps/")),
    Case("discovery: readyz verbose", get("/readyz?verbose")),
    Case("discovery: openapi index", get("/openapi/v3")),
    Case("discovery: openapi v2 as csv", get("/openapi/v2", "text/csv")),
    Case("discovery: openapi of an unknown group", get("/openapi/v3/apis/foo/v1")),
)

CASES = (
    *_SERVICE,
    *_NODES,
    *_NAMESPACES,
    *_DISCOVERY,
)
