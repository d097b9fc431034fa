"""Nodes without heartbeats become NotReady, taints follow the conditions of a node, and pods that
do not tolerate a NoExecute taint are deleted.

    Ready=True      no taint
    Ready=False     node.kubernetes.io/not-ready        NoSchedule at once, NoExecute
    Ready=Unknown   node.kubernetes.io/unreachable      (its lease was not renewed for 40 s)
"""

import contextlib
import datetime
from collections.abc import Iterable

from kubeclient.client import STRATEGIC_PATCH
from kubeclient.errors import Conflict, NotFound
from kubeclient.events import NORMAL, WARNING
from kubeclient.mirror import Key
from kubeclient.objects import Obj
from kubeclient.resources import LEASES, NODES, PODS
from localkube.controllers.pods import is_ready, parse_time, stamp
from localkube.controllers.run import Context, Controller, Watch

GRACE_S = 40.0
LEASE_NAMESPACE = "kube-node-lease"
_LOOK_EVERY_S = 10.0
_NOT_READY = "node.kubernetes.io/not-ready"
_UNREACHABLE = "node.kubernetes.io/unreachable"
_UNSCHEDULABLE = "node.kubernetes.io/unschedulable"
# Conditions and their taints.
_PRESSURE = {
    "MemoryPressure": "node.kubernetes.io/memory-pressure",
    "DiskPressure": "node.kubernetes.io/disk-pressure",
    "PIDPressure": "node.kubernetes.io/pid-pressure",
    "NetworkUnavailable": "node.kubernetes.io/network-unavailable",
}
_OURS = frozenset({_NOT_READY, _UNREACHABLE, _UNSCHEDULABLE, *_PRESSURE.values()})
# The conditions that a kubelet posts, and their messages when it stops.
_KUBELETS = ("MemoryPressure", "DiskPressure", "PIDPressure", "Ready")
_STOPPED, _NEVER = "Kubelet stopped posting node status.", "Kubelet never posted node status."
_BY_NODE = "node"


async def reconcile(key: Key, context: Context) -> float | None:
    node = context.of(NODES).get(key[1])
    if node is None:
        return None
    node = await _with_heartbeat_judged(node, context)
    wanted = _wanted_taints(node)
    found = node.get("spec", {}).get("taints") or []
    kept = [taint for taint in found if taint["key"] not in _OURS]
    before = [taint for taint in found if taint["key"] in _OURS]
    if _essence(before) != _essence(wanted):
        taints = [*kept, *_dated(wanted, before, context)]
        # The patch replaces the whole list, so it must not be based on an old one: a taint that
        # somebody else has added meanwhile would be lost. After a conflict the mirror queues the
        # node again.
        change = {"metadata": {"resourceVersion": node["metadata"]["resourceVersion"]}}
        with contextlib.suppress(Conflict, NotFound):
            path = NODES.path(name=key[1])
            await context.kube.patch(path, {**change, "spec": {"taints": taints or None}})
    if _not_ready(node):
        await _mark_pods(node, context)
    # By the taints that `node` had before the patch. A new NoExecute taint acts in the next
    # reconcile, which the event of the patch causes.
    leave_s = await _evict_intolerant(node, context)
    return min(_LOOK_EVERY_S, leave_s) if leave_s is not None else _LOOK_EVERY_S


def _add_indexes(context: Context) -> None:
    context.of(PODS).add_index(_BY_NODE, lambda pod: [pod["spec"].get("nodeName", "")])


CONTROLLER = Controller(
    "node-controller",
    (Watch(NODES),),
    reconcile,
    reads=(PODS, LEASES),
    add_indexes=_add_indexes,
)


def _ready(node: Obj) -> Obj | None:
    conditions = node.get("status", {}).get("conditions") or ()
    return next((c for c in conditions if c["type"] == "Ready"), None)


def _not_ready(node: Obj) -> bool:
    ready = _ready(node)
    return ready is not None and ready["status"] != "True"


async def _mark_pods(node: Obj, context: Context) -> None:
    """Sets the node's pods to not ready, so that services leave them out."""
    for pod in context.of(PODS).by(_BY_NODE, node["metadata"]["name"]):
        if not is_ready(pod):
            continue
        metadata = pod["metadata"]
        context.events.event(pod, WARNING, "NodeNotReady", "Node is not ready")
        ready = {"type": "Ready", "status": "False", "lastTransitionTime": stamp(context.now())}
        # A strategic patch merges conditions by type; a merge patch would replace the whole list.
        change = {"metadata": {"uid": metadata["uid"]}, "status": {"conditions": [ready]}}
        path = PODS.path(metadata["namespace"], metadata["name"], "status")
        with contextlib.suppress(NotFound, Conflict):
            await context.kube.patch(path, change, content_type=STRATEGIC_PATCH)


