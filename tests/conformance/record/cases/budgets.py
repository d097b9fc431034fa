"""Resource quotas and limit ranges."""

from __future__ import annotations

from tests.conformance.record.case import (
    Case,
    Json,
    Request,
    get,
    patch,
    post,
)
from tests.conformance.record.objects import (
    CONFIGMAPS,
    NS,
    PODS,
    configmap,
    container,
    gpu,
    obj,
    pod,
)


def _post(name: str, path: str, body: Json) -> Case:
    return Case(name, post(path, body))


def _quota(hard: Json, used: Json) -> tuple[Request, ...]:
    """A quota, and the status that its controller would have written."""
    at = f"{NS}/resourcequotas"
    return (
        post(at, obj("v1", "ResourceQuota", "q", spec={"hard": hard})),
        patch(f"{at}/q/status", {"status": {"hard": hard, "used": used}}),
    )


_GPUS = _quota(
    {"requests.nvidia.com/gpu": "2", "pods": "10"}, {"requests.nvidia.com/gpu": "1", "pods": "1"}
)
_FULL = _quota({"count/configmaps": "1"}, {"count/configmaps": "1"})
_CPU = _quota(
    {"limits.cpu": "1", "requests.memory": "1Gi"}, {"limits.cpu": "0", "requests.memory": "0"}
)


def _seen(body: Json, path: str = PODS) -> Request:
    """The quota is enforced a moment after its status was written."""
    return post(f"{path}?dryRun=All", body, until_status=403)


_LIMITS = post(
    f"{NS}/limitranges",
    obj(
        "v1",
        "LimitRange",
        "l",
        spec={
            "limits": [
                {
                    "type": "Container",
                    "default": {"cpu": "500m", "memory": "1Gi"},
                    "defaultRequest": {"cpu": "100m"},
                    "max": {"cpu": "2", "memory": "4Gi"},
                    "min": {"cpu": "50m"},
                    "maxLimitRequestRatio": {"memory": "2"},
                },
                {"type": "Pod", "max": {"cpu": "3"}},
                {"type": "PersistentVolumeClaim", "max": {"storage": "1Gi"}},
            ]
        },
    ),
)
_LIMITS_SEEN = post(
    f"{PODS}?dryRun=All", pod("q", container(resources={"limits": {"cpu": "9"}})), until_status=403
)


def _limited(name: str, body: Json, path: str = PODS) -> Case:
    return Case(f"limits: {name}", post(path, body), (_LIMITS, _LIMITS_SEEN))


_BUDGETS = (
    Case("quota: gpus exceeded", post(PODS, pod("p", gpu(2))), (*_GPUS, _seen(pod("p", gpu(2))))),
    Case("quota: gpus left", post(PODS, pod("p", gpu(1))), (*_GPUS, _seen(pod("p", gpu(2))))),
    Case(
        "quota: used afterwards",
        get(f"{NS}/resourcequotas/q"),
        (*_GPUS, _seen(pod("p", gpu(2))), post(PODS, pod("p", gpu(1)))),
    ),
    Case(
        "quota: objects exceeded",
        post(CONFIGMAPS, configmap("c")),
        (*_FULL, _seen(configmap("c"), CONFIGMAPS)),
    ),
    Case("quota: limits must be given", post(PODS, pod("p")), (*_CPU, _seen(pod("p")))),
    Case(
        "quota: two exceeded",
        post(PODS, pod("p", container(resources={"limits": {"cpu": 2, "memory": "2Gi"}}))),
        (*_CPU, _seen(pod("p"))),
    ),
    _post(
        "quota: bad names",
        f"{NS}/resourcequotas",
        obj(
            "v1",
            "ResourceQuota",
            "q",
            spec={"hard": {"foo": 1, "pods": "-1", "requests.nvidia.com/gpu": "0.5"}},
        ),
    ),
    _post(
        "quota: limits of an extended resource",
        f"{NS}/resourcequotas",
        obj("v1", "ResourceQuota", "q", spec={"hard": {"limits.nvidia.com/gpu": 1}}),
    ),
    _post(
        "quota: bad scope",
        f"{NS}/resourcequotas",
        obj(
            "v1",
            "ResourceQuota",
            "q",
            spec={"hard": {"limits.cpu": 1}, "scopes": ["BestEffort", "NotBestEffort", "X"]},
        ),
    ),
    _limited("defaults", pod("p")),
    _limited("over max", pod("p", container(resources={"limits": {"cpu": 3}}))),
    _limited("under min", pod("p", container(resources={"requests": {"cpu": "10m"}}))),
    _limited(
        "ratio",
        pod("p", container(resources={"limits": {"memory": "4Gi"}, "requests": {"memory": "1Gi"}})),
    ),
    _limited(
        "pod over max",
        pod(
            "p",
            container("a", resources={"limits": {"cpu": 2}}),
            container("b", resources={"limits": {"cpu": 2}}),
        ),
    ),
    _limited(
        "claim over max",
        obj(
            "v1",
            "PersistentVolumeClaim",
            "c",
            spec={"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "2Gi"}}},
        ),
        f"{NS}/persistentvolumeclaims",
    ),
    _post(
        "limits: bad range",
        f"{NS}/limitranges",
        obj(
            "v1",
            "LimitRange",
            "l",
            spec={
                "limits": [
                    {
                        "type": "Container",
                        "min": {"cpu": 2},
                        "max": {"cpu": 1},
                        "default": {"cpu": 3},
                    },
                    {"type": "Odd", "default": {"cpu": 1}},
                ]
            },
        ),
    ),
)

CASES = (*_BUDGETS,)
