"""Emptying a node: no new pods, and those that are there are asked to go, budgets permitting."""

import contextlib

from kubeclient.errors import NotFound, TooMany
from kubeclient.objects import Obj
from kubeclient.resources import NODES, PODS
from localkube.controllers.run import Context


async def drained(context: Context, node: Obj, pods: list[Obj]) -> bool:
    """One step; True when nothing is left that would have to go first."""
    if not node.get("spec", {}).get("unschedulable"):
        path = NODES.path(name=node["metadata"]["name"])
        await context.kube.patch(path, {"spec": {"unschedulable": True}})
    staying = [pod for pod in pods if must_go(pod)]
    for pod in staying:
        if "deletionTimestamp" not in pod["metadata"]:
            await _evict(context, pod)
    return not staying


def must_go(pod: Obj) -> bool:
    """Pods of daemon sets go with their node; finished ones disturb nobody."""
    owners = pod["metadata"].get("ownerReferences") or ()
    if any(owner.get("controller") and owner["kind"] == "DaemonSet" for owner in owners):
        return False
    return pod.get("status", {}).get("phase") not in ("Succeeded", "Failed")


async def _evict(context: Context, pod: Obj) -> None:
    metadata = pod["metadata"]
    eviction = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": metadata["name"], "namespace": metadata["namespace"]},
    }
    # Gone already; or its budget says not now, and the next look asks again.
    with contextlib.suppress(NotFound, TooMany):
        await context.kube.create(PODS, eviction, "eviction")
