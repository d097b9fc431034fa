"""Pods: validation, what may change, binding, eviction, deletion, subresources."""

from __future__ import annotations

from tests.conformance.record.case import (
    MERGE,
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
    POLICY,
    PODS,
    binding,
    container,
    eviction,
    gpu,
    obj,
    pdb,
    pod,
)

_P1 = post(PODS, pod("p1"), save="p1")
_AT_P1 = f"{PODS}/p1"
_BIND = f"{_AT_P1}/binding"
_BOUND = post(_BIND, binding("p1", "node-1"))
_LABELLED = post(PODS, pod("p1", metadata={"labels": {"app": "x"}}), save="p1")


def _bad(name: str, body: Json) -> Case:
    return Case(f"pod: {name}", post(PODS, body))


_VALIDATION = (
    _bad("no containers", obj("v1", "Pod", "q", spec={})),
    _bad("no spec", obj("v1", "Pod", "q")),
    _bad("container without name and image", pod("q", {})),
    _bad("bad container name", pod("q", container("Bad_Name"))),
    _bad("two containers of one name", pod("q", container(), container())),
    _bad("bad quantity", pod("q", gpu("abc"))),
    _bad("negative quantity", pod("q", gpu(-1))),
    _bad("gpu request differs from limit", pod("q", gpu("2", "1"))),
    _bad("gpu request without limit", pod("q", container(
        resources={"requests": {"nvidia.com/gpu": 1}}))),
    _bad("gpu fraction", pod("q", gpu("500m"))),
    _bad("shared gpu fraction", pod("q", container(
        resources={"limits": {"aliyun.com/gpu-mem": "1.5"}}))),
    _bad("unqualified resource", pod("q", container(resources={"limits": {"gpu": 1}}))),
    _bad("memory request over limit", pod("q", container(
        resources={"limits": {"memory": "1Gi"}, "requests": {"memory": "2Gi"}}))),
    _bad("fractional memory warns", pod("q", container(
        resources={"requests": {"memory": "1500m"}}))),
    _bad("bad restartPolicy", pod("q", restartPolicy="Sometimes")),
    _bad("bad imagePullPolicy", pod("q", container(imagePullPolicy="Maybe"))),
    _bad("bad port", pod("q", container(ports=[{"containerPort": 0}, {"containerPort": 70000}]))),
    _bad("duplicate port name", pod("q", container(ports=[
        {"name": "a", "containerPort": 1}, {"name": "a", "containerPort": 2}]))),
    _bad("duplicate port warns", pod("q", container(ports=[
        {"containerPort": 1}, {"containerPort": 1}]))),
    _bad("bad env name", pod("q", container(env=[{"name": "a=b", "value": "x"}]))),
    _bad("duplicate env warns", pod("q", container(env=[
        {"name": "A", "value": "1"}, {"name": "A", "value": "2"}]))),
    _bad("env value and valueFrom", pod("q", container(env=[
        {"name": "A", "value": "1", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]))),
    _bad("env bad fieldPath", pod("q", container(env=[
        {"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.foo"}}}]))),
    _bad("mount of unknown volume", pod("q", container(
        volumeMounts=[{"name": "v", "mountPath": "/v"}]))),
    _bad("two mounts at one path", pod("q", container(volumeMounts=[
        {"name": "v", "mountPath": "/v"}, {"name": "v", "mountPath": "/v"}]),
        volumes=[{"name": "v", "emptyDir": {}}])),
    _bad("volume with two sources", pod("q", volumes=[
        {"name": "v", "emptyDir": {}, "hostPath": {"path": "/"}}])),
    _bad("duplicate volume", pod("q", volumes=[{"name": "v"}, {"name": "v"}])),
    _bad("bad toleration", pod("q", tolerations=[{"operator": "Equal", "effect": "Some"}])),
    _bad("toleration seconds without NoExecute", pod("q", tolerations=[
        {"key": "a", "operator": "Exists", "tolerationSeconds": 3, "effect": "NoSchedule"}])),
    _bad("bad affinity", pod("q", affinity={"nodeAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
            {"matchExpressions": [{"key": "a", "operator": "Within", "values": ["b"]}]}]}}})),
    _bad("bad nodeSelector", pod("q", nodeSelector={"a b": "c d"})),
    _bad("probe without handler", pod("q", container(livenessProbe={"periodSeconds": -1}))),
    _bad("liveness successThreshold", pod("q", container(
        livenessProbe={"tcpSocket": {"port": 1}, "successThreshold": 2}))),
    _bad("hostNetwork port differs", pod("q", container(
        ports=[{"containerPort": 1, "hostPort": 2}]), hostNetwork=True)),
    _bad("unknown priority class", pod("q", priorityClassName="absent")),
    _bad("priority sent", pod("q", priority=5)),
    _bad("unknown runtime class", pod("q", runtimeClassName="absent")),
    _bad("unknown service account", pod("q", serviceAccountName="absent")),
    _bad("negative grace period", pod("q", terminationGracePeriodSeconds=-1)),
    _bad("zero deadline", pod("q", activeDeadlineSeconds=0)),
    _bad("duplicate gate", pod("q", schedulingGates=[{"name": "a"}, {"name": "a"}])),
    _bad("gate with node", pod("q", schedulingGates=[{"name": "a"}], nodeName="n")),
    _bad("spread without key", pod("q", topologySpreadConstraints=[
        {"maxSkew": 0, "topologyKey": "", "whenUnsatisfiable": "No"}])),
    _bad("long name", pod("n" * 254)),
    _bad("generateName", obj("v1", "Pod", "", metadata={"name": None, "generateName": "gen-"},
                             spec={"containers": [container()]})),
    _bad("ephemeral containers at create", pod("q", ephemeralContainers=[container("e")])),
    _bad("claim not declared", pod("q", container(resources={"claims": [{"name": "g"}]}))),
)

