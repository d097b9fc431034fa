"""Evictor: makes room for a pod of higher priority, as kube-scheduler does.

The pod is told which node is being cleared (status.nominatedNodeName); each victim gets a
condition and an event that say why, and is deleted by its uid, with its own grace period.
"""

import datetime
import logging
from collections.abc import Callable

from gpupool.engine.node_state import Held
from gpupool.scheduler.pending import Pending
from gpupool.scheduler.report import Reports
from kubeclient.client import STRATEGIC_PATCH, Kube
from kubeclient.errors import KubeError, NotFound, NotSent
from kubeclient.objects import Obj
from kubeclient.resources import PODS

log = logging.getLogger(__name__)


class Evictor:
    def __init__(
        self,
        kube: Kube,
        reports: Reports,
        now: Callable[[], datetime.datetime],
        may_act: Callable[[], bool],
    ) -> None:
        self._kube = kube
        self._reports = reports
        self._now = now
        self._may_act = may_act

    async def clear(self, pod: Pending, node: str, victims: list[Held]) -> None:
        """Raises KubeError; what was done until then stays done."""
        if not self._may_act():
            raise NotSent("another scheduler may have taken over")
        path = PODS.path(pod.request.namespace, pod.request.name, "status")
        nominated = {"metadata": {"uid": pod.uid}, "status": {"nominatedNodeName": node}}
        await self._kube.patch(path, nominated, content_type=STRATEGIC_PATCH)
        for held in victims:
            try:
                await self._evict(held, pod, node)
            except NotFound:  # gone already, which is all that is wanted
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
        except KubeError as error:  # the condition is a courtesy
            log.warning("victim not told", extra={"pod": victim.name, "error": str(error)})
        options = {"preconditions": {"uid": victim.uid}}
        await self._kube.delete(PODS, victim.name, victim.namespace, options=options)
        self._reports.preempted(_as_object(held), by, node)


def _as_object(held: Held) -> Obj:
    pod = held.pod
    metadata = {"name": pod.name, "namespace": pod.namespace, "uid": pod.uid}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata}
