"""JSON patch and strategic merge patch."""

from __future__ import annotations

from tests.conformance.record.case import JSON_PATCH, MERGE, STRATEGIC, Case, Json, patch, post
from tests.conformance.record.objects import (
    CONFIGMAPS,
    DEPLOYMENTS,
    SERVICES,
    configmap,
    container,
    deployment,
    service,
    template,
)

_ENV = [{"name": n, "value": n.lower()} for n in "ABC"]
_PORTS = [{"containerPort": 80}, {"containerPort": 53, "protocol": "UDP"}]
_D = post(
    DEPLOYMENTS,
    deployment(
        "d",
        template=template(
            containers=[container("a", env=_ENV, ports=_PORTS), container("b", args=["x", "y"])],
            volumes=[
                {"name": "v", "emptyDir": {"sizeLimit": "1Gi"}},
                {"name": "w", "emptyDir": {}},
            ],
            tolerations=[{"key": "t", "operator": "Exists"}],
            nodeSelector={"n": "1"},
        ),
    ),
)
_AT_D = f"{DEPLOYMENTS}/d"


def _strategic(name: str, template_spec: Json) -> Case:
    body = {"spec": {"template": {"spec": template_spec}}}
    return Case(f"strategic: {name}", patch(_AT_D, body, STRATEGIC), (_D,))


_STRATEGIC = (
    _strategic("container merged by name", {"containers": [{"name": "a", "image": "new:1"}]}),
    _strategic("container added comes first", {"containers": [container("z")]}),
    _strategic("container deleted", {"containers": [{"name": "a", "$patch": "delete"}]}),
    _strategic("container replaced", {"containers": [{"$patch": "replace"}, container("only")]}),
    _strategic("container without merge key", {"containers": [{"image": "x"}]}),
    _strategic(
        "env merged by name",
        {
            "containers": [
                {"name": "a", "env": [{"name": "B", "value": "2"}, {"name": "D", "value": "d"}]}
            ]
        },
    ),
    _strategic(
        "env deleted", {"containers": [{"name": "a", "env": [{"name": "B", "$patch": "delete"}]}]}
    ),
    _strategic(
        "env value removed by null",
        {"containers": [{"name": "a", "env": [{"name": "B", "value": None}]}]},
    ),
    _strategic(
        "env order",
        {
            "containers": [
                {
                    "name": "a",
                    "$setElementOrder/env": [{"name": "C"}, {"name": "D"}, {"name": "A"}],
                    "env": [{"name": "D", "value": "d"}],
                }
            ],
            "$setElementOrder/containers": [{"name": "b"}, {"name": "a"}],
        },
    ),
    _strategic(
        "element order misses the patch",
        {"$setElementOrder/containers": [{"name": "b"}], "containers": [container("z")]},
    ),
    _strategic(
        "ports merged by containerPort",
        {
            "containers": [
                {"name": "a", "ports": [{"containerPort": 53, "name": "dns", "protocol": "UDP"}]}
            ]
        },
    ),
    _strategic("atomic list replaced", {"containers": [{"name": "b", "args": ["z"]}]}),
    _strategic("tolerations replaced", {"tolerations": [{"key": "u", "operator": "Exists"}]}),
    _strategic("map merged and removed", {"nodeSelector": {"n": None, "m": "2"}}),
    _strategic("map replaced", {"nodeSelector": {"$patch": "replace", "m": "2"}}),
    _strategic("map deleted", {"nodeSelector": {"$patch": "delete"}}),
    _strategic(
        "volume source changed with retainKeys",
        {
            "volumes": [
                {"name": "v", "$retainKeys": ["name", "hostPath"], "hostPath": {"path": "/d"}}
            ]
        },
    ),
    _strategic(
        "volume source added without retainKeys",
        {"volumes": [{"name": "v", "hostPath": {"path": "/d"}}]},
    ),
    _strategic(
        "retainKeys misses a key",
        {"volumes": [{"name": "v", "$retainKeys": ["name"], "hostPath": {"path": "/d"}}]},
    ),
    _strategic("unknown directive", {"nodeSelector": {"$patch": "nonsense"}}),
    _strategic("wrong type", {"containers": {"name": "a"}}),
    Case(
        "strategic: strategy with retainKeys",
        patch(
            _AT_D, {"spec": {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}}, STRATEGIC
        ),
        (_D,),
    ),
    Case(
        "strategic: strategy without retainKeys",
        patch(_AT_D, {"spec": {"strategy": {"type": "Recreate"}}}, STRATEGIC),
        (_D,),
    ),
    Case(
        "strategic: finalizers are a set",
        patch(
            f"{CONFIGMAPS}/c",
            {"metadata": {"finalizers": ["a.example.com/2", "a.example.com/1"]}},
            STRATEGIC,
        ),
        (post(CONFIGMAPS, configmap("c", metadata={"finalizers": ["a.example.com/1"]})),),
    ),
    Case(
        "strategic: deleteFromPrimitiveList",
        patch(
            f"{CONFIGMAPS}/c",
            {"metadata": {"$deleteFromPrimitiveList/finalizers": ["a.example.com/1"]}},
            STRATEGIC,
        ),
        (
            post(
                CONFIGMAPS,
                configmap("c", metadata={"finalizers": ["a.example.com/1", "a.example.com/2"]}),
            ),
        ),
    ),
    Case(
        "strategic: primitive element order",
        patch(
            f"{CONFIGMAPS}/c",
            {
                "metadata": {
                    "$setElementOrder/finalizers": [
                        "a.example.com/3",
                        "a.example.com/2",
                        "a.example.com/1",
                    ],
                    "finalizers": ["a.example.com/3"],
                }
            },
            STRATEGIC,
        ),
        (
            post(
                CONFIGMAPS,
                configmap("c", metadata={"finalizers": ["a.example.com/1", "a.example.com/2"]}),
            ),
        ),
    ),
    Case(
        "strategic: owner references by uid",
        patch(
            f"{CONFIGMAPS}/c",
            {"metadata": {"ownerReferences": [{"uid": "u1", "$patch": "delete"}]}},
            STRATEGIC,
        ),
        (
            post(
                CONFIGMAPS,
                configmap(
                    "c",
                    metadata={
                        "ownerReferences": [
                            {"apiVersion": "v1", "kind": "Pod", "name": n, "uid": u}
                            for n, u in (("a", "u1"), ("b", "u2"))
                        ]
                    },
                ),
            ),
        ),
    ),
    Case(
        "strategic: service ports by port",
        patch(
            f"{SERVICES}/s",
            {"spec": {"ports": [{"port": 81, "name": "b", "targetPort": 8081}]}},
            STRATEGIC,
        ),
        (
            post(
                SERVICES, service("s", ports=[{"port": 80, "name": "a"}, {"port": 81, "name": "b"}])
            ),
        ),
    ),
    Case(
        "strategic: null removes a field",
        patch(
            _AT_D, {"spec": {"template": {"spec": {"volumes": None}}, "paused": None}}, STRATEGIC
        ),
        (_D,),
    ),
    Case(
        "strategic: unknown field strict",
        patch(f"{_AT_D}?fieldValidation=Strict", {"spec": {"foo": 1}}, STRATEGIC),
        (_D,),
    ),
    Case("strategic: not an object", patch(_AT_D, [], STRATEGIC), (_D,)),
    Case(
        "strategic: replace whole object",
        patch(
            f"{CONFIGMAPS}/c",
            {"$patch": "replace", "metadata": {"name": "c"}, "data": {"z": "1"}},
            STRATEGIC,
        ),
        (post(CONFIGMAPS, configmap("c")),),
    ),
)

