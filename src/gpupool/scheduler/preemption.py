"""Evictor: deletes the victims of a preemption, as kube-scheduler does.

The preempting pod gets the node in status.nominatedNodeName. Each victim gets a condition and an
event with the reason, and is deleted with its own grace period. The uid is a precondition of the
delete: a new pod with the same name is not touched.
"""

import logging

from gpupool.engine.node_state import Held
from gpupool.scheduler.pending import Pending
from gpupool.scheduler.writes import WriteContext
from kubeclient.client import STRATEGIC_PATCH
from kubeclient.errors import KubeError, NotFound, NotSent
from kubeclient.objects import Obj
from kubeclient.resources import PODS

log = logging.getLogger(__name__)


class Evictor:
    def __init__(self, context: WriteContext) -> None:
        self._kube = context.kube
        self._reports = context.reports
        self._now = context.now
        self._may_act = context.may_act

    async def clear(self, pod: Pending, node: str, victims: list[Held]) -> None:
        """Raises KubeError; victims that were deleted before the error stay deleted."""
        if not self._may_act():
            raise NotSent("another scheduler may have taken over")
        # The nomination is written before the first delete. Claims are not in the API, so after a
        # failover the new leader sees only by this that the node is being cleared
        # (`RoomMaker.is_being_cleared`).
        path = PODS.path(pod.request.namespace, pod.request.name, "status")
        # A uid in a patch is a precondition: a new pod with the same name is not changed.
        nominated = {"metadata": {"uid": pod.uid}, "status": {"nominatedNodeName": node}}
        await self._kube.patch(path, nominated, content_type=STRATEGIC_PATCH)
        for held in victims:
            try:
                await self._evict(held, pod, node)
            except NotFound:  # gone already
                continue

    async def _evict(self, held: Held, by: Pending, node: str) -> None:
        victim = held.pod
        condition = {
            "type": "DisruptionTarget",
            "status": "True",
            "reason": "PreemptionByScheduler",
            "message": f"{by.scheduler}: preempting to accommodate a higher priority pod",
            "lastTransitionTime": self._now().strftime("%Y-%m-%dT%H:%M:%SZ"),
        }
        patch = {"metadata": {"uid": victim.uid}, "status": {"conditions": [condition]}}
        path = PODS.path(victim.namespace, victim.name, "status")
        try:
            await self._kube.patch(path, patch, content_type=STRATEGIC_PATCH)
        except NotFound:
            raise
        except KubeError as error:  # the condition only informs: evict anyway
            log.warning(
                "condition of victim not written", extra={"pod": victim.name, "error": str(error)}
            )
        options = {"preconditions": {"uid": victim.uid}}
        await self._kube.delete(PODS, victim.name, victim.namespace, options=options)
        self._reports.preempted(_as_object(held), by, node)


def _as_object(held: Held) -> Obj:
    pod = held.pod
    metadata = {"name": pod.name, "namespace": pod.namespace, "uid": pod.uid}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata}
