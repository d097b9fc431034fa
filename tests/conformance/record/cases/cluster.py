"""Services, nodes, namespaces, quotas, limits, secrets, priorities and discovery."""

from __future__ import annotations

from tests.conformance.record.case import (
    AGGREGATED,
    STRATEGIC,
    Case,
    Json,
    Request,
    delete,
    get,
    patch,
    post,
    put,
)
from tests.conformance.record.objects import (
    CONFIGMAPS,
    NS,
    PODS,
    SERVICES,
    configmap,
    container,
    gpu,
    obj,
    pod,
    service,
)


def _post(name: str, path: str, body: Json) -> Case:
    return Case(name, post(path, body))


_S = post(SERVICES, service("s"), save="s")
_AT_S = f"{SERVICES}/s"

_SERVICE = (
    _post("service: created", SERVICES, service("s")),
    _post("service: no ports", SERVICES, service("s", ports=[])),
    _post("service: two unnamed ports", SERVICES, service("s", ports=[
        {"port": 80}, {"port": 81}])),
    _post("service: duplicate port", SERVICES, service("s", ports=[
        {"name": "a", "port": 80}, {"name": "b", "port": 80}])),
    _post("service: bad port", SERVICES, service("s", ports=[{"port": 0, "protocol": "X"}])),
    _post("service: bad type", SERVICES, service("s", type="Magic")),
    _post("service: bad clusterIP", SERVICES, service("s", clusterIP="x")),
    _post("service: clusterIP out of range", SERVICES, service("s", clusterIP="192.168.1.1")),
    Case("service: clusterIP taken", post(SERVICES, service(
        "t", clusterIP="${s.spec.clusterIP}")), (_S,)),
    _post("service: nodePort out of range", SERVICES, service(
        "s", type="NodePort", ports=[{"port": 80, "nodePort": 80}])),
    _post("service: nodePort on ClusterIP", SERVICES, service(
        "s", ports=[{"port": 80, "nodePort": 30080}])),
    _post("service: external name missing", SERVICES, service("s", type="ExternalName")),
    _post("service: external name with headless", SERVICES, service(
        "s", type="ExternalName", externalName="e.example.com", clusterIP="None")),
    _post("service: bad affinity", SERVICES, service("s", sessionAffinity="Maybe")),
    _post("service: name starts with a digit", SERVICES, service("1s")),
    Case("service: clusterIP is immutable", patch(_AT_S, {"spec": {
        "clusterIP": "10.0.9.9", "clusterIPs": ["10.0.9.9"]}}), (_S,)),
    Case("service: clusterIP kept by put", put(_AT_S, service("s", ports=[{"port": 81}])), (_S,)),
    Case("service: to NodePort", patch(_AT_S, {"spec": {"type": "NodePort"}}), (_S,)),
    Case("service: to ExternalName", patch(_AT_S, {"spec": {
        "type": "ExternalName", "externalName": "e.example.com"}}), (_S,)),
    Case("service: NodePort back to ClusterIP", patch(_AT_S, {"spec": {"type": "ClusterIP"}}),
         (post(SERVICES, service("s", type="NodePort")),)),
    Case("service: deleted", delete(_AT_S), (_S,)),
)

_NODE = post("/api/v1/nodes", obj("v1", "Node", "{ns}-n"), save="n")
_AT_N = "/api/v1/nodes/{ns}-n"

_NODES = (
    _post("node: created", "/api/v1/nodes", obj("v1", "Node", "{ns}-n")),
    _post("node: bad taint", "/api/v1/nodes", obj("v1", "Node", "{ns}-n", spec={"taints": [
        {"key": "a", "effect": "Sometimes"}, {"key": "b c", "effect": "NoSchedule"}]})),
    _post("node: same taint twice", "/api/v1/nodes", obj("v1", "Node", "{ns}-n", spec={"taints": [
        {"key": "a", "effect": "NoSchedule"}, {"key": "a", "effect": "NoSchedule"}]})),
    _post("node: bad capacity", "/api/v1/nodes", obj("v1", "Node", "{ns}-n", status={
        "capacity": {"nvidia.com/gpu": "0.5", "gpu": 1}})),
    _post("node: bad name", "/api/v1/nodes", obj("v1", "Node", "Bad_Node")),
    _post("node: bad cidr", "/api/v1/nodes", obj("v1", "Node", "{ns}-n", spec={"podCIDR": "x"})),
    Case("node: capacity by status", patch(f"{_AT_N}/status", {"status": {
        "capacity": {"nvidia.com/gpu": "4"}, "allocatable": {"nvidia.com/gpu": "4"}}}), (_NODE,)),
    Case("node: cordon", patch(_AT_N, {"spec": {"unschedulable": True}}, STRATEGIC), (_NODE,)),
    Case("node: taint", patch(_AT_N, {"spec": {"taints": [
        {"key": "a", "value": "b", "effect": "NoSchedule"}]}}, STRATEGIC), (_NODE,)),
    Case("node: providerID is immutable", patch(_AT_N, {"spec": {"providerID": "b"}}),
         (post("/api/v1/nodes", obj("v1", "Node", "{ns}-n", spec={"providerID": "a"})),)),
    Case("node: field selector", get("/api/v1/nodes?fieldSelector=spec.unschedulable%3Dtrue"
                                     ",metadata.name%3D{ns}-n"),
         (_NODE, patch(_AT_N, {"spec": {"unschedulable": True}}))),
    Case("node: deleted", delete(_AT_N), (_NODE,)),
)