_C = post(CONFIGMAPS, configmap("c", metadata={"finalizers": ["a.example.com/1"]}))


def _json(name: str, *operations: Json) -> Case:
    return Case(
        f"json patch: {name}", patch(f"{CONFIGMAPS}/c", list(operations), JSON_PATCH), (_C,)
    )


_JSON = (
    _json("add", {"op": "add", "path": "/data/b", "value": "2"}),
    _json("replace", {"op": "replace", "path": "/data/a", "value": "2"}),
    _json("replace missing", {"op": "replace", "path": "/data/zz", "value": "2"}),
    _json("remove", {"op": "remove", "path": "/data/a"}),
    _json(
        "copy and move",
        {"op": "copy", "from": "/data/a", "path": "/data/b"},
        {"op": "move", "from": "/data/a", "path": "/data/c"},
    ),
    _json(
        "test then add",
        {"op": "test", "path": "/data/a", "value": "1"},
        {"op": "add", "path": "/data/b", "value": "2"},
    ),
    _json(
        "append and insert",
        {"op": "add", "path": "/metadata/finalizers/-", "value": "a.example.com/3"},
        {"op": "add", "path": "/metadata/finalizers/1", "value": "a.example.com/2"},
    ),
    _json("index out of range", {"op": "add", "path": "/metadata/finalizers/9", "value": "x"}),
    _json(
        "escaped key",
        {"op": "add", "path": "/metadata/annotations", "value": {"a/b": "1", "c~d": "2"}},
        {"op": "replace", "path": "/metadata/annotations/a~1b", "value": "3"},
        {"op": "remove", "path": "/metadata/annotations/c~0d"},
    ),
    _json("parent missing", {"op": "add", "path": "/metadata/annotations/x", "value": "1"}),
    _json("unknown operation", {"op": "nope", "path": "/data/a"}),
    _json("result is invalid", {"op": "add", "path": "/metadata/labels", "value": {"a b": "c"}}),
    _json("result has wrong type", {"op": "add", "path": "/data", "value": "text"}),
    _json(
        "stale resourceVersion", {"op": "test", "path": "/metadata/resourceVersion", "value": "1"}
    ),
    Case("json patch: not a list", patch(f"{CONFIGMAPS}/c", {"op": "add"}, JSON_PATCH), (_C,)),
    Case(
        "merge: list replaced",
        patch(_AT_D, {"spec": {"template": {"spec": {"containers": [container("only")]}}}}, MERGE),
        (_D,),
    ),
    Case("merge: replicas", patch(_AT_D, {"spec": {"replicas": 0, "paused": True}}, MERGE), (_D,)),
    Case(
        "merge: metadata is kept",
        patch(
            _AT_D, {"metadata": {"uid": None, "creationTimestamp": None, "generation": 9}}, MERGE
        ),
        (_D,),
    ),
)

CASES = (*_STRATEGIC, *_JSON)