async def _with_heartbeat_judged(node: Obj, context: Context) -> Obj:
    """Sets the node's conditions to Unknown if the last heartbeat is too old: the newest of the
    lease, the status and the creation of the node."""
    name, now = node["metadata"]["name"], context.now()
    ready = _ready(node)
    lease = context.of(LEASES).get(name, LEASE_NAMESPACE)
    signs = [parse_time(node["metadata"]["creationTimestamp"])]
    if ready is not None:
        signs.append(parse_time(ready.get("lastHeartbeatTime")))
    if lease is not None:
        signs.append(parse_time((lease.get("spec") or {}).get("renewTime")))
    silent = now - max(signs) > datetime.timedelta(seconds=GRACE_S)
    if not silent or (ready is not None and ready["status"] == "Unknown"):
        return node
    known = {c["type"] for c in node.get("status", {}).get("conditions") or ()}
    unknown = [
        {
            "type": kind,
            "status": "Unknown",
            "reason": "NodeStatusUnknown" if kind in known else "NodeStatusNeverUpdated",
            "message": _STOPPED if kind in known else _NEVER,
            "lastTransitionTime": stamp(now),
        }
        for kind in _KUBELETS
    ]
    context.events.event(node, NORMAL, "NodeNotReady", f"Node {name} status is now: NodeNotReady")
    path = NODES.path(name=name, subresource="status")
    # With the version that was judged: a heartbeat that came meanwhile must cause a conflict.
    basis = {"resourceVersion": node["metadata"]["resourceVersion"]}
    change = {"metadata": basis, "status": {"conditions": unknown}}
    return await context.kube.patch(path, change, content_type=STRATEGIC_PATCH)


def _wanted_taints(node: Obj) -> list[Obj]:
    ready = _ready(node)
    taints: list[Obj] = []
    if ready is None or ready["status"] != "True":
        key = _UNREACHABLE if ready is not None and ready["status"] == "Unknown" else _NOT_READY
        taints.append({"key": key, "effect": "NoSchedule"})
        if ready is not None:
            taints.append({"key": key, "effect": "NoExecute"})
    for condition in node.get("status", {}).get("conditions") or ():
        key = _PRESSURE.get(condition["type"], "")
        if key and condition["status"] == "True":
            taints.append({"key": key, "effect": "NoSchedule"})
    if node.get("spec", {}).get("unschedulable"):
        taints.append({"key": _UNSCHEDULABLE, "effect": "NoSchedule"})
    return taints


def _essence(taints: Iterable[Obj]) -> set[tuple[str, str]]:
    return {(taint["key"], taint["effect"]) for taint in taints}


def _dated(wanted: list[Obj], before: list[Obj], context: Context) -> list[Obj]:
    # A taint that stays keeps its time, because tolerationSeconds count from it.
    since = {(t["key"], t["effect"]): t.get("timeAdded") for t in before}
    now = stamp(context.now())
    return [
        {**taint, "timeAdded": since.get((taint["key"], taint["effect"])) or now}
        if taint["effect"] == "NoExecute" or taint["key"] == _UNSCHEDULABLE
        else taint
        for taint in wanted
    ]


async def _evict_intolerant(node: Obj, context: Context) -> float | None:
    """Deletes pods that do not tolerate a NoExecute taint; returns the seconds until the next
    one."""
    taints = [
        taint
        for taint in node.get("spec", {}).get("taints") or ()
        if taint["effect"] == "NoExecute"
    ]
    if not taints:
        return None
    due: list[float] = []
    for pod in context.of(PODS).by(_BY_NODE, node["metadata"]["name"]):
        wait_s = _seconds_tolerated(pod, taints, context.now())
        if wait_s is None or "deletionTimestamp" in pod["metadata"]:
            continue
        if wait_s > 0:
            due.append(wait_s)
            continue
        metadata = pod["metadata"]
        name = f"{metadata['namespace']}/{metadata['name']}"
        text = f"Marking for deletion Pod {name}"
        context.events.event(pod, NORMAL, "TaintManagerEviction", text)
        await context.delete(PODS, pod)
    return min(due) if due else None


def _seconds_tolerated(pod: Obj, taints: list[Obj], now: datetime.datetime) -> float | None:
    """How long the pod may stay, from now on. None: for ever. 0 or less: delete it now."""
    limits: list[float] = []
    for taint in taints:
        matching = [t for t in pod["spec"].get("tolerations") or () if _tolerates(t, taint)]
        if not matching:
            return 0.0
        seconds = [t["tolerationSeconds"] for t in matching if "tolerationSeconds" in t]
        if len(seconds) == len(matching):
            since = parse_time(taint.get("timeAdded")) if taint.get("timeAdded") else now
            limits.append(min(seconds) - (now - since).total_seconds())
    return min(limits) if limits else None


def _tolerates(toleration: Obj, taint: Obj) -> bool:
    if toleration.get("effect") not in (None, "", taint["effect"]):
        return False
    key = toleration.get("key", "")
    if key and key != taint["key"]:
        return False
    if toleration.get("operator") == "Exists":
        return True
    return bool(key) and toleration.get("value", "") == taint.get("value", "")
