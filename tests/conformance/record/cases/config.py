"""ConfigMaps, secrets, priorities, webhook configurations and other small kinds."""

from __future__ import annotations

from tests.conformance.record.case import (
    Case,
    Json,
    delete,
    patch,
    post,
)
from tests.conformance.record.objects import (
    CONFIGMAPS,
    NS,
    PODS,
    configmap,
    obj,
    pod,
)


def _post(name: str, path: str, body: Json) -> Case:
    return Case(name, post(path, body))


_SECRETS = f"{NS}/secrets"
_IMMUTABLE = post(CONFIGMAPS, configmap("c", immutable=True))
_PRIORITY = "/apis/scheduling.k8s.io/v1/priorityclasses"
_HOOKS = "/apis/admissionregistration.k8s.io/v1"
_BAD_HOOK = {
    "name": "short",
    "clientConfig": {},
    "rules": [
        {"operations": ["X"], "apiGroups": [], "apiVersions": [], "resources": ["*", "pods"]}
    ],
    "admissionReviewVersions": ["v9"],
    "sideEffects": "Some",
    "failurePolicy": "Odd",
    "timeoutSeconds": 90,
    "matchPolicy": "Odd",
}

_CONFIG = (
    Case("configmap: immutable", patch(f"{CONFIGMAPS}/c", {"data": {"a": "2"}}), (_IMMUTABLE,)),
    Case(
        "configmap: immutable unset", patch(f"{CONFIGMAPS}/c", {"immutable": None}), (_IMMUTABLE,)
    ),
    Case(
        "configmap: immutable label",
        patch(f"{CONFIGMAPS}/c", {"metadata": {"labels": {"a": "b"}}}),
        (_IMMUTABLE,),
    ),
    _post("configmap: key leaves its folder", CONFIGMAPS, configmap("c", {"a": "x", "../b": "y"})),
    Case(
        "secret: immutable",
        patch(f"{_SECRETS}/s", {"stringData": {"a": "2"}}),
        (post(_SECRETS, obj("v1", "Secret", "s", stringData={"a": "1"}, immutable=True)),),
    ),
    Case(
        "secret: type is immutable",
        patch(f"{_SECRETS}/s", {"type": "other"}),
        (post(_SECRETS, obj("v1", "Secret", "s")),),
    ),
    Case(
        "secret: stringData by patch",
        patch(f"{_SECRETS}/s", {"stringData": {"a": "2"}}),
        (post(_SECRETS, obj("v1", "Secret", "s", stringData={"a": "1", "b": "1"})),),
    ),
    _post("secret: not base64", _SECRETS, obj("v1", "Secret", "s", data={"a": "!"})),
    _post("secret: tls without keys", _SECRETS, obj("v1", "Secret", "s", type="kubernetes.io/tls")),
    _post(
        "secret: docker config",
        _SECRETS,
        obj(
            "v1",
            "Secret",
            "s",
            type="kubernetes.io/dockerconfigjson",
            stringData={".dockerconfigjson": "{"},
        ),
    ),
    _post(
        "secret: service account token",
        _SECRETS,
        obj("v1", "Secret", "s", type="kubernetes.io/service-account-token"),
    ),
    _post(
        "priority: value too high",
        _PRIORITY,
        obj("scheduling.k8s.io/v1", "PriorityClass", "{ns}", value=2000000000),
    ),
    _post(
        "priority: system name",
        _PRIORITY,
        obj("scheduling.k8s.io/v1", "PriorityClass", "system-x", value=1),
    ),
    _post("priority: no value", _PRIORITY, obj("scheduling.k8s.io/v1", "PriorityClass", "{ns}")),
    _post(
        "priority: bad policy",
        _PRIORITY,
        obj("scheduling.k8s.io/v1", "PriorityClass", "{ns}", value=1, preemptionPolicy="Odd"),
    ),
    Case(
        "priority: value is immutable",
        patch(f"{_PRIORITY}/{{ns}}", {"value": 2}),
        (post(_PRIORITY, obj("scheduling.k8s.io/v1", "PriorityClass", "{ns}", value=1)),),
    ),
    Case(
        "priority: used by a pod",
        post(PODS, pod("p", priorityClassName="{ns}")),
        (
            post(
                _PRIORITY,
                obj(
                    "scheduling.k8s.io/v1",
                    "PriorityClass",
                    "{ns}",
                    value=77,
                    preemptionPolicy="Never",
                ),
            ),
            post(f"{PODS}?dryRun=All", pod("p", priorityClassName="{ns}"), until_status=201),
        ),
    ),
    Case("priority: deleted system class", delete(f"{_PRIORITY}/system-node-critical")),
    _post(
        "webhook: mutating, all wrong",
        f"{_HOOKS}/mutatingwebhookconfigurations",
        obj(
            "admissionregistration.k8s.io/v1",
            "MutatingWebhookConfiguration",
            "{ns}",
            webhooks=[_BAD_HOOK | {"reinvocationPolicy": "Odd"}],
        ),
    ),
    _post(
        "webhook: validating, all wrong",
        f"{_HOOKS}/validatingwebhookconfigurations",
        obj(
            "admissionregistration.k8s.io/v1",
            "ValidatingWebhookConfiguration",
            "{ns}",
            webhooks=[_BAD_HOOK],
        ),
    ),
    _post(
        "webhook: url rules",
        f"{_HOOKS}/validatingwebhookconfigurations",
        obj(
            "admissionregistration.k8s.io/v1",
            "ValidatingWebhookConfiguration",
            "{ns}",
            webhooks=[
                {
                    "name": "a.example.com",
                    "sideEffects": "None",
                    "admissionReviewVersions": ["v1"],
                    "clientConfig": {"url": "http://u:p@example.com/?a=b#c", "caBundle": "AAAA"},
                }
            ],
        ),
    ),
    _post(
        "lease: bad numbers",
        "/apis/coordination.k8s.io/v1/namespaces/{ns}/leases",
        obj(
            "coordination.k8s.io/v1",
            "Lease",
            "l",
            spec={"leaseDurationSeconds": 0, "leaseTransitions": -1},
        ),
    ),
    _post(
        "ingress: bad path",
        "/apis/networking.k8s.io/v1/namespaces/{ns}/ingresses",
        obj(
            "networking.k8s.io/v1",
            "Ingress",
            "i",
            spec={
                "rules": [{"http": {"paths": [{"path": "x", "pathType": "Prefix", "backend": {}}]}}]
            },
        ),
    ),
    _post(
        "claim: nothing in spec",
        f"{NS}/persistentvolumeclaims",
        obj("v1", "PersistentVolumeClaim", "c", spec={}),
    ),
)

CASES = (*_CONFIG,)
