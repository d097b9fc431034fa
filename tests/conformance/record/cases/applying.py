"""Server-side apply: owners, conflicts, removal, lists."""

from __future__ import annotations

from tests.conformance.record.case import (
    JSON_PATCH,
    MERGE,
    Case,
    Json,
    Request,
    apply,
    get,
    patch,
    post,
    put,
)
from tests.conformance.record.objects import (
    CONFIGMAPS,
    DEPLOYMENTS,
    PODS,
    SERVICES,
    configmap,
    container,
    deployment,
    obj,
    pod,
    template,
)

_AT_C = f"{CONFIGMAPS}/c"
_AT_D = f"{DEPLOYMENTS}/d"


def _c(manager: str, data: Json, force: bool = False, **metadata: Json) -> Request:
    return apply(_AT_C, manager, configmap("c", data, metadata=metadata), force)


def _meta(manager: str, **metadata: Json) -> Request:
    """Applies metadata only: an empty `data` would be owned as a value."""
    return apply(_AT_C, manager, obj("v1", "ConfigMap", "c", metadata=metadata))


def _d(manager: str, force: bool = False, **spec: Json) -> Request:
    """Only the given fields: a manager applies what it has an opinion on."""
    return apply(_AT_D, manager, obj("apps/v1", "Deployment", "d", spec=spec), force)


def _template(**spec: Json) -> Json:
    return {"spec": spec}


_WHOLE = apply(
    _AT_D,
    "m1",
    deployment(
        "d",
        replicas=1,
        template=template(
            containers=[
                container(
                    "a",
                    env=[{"name": "A", "value": "1"}, {"name": "B", "value": "2"}],
                    ports=[{"containerPort": 80}],
                )
            ]
        ),
    ),
)
_CLIENT_SIDE = "?fieldManager=kubectl-client-side-apply"

_OWNERS = (
    Case("ssa: creates", _c("m1", {"a": "1"})),
    Case("ssa: dryRun", apply(f"{_AT_C}", "m1&dryRun=All", configmap("c")), ()),
    Case("ssa: same again", _c("m1", {"a": "1"}), (_c("m1", {"a": "1"}),)),
    Case("ssa: other fields, other manager", _c("m2", {"b": "2"}), (_c("m1", {"a": "1"}),)),
    Case("ssa: same value is co-owned", _c("m2", {"a": "1"}), (_c("m1", {"a": "1"}),)),
    Case(
        "ssa: conflict with a co-owned field",
        _c("m2", {"a": "2"}),
        (_c("m1", {"a": "1"}), _c("m2", {"a": "1"})),
    ),
    Case(
        "ssa: two conflicts",
        _c("m3", {"a": "9", "b": "9"}),
        (_c("m1", {"a": "1"}), _c("m2", {"b": "2"})),
    ),
    Case("ssa: forced", _c("m2", {"a": "2"}, force=True), (_c("m1", {"a": "1"}),)),
    Case("ssa: own field removed", _c("m1", {"b": "2"}), (_c("m1", {"a": "1", "b": "2"}),)),
    Case(
        "ssa: co-owned field kept",
        _c("m1", {"b": "2"}),
        (_c("m1", {"a": "1", "b": "2"}), _c("m2", {"a": "1"})),
    ),
    Case("ssa: everything given up", _c("m1", {}), (_c("m1", {"a": "1"}),)),
    Case("ssa: labels and annotations", _meta("m1", labels={"l": "1"}, annotations={"a": "1"})),
    Case("ssa: null value", _c("m1", {"a": None}), (_c("m1", {"a": "1"}),)),
    Case(
        "ssa: update takes a field",
        put(f"{_AT_C}?fieldManager=up", configmap("c", {"a": "2"})),
        (_c("m1", {"a": "1", "b": "2"}),),
    ),
    Case(
        "ssa: apply after update",
        _c("m1", {"a": "3"}),
        (_c("m1", {"a": "1"}), patch(f"{_AT_C}?fieldManager=up", {"data": {"a": "2"}})),
    ),
    Case(
        "ssa: update and apply by one name",
        _c("m1", {"a": "2"}),
        (post(f"{CONFIGMAPS}?fieldManager=m1", configmap("c")),),
    ),
    Case(
        "ssa: update without change keeps owners",
        put(f"{_AT_C}?fieldManager=up", configmap("c", {"a": "1"})),
        (_c("m1", {"a": "1"}),),
    ),
    Case(
        "ssa: managedFields cleared",
        patch(_AT_C, {"metadata": {"managedFields": [{}]}}),
        (_c("m1", {"a": "1"}),),
    ),
    Case(
        "ssa: apply after managedFields cleared",
        _c("m1", {"a": "2"}),
        (_c("m1", {"a": "1"}), patch(_AT_C, {"metadata": {"managedFields": [{}]}})),
    ),
    Case(
        "ssa: managedFields in the body",
        apply(_AT_C, "m1", configmap("c", metadata={"managedFields": [{"manager": "x"}]})),
    ),
    Case(
        "ssa: uid of another object",
        apply(_AT_C, "m1", configmap("c", metadata={"uid": "x"})),
        (_c("m1", {"a": "1"}),),
    ),
    Case(
        "ssa: stale resourceVersion",
        apply(_AT_C, "m1", configmap("c", metadata={"resourceVersion": "1"})),
        (_c("m1", {"a": "1"}),),
    ),
    Case(
        "ssa: resourceVersion on create",
        apply(_AT_C, "m1", configmap("c", metadata={"resourceVersion": "1"})),
    ),
    Case("ssa: name mismatch", apply(_AT_C, "m1", configmap("d"))),
    Case("ssa: no kind", apply(_AT_C, "m1", {"metadata": {"name": "c"}})),
    Case("ssa: wrong kind", apply(_AT_C, "m1", pod("c"))),
    Case(
        "ssa: no apiVersion", apply(_AT_C, "m1", {"kind": "ConfigMap", "metadata": {"name": "c"}})
    ),
    Case("ssa: unknown field", apply(_AT_C, "m1", configmap("c", foo=1))),
    Case(
        "ssa: unknown field strict",
        apply(_AT_C, "m1&fieldValidation=Strict", configmap("c", foo=1)),
    ),
    Case(
        "ssa: yaml body",
        apply(
            _AT_C, "m1", "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: c\ndata:\n  a: '1'\n"
        ),
    ),
    Case("ssa: bad yaml", apply(_AT_C, "m1", "a: [")),
    Case(
        "ssa: force on merge patch",
        patch(f"{_AT_C}?force=true", {"data": {}}),
        (_c("m1", {"a": "1"}),),
    ),
    Case(
        "ssa: user agent names the manager",
        Request("POST", CONFIGMAPS, configmap("c"), {"User-Agent": "curl/8.0 (linux) x"}),
    ),
    Case(
        "ssa: update removes a field",
        put(f"{_AT_C}?fieldManager=up", configmap("c", {"b": "2"})),
        (_c("m1", {"a": "1", "b": "2"}),),
    ),
)

