"""Pods whose node is gone: nobody runs them any more, and nobody else would say so."""

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
    # A pod may be seen before its node is: the server knows for sure.
    if orphans and not await _is_there(context, key[1]):
        for pod in orphans:
            with contextlib.suppress(NotFound):
                await _bury(context, pod)
    return None


async def _is_there(context: Context, node: str) -> bool:
    try:
        await context.kube.get(NODES, node)
    except NotFound:
        return False
    return True


async def _bury(context: Context, pod: Obj) -> None:
    """Those who count on the pod are to see that it failed, and not by itself."""
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