_CHANGES = (
    Case("pod: created", post(PODS, pod("p1", gpu(1)))),
    Case("pod: nodeSelector is immutable", patch(_AT_P1, {"spec": {"nodeSelector": {"a": "b"}}}),
         (_P1,)),
    Case("pod: env is immutable", patch(_AT_P1, {"spec": {"containers": [
        {"name": "c", "env": [{"name": "A", "value": "1"}]}]}}, STRATEGIC), (_P1,)),
    Case("pod: resources are immutable", patch(_AT_P1, {"spec": {"containers": [
        {"name": "c", "resources": {"limits": {"nvidia.com/gpu": 1}}}]}}, STRATEGIC), (_P1,)),
    Case("pod: image changes", patch(_AT_P1, {"spec": {"containers": [
        {"name": "c", "image": "other:1"}]}}, STRATEGIC), (_P1,)),
    Case("pod: container added", patch(_AT_P1, {"spec": {"containers": [
        container("d")]}}, STRATEGIC), (_P1,)),
    Case("pod: toleration added", patch(_AT_P1, {"spec": {"tolerations": [
        {"key": "a", "operator": "Exists"}]}}, STRATEGIC), (_P1,)),
    Case("pod: nodeName by patch", patch(_AT_P1, {"spec": {"nodeName": "n"}}), (_P1,)),
    Case("pod: gate removed", patch(_AT_P1, {"spec": {"schedulingGates": []}}),
         (post(PODS, pod("p1", schedulingGates=[{"name": "a/b"}])),)),
    Case("pod: gate added", patch(_AT_P1, {"spec": {"schedulingGates": [{"name": "a/b"}]}}),
         (_P1,)),
    Case("pod: status on main resource ignored", patch(
        _AT_P1, {"status": {"phase": "Running"}, "metadata": {"labels": {"a": "b"}}}), (_P1,)),
    Case("pod: status", patch(f"{_AT_P1}/status", {"status": {
        "phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}, STRATEGIC),
        (_P1,)),
    Case("pod: status ignores spec", patch(f"{_AT_P1}/status", {
        "spec": {"nodeName": "n"}, "status": {"phase": "Running"}}), (_P1,)),
    Case("pod: status merges conditions", patch(f"{_AT_P1}/status", {"status": {"conditions": [
        {"type": "Ready", "status": "True"}]}}, STRATEGIC),
        (_P1, patch(f"{_AT_P1}/status", {"status": {"conditions": [
            {"type": "PodScheduled", "status": "True"}]}}, STRATEGIC))),
    Case("pod: debug container", patch(f"{_AT_P1}/ephemeralcontainers", {
        "spec": {"ephemeralContainers": [container("debug", targetContainerName="c")]}},
        STRATEGIC), (_P1,)),
    Case("pod: debug container with ports", patch(f"{_AT_P1}/ephemeralcontainers", {
        "spec": {"ephemeralContainers": [container("debug", ports=[{"containerPort": 1}])]}},
        STRATEGIC), (_P1,)),
    Case("pod: resize", patch(f"{_AT_P1}/resize", {"spec": {"containers": [
        {"name": "c", "resources": {"requests": {"cpu": "2"}}}]}}, STRATEGIC),
        (post(PODS, pod("p1", container(resources={"requests": {"cpu": "1"}}))),)),
)

_BINDING = (
    Case("bind: pod absent", post(f"{PODS}/zz/binding", binding("zz", "n"))),
    Case("bind: without target", post(_BIND, binding("p1", "")), (_P1,)),
    Case("bind: target is not a node", post(_BIND, obj(
        "v1", "Binding", "p1", target={"kind": "Pod", "name": "x"})), (_P1,)),
    Case("bind: other name", post(_BIND, binding("p2", "node-1")), (_P1,)),
    Case("bind: ok", post(_BIND, binding("p1", "node-1")), (_P1,)),
    Case("bind: pod afterwards", get(_AT_P1), (_P1, _BOUND)),
    Case("bind: dryRun", post(f"{_BIND}?dryRun=All", binding("p1", "node-1")), (_P1,)),
    Case("bind: by the bindings collection", post("/api/v1/namespaces/{ns}/bindings",
                                                  binding("p1", "node-1")), (_P1,)),
    Case("bind: annotations and labels reach the pod", get(_AT_P1), (
        post(PODS, pod("p1", metadata={"annotations": {"keep": "1", "change": "1"}})),
        post(_BIND, binding("p1", "node-1", annotations={"change": "2", "gpupool.io/a": "{}"},
                            labels={"l": "1"})))),
    Case("bind: uid precondition fails", post(_BIND, binding("p1", "node-1", uid="x")), (_P1,)),
    Case("bind: uid precondition holds", post(_BIND, binding(
        "p1", "node-1", uid="${p1.metadata.uid}")), (_P1,)),
    Case("bind: resourceVersion precondition fails", post(_BIND, binding(
        "p1", "node-1", resourceVersion="1")), (_P1,)),
    Case("bind: resourceVersion precondition holds", post(_BIND, binding(
        "p1", "node-1", resourceVersion="${p1.metadata.resourceVersion}")), (_P1,)),
    Case("bind: twice", post(_BIND, binding("p1", "node-2")), (_P1, _BOUND)),
    Case("bind: twice to the same node", post(_BIND, binding("p1", "node-1")), (_P1, _BOUND)),
    Case("bind: gated pod", post(_BIND, binding("p1", "node-1")),
         (post(PODS, pod("p1", schedulingGates=[{"name": "a/b"}])),)),
    Case("bind: pod being deleted", post(_BIND, binding("p1", "node-1")),
         (post(PODS, pod("p1", metadata={"finalizers": ["a.example.com/x"]})), delete(_AT_P1))),
)

_BUDGET = post(f"{POLICY}/poddisruptionbudgets", pdb("b", minAvailable=1))
_RUNNING = patch(f"{_AT_P1}/status", {"status": {
    "phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}, STRATEGIC)


def _budget_status(allowed: int) -> Request:
    """What the disruption controller would write."""
    status = {"disruptionsAllowed": allowed, "currentHealthy": 1 + allowed, "desiredHealthy": 1,
              "expectedPods": 1 + allowed, "observedGeneration": 1}
    return patch(f"{POLICY}/poddisruptionbudgets/b/status", {"status": status}, MERGE)


_EVICTION = (
    Case("evict: absent", post(f"{PODS}/zz/eviction", eviction("zz"))),
    Case("evict: pending pod", post(f"{_AT_P1}/eviction", eviction("p1")), (_P1,)),
    Case("evict: other name", post(f"{_AT_P1}/eviction", eviction("p2")), (_P1,)),
    Case("evict: budget of a pod that is not running", post(f"{_AT_P1}/eviction", eviction("p1")),
         (_LABELLED, _BUDGET)),
    Case("evict: budget not seen by its controller", post(f"{_AT_P1}/eviction", eviction("p1")),
         (_LABELLED, _BOUND, _RUNNING, _BUDGET)),
    Case("evict: budget used up", post(f"{_AT_P1}/eviction", eviction("p1")),
         (_LABELLED, _BOUND, _RUNNING, _BUDGET, _budget_status(0))),
    Case("evict: budget allows", post(f"{_AT_P1}/eviction", eviction("p1")),
         (_LABELLED, _BOUND, _RUNNING, _BUDGET, _budget_status(1))),
    Case("evict: budget afterwards", get(f"{POLICY}/poddisruptionbudgets/b"),
         (_LABELLED, _BOUND, _RUNNING, _BUDGET, _budget_status(1),
          post(f"{_AT_P1}/eviction", eviction("p1")))),
    Case("evict: pod afterwards", get(_AT_P1), (
        _LABELLED, _BOUND, _RUNNING, post(f"{_AT_P1}/eviction", eviction("p1")))),
    Case("evict: two budgets", post(f"{_AT_P1}/eviction", eviction("p1")),
         (_LABELLED, _BOUND, _RUNNING, _BUDGET,
          post(f"{POLICY}/poddisruptionbudgets", pdb("b2", maxUnavailable=0)))),
    Case("evict: dryRun", post(f"{_AT_P1}/eviction", eviction(
        "p1", deleteOptions={"dryRun": ["All"]})), (_P1,)),
    Case("evict: uid precondition", post(f"{_AT_P1}/eviction", eviction(
        "p1", deleteOptions={"preconditions": {"uid": "x"}})), (_P1,)),
)

_ENDING = (
    Case("pod delete: unscheduled", delete(_AT_P1), (_P1,)),
    Case("pod delete: bound", delete(_AT_P1), (_P1, _BOUND)),
    Case("pod delete: bound, twice", delete(_AT_P1), (_P1, _BOUND, delete(_AT_P1))),
    Case("pod delete: shorter the second time", delete(f"{_AT_P1}?gracePeriodSeconds=5"),
         (_P1, _BOUND, delete(_AT_P1))),
    Case("pod delete: longer the second time", delete(f"{_AT_P1}?gracePeriodSeconds=90"),
         (_P1, _BOUND, delete(_AT_P1))),
    Case("pod delete: grace 0", delete(f"{_AT_P1}?gracePeriodSeconds=0"), (_P1, _BOUND)),
    Case("pod delete: negative grace", delete(f"{_AT_P1}?gracePeriodSeconds=-1"), (_P1, _BOUND)),
    Case("pod delete: finished", delete(_AT_P1), (_P1, _BOUND, patch(
        f"{_AT_P1}/status", {"status": {"phase": "Succeeded"}}))),
    Case("pod delete: collection", delete(PODS), (_P1, post(PODS, pod("p2")))),
    Case("pod put: unchanged while deleting", put(_AT_P1, pod("p1")),
         (_P1, _BOUND, delete(_AT_P1))),
    Case("log: pod not bound", get(f"{_AT_P1}/log"), (_P1,)),
    Case("log: pod absent", get(f"{PODS}/zz/log")),
    Case("log: node absent", get(f"{_AT_P1}/log"), (_P1, _BOUND)),
    Case("log: which container", get(f"{_AT_P1}/log"), (
        post(PODS, pod("p1", container("a"), container("b"))), _BOUND)),
    Case("log: unknown container", get(f"{_AT_P1}/log?container=z"), (_P1, _BOUND)),
    Case("log: bad options", get(f"{_AT_P1}/log?tailLines=-1&sinceSeconds=0&limitBytes=0"),
         (_P1, _BOUND)),
    Case("exec: plain get", get(f"{_AT_P1}/exec?command=true&stdout=1"), (_P1, _BOUND)),
    Case("exec: pod not bound", get(f"{_AT_P1}/exec?command=true&stdout=1"), (_P1,)),
)

CASES = (*_VALIDATION, *_CHANGES, *_BINDING, *_EVICTION, *_ENDING)
