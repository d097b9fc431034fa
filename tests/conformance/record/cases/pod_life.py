"""Pods: binding, eviction, deletion, logs."""

from __future__ import annotations

from tests.conformance.record.case import (
    MERGE,
    STRATEGIC,
    Case,
    Request,
    delete,
    get,
    patch,
    post,
    put,
)
from tests.conformance.record.objects import (
    PODS,
    POLICY,
    binding,
    container,
    eviction,
    obj,
    pdb,
    pod,
)

_P1 = post(PODS, pod("p1"), save="p1")
_AT_P1 = f"{PODS}/p1"
_BIND = f"{_AT_P1}/binding"
_BOUND = post(_BIND, binding("p1", "node-1"))
_LABELLED = post(PODS, pod("p1", metadata={"labels": {"app": "x"}}), save="p1")


_BINDING = (
    Case("bind: pod absent", post(f"{PODS}/zz/binding", binding("zz", "n"))),
    Case("bind: without target", post(_BIND, binding("p1", "")), (_P1,)),
    Case(
        "bind: target is not a node",
        post(_BIND, obj("v1", "Binding", "p1", target={"kind": "Pod", "name": "x"})),
        (_P1,),
    ),
    Case("bind: other name", post(_BIND, binding("p2", "node-1")), (_P1,)),
    Case("bind: ok", post(_BIND, binding("p1", "node-1")), (_P1,)),
    Case("bind: pod afterwards", get(_AT_P1), (_P1, _BOUND)),
    Case("bind: dryRun", post(f"{_BIND}?dryRun=All", binding("p1", "node-1")), (_P1,)),
    Case(
        "bind: by the bindings collection",
        post("/api/v1/namespaces/{ns}/bindings", binding("p1", "node-1")),
        (_P1,),
    ),
    Case(
        "bind: annotations and labels reach the pod",
        get(_AT_P1),
        (
            post(PODS, pod("p1", metadata={"annotations": {"keep": "1", "change": "1"}})),
            post(
                _BIND,
                binding(
                    "p1",
                    "node-1",
                    annotations={"change": "2", "gpupool.io/a": "{}"},
                    labels={"l": "1"},
                ),
            ),
        ),
    ),
    Case("bind: uid precondition fails", post(_BIND, binding("p1", "node-1", uid="x")), (_P1,)),
    Case(
        "bind: uid precondition holds",
        post(_BIND, binding("p1", "node-1", uid="${p1.metadata.uid}")),
        (_P1,),
    ),
    Case(
        "bind: resourceVersion precondition fails",
        post(_BIND, binding("p1", "node-1", resourceVersion="1")),
        (_P1,),
    ),
    Case(
        "bind: resourceVersion precondition holds",
        post(_BIND, binding("p1", "node-1", resourceVersion="${p1.metadata.resourceVersion}")),
        (_P1,),
    ),
    Case("bind: twice", post(_BIND, binding("p1", "node-2")), (_P1, _BOUND)),
    Case("bind: twice to the same node", post(_BIND, binding("p1", "node-1")), (_P1, _BOUND)),
    Case(
        "bind: gated pod",
        post(_BIND, binding("p1", "node-1")),
        (post(PODS, pod("p1", schedulingGates=[{"name": "a/b"}])),),
    ),
    Case(
        "bind: pod being deleted",
        post(_BIND, binding("p1", "node-1")),
        (post(PODS, pod("p1", metadata={"finalizers": ["a.example.com/x"]})), delete(_AT_P1)),
    ),
)