_LISTS = (
    Case("ssa: deployment", _WHOLE),
    Case(
        "ssa: scale then apply without replicas",
        _d(
            "m1",
            selector={"matchLabels": {"app": "x"}},
            template=template(containers=[container("a")]),
        ),
        (_WHOLE, patch(f"{_AT_D}/scale?fieldManager=scaler", {"spec": {"replicas": 3}})),
    ),
    Case(
        "ssa: scale then apply with replicas",
        _d("m1", replicas=2),
        (_WHOLE, patch(f"{_AT_D}/scale?fieldManager=scaler", {"spec": {"replicas": 3}})),
    ),
    Case(
        "ssa: container by key",
        _d("m2", template=_template(containers=[{"name": "a", "image": "other:2"}])),
        (_WHOLE,),
    ),
    Case(
        "ssa: container by key, forced",
        _d("m2", True, template=_template(containers=[{"name": "a", "image": "other:2"}])),
        (_WHOLE,),
    ),
    Case(
        "ssa: container added",
        _d("m2", template=_template(containers=[container("side")])),
        (_WHOLE,),
    ),
    Case(
        "ssa: container removed by its owner",
        _d("m2", template=_template()),
        (_WHOLE, _d("m2", template=_template(containers=[container("side")]))),
    ),
    Case(
        "ssa: env removed by its owner",
        _d(
            "m1",
            replicas=1,
            selector={"matchLabels": {"app": "x"}},
            template=template(containers=[container("a", env=[{"name": "B", "value": "2"}])]),
        ),
        (_WHOLE,),
    ),
    Case("ssa: item without key", _d("m1", template=_template(containers=[{"image": "x"}]))),
    Case(
        "ssa: two items of one key",
        _d(
            "m1",
            selector={"matchLabels": {"app": "x"}},
            template=template(containers=[container(), container()]),
        ),
    ),
    Case(
        "ssa: defaulted key",
        apply(
            f"{SERVICES}/s",
            "m1",
            obj(
                "v1",
                "Service",
                "s",
                spec={"ports": [{"port": 80}, {"port": 80, "protocol": "UDP", "name": "u"}]},
            ),
        ),
    ),
    Case(
        "ssa: defaulted key named",
        apply(
            f"{SERVICES}/s",
            "m2",
            obj("v1", "Service", "s", spec={"ports": [{"port": 80, "name": "t"}]}),
        ),
        (
            apply(
                f"{SERVICES}/s",
                "m1",
                obj("v1", "Service", "s", spec={"ports": [{"port": 80, "name": "t"}]}),
            ),
        ),
    ),
    Case(
        "ssa: set of finalizers",
        _meta("m2", finalizers=["a.example.com/2"]),
        (_meta("m1", finalizers=["a.example.com/1"]),),
    ),
    Case("ssa: empty map is a value", _c("m2", {}), (_c("m1", {}),)),
    Case("ssa: empty map against keys", _c("m2", {"a": "1"}), (_c("m1", {}),)),
    Case(
        "ssa: set item given up",
        _meta("m2"),
        (_meta("m1", finalizers=["a.example.com/1"]), _meta("m2", finalizers=["a.example.com/2"])),
    ),
    Case("ssa: atomic list", apply(f"{PODS}/p", "m1", pod("p", container(command=["a", "b"])))),
    Case("ssa: atomic map", _d("m2", selector={"matchLabels": {"app": "y"}}), (_WHOLE,)),
    Case(
        "ssa: invalid result", _d("m1", selector={"matchLabels": {"app": "y"}}, template=template())
    ),
    Case(
        "ssa: status subresource",
        apply(
            f"{PODS}/p/status",
            "kubelet",
            obj(
                "v1",
                "Pod",
                "p",
                status={"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
            ),
        ),
        (post(PODS, pod("p")),),
    ),
    Case(
        "ssa: status by main resource",
        apply(f"{PODS}/p", "m1", obj("v1", "Pod", "p", status={"phase": "Running"})),
        (post(PODS, pod("p")),),
    ),
    Case(
        "ssa: status of two managers",
        apply(
            f"{PODS}/p/status",
            "other",
            obj("v1", "Pod", "p", status={"conditions": [{"type": "Ready", "status": "False"}]}),
        ),
        (
            post(PODS, pod("p")),
            apply(
                f"{PODS}/p/status",
                "kubelet",
                obj("v1", "Pod", "p", status={"conditions": [{"type": "Ready", "status": "True"}]}),
            ),
        ),
    ),
    Case("ssa: absent by status", apply(f"{PODS}/p/status", "m1", obj("v1", "Pod", "p"))),
)

_LAST = '{"apiVersion":"v1","kind":"ConfigMap","data":{"a":"1","b":"2"},"metadata":{"name":"c"}}\n'
_BY_KUBECTL = post(
    f"{CONFIGMAPS}{_CLIENT_SIDE}",
    configmap(
        "c",
        {"a": "1", "b": "2"},
        metadata={"annotations": {"kubectl.kubernetes.io/last-applied-configuration": _LAST}},
    ),
    save="c",
)

_MIGRATION = (
    Case("ssa: after client-side apply", _c("kubectl", {"a": "1"}), (_BY_KUBECTL,)),
    Case("ssa: after client-side apply, other value", _c("kubectl", {"a": "2"}), (_BY_KUBECTL,)),
    Case(
        "ssa: migration rewrites managedFields",
        patch(
            f"{_AT_C}?fieldManager=kubectl",
            [
                {
                    "op": "replace",
                    "path": "/metadata/managedFields",
                    "value": [
                        {
                            "manager": "kubectl",
                            "operation": "Apply",
                            "apiVersion": "v1",
                            "time": "2026-01-01T00:00:00Z",
                            "fieldsType": "FieldsV1",
                            "fieldsV1": {"f:data": {"f:a": {}, "f:b": {}}},
                        }
                    ],
                },
                {
                    "op": "replace",
                    "path": "/metadata/resourceVersion",
                    "value": "${c.metadata.resourceVersion}",
                },
            ],
            JSON_PATCH,
        ),
        (_BY_KUBECTL,),
    ),
    Case(
        "ssa: bad managedFields",
        patch(
            _AT_C,
            {
                "metadata": {
                    "managedFields": [{"manager": "m", "operation": "Nope", "fieldsType": "F"}]
                }
            },
            MERGE,
        ),
        (_BY_KUBECTL,),
    ),
    Case(
        "ssa: last-applied kept in step",
        apply(_AT_C, "kubectl", configmap("c", {"a": "2"}), force=True),
        (_BY_KUBECTL,),
    ),
    Case(
        "ssa: owners of an updated status",
        get(f"{PODS}/p"),
        (
            post(f"{PODS}?fieldManager=maker", pod("p")),
            patch(f"{PODS}/p/status?fieldManager=kubelet", {"status": {"phase": "Running"}}),
        ),
    ),
)

CASES = (*_OWNERS, *_LISTS, *_MIGRATION)
