"""Drains a node: cordons it, and evicts its pods as PodDisruptionBudgets allow."""

import contextlib

from kubeclient.errors import Conflict, NotFound, TooMany
from kubeclient.objects import Obj
from kubeclient.resources import NODES
from localkube.controllers.run import Context


async def drained(context: Context, node: Obj, pods: list[Obj]) -> bool:
    """One step of draining; True when no pod is left that must be evicted first."""
    if not node.get("spec", {}).get("unschedulable"):
        path = NODES.path(name=node["metadata"]["name"])
        await context.kube.patch(path, {"spec": {"unschedulable": True}})
    # After the cordon, or the scheduler could fill the node again.
    staying = [pod for pod in pods if must_go(pod)]
    for pod in staying:
        if "deletionTimestamp" not in pod["metadata"]:
            # It is gone, or its budget forbids it now: the next step looks again.
            with contextlib.suppress(NotFound, Conflict, TooMany):
                await context.kube.evict(pod)
    # Pods that are being deleted still count: they may need their grace period.
    return not staying


def must_go(pod: Obj) -> bool:
    """Whether the pod must be evicted. Pods of DaemonSets end with their node; finished pods need
    not be moved."""
    owners = pod["metadata"].get("ownerReferences") or ()
    if any(owner.get("controller") and owner["kind"] == "DaemonSet" for owner in owners):
        return False
    return pod.get("status", {}).get("phase") not in ("Succeeded", "Failed")