_ROOM = "{ns}-room"
_MAKE_ROOM = post("/api/v1/namespaces", obj("v1", "Namespace", _ROOM))

_NAMESPACES = (
    _post("namespace: created", "/api/v1/namespaces", obj("v1", "Namespace", _ROOM)),
    _post("namespace: bad name", "/api/v1/namespaces", obj("v1", "Namespace", "a.b")),
    Case("namespace: deleted", delete(f"/api/v1/namespaces/{_ROOM}"), (_MAKE_ROOM,)),
    Case("namespace: deleted twice", delete(f"/api/v1/namespaces/{_ROOM}"),
         (_MAKE_ROOM, delete(f"/api/v1/namespaces/{_ROOM}"))),
    Case("namespace: create while terminating", post(
        f"/api/v1/namespaces/{_ROOM}/configmaps", configmap("c")),
        (_MAKE_ROOM, delete(f"/api/v1/namespaces/{_ROOM}"))),
    Case("namespace: patch while terminating", patch(
        f"/api/v1/namespaces/{_ROOM}/configmaps/c", {"data": {"a": "2"}}),
        (_MAKE_ROOM, post(f"/api/v1/namespaces/{_ROOM}/configmaps", configmap("c")),
         delete(f"/api/v1/namespaces/{_ROOM}"))),
    Case("namespace: finalized", put(f"/api/v1/namespaces/{_ROOM}/finalize", obj(
        "v1", "Namespace", _ROOM, spec={"finalizers": []})),
        (_MAKE_ROOM, delete(f"/api/v1/namespaces/{_ROOM}"))),
    Case("namespace: gone after finalize", get(f"/api/v1/namespaces/{_ROOM}"),
         (_MAKE_ROOM, delete(f"/api/v1/namespaces/{_ROOM}"),
          put(f"/api/v1/namespaces/{_ROOM}/finalize", obj(
              "v1", "Namespace", _ROOM, spec={"finalizers": []})))),
    Case("namespace: finalizers by patch", patch(
        f"/api/v1/namespaces/{_ROOM}", {"spec": {"finalizers": None}}), (_MAKE_ROOM,)),
    Case("namespace: delete default", delete("/api/v1/namespaces/default")),
    Case("namespace: delete collection", delete("/api/v1/namespaces")),
)


def _quota(hard: Json, used: Json) -> tuple[Request, ...]:
    """A quota, and the status that its controller would have written."""
    at = f"{NS}/resourcequotas"
    return (
        post(at, obj("v1", "ResourceQuota", "q", spec={"hard": hard})),
        patch(f"{at}/q/status", {"status": {"hard": hard, "used": used}}),
    )


_GPUS = _quota({"requests.nvidia.com/gpu": "2", "pods": "10"},
               {"requests.nvidia.com/gpu": "1", "pods": "1"})
_FULL = _quota({"count/configmaps": "1"}, {"count/configmaps": "1"})
_CPU = _quota({"limits.cpu": "1", "requests.memory": "1Gi"},
              {"limits.cpu": "0", "requests.memory": "0"})


def _seen(body: Json, path: str = PODS) -> Request:
    """The quota is enforced a moment after its status was written."""
    return post(f"{path}?dryRun=All", body, until_status=403)


_LIMITS = post(f"{NS}/limitranges", obj("v1", "LimitRange", "l", spec={"limits": [
    {"type": "Container", "default": {"cpu": "500m", "memory": "1Gi"},
     "defaultRequest": {"cpu": "100m"}, "max": {"cpu": "2", "memory": "4Gi"},
     "min": {"cpu": "50m"}, "maxLimitRequestRatio": {"memory": "2"}},
    {"type": "Pod", "max": {"cpu": "3"}},
    {"type": "PersistentVolumeClaim", "max": {"storage": "1Gi"}}]}))