_BUDGET = post(f"{POLICY}/poddisruptionbudgets", pdb("b", minAvailable=1))
_RUNNING = patch(
    f"{_AT_P1}/status",
    {"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}},
    STRATEGIC,
)


def _budget_status(allowed: int) -> Request:
    """What the disruption controller would write."""
    status = {
        "disruptionsAllowed": allowed,
        "currentHealthy": 1 + allowed,
        "desiredHealthy": 1,
        "expectedPods": 1 + allowed,
        "observedGeneration": 1,
    }
    return patch(f"{POLICY}/poddisruptionbudgets/b/status", {"status": status}, MERGE)


_EVICTION = (
    Case("evict: absent", post(f"{PODS}/zz/eviction", eviction("zz"))),
    Case("evict: pending pod", post(f"{_AT_P1}/eviction", eviction("p1")), (_P1,)),
    Case("evict: other name", post(f"{_AT_P1}/eviction", eviction("p2")), (_P1,)),
    Case(
        "evict: budget of a pod that is not running",
        post(f"{_AT_P1}/eviction", eviction("p1")),
        (_LABELLED, _BUDGET),
    ),
    Case(
        "evict: budget not seen by its controller",
        post(f"{_AT_P1}/eviction", eviction("p1")),
        (_LABELLED, _BOUND, _RUNNING, _BUDGET),
    ),
    Case(
        "evict: budget used up",
        post(f"{_AT_P1}/eviction", eviction("p1")),
        (_LABELLED, _BOUND, _RUNNING, _BUDGET, _budget_status(0)),
    ),
    Case(
        "evict: budget allows",
        post(f"{_AT_P1}/eviction", eviction("p1")),
        (_LABELLED, _BOUND, _RUNNING, _BUDGET, _budget_status(1)),
    ),
    Case(
        "evict: budget afterwards",
        get(f"{POLICY}/poddisruptionbudgets/b"),
        (
            _LABELLED,
            _BOUND,
            _RUNNING,
            _BUDGET,
            _budget_status(1),
            post(f"{_AT_P1}/eviction", eviction("p1")),
        ),
    ),
    Case(
        "evict: pod afterwards",
        get(_AT_P1),
        (_LABELLED, _BOUND, _RUNNING, post(f"{_AT_P1}/eviction", eviction("p1"))),
    ),
    Case(
        "evict: two budgets",
        post(f"{_AT_P1}/eviction", eviction("p1")),
        (
            _LABELLED,
            _BOUND,
            _RUNNING,
            _BUDGET,
            post(f"{POLICY}/poddisruptionbudgets", pdb("b2", maxUnavailable=0)),
        ),
    ),
    Case(
        "evict: dryRun",
        post(f"{_AT_P1}/eviction", eviction("p1", deleteOptions={"dryRun": ["All"]})),
        (_P1,),
    ),
    Case(
        "evict: uid precondition",
        post(f"{_AT_P1}/eviction", eviction("p1", deleteOptions={"preconditions": {"uid": "x"}})),
        (_P1,),
    ),
)

_ENDING = (
    Case("pod delete: unscheduled", delete(_AT_P1), (_P1,)),
    Case("pod delete: bound", delete(_AT_P1), (_P1, _BOUND)),
    Case("pod delete: bound, twice", delete(_AT_P1), (_P1, _BOUND, delete(_AT_P1))),
    Case(
        "pod delete: shorter the second time",
        delete(f"{_AT_P1}?gracePeriodSeconds=5"),
        (_P1, _BOUND, delete(_AT_P1)),
    ),
    Case(
        "pod delete: longer the second time",
        delete(f"{_AT_P1}?gracePeriodSeconds=90"),
        (_P1, _BOUND, delete(_AT_P1)),
    ),
    Case("pod delete: grace 0", delete(f"{_AT_P1}?gracePeriodSeconds=0"), (_P1, _BOUND)),
    Case("pod delete: negative grace", delete(f"{_AT_P1}?gracePeriodSeconds=-1"), (_P1, _BOUND)),
    Case(
        "pod delete: finished",
        delete(_AT_P1),
        (_P1, _BOUND, patch(f"{_AT_P1}/status", {"status": {"phase": "Succeeded"}})),
    ),
    Case("pod delete: collection", delete(PODS), (_P1, post(PODS, pod("p2")))),
    Case(
        "pod put: unchanged while deleting", put(_AT_P1, pod("p1")), (_P1, _BOUND, delete(_AT_P1))
    ),
    Case("log: pod not bound", get(f"{_AT_P1}/log"), (_P1,)),
    Case("log: pod absent", get(f"{PODS}/zz/log")),
    Case("log: node absent", get(f"{_AT_P1}/log"), (_P1, _BOUND)),
    Case(
        "log: which container",
        get(f"{_AT_P1}/log"),
        (post(PODS, pod("p1", container("a"), container("b"))), _BOUND),
    ),
    Case("log: unknown container", get(f"{_AT_P1}/log?container=z"), (_P1, _BOUND)),
    Case(
        "log: bad options",
        get(f"{_AT_P1}/log?tailLines=-1&sinceSeconds=0&limitBytes=0"),
        (_P1, _BOUND),
    ),
    Case("exec: plain get", get(f"{_AT_P1}/exec?command=true&stdout=1"), (_P1, _BOUND)),
    Case("exec: pod not bound", get(f"{_AT_P1}/exec?command=true&stdout=1"), (_P1,)),
)

CASES = (
    *_BINDING,
    *_EVICTION,
    *_ENDING,
)
