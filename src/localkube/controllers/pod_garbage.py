"""Deletes the pods of nodes that are gone: no kubelet would do it."""

import contextlib
from collections.abc import Iterable

from kubeclient.errors import NotFound
from kubeclient.mirror import Key
from kubeclient.objects import Obj
from kubeclient.resources import NODES, PODS
from localkube.controllers.pods import is_finished, stamp
from localkube.controllers.run import Context, Controller, Watch

_BY_NODE = "node"
_AT_ONCE: Obj = {"gracePeriodSeconds": 0}


async def reconcile(key: Key, context: Context) -> float | None:
    """`key` names a node."""
    if context.of(NODES).get(key[1]) is not None:
        return None
    orphans = context.of(PODS).by(_BY_NODE, key[1])
    # The mirrors are not in step: a pod may show before its node. The API server knows.
    if orphans and not await _is_there(context, key[1]):
        for pod in orphans:
            with contextlib.suppress(NotFound):
                await _fail_and_delete(context, pod)
    return None


async def _is_there(context: Context, node: str) -> bool:
    try:
        await context.kube.get(NODES, node)
    except NotFound:
        return False
    return True


async def _fail_and_delete(context: Context, pod: Obj) -> None:
    """Marks the pod as failed by a disruption before it deletes it, for the pod's owner: a Job, for
    example, need not count such a failure."""
    metadata = pod["metadata"]
    if not is_finished(pod):
        failed = {"phase": "Failed", "conditions": _conditions(pod, stamp(context.now()))}
        path = PODS.path(metadata["namespace"], metadata["name"], "status")
        await context.kube.patch(path, {"metadata": {"uid": metadata["uid"]}, "status": failed})
    options = _AT_ONCE | {"preconditions": {"uid": metadata["uid"]}}
    await context.kube.delete(PODS, metadata["name"], metadata["namespace"], options=options)


def _conditions(pod: Obj, now: str) -> list[Obj]:
    kept = [c for c in pod["status"].get("conditions") or () if c["type"] != "DisruptionTarget"]
    disrupted = {
        "type": "DisruptionTarget",
        "status": "True",
        "reason": "DeletionByPodGC",
        "message": "PodGC: node no longer exists",
        "lastTransitionTime": now,
    }
    return [*kept, disrupted]


def _node_of(pod: Obj, _: Context) -> Iterable[Key]:
    node = pod["spec"].get("nodeName")
    return [("", node)] if node else []


CONTROLLER = Controller(
    "pod-garbage-collector",
    (Watch(NODES), Watch(PODS, _node_of)),
    reconcile,
    workers=1,
    add_indexes=lambda context: context.of(PODS).add_index(
        _BY_NODE, lambda pod: [pod["spec"].get("nodeName", "")]
    ),
)