_LIMITS_SEEN = post(f"{PODS}?dryRun=All", pod("q", container(
    resources={"limits": {"cpu": "9"}})), until_status=403)


def _limited(name: str, body: Json, path: str = PODS) -> Case:
    return Case(f"limits: {name}", post(path, body), (_LIMITS, _LIMITS_SEEN))


_BUDGETS = (
    Case("quota: gpus exceeded", post(PODS, pod("p", gpu(2))), (*_GPUS, _seen(pod("p", gpu(2))))),
    Case("quota: gpus left", post(PODS, pod("p", gpu(1))), (*_GPUS, _seen(pod("p", gpu(2))))),
    Case("quota: used afterwards", get(f"{NS}/resourcequotas/q"),
         (*_GPUS, _seen(pod("p", gpu(2))), post(PODS, pod("p", gpu(1))))),
    Case("quota: objects exceeded", post(CONFIGMAPS, configmap("c")),
         (*_FULL, _seen(configmap("c"), CONFIGMAPS))),
    Case("quota: limits must be given", post(PODS, pod("p")), (*_CPU, _seen(pod("p")))),
    Case("quota: two exceeded", post(PODS, pod("p", container(resources={
        "limits": {"cpu": 2, "memory": "2Gi"}}))), (*_CPU, _seen(pod("p")))),
    _post("quota: bad names", f"{NS}/resourcequotas", obj("v1", "ResourceQuota", "q", spec={
        "hard": {"foo": 1, "pods": "-1", "requests.nvidia.com/gpu": "0.5"}})),
    _post("quota: limits of an extended resource", f"{NS}/resourcequotas", obj(
        "v1", "ResourceQuota", "q", spec={"hard": {"limits.nvidia.com/gpu": 1}})),
    _post("quota: bad scope", f"{NS}/resourcequotas", obj("v1", "ResourceQuota", "q", spec={
        "hard": {"limits.cpu": 1}, "scopes": ["BestEffort", "NotBestEffort", "X"]})),
    _limited("defaults", pod("p")),
    _limited("over max", pod("p", container(resources={"limits": {"cpu": 3}}))),
    _limited("under min", pod("p", container(resources={"requests": {"cpu": "10m"}}))),
    _limited("ratio", pod("p", container(resources={
        "limits": {"memory": "4Gi"}, "requests": {"memory": "1Gi"}}))),
    _limited("pod over max", pod("p", container("a", resources={"limits": {"cpu": 2}}),
                                 container("b", resources={"limits": {"cpu": 2}}))),
    _limited("claim over max", obj("v1", "PersistentVolumeClaim", "c", spec={
        "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "2Gi"}}}),
        f"{NS}/persistentvolumeclaims"),
    _post("limits: bad range", f"{NS}/limitranges", obj("v1", "LimitRange", "l", spec={"limits": [
        {"type": "Container", "min": {"cpu": 2}, "max": {"cpu": 1}, "default": {"cpu": 3}},
        {"type": "Odd", "default": {"cpu": 1}}]})),
)

_SECRETS = f"{NS}/secrets"
_IMMUTABLE = post(CONFIGMAPS, configmap("c", immutable=True))
_PRIORITY = "/apis/scheduling.k8s.io/v1/priorityclasses"
_HOOKS = "/apis/admissionregistration.k8s.io/v1"
_BAD_HOOK = {"name": "short", "clientConfig": {}, "rules": [
    {"operations": ["X"], "apiGroups": [], "apiVersions": [], "resources": ["*", "pods"]}],
    "admissionReviewVersions": ["v9"], "sideEffects": "Some", "failurePolicy": "Odd",
    "timeoutSeconds": 90, "matchPolicy": "Odd"}

_CONFIG = (
    Case("configmap: immutable", patch(f"{CONFIGMAPS}/c", {"data": {"a": "2"}}), (_IMMUTABLE,)),
    Case("configmap: immutable unset", patch(f"{CONFIGMAPS}/c", {"immutable": None}),
         (_IMMUTABLE,)),
    Case("configmap: immutable label", patch(f"{CONFIGMAPS}/c", {
        "metadata": {"labels": {"a": "b"}}}), (_IMMUTABLE,)),
    _post("configmap: key leaves its folder", CONFIGMAPS, configmap("c", {"a": "x", "../b": "y"})),
    Case("secret: immutable", patch(f"{_SECRETS}/s", {"stringData": {"a": "2"}}),
         (post(_SECRETS, obj("v1", "Secret", "s", stringData={"a": "1"}, immutable=True)),)),
    Case("secret: type is immutable", patch(f"{_SECRETS}/s", {"type": "other"}),
         (post(_SECRETS, obj("v1", "Secret", "s")),)),
    Case("secret: stringData by patch", patch(f"{_SECRETS}/s", {"stringData": {"a": "2"}}),
         (post(_SECRETS, obj("v1", "Secret", "s", stringData={"a": "1", "b": "1"})),)),
    _post("secret: not base64", _SECRETS, obj("v1", "Secret", "s", data={"a": "!"})),
    _post("secret: tls without keys", _SECRETS, obj("v1", "Secret", "s",
                                                    type="kubernetes.io/tls")),
    _post("secret: docker config", _SECRETS, obj(
        "v1", "Secret", "s", type="kubernetes.io/dockerconfigjson",
        stringData={".dockerconfigjson": "{"})),
    _post("secret: service account token", _SECRETS, obj(
        "v1", "Secret", "s", type="kubernetes.io/service-account-token")),
    _post("priority: value too high", _PRIORITY, obj(
        "scheduling.k8s.io/v1", "PriorityClass", "{ns}", value=2000000000)),
    _post("priority: system name", _PRIORITY, obj(
        "scheduling.k8s.io/v1", "PriorityClass", "system-x", value=1)),
    _post("priority: no value", _PRIORITY, obj("scheduling.k8s.io/v1", "PriorityClass", "{ns}")),
    _post("priority: bad policy", _PRIORITY, obj(
        "scheduling.k8s.io/v1", "PriorityClass", "{ns}", value=1, preemptionPolicy="Odd")),
    Case("priority: value is immutable", patch(f"{_PRIORITY}/{{ns}}", {"value": 2}),
         (post(_PRIORITY, obj("scheduling.k8s.io/v1", "PriorityClass", "{ns}", value=1)),)),
    Case("priority: used by a pod", post(PODS, pod("p", priorityClassName="{ns}")),
         (post(_PRIORITY, obj("scheduling.k8s.io/v1", "PriorityClass", "{ns}", value=77,
                              preemptionPolicy="Never")),
          post(f"{PODS}?dryRun=All", pod("p", priorityClassName="{ns}"), until_status=201))),
    Case("priority: deleted system class", delete(f"{_PRIORITY}/system-node-critical")),
    _post("webhook: mutating, all wrong", f"{_HOOKS}/mutatingwebhookconfigurations", obj(
        "admissionregistration.k8s.io/v1", "MutatingWebhookConfiguration", "{ns}",
        webhooks=[_BAD_HOOK | {"reinvocationPolicy": "Odd"}])),
    _post("webhook: validating, all wrong", f"{_HOOKS}/validatingwebhookconfigurations", obj(
        "admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", "{ns}",
        webhooks=[_BAD_HOOK])),
    _post("webhook: url rules", f"{_HOOKS}/validatingwebhookconfigurations", obj(
        "admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", "{ns}",
        webhooks=[{"name": "a.example.com", "sideEffects": "None",
                   "admissionReviewVersions": ["v1"],
                   "clientConfig": {"url": "http://u:p@example.com/?a=b#c",
                                    "caBundle": "AAAA"}}])),
    _post("lease: bad numbers", "/apis/coordination.k8s.io/v1/namespaces/{ns}/leases", obj(
        "coordination.k8s.io/v1", "Lease", "l", spec={
            "leaseDurationSeconds": 0, "leaseTransitions": -1})),
    _post("ingress: bad path", "/apis/networking.k8s.io/v1/namespaces/{ns}/ingresses", obj(
        "networking.k8s.io/v1", "Ingress", "i", spec={"rules": [{"http": {"paths": [
            {"path": "x", "pathType": "Prefix", "backend": {}}]}}]})),
    _post("claim: nothing in spec", f"{NS}/persistentvolumeclaims", obj(
        "v1", "PersistentVolumeClaim", "c", spec={})),
)

_DISCOVERY = tuple(
    Case(f"discovery: {path}", get(path))
    for path in ("/api", "/apis", "/api/v1", "/apis/apps", "/apis/apps/v1", "/version", "/")
) + (
    Case("discovery: aggregated /api", get("/api", AGGREGATED)),
    Case("discovery: aggregated beta", get("/api", AGGREGATED.replace("v=v2", "v=v2beta1"))),
    Case("discovery: with trailing slash", get("/apis/apps/")),
    Case("discovery: readyz verbose", get("/readyz?verbose")),
    Case("discovery: openapi index", get("/openapi/v3")),
    Case("discovery: openapi v2 as csv", get("/openapi/v2", "text/csv")),
    Case("discovery: openapi of an unknown group", get("/openapi/v3/apis/foo/v1")),
)

CASES = (*_SERVICE, *_NODES, *_NAMESPACES, *_BUDGETS, *_CONFIG, *_DISCOVERY)
